//! Code that shows the form of a call and can not be one.

/// A longer one would be no name of a value, and is not looked for.
const PLACEHOLDER_BYTES_MAX: usize = 64;

/// Whether code has gaps where a call has its name and values: dots, or `<name>` where JSON has a value.
pub(crate) fn is_sketch(code: &str) -> bool {
    let is_gap = |(at, _): (usize, &str)| {
        let before = code[..at].trim_end();
        before.ends_with([':', ',', '[', '{', '"', '=', '>'])
    };
    let dots = ["…", "..."];
    let has_dots = dots.iter().any(|dots| code.match_indices(dots).any(is_gap));
    has_dots
        || code
            .match_indices('<')
            .any(|found| is_gap(found) && is_placeholder(&code[found.0..]))
}

/// `<name>`: words between angle brackets behind which JSON goes on.
fn is_placeholder(code: &str) -> bool {
    let end = code
        .bytes()
        .take(PLACEHOLDER_BYTES_MAX)
        .position(|byte| byte == b'>');
    let Some(end) = end else {
        return false;
    };
    let (words, behind) = (&code[1..end], &code[end + 1..]);
    let is_word = |letter: char| letter.is_alphanumeric() || " _-".contains(letter);
    !words.is_empty()
        && words.chars().all(is_word)
        && behind.trim_start().starts_with([',', '}', ']', '"'])
}

#[cfg(test)]
mod tests {
    use super::is_sketch;

    #[test]
    fn gaps_are_told_from_values() {
        for sketch in [
            r#"{"name": <name>, "arguments": <args>}"#,
            r#"{"name": "<name>", "arguments": {}}"#,
            r#"{"name": …}"#,
            "<tool_call>...</tool_call>",
        ] {
            assert!(is_sketch(sketch), "{sketch}");
        }
        for call in [
            r#"<tool_call>{"name": "teleport", "arguments": {}}</tool_call>"#,
            r#"{"name": "write", "arguments": {"text": "and so on..."}}"#,
            r#"{"name": "write", "arguments": {"text": "a <b> c"}}"#,
            "<invoke name=\"teleport\"><parameter name=\"a\">b</parameter></invoke>",
        ] {
            assert!(!is_sketch(call), "{call}");
        }
    }
}
