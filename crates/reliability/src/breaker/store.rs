//! Where breakers are kept.

use crate::breaker::{BreakerKey, BreakerOp, BreakerPolicy, BreakerState, StepOutcome};
use crate::store::StoreFuture;

/// Breakers kept at most; one more is refused as a full store. Keys come from registered tools, the
/// bounded parts of some, and configured dependencies, so only a bug gets there.
pub const BREAKERS_MAX: usize = 4096;

/// Keeps circuit breakers.
pub trait BreakerStore: Send + Sync {
    /// Applies one step to one breaker, atomically.
    fn apply<'a>(
        &'a self,
        key: &'a BreakerKey,
        op: BreakerOp,
        policy: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome>;

    /// Applies a step from a place that can not wait: the drop of a cancelled attempt.
    fn apply_detached(&self, key: &BreakerKey, op: BreakerOp, policy: &BreakerPolicy);

    /// Every breaker there is.
    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>>;
}
