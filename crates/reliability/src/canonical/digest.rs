//! SHA-256 digests, as they are compared, stored and shown.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest. Shown and serialised as 64 lower-case hexadecimal digits.
///
/// ```
/// use holdfast_reliability::canonical::Digest;
///
/// let digest = Digest::of(b"");
/// assert!(digest.to_string().starts_with("e3b0c44298fc"));
/// assert_eq!(digest.to_string().parse(), Ok(digest));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Digest([u8; Self::BYTES]);

impl Digest {
    /// The length of a digest.
    pub const BYTES: usize = 32;

    /// The digest of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Takes the 32 bytes of a digest computed elsewhere, or read back from a store.
    pub const fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes, for stores that keep binary columns.
    pub const fn as_bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_hex(&self.0, f)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

/// Writes bytes in lower-case hexadecimal.
pub(crate) fn write_hex(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    // By the chunk and not by the byte: keys are written out several times on a call's way.
    for chunk in bytes.chunks(Digest::BYTES) {
        f.write_str(hex_chunk(chunk, &mut [0; 2 * Digest::BYTES]))?;
    }
    Ok(())
}

/// At most a digest's bytes in hexadecimal, on the stack.
pub(crate) fn hex_chunk<'d>(bytes: &[u8], digits: &'d mut [u8; 2 * Digest::BYTES]) -> &'d str {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in digits.as_chunks_mut::<2>().0.iter_mut().zip(bytes) {
        *pair = [
            DIGITS[usize::from(byte >> 4)],
            DIGITS[usize::from(byte & 0xf)],
        ];
    }
    // Digits are text, and there are two of them to every byte.
    digits
        .get(..2 * bytes.len())
        .and_then(|written| std::str::from_utf8(written).ok())
        .unwrap_or_default()
}

/// A text that is not 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a digest is 64 lower-case hexadecimal digits")]
pub struct ParseDigestError;

impl FromStr for Digest {
    type Err = ParseDigestError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.as_bytes();
        if text.len() != 2 * Self::BYTES {
            return Err(ParseDigestError);
        }
        let mut bytes = [0; Self::BYTES];
        for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Self(bytes))
    }
}

/// Only lower case is read, so that a digest has one spelling.
const fn nibble(digit: u8) -> Result<u8, ParseDigestError> {
    match digit {
        b'0'..=b'9' => Ok(digit - b'0'),
        b'a'..=b'f' => Ok(digit - b'a' + 10),
        _ => Err(ParseDigestError),
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        hex_chunk(&digest.0, &mut [0; 2 * Digest::BYTES]).to_owned()
    }
}

impl TryFrom<String> for Digest {
    type Error = ParseDigestError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::{Digest, ParseDigestError};

    #[test]
    fn a_digest_survives_its_text() {
        let digest = Digest::of(b"abc");
        let json = serde_json::to_string(&digest).unwrap();
        assert_eq!(json.len(), 66);
        assert_eq!(serde_json::from_str::<Digest>(&json).unwrap(), digest);
        assert_eq!(Digest::from_bytes(*digest.as_bytes()), digest);
    }

    #[test]
    fn only_one_spelling_is_read() {
        let text = Digest::of(b"abc").to_string();
        for wrong in [
            &text[1..],
            &text.to_uppercase(),
            &text.replace('a', "g"),
            "",
        ] {
            assert_eq!(wrong.parse::<Digest>(), Err(ParseDigestError));
        }
    }
}
