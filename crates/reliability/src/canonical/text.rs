//! Strings in canonical form: the escapes of RFC 8785, nothing else escaped.

/// How many bytes are looked at together.
const WORD_BYTES: usize = 8;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Appends the string as it is, quoted.
pub(super) fn write_exact(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(text, out);
    out.push(b'"');
}

/// Appends the string, quoted, with every run of whitespace as one space and none at the ends.
pub(super) fn write_collapsed(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        write_escaped(word, out);
    }
    out.push(b'"');
}

/// Whether the string is surely its own collapsed form: ASCII, with single spaces between words
/// and no other blanks. Without a way out of the loop, which the compiler then does in vectors.
pub(super) fn is_collapsed(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ([first, rest @ ..], [.., last]) = (bytes, bytes) else {
        return true;
    };
    let is_odd = |byte: u8| !byte.is_ascii() | matches!(byte, b'\t'..=b'\r');
    let mut odd = is_odd(*first) || *first == b' ' || *last == b' ';
    for (before, byte) in bytes.iter().zip(rest) {
        odd |= is_odd(*byte);
        odd |= *before == b' ' && *byte == b' ';
    }
    !odd
}

fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    out.reserve(rest.len());
    while let Some(at) = next_escape(rest) {
        out.extend_from_slice(&rest[..at]);
        write_escape(rest[at], out);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
}

/// The position of the first byte that can not stand for itself.
fn next_escape(bytes: &[u8]) -> Option<usize> {
    let (words, tail) = bytes.as_chunks::<WORD_BYTES>();
    for (index, word) in words.iter().enumerate() {
        let marks = escape_marks(u64::from_le_bytes(*word));
        if marks != 0 {
            return Some(index * WORD_BYTES + first_mark(marks));
        }
    }
    if words.is_empty() {
        return tail.iter().position(|byte| needs_escape(*byte));
    }
    // The last whole word covers the rest; what it covers twice has no marks.
    let word = bytes.last_chunk::<WORD_BYTES>()?;
    let marks = escape_marks(u64::from_le_bytes(*word));
    (marks != 0).then(|| bytes.len() - WORD_BYTES + first_mark(marks))
}

const fn needs_escape(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Sets the top bit of each byte that needs an escape: below 0x20, a quote, or a backslash.
///
/// A borrow can set a wrong bit, but only above a right one, so the lowest is always right.
const fn escape_marks(word: u64) -> u64 {
    const LOW: u64 = 0x0101_0101_0101_0101;
    const TOP: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (LOW * b'"' as u64);
    let backslash = word ^ (LOW * b'\\' as u64);
    let control = word.wrapping_sub(LOW * 0x20) & !word;
    let quote = quote.wrapping_sub(LOW) & !quote;
    let backslash = backslash.wrapping_sub(LOW) & !backslash;
    (control | quote | backslash) & TOP
}

const fn first_mark(marks: u64) -> usize {
    (marks.trailing_zeros() / u8::BITS) as usize
}

fn write_escape(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x08 => b'b',
        b'\t' => b't',
        b'\n' => b'n',
        0x0c => b'f',
        b'\r' => b'r',
        _ => {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 0xf)]);
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::{is_collapsed, write_collapsed, write_exact};

    fn written(write: fn(&str, &mut Vec<u8>), text: &str) -> String {
        let mut out = Vec::new();
        write(text, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn escapes_are_those_of_the_rfc() {
        let input = "\u{20ac}$\u{f}\nA'B\"\\\\\"/\u{8}\t\u{c}\r\u{7f}\u{2028}";
        let expected = "\"\u{20ac}$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\\b\\t\\f\\r\u{7f}\u{2028}\"";
        assert_eq!(written(write_exact, input), expected);
    }

    #[test]
    fn an_escape_is_found_at_every_offset() {
        for length in 0..50 {
            for at in 0..length {
                let mut text = "x".repeat(length);
                text.replace_range(at..=at, "\n");
                let expected = format!("\"{}\"", text.replace('\n', "\\n"));
                assert_eq!(written(write_exact, &text), expected);
            }
        }
    }

    #[test]
    fn a_string_that_is_called_collapsed_is() {
        for text in ["", "a", "a b c", "report-17.md", "{\"a\": 1}", "a\u{1}b"] {
            assert!(is_collapsed(text), "{text:?}");
            assert_eq!(written(write_collapsed, text), written(write_exact, text));
        }
        for text in [
            " ", " a", "a ", "a  b", "a\tb", "a\nb", "\n", "a\u{b}b", "a\u{a0}b", "é",
        ] {
            assert!(!is_collapsed(text), "{text:?}");
        }
    }

    #[test]
    fn collapsing_trims_and_joins() {
        assert_eq!(
            written(write_collapsed, "  a \t\n b\u{a0}\u{3000}c "),
            "\"a b c\""
        );
        assert_eq!(written(write_collapsed, " \n "), "\"\"");
        assert_eq!(written(write_collapsed, "a\u{1}b"), "\"a\\u0001b\"");
    }
}
