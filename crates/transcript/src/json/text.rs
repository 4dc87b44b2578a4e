//! A string as it stands in the text.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

/// A JSON string without its quotation marks, still escaped.
#[derive(Debug, Clone, Copy)]
pub struct Text<'t> {
    raw: &'t [u8],
    is_escaped: bool,
}

impl<'t> Text<'t> {
    pub(crate) const fn new(raw: &'t [u8], is_escaped: bool) -> Self {
        Self { raw, is_escaped }
    }

    /// The bytes as they stand in the text.
    pub const fn raw(self) -> &'t [u8] {
        self.raw
    }

    /// The string itself. What is not UTF-8, and a lone half of a surrogate pair, becomes U+FFFD.
    pub fn to_str(self) -> Cow<'t, str> {
        match self.unescaped() {
            Cow::Borrowed(bytes) => String::from_utf8_lossy(bytes),
            Cow::Owned(bytes) => Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()),
        }
    }

    /// The bytes of the string itself.
    pub fn unescaped(self) -> Cow<'t, [u8]> {
        if self.is_escaped {
            Cow::Owned(unescape(self.raw))
        } else {
            Cow::Borrowed(self.raw)
        }
    }

    /// A number that stands for the string: equal strings have equal numbers, however escaped.
    #[inline]
    pub fn hash(self) -> u64 {
        if self.is_escaped {
            xxh3_64(&unescape(self.raw))
        } else {
            xxh3_64(self.raw)
        }
    }

    /// Whether it is this string.
    #[inline]
    pub fn is(self, text: &[u8]) -> bool {
        if self.is_escaped {
            unescape(self.raw) == text
        } else {
            self.raw == text
        }
    }
}

/// Replaces escapes. The text was checked: every escape is whole.
fn unescape(raw: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        plain.extend_from_slice(&rest[..at]);
        let escape = rest.get(at + 1).copied().unwrap_or(b'\\');
        let mut taken = 2;
        match escape {
            b'n' => plain.push(b'\n'),
            b't' => plain.push(b'\t'),
            b'r' => plain.push(b'\r'),
            b'b' => plain.push(8),
            b'f' => plain.push(12),
            b'u' => {
                let (sign, bytes) = sign(rest, at);
                taken = bytes;
                let mut buffer = [0; 4];
                plain.extend_from_slice(sign.encode_utf8(&mut buffer).as_bytes());
            }
            itself => plain.push(itself),
        }
        rest = rest.get(at + taken..).unwrap_or_default();
    }
    plain.extend_from_slice(rest);
    plain
}

/// The sign of a `\u` escape and how many bytes it takes: a surrogate pair takes two escapes.
fn sign(text: &[u8], at: usize) -> (char, usize) {
    let unit = |at: usize| -> Option<u32> {
        let digits = text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
    };
    match unit(at) {
        Some(high @ 0xD800..0xDC00) => match unit(at + 6) {
            Some(low @ 0xDC00..0xE000) => {
                let code = 0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                (
                    char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
                    12,
                )
            }
            _ => (char::REPLACEMENT_CHARACTER, 6),
        },
        Some(code) => (
            char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER),
            6,
        ),
        None => (char::REPLACEMENT_CHARACTER, 2),
    }
}
