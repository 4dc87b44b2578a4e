//! Stored hashes.
//!
//! XXH3 has a published, frozen specification, so a hash written by one version of this crate is
//! found again by the next. Both kinds are written as hexadecimal text: a host that parses the
//! stored state as JSON in a language with only doubles would otherwise round them.

use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 64-bit hash: signatures, digests, forms, tool names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Hash64(pub(super) u64);

/// A 128-bit hash: the identity of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Hash128(pub(super) u128);

impl Hash64 {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64(bytes))
    }
}

impl Hash128 {
    /// The hash of some arguments of some tool.
    pub(super) fn of(bytes: &[u8], tool: Hash64) -> Self {
        Self(xxhash_rust::xxh3::xxh3_128_with_seed(bytes, tool.0))
    }
}

impl fmt::Display for Hash64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl fmt::Display for Hash128 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Serialize for Hash64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Hash128 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16)
            .map(Self)
            .map_err(D::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Hash128 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16)
            .map(Self)
            .map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        // Stored states depend on these values: if this test fails, old states no longer match.
        assert_eq!(Hash64::of(b"").to_string(), "2d06800538d394c2");
        assert_eq!(
            Hash128::of(b"", Hash64(0)).to_string(),
            "99aa06d3014798d86001c324468d497f"
        );
    }

    #[test]
    fn text_form_survives_the_round_trip() {
        let hash = Hash128(u128::MAX - 5);
        let text = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<Hash128>(&text).unwrap(), hash);
        let small = Hash64(7);
        assert_eq!(
            serde_json::to_string(&small).unwrap(),
            "\"0000000000000007\""
        );
        assert!(serde_json::from_str::<Hash64>("\"not hex\"").is_err());
    }
}
