//! Every transition of the breaker, under times that the tests choose.

mod control;
mod opening;
mod properties;
mod recovery;

use super::{
    Admission, AttemptResult, BreakerOp, BreakerOverrides, BreakerPolicy, BreakerState,
    CircuitBreakerState, Permit, ProbeId, StepOutcome, TransitionReason, step,
};

/// A breaker with a clock of its own, so that each test reads as a story.
struct Bench {
    state: BreakerState,
    policy: BreakerPolicy,
    now_ms: u64,
    attempts: u128,
}

impl Bench {
    fn new() -> Self {
        Self::with(BreakerOverrides::default())
    }

    fn with(changes: BreakerOverrides) -> Self {
        let policy = BreakerPolicy::try_from(changes).unwrap();
        Self {
            state: BreakerState::default(),
            policy,
            now_ms: 1_000_000,
            attempts: 0,
        }
    }

    fn step(&mut self, op: BreakerOp) -> StepOutcome {
        let before = self.state.clone();
        let outcome = step(&mut self.state, op, &self.policy, self.now_ms);
        assert!(
            outcome.changed || before == self.state,
            "a change always has to be stored"
        );
        let seen = outcome
            .transition
            .map_or(before.circuit(), |transition| transition.to);
        assert_eq!(
            seen,
            self.state.circuit(),
            "a change of state is always reported"
        );
        outcome
    }

    fn admit_as(&mut self, prober: u128) -> Admission {
        let prober = ProbeId::new(prober);
        self.step(BreakerOp::Admit { prober }).admission.unwrap()
    }

    fn admit(&mut self) -> Admission {
        self.attempts += 1;
        self.admit_as(self.attempts)
    }

    #[track_caller]
    fn pass(&mut self) -> Permit {
        match self.admit() {
            Admission::Pass(permit) => permit,
            Admission::Rejected { .. } => panic!("rejected: {:?}", self.state),
        }
    }

    #[track_caller]
    fn rejected(&mut self, state: CircuitBreakerState, retry_after_ms: Option<u64>) {
        assert_eq!(
            self.admit(),
            Admission::Rejected {
                state,
                retry_after_ms
            }
        );
    }

    fn record(&mut self, permit: Permit, result: AttemptResult) -> Option<TransitionReason> {
        let outcome = self.step(BreakerOp::Record {
            permit,
            result,
            part: None,
        });
        assert_eq!(outcome.admission, None);
        outcome.transition.map(|transition| transition.reason)
    }

    #[track_caller]
    fn succeed(&mut self) -> Option<TransitionReason> {
        let permit = self.pass();
        self.record(permit, AttemptResult::Success)
    }

    #[track_caller]
    fn fail(&mut self) -> Option<TransitionReason> {
        let permit = self.pass();
        self.record(permit, AttemptResult::Failure)
    }

    #[track_caller]
    fn open(&mut self) {
        for _ in 0..self.policy.consecutive_failures() {
            self.fail();
        }
        assert_eq!(self.state.circuit(), CircuitBreakerState::Open);
    }

    #[track_caller]
    fn half_open(&mut self) -> Permit {
        self.open();
        self.now_ms += self.policy.open_cooldown_ms();
        self.pass()
    }
}
