//! From open over half open back to closed: cooldown, probes, leases, stragglers.

use super::super::CircuitBreakerState::{Closed, HalfOpen, Open};
use super::super::{
    AttemptResult, BreakerOp, BreakerOverrides, ProbeId, Transition, TransitionReason,
};
use super::Bench;

#[test]
fn tr_09_two_successful_probes_close_it() {
    let mut bench = Bench::new();
    let probe = bench.half_open();
    assert!(probe.is_probe());
    assert_eq!(bench.state.circuit(), HalfOpen);
    assert_eq!(bench.record(probe, AttemptResult::Success), None);
    assert_eq!(bench.state.circuit(), HalfOpen);
    assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));
    // Normal tracking begins anew: the failures before the outage are gone.
    for _ in 0..4 {
        assert_eq!(bench.fail(), None);
    }
    assert_eq!(bench.state.circuit(), Closed);
}

#[test]
fn the_cooldown_ends_with_the_next_attempt_and_is_reported() {
    let mut bench = Bench::new();
    bench.open();
    bench.now_ms += 30_000;
    assert_eq!(
        bench.state.circuit(),
        Open,
        "nothing happens until somebody asks"
    );
    let outcome = bench.step(BreakerOp::Admit {
        prober: ProbeId::new(99),
    });
    assert_eq!(
        outcome.transition,
        Some(Transition {
            from: Open,
            to: HalfOpen,
            reason: TransitionReason::CooldownElapsed
        })
    );
}

#[test]
fn tr_10_a_failing_probe_reopens_with_a_full_cooldown() {
    let mut bench = Bench::new();
    let probe = bench.half_open();
    assert_eq!(bench.record(probe, AttemptResult::Success), None);
    let probe = bench.pass();
    bench.now_ms += 700;
    assert_eq!(
        bench.record(probe, AttemptResult::Failure),
        Some(TransitionReason::ProbeFailed)
    );
    bench.rejected(Open, Some(30_000));
    // The success before the failure does not count towards the next recovery.
    bench.now_ms += 30_000;
    assert_eq!(bench.succeed(), None);
    assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));
}

#[test]
fn only_one_probe_at_a_time() {
    let mut bench = Bench::new();
    let probe = bench.half_open();
    bench.now_ms += 10_000;
    bench.rejected(HalfOpen, Some(50_000));
    bench.record(probe, AttemptResult::Success);
    let _ = bench.pass();
}

#[test]
fn as_many_probes_as_the_policy_says() {
    let mut bench = Bench::with(BreakerOverrides {
        half_open_max_probes: Some(2),
        ..BreakerOverrides::default()
    });
    let first = bench.half_open();
    bench.now_ms += 1_000;
    let second = bench.pass();
    bench.rejected(HalfOpen, Some(59_000));
    assert_eq!(bench.record(second, AttemptResult::Success), None);
    assert_eq!(
        bench.record(first, AttemptResult::Success),
        Some(TransitionReason::ProbesSucceeded)
    );
}

#[test]
fn a_neutral_probe_frees_its_place_and_decides_nothing() {
    let mut bench = Bench::new();
    let probe = bench.half_open();
    assert_eq!(bench.record(probe, AttemptResult::Neutral), None);
    assert_eq!(bench.state.circuit(), HalfOpen);
    assert_eq!(bench.succeed(), None);
    assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));
}

#[test]
fn a_prober_that_dies_frees_its_place_after_the_lease() {
    let mut bench = Bench::new();
    let _lost = bench.half_open();
    bench.now_ms += 59_999;
    bench.rejected(HalfOpen, Some(1));
    bench.now_ms += 1;
    let _ = bench.pass();
}

#[test]
fn a_replaced_probe_reports_too_late() {
    for late in [
        AttemptResult::Success,
        AttemptResult::Failure,
        AttemptResult::Neutral,
    ] {
        let mut bench = Bench::new();
        let slow = bench.half_open();
        bench.now_ms += 60_000;
        let replacement = bench.pass();
        let before = bench.state.clone();
        assert_eq!(bench.record(slow, late), None);
        assert_eq!(bench.state, before, "{late:?}");
        assert_eq!(bench.record(replacement, AttemptResult::Success), None);
        assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));
    }
}

#[test]
fn an_expired_probe_nobody_replaced_still_counts_once() {
    let mut bench = Bench::new();
    let slow = bench.half_open();
    bench.now_ms += 500_000;
    assert_eq!(bench.record(slow, AttemptResult::Success), None);
    assert_eq!(
        bench.record(slow, AttemptResult::Success),
        None,
        "a second report is no second"
    );
    assert_eq!(bench.state.circuit(), HalfOpen);
    assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));
}

#[test]
fn the_same_attempt_asking_again_holds_one_place() {
    let mut bench = Bench::with(BreakerOverrides {
        half_open_max_probes: Some(2),
        ..BreakerOverrides::default()
    });
    bench.open();
    bench.now_ms += 30_000;
    let first = bench.admit_as(700);
    bench.now_ms += 1_000;
    assert_eq!(bench.admit_as(700), first);
    let snapshot = bench.state.snapshot(&bench.policy, bench.now_ms);
    assert_eq!(snapshot.live_probes, 1);
    let _ = bench.pass();
    bench.rejected(HalfOpen, Some(60_000));
}

#[test]
fn results_from_before_the_breaker_opened_change_nothing() {
    let mut bench = Bench::new();
    let stragglers: Vec<_> = (0..6).map(|_| bench.pass()).collect();
    bench.open();

    bench.now_ms += 10_000;
    bench.record(stragglers[0], AttemptResult::Failure);
    bench.rejected(Open, Some(20_000));
    bench.record(stragglers[1], AttemptResult::Success);
    bench.rejected(Open, Some(20_000));

    bench.now_ms += 20_000;
    let probe = bench.pass();
    assert_eq!(bench.record(stragglers[2], AttemptResult::Failure), None);
    assert_eq!(bench.record(stragglers[3], AttemptResult::Success), None);
    assert_eq!(bench.record(probe, AttemptResult::Success), None);
    assert_eq!(bench.succeed(), Some(TransitionReason::ProbesSucceeded));

    bench.record(stragglers[4], AttemptResult::Failure);
    assert_eq!(bench.state.snapshot(&bench.policy, bench.now_ms).calls, 0);
}

#[test]
fn a_probe_of_an_earlier_recovery_does_not_decide_a_later_one() {
    let mut bench = Bench::with(BreakerOverrides {
        half_open_max_probes: Some(2),
        ..BreakerOverrides::default()
    });
    let failing = bench.half_open();
    let slow = bench.pass();
    bench.record(failing, AttemptResult::Failure);
    bench.now_ms += 30_000;
    let probe = bench.pass();
    assert_eq!(bench.record(slow, AttemptResult::Failure), None);
    assert_eq!(bench.record(slow, AttemptResult::Success), None);
    assert_eq!(bench.record(probe, AttemptResult::Success), None);
    assert_eq!(bench.state.circuit(), HalfOpen);
}
