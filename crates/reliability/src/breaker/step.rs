//! One thing happens, the breaker's state changes: the whole state machine.
//!
//! Each operation has a function of its own. All of them work on a state whose times do not lie
//! in the future, which [`step`] sees to before anything else.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use holdfast_contract::CircuitBreakerState;

use super::policy::BreakerPolicy;
use super::state::{BreakerState, Gate, Permit, PermitKind, Phase, Probe, ProbeId};

/// Most characters kept of the reason somebody gives for forcing a breaker open.
pub(super) const REASON_CHARS_MAX: usize = 256;

/// The reason of those who hold a breaker open and give none.
pub const NO_REASON: &str = "by an operator";

/// Something that happens to a breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BreakerOp {
    /// An attempt asks whether it may run.
    Admit {
        /// Names this attempt, should it become a probe.
        prober: ProbeId,
    },
    /// An admitted attempt has ended.
    Record {
        /// What the attempt was admitted with.
        permit: Permit,
        /// How it ended.
        result: AttemptResult,
        /// What people call the part of the tool that it was for.
        part: Option<Arc<str>>,
    },
    /// Somebody shuts the breaker until it is reset.
    ForceOpen {
        /// Why, for whoever finds it shut. Cut to 256 characters.
        reason: String,
    },
    /// Somebody declares everything well.
    Reset,
}

/// How an attempt ended, as far as the breaker is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttemptResult {
    /// It worked.
    Success,
    /// It failed in a way that speaks against the target.
    Failure,
    /// It says nothing about the target: the caller's own mistake, or cancelled before anything
    /// was sent. It is not counted and frees the probe's place.
    Neutral,
}

/// The answer to [`BreakerOp::Admit`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// The attempt may run; its result has to be recorded with the permit.
    Pass(Permit),
    /// The attempt must not run.
    Rejected {
        /// The state that refused it.
        state: CircuitBreakerState,
        /// When it is worth asking again at the latest. `None` when only a reset ends it.
        retry_after_ms: Option<u64>,
    },
}

/// Why a breaker changed its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransitionReason {
    /// Too many failures in a row.
    ConsecutiveFailures,
    /// Too large a share of failures.
    FailureRate,
    /// The cooldown was over when the next attempt asked.
    CooldownElapsed,
    /// A probe failed.
    ProbeFailed,
    /// Enough probes succeeded.
    ProbesSucceeded,
    /// Somebody forced it open.
    Forced,
    /// Somebody reset it.
    Reset,
}

impl TransitionReason {
    /// The name as it stands in logs and in serialised form.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "consecutive_failures",
            Self::FailureRate => "failure_rate",
            Self::CooldownElapsed => "cooldown_elapsed",
            Self::ProbeFailed => "probe_failed",
            Self::ProbesSucceeded => "probes_succeeded",
            Self::Forced => "forced",
            Self::Reset => "reset",
        }
    }
}

/// A change of state, for logs and metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transition {
    /// The state before.
    pub from: CircuitBreakerState,
    /// The state after.
    pub to: CircuitBreakerState,
    /// What brought it about.
    pub reason: TransitionReason,
}

/// What a [`step`] did.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "it holds the permit, and whether the state has to be stored"]
pub struct StepOutcome {
    /// The answer to [`BreakerOp::Admit`], and only to it.
    pub admission: Option<Admission>,
    /// Why an operator holds the breaker open that refused, where one was given.
    pub forced_reason: Option<String>,
    /// The change of state, if there was one.
    pub transition: Option<Transition>,
    /// Whether the state differs from before and has to be stored. An attempt admitted by a
    /// closed breaker, or refused by an open one, costs no write.
    pub changed: bool,
}

/// Applies one operation to a breaker.
///
/// Pure: the same state, operation, policy and time always give the same result, so it can be
/// run again when a compare-and-set was lost. `now_ms` may go backwards between calls; no wait
/// gets longer than the policy says by it.
///
/// # Example
///
/// ```
/// use holdfast_reliability::breaker::{
///     BreakerOp, BreakerPolicy, BreakerState, CircuitBreakerState, step,
/// };
///
/// let policy = BreakerPolicy::standard();
/// let mut state = BreakerState::default();
/// let force = BreakerOp::ForceOpen { reason: "vendor incident".to_owned() };
/// let transition = step(&mut state, force, &policy, 1_000).transition.unwrap();
/// assert_eq!(transition.to, CircuitBreakerState::ForcedOpen);
///
/// let transition = step(&mut state, BreakerOp::Reset, &policy, 2_000).transition.unwrap();
/// assert_eq!(transition.to, CircuitBreakerState::Closed);
/// ```
pub fn step(
    state: &mut BreakerState,
    op: BreakerOp,
    policy: &BreakerPolicy,
    now_ms: u64,
) -> StepOutcome {
    let rewound = state.rewind(now_ms);
    let mut outcome = match op {
        BreakerOp::Admit { prober } => admit(state, prober, policy, now_ms),
        BreakerOp::Record {
            permit,
            result,
            part,
        } => {
            let outcome = record(state, permit, result, policy, now_ms);
            // A name alone is not worth a write.
            if let Some(part) = part.filter(|_| outcome.changed) {
                state.remember(&part);
            }
            outcome
        }
        BreakerOp::ForceOpen { reason } => force_open(state, &reason, now_ms),
        BreakerOp::Reset => reset(state, now_ms),
    };
    outcome.changed |= rewound;
    outcome
}

fn admit(
    state: &mut BreakerState,
    prober: ProbeId,
    policy: &BreakerPolicy,
    now_ms: u64,
) -> StepOutcome {
    let freed = free_places(state, prober, policy, now_ms);
    let transition = match state.gate(policy, now_ms) {
        Gate::Regular => return pass(state, PermitKind::Regular),
        Gate::Shut { retry_after_ms } => {
            return StepOutcome {
                changed: freed,
                ..reject(state, retry_after_ms)
            };
        }
        Gate::FirstProbe => {
            let probing = Phase::HalfOpen {
                successes: 0,
                probes: Vec::new(),
            };
            enter(state, probing, TransitionReason::CooldownElapsed, now_ms)
        }
        Gate::NextProbe => None,
    };
    if let Phase::HalfOpen { probes, .. } = &mut state.phase {
        probes.push(Probe {
            id: prober,
            leased_at_ms: now_ms,
        });
    }
    StepOutcome {
        transition,
        changed: true,
        ..pass(state, PermitKind::Probe(prober))
    }
}

/// Takes away expired leases, and the place of an attempt that asks again under the same id (a
/// store that lost the answer), so that it does not come to hold two.
fn free_places(
    state: &mut BreakerState,
    prober: ProbeId,
    policy: &BreakerPolicy,
    now_ms: u64,
) -> bool {
    let Phase::HalfOpen { probes, .. } = &mut state.phase else {
        return false;
    };
    let held = probes.len();
    probes.retain(|probe| probe.is_live(policy, now_ms) && probe.id != prober);
    probes.len() < held
}

fn record(
    state: &mut BreakerState,
    permit: Permit,
    result: AttemptResult,
    policy: &BreakerPolicy,
    now_ms: u64,
) -> StepOutcome {
    if permit.epoch != state.epoch {
        // Admitted before the state last changed: neither proof that it works again, nor news
        // that it fails.
        return unchanged();
    }
    match (&state.phase, permit.kind) {
        (Phase::Closed, PermitKind::Regular) => record_call(state, result, policy, now_ms),
        (Phase::HalfOpen { .. }, PermitKind::Probe(id)) => {
            record_probe(state, id, result, policy, now_ms)
        }
        // Only a store that lost rows can bring these together; the permit is then a stranger.
        _ => unchanged(),
    }
}

/// Counts normal traffic and opens when a rule is met.
///
/// The rules are asked after every counted call, a success too: they are about the window, and
/// a success can be the call that makes it large enough to judge.
fn record_call(
    state: &mut BreakerState,
    result: AttemptResult,
    policy: &BreakerPolicy,
    now_ms: u64,
) -> StepOutcome {
    let failed = match result {
        AttemptResult::Success => false,
        AttemptResult::Failure => true,
        AttemptResult::Neutral => return unchanged(),
    };
    state.window.forget_old(policy, now_ms);
    state.window.push(failed, policy, now_ms);
    let tripped = state.window.tripped(policy);
    done(tripped.and_then(|reason| enter(state, opened(policy), reason, now_ms)))
}

/// Takes a probe's place back and judges its result.
///
/// A probe that was replaced, or that reported before, is not in the list any more and counts
/// for nothing. One whose lease ran out without anybody taking its place still counts: the
/// lease says when the place may be given away, not when a result stops being true.
fn record_probe(
    state: &mut BreakerState,
    id: ProbeId,
    result: AttemptResult,
    policy: &BreakerPolicy,
    now_ms: u64,
) -> StepOutcome {
    let Phase::HalfOpen { successes, probes } = &mut state.phase else {
        return unchanged();
    };
    let Some(place) = probes.iter().position(|held| held.id == id) else {
        return unchanged();
    };
    probes.swap_remove(place);
    match result {
        AttemptResult::Neutral => done(None),
        AttemptResult::Failure => done(enter(
            state,
            opened(policy),
            TransitionReason::ProbeFailed,
            now_ms,
        )),
        AttemptResult::Success => {
            *successes = successes.saturating_add(1);
            if *successes < policy.close_after_successes() {
                return done(None);
            }
            // What was counted before belongs to the outage and must not open it again.
            state.window.clear();
            done(enter(
                state,
                Phase::Closed,
                TransitionReason::ProbesSucceeded,
                now_ms,
            ))
        }
    }
}

/// Open for as long as this policy says.
fn opened(policy: &BreakerPolicy) -> Phase {
    Phase::Open {
        cooldown_ms: Some(policy.open_cooldown_ms()),
    }
}

fn force_open(state: &mut BreakerState, reason: &str, now_ms: u64) -> StepOutcome {
    let reason = reason.chars().take(REASON_CHARS_MAX).collect();
    done(enter(
        state,
        Phase::ForcedOpen { reason },
        TransitionReason::Forced,
        now_ms,
    ))
}

fn reset(state: &mut BreakerState, now_ms: u64) -> StepOutcome {
    // The epoch moves on even if it was closed, or attempts under way would refill the counters.
    state.window.clear();
    done(enter(state, Phase::Closed, TransitionReason::Reset, now_ms))
}

/// Begins a phase and with it an epoch; a transition only if the visible state is another one.
fn enter(
    state: &mut BreakerState,
    phase: Phase,
    reason: TransitionReason,
    now_ms: u64,
) -> Option<Transition> {
    let from = state.circuit();
    state.phase = phase;
    state.since_ms = now_ms;
    state.epoch = state.epoch.wrapping_add(1);
    let to = state.circuit();
    (from != to).then_some(Transition { from, to, reason })
}

fn pass(state: &BreakerState, kind: PermitKind) -> StepOutcome {
    let permit = Permit {
        epoch: state.epoch,
        kind,
    };
    StepOutcome {
        admission: Some(Admission::Pass(permit)),
        ..unchanged()
    }
}

fn reject(state: &BreakerState, retry_after_ms: Option<u64>) -> StepOutcome {
    let admission = Admission::Rejected {
        state: state.circuit(),
        retry_after_ms,
    };
    let forced_reason = match &state.phase {
        Phase::ForcedOpen { reason } if is_given(reason) => Some(reason.clone()),
        _ => None,
    };
    StepOutcome {
        admission: Some(admission),
        forced_reason,
        ..unchanged()
    }
}

fn is_given(reason: &str) -> bool {
    !reason.trim().is_empty() && reason != NO_REASON
}

fn done(transition: Option<Transition>) -> StepOutcome {
    StepOutcome {
        admission: None,
        forced_reason: None,
        transition,
        changed: true,
    }
}

fn unchanged() -> StepOutcome {
    StepOutcome {
        admission: None,
        forced_reason: None,
        transition: None,
        changed: false,
    }
}
