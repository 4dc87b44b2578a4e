//! Members that stand twice in one JSON object.
//!
//! JSON leaves open which of them counts, and readers differ: what was checked by one may not be what
//! another runs. So a text that leaves it open is refused.

use std::collections::HashSet;

use serde_json::Value;

/// As much of a name is told.
const TOLD_CHARS_MAX: usize = 64;

/// The beginning of the first name that stands twice in one object of a JSON text, `value` being what was read from it.
///
/// ```
/// use holdfast_contract::twice::repeated_member;
///
/// let text = br#"{"to": "ann", "cc": {"a": 1, "a": 2}}"#;
/// let value = serde_json::from_slice(text).unwrap();
/// assert_eq!(repeated_member(text, &value).as_deref(), Some("a"));
/// ```
pub fn repeated_member(text: &[u8], value: &Value) -> Option<String> {
    // Counting is all that a text without a repeat costs.
    if members_in_text(text) == members_of(value) {
        return None;
    }
    first_repeated(text).map(|name| name.chars().take(TOLD_CHARS_MAX).collect())
}

/// Colons outside of strings: in valid JSON each stands behind a name.
fn members_in_text(text: &[u8]) -> usize {
    let (mut at, mut colons) = (0, 0);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = end_of_string(text, at),
            b':' => {
                colons += 1;
                at += 1;
            }
            _ => at += 1,
        }
    }
    colons
}

/// Behind the string that begins here.
fn end_of_string(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

fn members_of(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(members_of).sum(),
        Value::Object(fields) => fields.len() + fields.values().map(members_of).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn first_repeated(text: &[u8]) -> Option<String> {
    // The names of the objects that are open here.
    let mut open: Vec<HashSet<String>> = Vec::new();
    let mut last_string: &[u8] = b"";
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                let end = end_of_string(text, at);
                last_string = &text[at..end];
                at = end;
                continue;
            }
            b'{' => open.push(HashSet::new()),
            b'}' => drop(open.pop()),
            b':' => {
                let name: String = serde_json::from_slice(last_string).ok()?;
                if !open.last_mut()?.insert(name.clone()) {
                    return Some(name);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_found_wherever_they_stand_and_however_they_are_written() {
        for (text, expected) in [
            (
                r#"{"a": 1, "b": {"a": 2}, "c": [{"a": 3}, {"a": 4}]}"#,
                None,
            ),
            (r#"{"a:": "b: \" c:", "d": "{\"d\": 1, \"d\": 2}"}"#, None),
            (r#"{"a": 1.5e300, "b": -0, "c": null, "d": true}"#, None),
            ("[]", None),
            (r#""a:""#, None),
            (r#"{"a": 1, "a": 1}"#, Some("a")),
            (r#"{"x": [{"key": 1, "\u006bey": 2}]}"#, Some("key")),
            (r#"{"": 1, "": 2}"#, Some("")),
        ] {
            let value = serde_json::from_str(text).unwrap();
            let found = repeated_member(text.as_bytes(), &value);
            assert_eq!(found.as_deref(), expected, "{text}");
        }
    }
}
