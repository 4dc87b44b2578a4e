//! Admin operations, clocks that jump, views, and changed policies.

use super::super::CircuitBreakerState::{Closed, ForcedOpen, HalfOpen, Open};
use super::super::{AttemptResult, BreakerOp, BreakerOverrides, BreakerPolicy, TransitionReason};
use super::Bench;

#[test]
fn forced_open_holds_until_reset() {
    for prepare in [
        |_: &mut Bench| {},
        |bench: &mut Bench| bench.open(),
        |bench: &mut Bench| {
            let _ = bench.half_open();
        },
    ] {
        let mut bench = Bench::new();
        prepare(&mut bench);
        let force = BreakerOp::ForceOpen {
            reason: "x".repeat(1_000),
        };
        let transition = bench.step(force).transition.unwrap();
        assert_eq!(
            (transition.to, transition.reason),
            (ForcedOpen, TransitionReason::Forced)
        );
        bench.now_ms += 365 * 24 * 3_600_000;
        bench.rejected(ForcedOpen, None);
        let snapshot = bench.state.snapshot(&bench.policy, bench.now_ms);
        assert_eq!(
            snapshot.forced_reason.unwrap().len(),
            256,
            "what is stored is bounded"
        );

        let transition = bench.step(BreakerOp::Reset).transition.unwrap();
        assert_eq!((transition.from, transition.to), (ForcedOpen, Closed));
        assert!(!bench.pass().is_probe());
    }
}

#[test]
fn forcing_twice_keeps_the_newer_reason_and_is_one_transition() {
    let mut bench = Bench::new();
    let force = |reason: &str| BreakerOp::ForceOpen {
        reason: reason.to_owned(),
    };
    let _ = bench.step(force("first"));
    assert_eq!(bench.step(force("second")).transition, None);
    let snapshot = bench.state.snapshot(&bench.policy, bench.now_ms);
    assert_eq!(snapshot.forced_reason.as_deref(), Some("second"));
}

#[test]
fn reset_closes_with_clean_counters_from_every_state() {
    let mut open = Bench::new();
    open.open();
    let mut half_open = Bench::new();
    let probe = half_open.half_open();
    for bench in [&mut open, &mut half_open] {
        let transition = bench.step(BreakerOp::Reset).transition.unwrap();
        assert_eq!(
            (transition.to, transition.reason),
            (Closed, TransitionReason::Reset)
        );
        for _ in 0..4 {
            assert_eq!(bench.fail(), None);
        }
    }
    assert_eq!(
        half_open.record(probe, AttemptResult::Failure),
        None,
        "it was before the reset"
    );
}

#[test]
fn reset_while_closed_forgets_also_what_is_under_way() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail();
    }
    let under_way = bench.pass();
    assert_eq!(bench.step(BreakerOp::Reset).transition, None);
    bench.record(under_way, AttemptResult::Failure);
    assert_eq!(
        bench
            .state
            .snapshot(&bench.policy, bench.now_ms)
            .consecutive_failures,
        0
    );
}

#[test]
fn a_clock_that_jumps_back_costs_at_most_one_more_cooldown() {
    let mut bench = Bench::new();
    bench.open();
    bench.now_ms -= 900_000;
    bench.rejected(Open, Some(30_000));
    bench.now_ms += 29_999;
    bench.rejected(Open, Some(1));
    bench.now_ms += 1;
    let probe = bench.pass();

    bench.now_ms -= 10_000;
    bench.rejected(HalfOpen, Some(60_000));
    bench.now_ms += 60_000;
    let replacement = bench.pass();
    bench.record(probe, AttemptResult::Failure);
    bench.record(replacement, AttemptResult::Success);
    assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));
}

#[test]
fn after_a_jump_back_old_failures_still_age_out() {
    let mut bench = Bench::new();
    for _ in 0..4 {
        bench.fail();
    }
    bench.now_ms -= 900_000;
    bench.succeed();
    for _ in 0..3 {
        bench.fail();
    }
    bench.now_ms += bench.policy.window_ms();
    assert_eq!(bench.state.snapshot(&bench.policy, bench.now_ms).calls, 0);
}

#[test]
fn the_view_changes_nothing_and_tells_what_a_call_would_meet() {
    let mut bench = Bench::new();
    bench.fail();
    bench.succeed();
    let before = bench.state.clone();
    let snapshot = bench.state.snapshot(&bench.policy, bench.now_ms);
    assert_eq!(bench.state, before);
    assert_eq!(
        (snapshot.calls, snapshot.failures, snapshot.failure_rate),
        (2, 1, Some(0.5))
    );

    bench.open();
    let snapshot = bench.state.snapshot(&bench.policy, bench.now_ms + 10_000);
    assert_eq!(
        (snapshot.would_admit, snapshot.retry_after_ms),
        (false, Some(20_000))
    );
    let snapshot = bench.state.snapshot(&bench.policy, bench.now_ms + 30_000);
    assert_eq!((snapshot.state, snapshot.would_admit), (Open, true));
}

#[test]
fn who_looks_on_is_told_the_cooldown_of_whoever_opened_it() {
    let mut bench = Bench::with(BreakerOverrides {
        open_cooldown_ms: Some(15_000),
        ..BreakerOverrides::default()
    });
    bench.open();
    let seen = |bench: &Bench, after_ms| {
        let stranger = BreakerPolicy::standard();
        let seen = bench.state.snapshot(&stranger, bench.now_ms + after_ms);
        (seen.would_admit, seen.retry_after_ms)
    };
    assert_eq!(seen(&bench, 10_000), (false, Some(5_000)));
    assert_eq!(seen(&bench, 15_000), (true, None));
    // A probe that fails opens it again, for as long.
    bench.now_ms += 15_000;
    bench.fail();
    assert_eq!(seen(&bench, 14_999), (false, Some(1)));
}

#[test]
fn a_smaller_policy_shrinks_a_row_that_a_larger_one_wrote() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.succeed();
    }
    let small = BreakerOverrides {
        rate_window_calls: Some(3),
        min_calls: Some(3),
        consecutive_failures: Some(2),
        ..BreakerOverrides::default()
    };
    bench.policy = BreakerPolicy::try_from(small).unwrap();
    bench.succeed();
    assert_eq!(bench.state.window.len(), 3);
}

#[test]
fn reasons_are_named_as_on_the_wire() {
    for reason in [
        TransitionReason::ConsecutiveFailures,
        TransitionReason::FailureRate,
        TransitionReason::CooldownElapsed,
        TransitionReason::ProbeFailed,
        TransitionReason::ProbesSucceeded,
        TransitionReason::Forced,
        TransitionReason::Reset,
    ] {
        assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
    }
}
