//! Breakers in memory.

use std::collections::HashMap;
use std::sync::Arc;

use holdfast_contract::Clock;
use parking_lot::Mutex;

use crate::breaker::{
    BREAKERS_MAX, BreakerKey, BreakerOp, BreakerPolicy, BreakerState, BreakerStore, StepOutcome,
    Told, step,
};
use crate::store::{StoreError, StoreFuture, StoreResult};

/// The breakers of one process.
pub struct MemoryBreakerStore {
    clock: Arc<dyn Clock>,
    /// Keys come from registered tools, so the hash need not withstand an attacker.
    breakers: Mutex<HashMap<BreakerKey, BreakerState, lru::DefaultHasher>>,
}

impl MemoryBreakerStore {
    /// No breakers yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self {
            clock,
            breakers: Mutex::default(),
        }
    }

    fn apply_now(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
    ) -> StoreResult<StepOutcome> {
        let now_ms = self.clock.now_ms();
        let mut breakers = self.breakers.lock();
        if let Some(state) = breakers.get_mut(key) {
            return Ok(step(state, op, policy, now_ms));
        }
        if breakers.len() >= BREAKERS_MAX {
            return Err(StoreError::Full(format!(
                "{BREAKERS_MAX} circuit breakers are kept already"
            )));
        }
        Ok(step(
            breakers.entry(key.clone()).or_default(),
            op,
            policy,
            now_ms,
        ))
    }
}

impl BreakerStore for MemoryBreakerStore {
    fn apply<'a>(
        &'a self,
        key: &'a BreakerKey,
        op: BreakerOp,
        policy: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome> {
        StoreFuture::ready(self.apply_now(key, op, policy))
    }

    fn apply_detached(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
        told: Option<Told>,
    ) {
        // Nobody is left to be told of a full store, and what it can not hold it can not free.
        if let (Ok(outcome), Some(told)) = (self.apply_now(key, op, policy), told) {
            told(&outcome);
        }
    }

    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>> {
        let mut found: Vec<_> = self
            .breakers
            .lock()
            .iter()
            .map(|(key, state)| (key.clone(), state.clone()))
            .collect();
        found.sort_by(|a, b| a.0.cmp(&b.0));
        StoreFuture::ready(Ok(found))
    }
}
