//! Limits that several processes draw on.

use futures_util::future::BoxFuture;
use smallvec::SmallVec;

use super::ToolLimit;
use crate::store::StoreResult;

/// Limits that one call can have: its tool's and its dependency's.
pub const LIMITS_PER_CALL_MAX: usize = 2;

/// What came of asking for a place under all limits of a call: all of them gave it, or none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// How long to wait for the place, or how long it would have been.
    pub wait_us: u64,
    /// Whether the place is ours.
    pub granted: bool,
    /// How far ahead of time each limit is used up now.
    pub ahead_us: SmallVec<[u64; LIMITS_PER_CALL_MAX]>,
}

/// Counts the attempts of all processes.
///
/// Asked besides the process's own limits, and only for an attempt that these allow. Without an
/// answer the process's own limits are enough.
pub trait SharedRateLimits: Send + Sync {
    /// Takes a place under each of `limits` if it comes within `wait_max_us`, else under none.
    fn take<'a>(
        &'a self,
        limits: &'a [ToolLimit],
        wait_max_us: u64,
    ) -> BoxFuture<'a, StoreResult<Taken>>;
}
