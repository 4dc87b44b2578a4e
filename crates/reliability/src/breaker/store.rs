//! Where breakers are kept.

use std::sync::Arc;

use crate::breaker::{BreakerKey, BreakerOp, BreakerPolicy, BreakerState, StepOutcome};
use crate::store::StoreFuture;

/// Breakers kept at most; one more is refused as a full store. Keys come from registered tools, the
/// bounded parts of some, and configured dependencies, so only a bug gets there.
pub const BREAKERS_MAX: usize = 4096;

/// Wants to know what came of a step, wherever that becomes known. It must not block.
pub type Told = Arc<dyn Fn(&StepOutcome) + Send + Sync>;

/// Keeps circuit breakers.
pub trait BreakerStore: Send + Sync {
    /// Applies one step to one breaker, atomically.
    fn apply<'a>(
        &'a self,
        key: &'a BreakerKey,
        op: BreakerOp,
        policy: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome>;

    /// Applies a step from a place that can not wait: the drop of a cancelled attempt. What came of it
    /// is told to whoever wants to know, unless it can not be kept.
    fn apply_detached(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
        told: Option<Told>,
    );

    /// Every breaker there is.
    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>>;
}
