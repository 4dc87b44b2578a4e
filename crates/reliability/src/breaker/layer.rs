//! The layer that stops calling what is down.

use std::sync::Arc;

use holdfast_contract::{BreakerHint, CircuitBreakerState, Clock, ErrorCode, Status};

use super::{
    Admission, AttemptResult, BreakerKey, BreakerOp, BreakerPolicy, BreakerStore, BreakerTarget,
    Permit, ProbeId, StepOutcome,
};
use crate::call::{Call, Failure, Judged, Reply, Started};
use crate::canonical::Digest;
use crate::guard::FailureKind;
use crate::observe::Event;
use crate::policy::Mode;
use crate::runtime::Runtime;
use crate::service::Service;

/// When to ask again for a tool whose breaker an operator holds open: nobody knows, and not at once.
pub const FORCED_OPEN_RETRY_AFTER_MS: u64 = 30_000;

/// The context of breakers that only watch.
const SHADOW_CONTEXT: &str = "shadow";

/// Refuses calls to what is down, and finds out when it is back.
pub struct Breaker<S> {
    inner: S,
    store: Arc<dyn BreakerStore>,
    runtime: Arc<Runtime>,
}

/// An attempt that was cut off by its caller's deadline speaks against what it waited for, once it
/// has waited this long; before that, it speaks of the caller's haste.
pub const CUT_OFF_COUNTS_AFTER_MS: u64 = 1_000;

/// Breakers of one tool whose calls need one of many things, such as hosts. Callers name those, so
/// that there is no end to them; some share a breaker.
pub const PARTS_PER_TOOL_MAX: usize = u8::MAX as usize + 1;

/// An admitted attempt whose result is not known yet. Dropped, it says that nothing was learnt,
/// so that a cancelled probe frees its place at once; unless it waited until the caller's deadline.
struct Attempt<'a> {
    store: &'a dyn BreakerStore,
    clock: &'a dyn Clock,
    deadline_at_ms: Option<u64>,
    begun_at_ms: u64,
    started: Arc<Started>,
    key: Arc<BreakerKey>,
    policy: Arc<crate::policy::ToolPolicy>,
    permit: Option<Permit>,
}

impl Attempt<'_> {
    fn waited_in_vain(&self) -> bool {
        let now_ms = self.clock.now_ms();
        self.deadline_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
            && now_ms.saturating_sub(self.begun_at_ms) >= CUT_OFF_COUNTS_AFTER_MS
            && self.started.is_running()
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            let result = if self.waited_in_vain() {
                AttemptResult::Failure
            } else {
                AttemptResult::Neutral
            };
            let op = BreakerOp::Record { permit, result };
            self.store
                .apply_detached(&self.key, op, &self.policy.breaker);
        }
    }
}

impl<S: Service> Breaker<S> {
    /// Wraps one attempt.
    pub fn new(inner: S, store: Arc<dyn BreakerStore>, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            store,
            runtime,
        }
    }

    async fn step(
        &self,
        key: &BreakerKey,
        op: BreakerOp,
        policy: &BreakerPolicy,
    ) -> Option<StepOutcome> {
        match self.store.apply(key, op, policy).await {
            Ok(outcome) => {
                if let Some(transition) = &outcome.transition {
                    self.runtime.tell(&Event::Circuit { key, transition });
                }
                Some(outcome)
            }
            // A breaker that can not be read is no breaker: the claim still protects the effect.
            Err(error) => {
                self.runtime.tell(&Event::StoreTrouble {
                    what: "breaker",
                    error: &error,
                });
                None
            }
        }
    }

    fn prober(&self) -> ProbeId {
        let high = u128::from(self.runtime.entropy.next_u64());
        ProbeId::new(high << 64 | u128::from(self.runtime.entropy.next_u64()))
    }

    /// The breaker that an operator holds open, among those that do not judge this call. The
    /// operator's word holds, whichever breaker the caller would rather be judged by.
    async fn held_open(
        &self,
        call: &Call,
        judge: &BreakerKey,
    ) -> Option<(BreakerKey, Option<String>)> {
        let own =
            (*judge != *call.policy.tool_breaker).then(|| (*call.policy.tool_breaker).clone());
        let dependency = call.policy.dependency.as_ref().map(BreakerKey::dependency);
        for key in own.into_iter().chain(dependency.filter(|key| key != judge)) {
            let op = BreakerOp::Admit {
                prober: self.prober(),
            };
            let outcome = self.step(&key, op, &call.policy.breaker).await?;
            match outcome.admission? {
                Admission::Rejected {
                    state: CircuitBreakerState::ForcedOpen,
                    ..
                } => return Some((key, outcome.forced_reason)),
                Admission::Rejected { .. } => {}
                // Only looked at: nothing was learnt.
                Admission::Pass(permit) => {
                    let op = BreakerOp::Record {
                        permit,
                        result: AttemptResult::Neutral,
                    };
                    self.step(&key, op, &call.policy.breaker).await;
                }
            }
        }
        None
    }

    async fn run(&self, call: &mut Call, key: Arc<BreakerKey>, permit: Permit) -> Reply {
        // A breaker that only watches leaves no mark on the answer.
        let enforced = call.modes.open == Mode::Enforce;
        if enforced {
            call.breaker_state = Some(if permit.is_probe() {
                CircuitBreakerState::HalfOpen
            } else {
                CircuitBreakerState::Closed
            });
        }
        let policy = call.policy.clone();
        let mut attempt = Attempt {
            store: &*self.store,
            clock: &*self.runtime.clock,
            deadline_at_ms: call.envelope.control.deadline_at_ms,
            begun_at_ms: self.runtime.clock.now_ms(),
            started: call.started.clone(),
            key,
            policy: policy.clone(),
            permit: Some(permit),
        };
        let mut reply = self.inner.call(call).await;
        if let Some(permit) = attempt.permit.take() {
            let result = match reply.failure() {
                None => AttemptResult::Success,
                Some(failure) if failure.counts_for_breaker => AttemptResult::Failure,
                Some(_) => AttemptResult::Neutral,
            };
            let op = BreakerOp::Record { permit, result };
            let outcome = self.step(&attempt.key, op, &policy.breaker).await;
            if let Some(transition) = outcome.and_then(|outcome| outcome.transition)
                && enforced
            {
                call.breaker_state = Some(transition.to);
            }
        }
        if let Err(failure) = &mut reply.outcome {
            failure.breaker_state = call.breaker_state;
        }
        reply
    }

    /// Refuses the call, or says that it would have been and lets it through.
    async fn reject(
        &self,
        call: &mut Call,
        state: CircuitBreakerState,
        retry_after_ms: Option<u64>,
        (key, reason): (&BreakerKey, Option<String>),
    ) -> Reply {
        let why = why(state, retry_after_ms, key, reason.as_deref());
        let code = ErrorCode::CircuitOpen;
        self.runtime.tell(&Event::Blocked {
            call,
            code: code.as_str(),
            why: &why,
            mode: call.modes.open,
        });
        if call.modes.open != Mode::Enforce {
            call.explain(format!("only watched: it would have been refused: {why}"));
            return self.inner.call(call).await;
        }
        call.breaker_state = Some(state);
        call.explain(why.clone());
        let mut failure = Failure::before_start(code, why, Judged::Counts(FailureKind::Retryable))
            .with_status(Status::CircuitOpen);
        failure.breaker_state = Some(state);
        if state == CircuitBreakerState::ForcedOpen {
            failure.hint = Some(format!(
                "It stays open until `holdfast breaker reset {key}`."
            ));
        }
        failure.retry_after_ms = match state {
            CircuitBreakerState::ForcedOpen => Some(FORCED_OPEN_RETRY_AFTER_MS),
            _ => retry_after_ms,
        };
        failure.into()
    }
}

impl<S: Service> Service for Breaker<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let mode = call.modes.breaker;
        if mode == Mode::Off {
            return self.inner.call(call).await;
        }
        let key = key_of(call);
        if mode == Mode::Enforce
            && let Some((held, reason)) = self.held_open(call, &key).await
        {
            let forced = CircuitBreakerState::ForcedOpen;
            return self.reject(call, forced, None, (&held, reason)).await;
        }
        let prober = self.prober();
        let policy = call.policy.clone();
        let outcome = self
            .step(&key, BreakerOp::Admit { prober }, &policy.breaker)
            .await;
        let reason = outcome.as_ref().and_then(|it| it.forced_reason.clone());
        match outcome.and_then(|outcome| outcome.admission) {
            Some(Admission::Pass(permit)) => self.run(call, key, permit).await,
            Some(Admission::Rejected {
                state,
                retry_after_ms,
            }) => {
                self.reject(call, state, retry_after_ms, (&key, reason))
                    .await
            }
            None => self.inner.call(call).await,
        }
    }
}

/// Which breaker judges the call.
fn key_of(call: &Call) -> Arc<BreakerKey> {
    let hint = call.envelope.transport.circuit_breaker_hint;
    let key = match (hint, &call.policy.dependency) {
        (Some(BreakerHint::Global), _) => Arc::new(BreakerKey::global()),
        (Some(BreakerHint::Dependency) | None, Some(dependency)) => {
            Arc::new(BreakerKey::dependency(dependency))
        }
        (Some(BreakerHint::Tool), _) => call.policy.tool_breaker.clone(),
        (Some(BreakerHint::Dependency) | None, None) => own_key(call),
    };
    if call.modes.breaker == Mode::Shadow {
        Arc::new(Arc::unwrap_or_clone(key).in_context(SHADOW_CONTEXT))
    } else {
        key
    }
}

/// The tool's own breaker, or where each thing behind it is up or down by itself, one of a bounded
/// number of breakers for those. An operator who holds the tool's own open holds all of them.
fn own_key(call: &Call) -> Arc<BreakerKey> {
    let params = &call.envelope.payload.params;
    let part = call.tool.as_ref().and_then(|tool| tool.depends_on(params));
    // The tool's own namespace: a caller that invents one must not get a fresh breaker.
    match (part, call.policy.tool_breaker.target()) {
        (Some(part), BreakerTarget::Tool { name, .. }) => {
            // One byte of it: no more than `PARTS_PER_TOOL_MAX`.
            let [place, ..] = *Digest::of(part.as_bytes()).as_bytes();
            Arc::new(BreakerKey::part(name, place))
        }
        _ => call.policy.tool_breaker.clone(),
    }
}

/// Why a call is refused, for its caller.
fn why(
    state: CircuitBreakerState,
    retry_after_ms: Option<u64>,
    key: &BreakerKey,
    reason: Option<&str>,
) -> String {
    match (state, retry_after_ms) {
        (CircuitBreakerState::ForcedOpen, _) => {
            let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
            format!("the circuit breaker {key} is held open by an operator{reason}")
        }
        (CircuitBreakerState::HalfOpen, _) => {
            format!("the circuit breaker {key} is probing whether the tool is back")
        }
        (_, Some(wait_ms)) => {
            format!(
                "the circuit breaker {key} is open after repeated failures; it probes again in {wait_ms} ms"
            )
        }
        (_, None) => format!("the circuit breaker {key} is open"),
    }
}
