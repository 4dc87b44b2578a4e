//! How much the memory store may hold.

/// How much the memory store may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// Records.
    pub keys_max: usize,
    /// Bytes, roughly.
    pub bytes_max: usize,
}

/// Default of [`MemoryLimits::keys_max`].
pub const MEMORY_KEYS_MAX: usize = 25_000;
/// Default of [`MemoryLimits::bytes_max`].
pub const MEMORY_BYTES_MAX: usize = 256 * 1024 * 1024;

impl Default for MemoryLimits {
    fn default() -> Self {
        Self {
            keys_max: MEMORY_KEYS_MAX,
            bytes_max: MEMORY_BYTES_MAX,
        }
    }
}
