//! Time and randomness under the test's control.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use holdfast_contract::{Clock, Entropy};
use tokio::time::Instant;

/// The wall time at which every test begins.
const BEGIN_MS: u64 = 1_800_000_000_000;

/// A wall clock that follows tokio's (pausable) time, and can jump.
pub struct TokioClock {
    begun: Instant,
    jumped_ms: AtomicI64,
}

impl TokioClock {
    /// A clock that begins now. Has to be called inside a runtime.
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            jumped_ms: AtomicI64::new(0),
        }
    }

    /// Moves the wall time without moving the timers, as a clock adjustment does.
    pub fn jump_ms(&self, by_ms: i64) {
        self.jumped_ms.fetch_add(by_ms, Ordering::Relaxed);
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now_ms(&self) -> u64 {
        let elapsed_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        (BEGIN_MS + elapsed_ms).saturating_add_signed(self.jumped_ms.load(Ordering::Relaxed))
    }
}

/// Randomness that repeats for the same seed (the `SplitMix64` generator).
pub struct SeededEntropy(AtomicU64);

impl SeededEntropy {
    /// Begins at `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A number below `bound`, which has to be positive.
    pub fn below(&self, bound: u64) -> u64 {
        self.next_u64() % bound
    }

    /// Whether an event of this probability happens.
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        let state = self.0.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let mut mixed = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
