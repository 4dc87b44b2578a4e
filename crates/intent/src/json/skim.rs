//! Where a well-formed value ends. Nothing is built and nothing is mended; only raw line breaks in
//! strings are let pass, which models write and which hide nothing. What stands in the strings of
//! such a value is text, whatever it looks like.

use crate::limits::NESTING_MAX;
use crate::steps::visit;

/// What may come next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of a list that has none.
    ValueOrEnd,
    Key,
    /// A key, or the end of an object that has none.
    KeyOrEnd,
    Colon,
    /// A comma or a closer.
    More,
}

/// How far an object or list is well-formed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Skimmed {
    /// All of it: the byte behind it.
    Whole(usize),
    /// As far as the text goes: it was cut off in it.
    Open,
    /// It is not.
    Broken,
}

/// The byte behind the object or list at `at`, when it is well-formed.
pub(crate) fn skim(text: &str, at: usize) -> Option<usize> {
    match skim_open(text, at) {
        Skimmed::Whole(end) => Some(end),
        Skimmed::Open | Skimmed::Broken => None,
    }
}

/// The same, and whether the text was cut off in it.
pub(crate) fn skim_open(text: &str, at: usize) -> Skimmed {
    let bytes = text.as_bytes();
    if !matches!(bytes.get(at), Some(b'{' | b'[')) {
        return Skimmed::Broken;
    }
    let end = walk(bytes, at);
    visit(end.unwrap_or_else(|stopped| stopped) - at);
    match end {
        Ok(end) => Skimmed::Whole(end),
        Err(stopped) if stopped == bytes.len() => Skimmed::Open,
        Err(_) => Skimmed::Broken,
    }
}

/// The value's end, or the place at which it is not well-formed.
fn walk(bytes: &[u8], start: usize) -> Result<usize, usize> {
    let mut open: Vec<u8> = Vec::new();
    let mut next = Next::Value;
    let mut at = start;
    loop {
        let byte = *bytes.get(at).ok_or(at)?;
        match (next, byte) {
            (_, b' ' | b'\n' | b'\r' | b'\t') => at += 1,
            (Next::Value | Next::ValueOrEnd, b'{' | b'[') => {
                if open.len() >= NESTING_MAX {
                    return Err(at);
                }
                open.push(byte);
                next = if byte == b'{' {
                    Next::KeyOrEnd
                } else {
                    Next::ValueOrEnd
                };
                at += 1;
            }
            (Next::Value | Next::ValueOrEnd, b'"') => {
                at = string(bytes, at + 1)?;
                next = Next::More;
            }
            (Next::Key | Next::KeyOrEnd, b'"') => {
                at = string(bytes, at + 1)?;
                next = Next::Colon;
            }
            (Next::Colon, b':') => {
                at += 1;
                next = Next::Value;
            }
            (Next::More, b',') => {
                at += 1;
                next = if open.last() == Some(&b'{') {
                    Next::Key
                } else {
                    Next::Value
                };
            }
            (Next::More | Next::KeyOrEnd | Next::ValueOrEnd, b'}' | b']') => {
                // The closers stand two behind their openers in ASCII.
                if open.pop() != Some(byte - 2) {
                    return Err(at);
                }
                at += 1;
                if open.is_empty() {
                    return Ok(at);
                }
                next = Next::More;
            }
            (Next::Value | Next::ValueOrEnd, _) => {
                at = word(bytes, at)?;
                next = Next::More;
            }
            _ => return Err(at),
        }
    }
}

/// The byte behind the mark that closes a string.
fn string(bytes: &[u8], mut at: usize) -> Result<usize, usize> {
    loop {
        let rest = bytes.get(at..).ok_or(bytes.len())?;
        at += memchr::memchr2(b'"', b'\\', rest).ok_or(bytes.len())?;
        if bytes[at] == b'"' {
            return Ok(at + 1);
        }
        let escaped = *bytes.get(at + 1).ok_or(bytes.len())?;
        if !matches!(
            escaped,
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' | b'u'
        ) {
            return Err(at);
        }
        at += 2;
    }
}

/// The byte behind a number or a literal.
fn word(bytes: &[u8], at: usize) -> Result<usize, usize> {
    let len = bytes[at..]
        .iter()
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.'))
        .count();
    let word = &bytes[at..at + len];
    let literal = matches!(word, b"true" | b"false" | b"null");
    let number = word
        .first()
        .is_some_and(|byte| *byte == b'-' || byte.is_ascii_digit())
        && word
            .iter()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E'));
    if literal || number {
        Ok(at + len)
    } else if at + len == bytes.len() {
        Err(bytes.len())
    } else {
        Err(at)
    }
}

#[cfg(test)]
mod tests {
    use super::{Skimmed, skim, skim_open};

    #[test]
    fn it_ends_where_the_value_does() {
        for (text, end) in [
            (
                r#"{"a": "}", "b": [1, -2.5e3, true, null, {}, []]} rest"#,
                Some(48),
            ),
            ("{\"a\": \"two\nlines\"}", Some(18)),
            (r#"{"a": "\"}"}"#, Some(12)),
            ("{}", Some(2)),
            (r#"{"a": 1,}"#, None),
            (r#"{"a" 1}"#, None),
            (r#"{"a": 1]"#, None),
            (r#"{"a": "open"#, None),
            (r"{'a': 1}", None),
            (r#"{"a": maybe}"#, None),
            (r#"{"a": "\x"}"#, None),
            (r#""a""#, None),
        ] {
            assert_eq!(skim(text, 0), end, "{text}");
        }
    }

    #[test]
    fn a_cut_is_told_from_damage() {
        for open in [
            r#"{"a": "open \"#,
            r#"{"a": "open"#,
            r#"{"a": "shut""#,
            r#"{"a": tr"#,
            "[1",
        ] {
            assert_eq!(skim_open(open, 0), Skimmed::Open, "{open}");
        }
        assert_eq!(skim_open(r#"{"a": "shut" b"#, 0), Skimmed::Broken);
        assert_eq!(skim_open(r#"{"a": maybe }"#, 0), Skimmed::Broken);
    }

    #[test]
    fn it_does_not_nest_without_bound() {
        assert_eq!(skim(&"[".repeat(10_000), 0), None);
    }
}
