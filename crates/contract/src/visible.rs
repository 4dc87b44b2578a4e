//! Text from outside, written so that a person sees all of it.
//!
//! Some signs show as nothing, some as an ordinary blank, some turn around what stands beside them,
//! and some move the cursor. What a person is to judge is shown with such signs spelled out.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

/// Controls, formats (bidirectional ones among them), line and paragraph separators, what Unicode
/// says may be ignored, and every blank but the ordinary one.
const UNSEEN: &str = r"[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{DI}\x{2800}[\p{Zs}--\x20]]";

#[expect(
    clippy::expect_used,
    reason = "a constant pattern, compiled by every test of this module"
)]
static UNSEEN_SIGN: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(UNSEEN).expect("the pattern is valid"));

/// Whether a sign is not seen for what it is.
///
/// ```
/// use holdfast_contract::visible::is_unseen;
/// assert!(is_unseen('\u{202e}') && is_unseen('\u{200b}') && is_unseen('\u{a0}'));
/// assert!(!is_unseen('a') && !is_unseen(' ') && !is_unseen('ü') && !is_unseen('語'));
/// ```
pub fn is_unseen(sign: char) -> bool {
    if sign.is_ascii() {
        return sign.is_ascii_control();
    }
    UNSEEN_SIGN.is_match(sign.encode_utf8(&mut [0; 4]))
}

/// The text on one line, every sign of it to be seen: `\n` and `\u{202e}` stand for what they name.
///
/// ```
/// use holdfast_contract::visible::line;
/// assert_eq!(line("rm x\nrm \u{202e}y"), r"rm x\nrm \u{202e}y");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    spelled_out(
        text,
        |_| false,
        |sign, out| {
            out.extend(sign.escape_default());
        },
    )
}

/// A value as JSON on one line, every sign of it to be seen. It reads back as the same value.
///
/// ```
/// use holdfast_contract::visible::json;
/// let value = serde_json::json!({"command": "echo \u{200b}x\n"});
/// assert_eq!(json(&value), r#"{"command":"echo \u200bx\n"}"#);
/// assert_eq!(serde_json::from_str::<serde_json::Value>(&json(&value)).unwrap(), value);
/// ```
pub fn json(value: &Value) -> String {
    json_text(&value.to_string()).into_owned()
}

/// The same JSON text, every sign in its strings to be seen. The ends of lines stay: within a string
/// JSON does not have any.
pub fn json_text(text: &str) -> Cow<'_, str> {
    spelled_out(text, |sign| sign == '\n', escape_in_json)
}

/// Writes a sign as JSON's escape for it.
pub fn escape_in_json(sign: char, out: &mut String) {
    for unit in sign.encode_utf16(&mut [0; 2]) {
        // Writing to a text does not fail.
        let _ = write!(out, "\\u{unit:04x}");
    }
}

fn spelled_out(
    text: &str,
    stays: impl Fn(char) -> bool,
    spell: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    let hides = |sign: char| is_unseen(sign) && !stays(sign);
    if !text.chars().any(hides) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for sign in text.chars() {
        if hides(sign) {
            spell(sign, &mut out);
        } else {
            out.push(sign);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_not_seen_is_spelled_out() {
        let unseen = [
            '\0',
            '\u{7}',
            '\u{1b}',
            '\u{7f}',
            '\u{85}',
            '\u{9b}',
            '\u{a0}',
            '\u{ad}',
            '\u{34f}',
            '\u{61c}',
            '\u{115f}',
            '\u{180e}',
            '\u{2003}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{2028}',
            '\u{2029}',
            '\u{202a}',
            '\u{202e}',
            '\u{2060}',
            '\u{2066}',
            '\u{2069}',
            '\u{2800}',
            '\u{3000}',
            '\u{3164}',
            '\u{fe0f}',
            '\u{feff}',
            '\u{ffa0}',
            '\u{e0041}',
            '\u{e0100}',
        ];
        for sign in unseen {
            assert!(is_unseen(sign), "{:x}", u32::from(sign));
            let text = format!("a{sign}b");
            let shown = line(&text);
            assert!(!shown.contains(sign), "{shown}");
            let value = Value::from(text.as_str());
            let shown = json(&value);
            assert!(!shown.contains(sign), "{shown}");
            assert_eq!(serde_json::from_str::<Value>(&shown).ok(), Some(value));
        }
        for text in ["rm -rf ./x | wc -l; echo \"ä 語 🦀\"", ""] {
            assert!(matches!(line(text), Cow::Borrowed(_)), "{text}");
        }
    }

    proptest! {
        #[test]
        fn json_reads_back_as_what_it_was(text in "\\PC*|[\\p{C}\\p{Z}\\\\u\"a]*") {
            let value = serde_json::json!({ text.clone(): [text] });
            let shown = json(&value);
            prop_assert!(!shown.chars().any(is_unseen));
            prop_assert_eq!(serde_json::from_str::<Value>(&shown).ok(), Some(value));
        }
    }
}
