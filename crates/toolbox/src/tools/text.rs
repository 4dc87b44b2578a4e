//! Telling text from other bytes, and short texts for people.

use holdfast_contract::ToolError;

/// The first bytes of common formats that are not text.
const SIGNATURES: &[(&[u8], &str)] = &[
    (b"\x89PNG", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive or an office document"),
    (b"\x1f\x8b", "gzip data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"\x7fELF", "an ELF executable"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"\0asm", "a WebAssembly module"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
];

/// What a file that begins with `head` seems to be, when it is not text.
pub(super) fn binary_kind(head: &[u8]) -> Option<&'static str> {
    let known = SIGNATURES
        .iter()
        .find(|(signature, _)| head.starts_with(signature))
        .map(|(_, kind)| *kind);
    // Some of the signatures are printable, so a text may begin with one; a NUL byte is in none.
    if memchr::memchr(0, head).is_some() {
        return Some(known.unwrap_or("binary data"));
    }
    known.filter(|_| std::str::from_utf8(head).is_err_and(|error| error.error_len().is_some()))
}

/// The byte order of UTF-16 text that says so.
pub(super) fn utf16_order(head: &[u8]) -> Option<&'static str> {
    match head {
        // As UTF-32 it would begin alike.
        [0xff, 0xfe, 0, 0, ..] => None,
        [0xff, 0xfe, ..] => Some("utf-16le"),
        [0xfe, 0xff, ..] => Some("utf-16be"),
        _ => None,
    }
}

/// How much of a file tells whether it is UTF-16 without saying so.
const UNMARKED_BYTES: usize = 1024;

/// The byte order of what can only be UTF-16 text that does not say so: every other byte of mostly
/// Latin text is zero, and no byte between them is.
pub(super) fn utf16_unmarked(head: &[u8]) -> Option<&'static str> {
    let (pairs, _) = head.get(..head.len().min(UNMARKED_BYTES))?.as_chunks::<2>();
    let zeros = |place: usize| pairs.iter().filter(|pair| pair[place] == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    let most = pairs.len() * 9 / 10;
    match (even, odd) {
        _ if pairs.len() < 4 => None,
        (0, odd) if odd > most => Some("utf-16le"),
        (even, 0) if even > most => Some("utf-16be"),
        _ => None,
    }
}

/// A text that is not edited. It can be read where it says what it is; where it does not, that is a
/// guess.
pub(super) fn is_utf16(asked: &str, order: &str) -> ToolError {
    let name = order.to_ascii_uppercase();
    ToolError::coded(
        "not_utf8",
        format!(
            "{asked:?} is {name} text, and only UTF-8 is edited; nothing was changed. To edit it, \
             convert it with exec and back again: `iconv -f {name} -t UTF-8`"
        ),
    )
}

/// UTF-16 text as UTF-8, without its mark; nothing when it is broken.
pub(super) fn from_utf16(bytes: &[u8], order: &str) -> Option<Vec<u8>> {
    let (pairs, []) = bytes.as_chunks::<2>() else {
        return None;
    };
    let units = pairs.iter().skip(1).map(|pair| match order {
        "utf-16le" => u16::from_le_bytes(*pair),
        _ => u16::from_be_bytes(*pair),
    });
    let text: Result<String, _> = char::decode_utf16(units).collect();
    text.ok().map(String::into_bytes)
}

pub(super) fn binary_file(asked: &str, kind: &str, size_bytes: u64) -> ToolError {
    ToolError::coded(
        "binary_file",
        format!("{asked:?} can not be shown as text: it seems to be {kind}, {size_bytes} bytes"),
    )
}

pub(super) fn not_utf8(asked: &str, size_bytes: u64, at_byte: u64) -> ToolError {
    ToolError::coded(
        "not_utf8",
        format!(
            "{asked:?} can not be shown as text: it is not valid UTF-8 at byte {at_byte} of \
             {size_bytes}"
        ),
    )
}

/// `text` on one line for people: control characters replaced, at most `chars_max` characters.
pub(crate) fn one_line(text: &str, chars_max: usize) -> String {
    let mut chars = text.trim().chars();
    let mut line: String = chars
        .by_ref()
        .take(chars_max)
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect();
    if chars.next().is_some() {
        line.push('…');
    }
    line
}

/// `1 line`, `2 lines`.
pub(super) fn counted(count: u64, thing: &str) -> String {
    if count == 1 {
        format!("1 {thing}")
    } else {
        format!("{count} {thing}s")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_not_taken_for_binary() {
        for text in ["", "hello", "%PDF is how a PDF begins", "GIF89a?", "größer"] {
            assert_eq!(binary_kind(text.as_bytes()), None, "{text}");
        }
        // A head that ends within a character is still text.
        assert_eq!(binary_kind(&"größer".as_bytes()[..3]), None);
    }

    #[test]
    fn known_formats_are_named() {
        assert_eq!(binary_kind(b"\x89PNG\r\n\x1a\n\0\0"), Some("a PNG image"));
        assert_eq!(
            binary_kind(b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n"),
            Some("a PDF document")
        );
        assert_eq!(binary_kind(b"abc\0def"), Some("binary data"));
    }

    #[test]
    fn utf16_is_read_by_its_mark() {
        let text = "größer 😀\n";
        let le: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let be: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (mark, order, bytes) in [
            ([0xff, 0xfe], "utf-16le", le),
            ([0xfe, 0xff], "utf-16be", be),
        ] {
            let whole = [&mark[..], &bytes].concat();
            assert_eq!(utf16_order(&whole), Some(order));
            assert_eq!(from_utf16(&whole, order).as_deref(), Some(text.as_bytes()));
            assert_eq!(from_utf16(&whole[..whole.len() - 1], order), None);
        }
        assert_eq!(utf16_order(b"plain"), None);
        assert_eq!(utf16_order(b"\xff\xfe\0\0"), None);
        assert_eq!(from_utf16(b"\xff\xfe\x00\xd8", "utf-16le"), None);
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(one_line(" a\nb\x1b[31m ", 80), "a b [31m");
        assert_eq!(one_line("abcdef", 3), "abc…");
    }
}
