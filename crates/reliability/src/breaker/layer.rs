//! The layer that stops calling what is down.

use std::sync::Arc;

use holdfast_contract::{BreakerHint, CircuitBreakerState, ErrorCode, Status};

use super::{
    Admission, AttemptResult, BreakerKey, BreakerOp, BreakerStore, BreakerTarget, Permit, ProbeId,
    StepOutcome, Told,
};
use crate::call::{Call, Failure, Judged, Reply, Started};
use crate::canonical::Digest;
use crate::guard::FailureKind;
use crate::observe::{CircuitCause, CutOff, Event};
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
    runtime: &'a Arc<Runtime>,
    deadline_at_ms: Option<u64>,
    begun_at_ms: u64,
    started: Arc<Started>,
    key: Arc<BreakerKey>,
    policy: Arc<crate::policy::ToolPolicy>,
    permit: Option<Permit>,
    part: Option<Arc<str>>,
    /// What is told of its call, should it be cut off.
    gone: Option<CutOff>,
}

/// The breaker that judges a call.
struct Judge {
    key: Arc<BreakerKey>,
    /// What the call needs of its tool, where each part has a breaker: a host.
    part: Option<Arc<str>>,
}

/// Why a breaker refuses a call.
struct Refusal {
    state: CircuitBreakerState,
    retry_after_ms: Option<u64>,
    /// Which breaker, as people call it.
    breaker: String,
    /// Who holds it open and why, where somebody does.
    held: Option<Held>,
}

/// Who holds a breaker open.
struct Held {
    by: &'static str,
    reason: Option<String>,
    /// What ends it.
    until: String,
}

impl Held {
    fn by_operator(key: &BreakerKey, reason: Option<String>) -> Self {
        // A tool's breaker is reset by the tool's name.
        let named = match key.target() {
            BreakerTarget::Tool { name, .. } => name.clone(),
            _ => key.to_string(),
        };
        Self {
            by: "an operator",
            reason,
            until: format!("`holdfast breaker reset {named}`"),
        }
    }

    fn by_configuration(reason: &str) -> Self {
        Self {
            by: "the configuration",
            reason: Some(reason.to_owned()),
            until: "its `forcedOpen` is taken out of the configuration".to_owned(),
        }
    }
}

impl Attempt<'_> {
    fn waited_in_vain(&self) -> bool {
        let now_ms = self.runtime.clock.now_ms();
        self.deadline_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
            && now_ms.saturating_sub(self.begun_at_ms) >= CUT_OFF_COUNTS_AFTER_MS
            && self.started.is_running()
    }

    /// Tells of a change that the last of the attempt brings about, when its call is gone.
    fn teller(&mut self) -> Option<Told> {
        let gone = self.gone.take()?;
        let (runtime, key, part) = (self.runtime.clone(), self.key.clone(), self.part.clone());
        Some(Arc::new(move |outcome: &StepOutcome| {
            if let Some(transition) = &outcome.transition {
                runtime.tell(&Event::Circuit {
                    key: &key,
                    part: part.as_deref(),
                    transition,
                    cause: CircuitCause::CutOff(&gone),
                });
            }
        }))
    }
}

/// Only a deadline of the caller's cuts off what counts.
fn gone_of(call: &Call) -> Option<CutOff> {
    let envelope = &call.envelope;
    envelope.control.deadline_at_ms?;
    Some(CutOff {
        request_id: envelope.request_id.clone(),
        tool: envelope.tool_name.clone(),
        session_key: envelope.target.session_key.clone(),
        correlation_id: envelope.target.correlation_id.clone(),
    })
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        if let Some(permit) = self.permit.take() {
            let (result, told) = if self.waited_in_vain() {
                (AttemptResult::Failure, self.teller())
            } else {
                (AttemptResult::Neutral, None)
            };
            let part = self.part.take();
            let op = BreakerOp::Record {
                permit,
                result,
                part,
            };
            self.store
                .apply_detached(&self.key, op, &self.policy.breaker, told);
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

    async fn step(&self, call: &Call, judge: &Judge, op: BreakerOp) -> Option<StepOutcome> {
        let key = &*judge.key;
        match self.store.apply(key, op, &call.policy.breaker).await {
            Ok(outcome) => {
                if let Some(transition) = &outcome.transition {
                    self.runtime.tell(&Event::Circuit {
                        key,
                        part: judge.part.as_deref(),
                        transition,
                        cause: CircuitCause::Call(call),
                    });
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
    async fn held_open(&self, call: &Call, judge: &BreakerKey) -> Option<Refusal> {
        let own = (*judge != *call.policy.tool_breaker).then(|| call.policy.tool_breaker.clone());
        let dependency = call.policy.dependency.as_ref().map(BreakerKey::dependency);
        let dependency = dependency.filter(|key| key != judge).map(Arc::new);
        for key in own.into_iter().chain(dependency) {
            let looked_at = Judge { key, part: None };
            let op = BreakerOp::Admit {
                prober: self.prober(),
            };
            let outcome = self.step(call, &looked_at, op).await?;
            match outcome.admission? {
                Admission::Rejected {
                    state: state @ CircuitBreakerState::ForcedOpen,
                    ..
                } => {
                    let key = &looked_at.key;
                    return Some(Refusal {
                        state,
                        retry_after_ms: None,
                        breaker: key.called(&[]),
                        held: Some(Held::by_operator(key, outcome.forced_reason)),
                    });
                }
                Admission::Rejected { .. } => {}
                // Only looked at: nothing was learnt.
                Admission::Pass(permit) => {
                    let op = BreakerOp::Record {
                        permit,
                        result: AttemptResult::Neutral,
                        part: None,
                    };
                    self.step(call, &looked_at, op).await;
                }
            }
        }
        None
    }

    async fn run(&self, call: &mut Call, judge: Judge, permit: Permit) -> Reply {
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
            runtime: &self.runtime,
            deadline_at_ms: call.envelope.control.deadline_at_ms,
            begun_at_ms: self.runtime.clock.now_ms(),
            started: call.started.clone(),
            key: judge.key.clone(),
            policy,
            permit: Some(permit),
            part: judge.part.clone(),
            gone: gone_of(call),
        };
        let mut reply = self.inner.call(call).await;
        if let Some(permit) = attempt.permit.take() {
            let result = match reply.failure() {
                None => AttemptResult::Success,
                Some(failure) if failure.counts_for_breaker => AttemptResult::Failure,
                Some(_) => AttemptResult::Neutral,
            };
            let op = BreakerOp::Record {
                permit,
                result,
                part: judge.part.clone(),
            };
            let outcome = self.step(call, &judge, op).await;
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
    async fn reject(&self, call: &mut Call, refusal: Refusal) -> Reply {
        let why = refusal.why();
        let state = refusal.state;
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
        if let Some(held) = refusal.held {
            failure.hint = Some(format!("It stays open until {}.", held.until));
        }
        failure.retry_after_ms = match state {
            CircuitBreakerState::ForcedOpen => Some(FORCED_OPEN_RETRY_AFTER_MS),
            _ => refusal.retry_after_ms,
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
        if let Some(reason) = call.policy.breaker.forced_open() {
            let refusal = Refusal {
                state: CircuitBreakerState::ForcedOpen,
                retry_after_ms: None,
                breaker: call.policy.tool_breaker.called(&[]),
                held: Some(Held::by_configuration(reason)),
            };
            return self.reject(call, refusal).await;
        }
        let judge = judge_of(call);
        if mode == Mode::Enforce
            && let Some(refusal) = self.held_open(call, &judge.key).await
        {
            return self.reject(call, refusal).await;
        }
        let prober = self.prober();
        let outcome = self.step(call, &judge, BreakerOp::Admit { prober }).await;
        let reason = outcome.as_ref().and_then(|it| it.forced_reason.clone());
        match outcome.and_then(|outcome| outcome.admission) {
            Some(Admission::Pass(permit)) => self.run(call, judge, permit).await,
            Some(Admission::Rejected {
                state,
                retry_after_ms,
            }) => {
                let asked: Vec<String> = judge.part.iter().map(ToString::to_string).collect();
                let is_held = state == CircuitBreakerState::ForcedOpen;
                let refusal = Refusal {
                    state,
                    retry_after_ms,
                    breaker: judge.key.called(&asked),
                    held: is_held.then(|| Held::by_operator(&judge.key, reason)),
                };
                self.reject(call, refusal).await
            }
            None => self.inner.call(call).await,
        }
    }
}

/// Which breaker judges the call.
fn judge_of(call: &Call) -> Judge {
    let hint = call.envelope.transport.circuit_breaker_hint;
    let whole = |key| Judge { key, part: None };
    let mut judge = match (hint, &call.policy.dependency) {
        (Some(BreakerHint::Global), _) => whole(Arc::new(BreakerKey::global())),
        (Some(BreakerHint::Dependency) | None, Some(dependency)) => {
            whole(Arc::new(BreakerKey::dependency(dependency)))
        }
        (Some(BreakerHint::Tool), _) => whole(call.policy.tool_breaker.clone()),
        (Some(BreakerHint::Dependency) | None, None) => own(call),
    };
    if call.modes.breaker == Mode::Shadow {
        let watched = Arc::unwrap_or_clone(judge.key).in_context(SHADOW_CONTEXT);
        judge.key = Arc::new(watched);
    }
    judge
}

/// The tool's own breaker, or where each thing behind it is up or down by itself, one of a bounded
/// number of breakers for those. An operator who holds the tool's own open holds all of them.
fn own(call: &Call) -> Judge {
    let params = &call.envelope.payload.params;
    let part = call.tool.as_ref().and_then(|tool| tool.depends_on(params));
    // The tool's own namespace: a caller that invents one must not get a fresh breaker.
    match (part, call.policy.tool_breaker.target()) {
        (Some(part), BreakerTarget::Tool { name, .. }) => {
            // One byte of it: no more than `PARTS_PER_TOOL_MAX`.
            let [place, ..] = *Digest::of(part.as_bytes()).as_bytes();
            Judge {
                key: Arc::new(BreakerKey::part(name, place)),
                part: Some(part.into()),
            }
        }
        _ => Judge {
            key: call.policy.tool_breaker.clone(),
            part: None,
        },
    }
}

impl Refusal {
    /// For the caller.
    fn why(&self) -> String {
        let breaker = &self.breaker;
        match (&self.held, self.state, self.retry_after_ms) {
            (Some(held), ..) => {
                let reason = held.reason.as_ref();
                let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
                format!(
                    "the circuit breaker {breaker} is held open by {}{reason}",
                    held.by
                )
            }
            (None, CircuitBreakerState::HalfOpen, _) => {
                format!("the circuit breaker {breaker} is probing whether the tool is back")
            }
            (None, _, Some(wait_ms)) => {
                format!(
                    "the circuit breaker {breaker} is open after repeated failures; it probes again in {wait_ms} ms"
                )
            }
            (None, _, None) => format!("the circuit breaker {breaker} is open"),
        }
    }
}
