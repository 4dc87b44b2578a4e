//! What opens a closed breaker, and what does not.

use super::super::CircuitBreakerState::{Closed, Open};
use super::super::{
    AttemptResult, BreakerOverrides, BreakerPolicy, BreakerState, TransitionReason,
};
use super::Bench;

#[test]
fn tr_08_consecutive_failures_open_and_the_next_call_is_refused() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        assert_eq!(bench.fail(), None);
    }
    assert_eq!(bench.fail(), Some(TransitionReason::ConsecutiveFailures));
    bench.rejected(Open, Some(30_000));
    bench.now_ms += 29_999;
    bench.rejected(Open, Some(1));
}

#[test]
fn a_success_breaks_the_run() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail();
    }
    bench.succeed();
    for _ in 0..4 {
        assert_eq!(bench.fail(), None, "nine calls are too few for the rate");
    }
    assert_eq!(bench.state.circuit(), Closed);
}

#[test]
fn failures_older_than_the_window_do_not_count() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail();
    }
    // The fifth comes when the first four are exactly one window old.
    bench.now_ms += bench.policy.window_ms();
    assert_eq!(bench.fail(), None);

    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail();
    }
    bench.now_ms += bench.policy.window_ms() - 1;
    assert_eq!(bench.fail(), Some(TransitionReason::ConsecutiveFailures));
}

#[test]
fn the_failure_rate_opens_at_half_of_ten_calls() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.succeed();
        assert_eq!(bench.fail(), None, "too few calls to judge");
    }
    bench.succeed();
    assert_eq!(bench.fail(), Some(TransitionReason::FailureRate));
}

#[test]
fn a_success_can_be_the_call_that_makes_the_window_large_enough() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail();
        bench.succeed();
    }
    assert_eq!(bench.fail(), None);
    assert_eq!(bench.succeed(), Some(TransitionReason::FailureRate));
}

#[test]
fn the_rate_looks_at_the_last_twenty_calls_only() {
    let mut bench = Bench::new();
    for _ in 0..40 {
        bench.succeed();
    }
    // Never two failures in a row, so only the rate can open it: with the tenth of twenty.
    for failure in 1..=10 {
        let expected = (failure == 10).then_some(TransitionReason::FailureRate);
        assert_eq!(bench.fail(), expected, "failure {failure}");
        if failure < 10 {
            bench.succeed();
        }
    }
}

#[test]
fn mutating_tools_open_at_four_of_ten() {
    let mut bench = Bench::new();
    bench.policy = BreakerPolicy::mutating();
    for _ in 0..6 {
        bench.succeed();
    }
    for _ in 0..3 {
        assert_eq!(bench.fail(), None);
    }
    assert_eq!(bench.fail(), Some(TransitionReason::FailureRate));
    bench.rejected(Open, Some(15_000));
}

#[test]
fn read_only_tools_stand_seven_failures() {
    let mut bench = Bench::new();
    bench.policy = BreakerPolicy::read_only();
    for _ in 0..7 {
        assert_eq!(bench.fail(), None);
    }
    assert_eq!(bench.fail(), Some(TransitionReason::ConsecutiveFailures));
    bench.rejected(Open, Some(20_000));
}

#[test]
fn a_rate_that_has_no_exact_double_is_met_exactly() {
    let mut bench = Bench::with(BreakerOverrides {
        failure_rate: Some(0.55),
        min_calls: Some(20),
        consecutive_failures: Some(20),
        ..BreakerOverrides::default()
    });
    for _ in 0..9 {
        bench.succeed();
    }
    for _ in 0..10 {
        assert_eq!(bench.fail(), None);
    }
    assert_eq!(
        bench.fail(),
        Some(TransitionReason::FailureRate),
        "11 of 20 is 0.55"
    );
}

#[test]
fn the_callers_own_mistakes_never_count() {
    let mut bench = Bench::new();
    for _ in 0..50 {
        let permit = bench.pass();
        assert_eq!(bench.record(permit, AttemptResult::Neutral), None);
    }
    assert_eq!(bench.state, BreakerState::default());
}
