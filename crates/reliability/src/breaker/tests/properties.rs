//! What holds for every sequence of operations, and a slow second breaker to compare with.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::super::{
    Admission, AttemptResult, BreakerOp, BreakerOverrides, BreakerPolicy, BreakerState,
    CircuitBreakerState, Permit, ProbeId, TransitionReason, step,
};

/// An operation before the permits it needs exist.
#[derive(Debug, Clone)]
enum Move {
    Admit,
    /// Reports the result of one of the attempts that were let through, also a second time.
    Record(prop::sample::Index, AttemptResult),
    ForceOpen,
    Reset,
}

fn moves() -> impl Strategy<Value = Move> {
    let result = prop_oneof![
        3 => Just(AttemptResult::Failure),
        3 => Just(AttemptResult::Success),
        1 => Just(AttemptResult::Neutral),
    ];
    prop_oneof![
        30 => Just(Move::Admit),
        30 => (any::<prop::sample::Index>(), result).prop_map(|(which, result)| Move::Record(which, result)),
        1 => Just(Move::ForceOpen),
        1 => Just(Move::Reset),
    ]
}

/// A small policy, so that short sequences reach every corner.
fn policies() -> impl Strategy<Value = BreakerPolicy> {
    (
        1_u64..60,
        1_u32..5,
        0.1_f64..1.0,
        1_u32..8,
        1_u64..30,
        1_u32..4,
        1_u32..4,
        1_u64..30,
    )
        .prop_flat_map(
            |(window, consecutive, rate, calls, cooldown, probes, close, lease)| {
                (1..=calls).prop_map(move |min_calls| {
                    BreakerPolicy::try_from(BreakerOverrides {
                        window_ms: Some(window),
                        consecutive_failures: Some(consecutive),
                        failure_rate: Some(rate),
                        rate_window_calls: Some(calls),
                        min_calls: Some(min_calls),
                        open_cooldown_ms: Some(cooldown),
                        half_open_max_probes: Some(probes),
                        close_after_successes: Some(close),
                        probe_lease_ms: Some(lease),
                        forced_open: None,
                    })
                    .unwrap()
                })
            },
        )
}

/// Moves at times that only go forward, in steps around the policy's waits.
fn forward_story() -> impl Strategy<Value = Vec<(u64, Move)>> {
    prop::collection::vec(
        (prop_oneof![Just(0_u64), 0..10_u64, 0..40_u64], moves()),
        0..120,
    )
    .prop_map(|steps| {
        let mut now_ms = 1_000;
        let at = |(wait_ms, one): (u64, Move)| {
            now_ms += wait_ms;
            (now_ms, one)
        };
        steps.into_iter().map(at).collect()
    })
}

/// Moves at any time at all, mostly close together.
fn wild_story() -> impl Strategy<Value = Vec<(u64, Move)>> {
    let time = prop_oneof![10 => 0..200_u64, 1 => any::<u64>(), 1 => Just(u64::MAX)];
    prop::collection::vec((time, moves()), 0..120)
}

/// Permits given out in a story, so that results can be reported for them.
#[derive(Default)]
struct Story {
    permits: Vec<Permit>,
    admitted: u128,
}

impl Story {
    /// Turns a move into an operation; none if there is no permit to report for.
    fn op(&mut self, one: &Move) -> Option<BreakerOp> {
        Some(match one {
            Move::Admit => {
                self.admitted += 1;
                BreakerOp::Admit {
                    prober: ProbeId::new(self.admitted),
                }
            }
            Move::Record(which, result) if !self.permits.is_empty() => {
                // Mostly the newest attempts, or nearly all results would be stragglers.
                let recent = self.permits.len().saturating_sub(4);
                let permit = *which.get(&self.permits[recent..]);
                BreakerOp::Record {
                    permit,
                    result: *result,
                    part: None,
                }
            }
            Move::Record(..) => return None,
            Move::ForceOpen => BreakerOp::ForceOpen {
                reason: "test".to_owned(),
            },
            Move::Reset => BreakerOp::Reset,
        })
    }

    fn note(&mut self, admission: Option<Admission>) {
        if let Some(Admission::Pass(permit)) = admission {
            self.permits.push(permit);
        }
    }
}

/// A breaker that keeps everything that ever happened and derives the present from it.
///
/// It shares no code with the real one. Where that moves stored times back, this one recomputes
/// what a time is worth from all the clock readings since.
#[derive(Default)]
struct Reference {
    readings_ms: Vec<u64>,
    /// Index of the reading at which each counted outcome came, since the last clean slate.
    outcomes: Vec<(usize, bool)>,
    state: Option<CircuitBreakerState>,
    entered_at: usize,
    epoch: u64,
    successes: u32,
    /// Id, reading at which it was leased.
    probes: Vec<(ProbeId, usize)>,
}

impl Reference {
    fn circuit(&self) -> CircuitBreakerState {
        self.state.unwrap_or(CircuitBreakerState::Closed)
    }

    /// How old a thing is by the last reading, when no reading may lie before it.
    fn age_ms(&self, since: usize, until: usize) -> u64 {
        let earliest = self.readings_ms[since..=until]
            .iter()
            .min()
            .copied()
            .unwrap();
        self.readings_ms[until] - earliest
    }

    fn enter(&mut self, state: CircuitBreakerState) {
        self.state = Some(state);
        self.entered_at = self.readings_ms.len() - 1;
        self.epoch += 1;
        self.successes = 0;
        self.probes.clear();
        if state == CircuitBreakerState::Closed {
            self.outcomes.clear();
        }
    }

    fn apply(&mut self, op: &BreakerOp, policy: &BreakerPolicy, now_ms: u64) -> Option<bool> {
        self.readings_ms.push(now_ms);
        let now = self.readings_ms.len() - 1;
        match op {
            BreakerOp::Admit { prober } => return Some(self.admit(*prober, policy, now)),
            BreakerOp::Record { permit, result, .. } if permit.epoch == self.epoch => {
                match self.circuit() {
                    CircuitBreakerState::Closed => self.count(*result, policy, now),
                    CircuitBreakerState::HalfOpen => self.judge(permit, *result, policy),
                    _ => {}
                }
            }
            BreakerOp::Record { .. } => {}
            BreakerOp::ForceOpen { .. } => self.enter(CircuitBreakerState::ForcedOpen),
            BreakerOp::Reset => self.enter(CircuitBreakerState::Closed),
        }
        None
    }

    fn admit(&mut self, prober: ProbeId, policy: &BreakerPolicy, now: usize) -> bool {
        match self.circuit() {
            CircuitBreakerState::Closed => true,
            CircuitBreakerState::ForcedOpen => false,
            CircuitBreakerState::Open => {
                let over = self.age_ms(self.entered_at, now) >= policy.open_cooldown_ms();
                if over {
                    self.enter(CircuitBreakerState::HalfOpen);
                    self.probes.push((prober, now));
                }
                over
            }
            CircuitBreakerState::HalfOpen => {
                let lease_ms = policy.probe_lease_ms();
                let held = std::mem::take(&mut self.probes);
                self.probes = held
                    .into_iter()
                    .filter(|probe| self.age_ms(probe.1, now) < lease_ms)
                    .collect();
                let free = self.probes.len() < policy.half_open_max_probes() as usize;
                if free {
                    self.probes.push((prober, now));
                }
                free
            }
        }
    }

    fn count(&mut self, result: AttemptResult, policy: &BreakerPolicy, now: usize) {
        if result == AttemptResult::Neutral {
            return;
        }
        self.outcomes.push((now, result == AttemptResult::Failure));
        // An outcome lives as long as no later count found it too old.
        let counted: Vec<usize> = self.outcomes.iter().map(|outcome| outcome.0).collect();
        let alive = |at: usize| {
            let mut later = counted.iter().filter(|count| **count >= at);
            later.all(|count| self.age_ms(at, *count) < policy.window_ms())
        };
        let window: Vec<bool> = self
            .outcomes
            .iter()
            .filter(|one| alive(one.0))
            .map(|one| one.1)
            .collect();
        let run = window.iter().rev().take_while(|failed| **failed).count();
        let last = &window[window
            .len()
            .saturating_sub(policy.rate_window_calls() as usize)..];
        let failures = last.iter().filter(|failed| **failed).count();
        let share = f64::from(u32::try_from(failures).unwrap())
            / f64::from(u32::try_from(last.len()).unwrap());
        let by_rate = last.len() >= policy.min_calls() as usize && share >= policy.failure_rate();
        if run >= policy.consecutive_failures() as usize || by_rate {
            self.enter(CircuitBreakerState::Open);
        }
    }

    fn judge(&mut self, permit: &Permit, result: AttemptResult, policy: &BreakerPolicy) {
        let super::super::state::PermitKind::Probe(id) = permit.kind else {
            return;
        };
        let before = self.probes.len();
        self.probes.retain(|probe| probe.0 != id);
        if self.probes.len() == before {
            return;
        }
        match result {
            AttemptResult::Neutral => {}
            AttemptResult::Failure => self.enter(CircuitBreakerState::Open),
            AttemptResult::Success => {
                self.successes += 1;
                if self.successes >= policy.close_after_successes() {
                    self.enter(CircuitBreakerState::Closed);
                }
            }
        }
    }
}

/// Runs a story through both breakers and compares them after every operation.
fn agrees(policy: &BreakerPolicy, story: &[(u64, Move)]) -> Result<(), TestCaseError> {
    let (mut state, mut reference) = (BreakerState::default(), Reference::default());
    let mut told = Story::default();
    for (now_ms, one) in story {
        let Some(op) = told.op(one) else { continue };
        let passed = reference.apply(&op, policy, *now_ms);
        let outcome = step(&mut state, op, policy, *now_ms);
        let admitted = outcome
            .admission
            .map(|one| matches!(one, Admission::Pass(_)));
        prop_assert_eq!(admitted, passed);
        prop_assert_eq!(state.circuit(), reference.circuit());
        prop_assert_eq!(state.epoch, reference.epoch);
        told.note(outcome.admission);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn agrees_with_the_reference_when_time_goes_forward(
        policy in policies(), story in forward_story(),
    ) {
        agrees(&policy, &story)?;
    }

    #[test]
    fn agrees_with_the_reference_at_any_times(policy in policies(), story in wild_story()) {
        agrees(&policy, &story)?;
    }

    #[test]
    fn open_lasts_at_least_the_cooldown(policy in policies(), story in forward_story()) {
        let mut state = BreakerState::default();
        let mut told = Story::default();
        let mut opened_at_ms = None;
        for (now_ms, one) in &story {
            let Some(op) = told.op(one) else { continue };
            let outcome = step(&mut state, op, &policy, *now_ms);
            told.note(outcome.admission);
            if let Some(transition) = outcome.transition {
                opened_at_ms = (transition.to == CircuitBreakerState::Open).then_some(*now_ms);
                prop_assert!(
                    transition.reason != TransitionReason::CooldownElapsed || opened_at_ms.is_none()
                );
            } else if let Some(opened_at_ms) = opened_at_ms {
                prop_assert_eq!(state.circuit(), CircuitBreakerState::Open);
                if matches!(one, Move::Admit) {
                    prop_assert!(now_ms - opened_at_ms < policy.open_cooldown_ms());
                }
            }
        }
    }

    #[test]
    fn live_probes_and_stored_size_are_bounded(policy in policies(), story in wild_story()) {
        let mut state = BreakerState::default();
        let mut told = Story::default();
        // Counted from outside: a probe lives from its admission to its report or lease's end.
        let mut live: VecDeque<(Permit, u64)> = VecDeque::new();
        let mut latest_ms = 0;
        for (now_ms, one) in &story {
            if *now_ms < latest_ms {
                // Leases are moved with the clock, so the count from outside starts over.
                live.clear();
            }
            latest_ms = *now_ms;
            let Some(op) = told.op(one) else { continue };
            if let BreakerOp::Record { permit, .. } = &op {
                live.retain(|probe| probe.0 != *permit);
            }
            let outcome = step(&mut state, op, &policy, *now_ms);
            told.note(outcome.admission);
            if let Some(Admission::Pass(permit)) = outcome.admission && permit.is_probe() {
                live.push_back((permit, *now_ms));
            }
            live.retain(|probe| {
                probe.0.epoch == state.epoch && now_ms - probe.1 < policy.probe_lease_ms()
            });
            let max = policy.half_open_max_probes();
            prop_assert!(live.len() <= max as usize);
            prop_assert!(state.snapshot(&policy, *now_ms).live_probes <= max);
            prop_assert!(state.window.len() <= policy.outcomes_max());
        }
        let row = serde_json::to_string(&state).unwrap();
        prop_assert_eq!(serde_json::from_str::<BreakerState>(&row).unwrap(), state);
    }

    #[test]
    fn nothing_wedges(
        policy in policies(), story in wild_story(), resumed_at_ms in 0..u64::MAX / 2,
    ) {
        let mut state = BreakerState::default();
        let mut told = Story::default();
        let mut last_ms = 0;
        for (now_ms, one) in &story {
            // Far from the end of time, so that there is time left to be quiet in.
            let now_ms = (*now_ms).min(u64::MAX / 2);
            last_ms = now_ms;
            if let Some(op) = told.op(one) {
                let outcome = step(&mut state, op, &policy, now_ms);
                told.note(outcome.admission);
            }
        }
        let quiet_ms = policy.open_cooldown_ms() + policy.probe_lease_ms();
        let forced = state.circuit() == CircuitBreakerState::ForcedOpen;
        let mut passes = |state: &mut BreakerState, now_ms| {
            let op = told.op(&Move::Admit).unwrap();
            let outcome = step(state, op, &policy, now_ms);
            matches!(outcome.admission, Some(Admission::Pass(_)))
        };
        // The clock went on as it was: the wait counts from the last thing that happened.
        let view = state.snapshot(&policy, last_ms + quiet_ms);
        prop_assert_eq!(view.would_admit, !forced);
        prop_assert_eq!(passes(&mut state.clone(), last_ms + quiet_ms), !forced);
        // The clock was set to anything: the wait counts from the first call after that.
        passes(&mut state, resumed_at_ms);
        prop_assert_eq!(passes(&mut state, resumed_at_ms + quiet_ms), !forced);
    }
}
