//! Hashing stored keys, which are hashes.

use std::hash::{BuildHasherDefault, Hasher};

/// Stored keys are SHA-256 digests: eight of their bytes are a hash already.
#[derive(Default, Clone, Copy)]
pub(super) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        if let Some(first) = bytes.first_chunk() {
            self.0 = u64::from_le_bytes(*first);
        }
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// For maps by stored key.
pub(super) type ByKey = BuildHasherDefault<KeyHasher>;
