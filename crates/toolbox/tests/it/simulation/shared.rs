//! Handles on the shared breakers and turns.

use std::sync::Arc;

use futures_util::FutureExt;
use holdfast_contract::Clock;
use holdfast_reliability::breaker::{
    Admission, BreakerKey, BreakerOp, BreakerPolicy, BreakerState, BreakerStore, StepOutcome, Told,
};
use holdfast_reliability::guard::{
    Advice, CallIdentity, Checked, GuardConfig, GuardStore, Observation, RecordMark, TurnKey,
};
use holdfast_reliability::store::StoreFuture;
use holdfast_reliability::store::memory::{MemoryBreakerStore, MemoryGuardStore};

use super::handle::{Line, at_once};

/// A process's handle on the breakers.
pub(crate) struct BreakerHandle {
    pub(crate) line: Line,
    pub(crate) store: Arc<MemoryBreakerStore>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl BreakerHandle {
    /// A half-open breaker never has more probes under way than its policy allows.
    fn judge(&self, key: &BreakerKey, outcome: &StepOutcome, policy: &BreakerPolicy) {
        let Some(Admission::Pass(permit)) = &outcome.admission else {
            return;
        };
        if !permit.is_probe() {
            return;
        }
        let Ok(breakers) = at_once(self.store.breakers()) else {
            return;
        };
        for (_, state) in breakers.iter().filter(|(held, _)| held == key) {
            let live = state.snapshot(policy, self.clock.now_ms()).live_probes;
            let allowed = policy.half_open_max_probes();
            if live > allowed {
                self.line.ledger.broken(|| {
                    format!("breaker: {live} probes of {key} are under way, {allowed} are allowed")
                });
            }
        }
    }
}

impl BreakerStore for BreakerHandle {
    fn apply<'a>(
        &'a self,
        key: &'a BreakerKey,
        op: BreakerOp,
        policy: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome> {
        async move {
            let apply = || {
                let outcome = at_once(self.store.apply(key, op, policy));
                if let Ok(outcome) = &outcome {
                    self.judge(key, outcome, policy);
                }
                outcome
            };
            self.line.carry("breaker", apply).await?
        }
        .boxed()
        .into()
    }

    fn apply_detached(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
        told: Option<Told>,
    ) {
        if !self.line.process.is_dead() {
            self.store.apply_detached(key, op, policy, told);
        }
    }

    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>> {
        self.store.breakers()
    }
}

/// A process's handle on the loop guard's turns.
pub(crate) struct TurnHandle {
    pub(crate) line: Line,
    pub(crate) store: Arc<MemoryGuardStore>,
}

impl GuardStore for TurnHandle {
    fn check<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Checked> {
        async move {
            let apply = || at_once(self.store.check(turn, call, config));
            self.line.carry("guard check", apply).await?
        }
        .boxed()
        .into()
    }

    fn observe<'a>(
        &'a self,
        turn: &'a TurnKey,
        call: &'a CallIdentity<'a>,
        observation: Observation<'a>,
        took_ms: u64,
        config: &'a GuardConfig,
    ) -> StoreFuture<'a, Advice> {
        async move {
            let apply = || at_once(self.store.observe(turn, call, observation, took_ms, config));
            self.line.carry("guard observe", apply).await?
        }
        .boxed()
        .into()
    }

    fn delivered<'a>(&'a self, turn: &'a TurnKey, record: RecordMark) -> StoreFuture<'a, ()> {
        self.store.delivered(turn, record)
    }

    fn end_turn<'a>(&'a self, turn: &'a TurnKey) -> StoreFuture<'a, ()> {
        self.store.end_turn(turn)
    }
}
