//! Bugs that the simulation found, each as the smallest plan that shows it.

use std::sync::Arc;

use holdfast_contract::DedupeMode;
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::RecordRequest;
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryLimits};
use holdfast_reliability::store::{Claim, DedupeStore};
use holdfast_testkit::TokioClock;
use holdfast_testkit::sim::trace::Detail;
use holdfast_testkit::sim::{Nature, Weather};

use super::plan::{Delivery, Faults, Happening, Intent, Plan, Protection};
use super::{quiet, schedule};

/// Rolls of the dice under which each plan is played.
const ROLLS: u64 = 150;

const FAIR: Weather = Weather {
    refused: 0,
    lost: 0,
    hangs: 0,
    panics: 0,
    wrong: 0,
    latency_ms_max: 20,
    timeout_ms: 3_000,
    reconciles: false,
};

fn intent(nature: Nature) -> Intent {
    Intent {
        nature,
        key: None,
        content: 1,
        protection: Protection::Protected,
    }
}

fn delivery(intent: usize) -> Delivery {
    Delivery {
        intent,
        process: 0,
        mode: DedupeMode::Enforced,
        other_arguments: false,
        deadline_ms: None,
        cancel_ms: None,
        turn: 0,
    }
}

fn leaving(intent: usize, cancel_ms: u64) -> Happening {
    Happening::Deliver(Delivery {
        cancel_ms: Some(cancel_ms),
        ..delivery(intent)
    })
}

fn plan(natures: &[Nature], weather: Weather, faults: Faults) -> Plan {
    Plan {
        processes: 1,
        lease_ms: 2_000,
        weather,
        faults,
        touchy_breaker: false,
        unknown_window_ms: 500,
        people: super::people::People::NotAsked,
        rate: None,
        intents: natures.iter().copied().map(intent).collect(),
        happenings: Vec::new(),
    }
}

/// Plays a plan under many rolls; every promise has to hold in each.
fn holds(plan: impl Fn() -> Plan) {
    quiet();
    for roll in 0..ROLLS {
        if let Err(broken) = schedule::run_plan(plan(), roll, Detail::Lines, None) {
            panic!(
                "roll {roll}: {}\n{}",
                broken.message,
                broken.lines.join("\n")
            );
        }
    }
}

#[test]
fn a_renewal_that_never_returns_does_not_hang_the_call() {
    holds(|| {
        let faults = Faults {
            renewal_hangs: 100,
            ..Faults::default()
        };
        let weather = Weather {
            latency_ms_max: 2_500,
            ..FAIR
        };
        Plan {
            happenings: vec![(0, Happening::Deliver(delivery(0)))],
            ..plan(&[Nature::Pay], weather, faults)
        }
    });
}

#[test]
fn a_claim_whose_answer_was_lost_is_given_back() {
    holds(|| {
        let faults = Faults {
            answer_lost: 50,
            ..Faults::default()
        };
        Plan {
            happenings: vec![(0, Happening::Deliver(delivery(0)))],
            ..plan(&[Nature::Pay], FAIR, faults)
        }
    });
}

#[test]
fn a_claim_whose_caller_left_before_the_answer_is_given_back() {
    holds(|| {
        let faults = Faults {
            slow: 100,
            slow_ms_max: 200,
            ..Faults::default()
        };
        Plan {
            happenings: vec![(0, leaving(0, 200)), (0, leaving(0, 300))],
            ..plan(&[Nature::Pay], FAIR, faults)
        }
    });
}

#[test]
fn a_finished_call_is_done_although_its_caller_leaves_during_the_bookkeeping() {
    holds(|| {
        let faults = Faults {
            slow: 100,
            slow_ms_max: 200,
            ..Faults::default()
        };
        let late = |ms| {
            Happening::Deliver(Delivery {
                deadline_ms: Some(ms),
                ..delivery(0)
            })
        };
        Plan {
            happenings: vec![
                (0, late(700)),
                (5_000, leaving(0, 600)),
                (9_000, leaving(0, 800)),
            ],
            ..plan(&[Nature::Pay], FAIR, faults)
        }
    });
}

#[test]
fn a_caller_who_leaves_between_refused_attempts_leaves_no_doubt_behind() {
    holds(|| {
        let weather = Weather {
            refused: 100,
            ..FAIR
        };
        Plan {
            happenings: vec![(0, leaving(0, 100))],
            ..plan(&[Nature::Pay], weather, Faults::default())
        }
    });
}

#[test]
fn duplicates_that_find_out_together_run_the_call_once() {
    holds(|| {
        let weather = Weather {
            lost: 60,
            reconciles: true,
            ..FAIR
        };
        let faults = Faults {
            slow: 50,
            slow_ms_max: 100,
            ..Faults::default()
        };
        let again = || (2_000, Happening::Deliver(delivery(0)));
        Plan {
            happenings: vec![
                (0, Happening::Deliver(delivery(0))),
                again(),
                again(),
                again(),
            ],
            ..plan(&[Nature::Append], weather, faults)
        }
    });
}

#[test]
fn an_echo_asks_about_the_call_it_echoes() {
    holds(|| {
        let weather = Weather {
            lost: 70,
            reconciles: true,
            ..FAIR
        };
        let happenings = vec![
            (0, Happening::Deliver(delivery(0))),
            (200, Happening::Deliver(delivery(1))),
        ];
        Plan {
            happenings,
            ..plan(&[Nature::Message; 2], weather, Faults::default())
        }
    });
}

#[test]
fn a_cancelled_call_does_not_hide_its_echo() {
    holds(|| {
        let faults = Faults {
            slow: 60,
            slow_ms_max: 20,
            ..Faults::default()
        };
        let happenings = vec![
            (0, leaving(0, 15)),
            (100, Happening::Deliver(delivery(1))),
            (130, Happening::Deliver(delivery(0))),
        ];
        Plan {
            happenings,
            ..plan(&[Nature::Message; 2], FAIR, faults)
        }
    });
}

#[test]
fn a_late_end_does_not_hide_a_newer_equal_call() {
    holds(|| {
        let weather = Weather {
            lost: 60,
            reconciles: true,
            latency_ms_max: 300,
            ..FAIR
        };
        let happenings = vec![
            (0, Happening::Deliver(delivery(0))),
            (1_200, Happening::Deliver(delivery(0))),
            (1_200, Happening::Deliver(delivery(1))),
            (1_210, Happening::Deliver(delivery(0))),
        ];
        Plan {
            happenings,
            ..plan(&[Nature::Message; 2], weather, Faults::default())
        }
    });
}

#[tokio::test(start_paused = true)]
async fn a_holder_that_was_given_up_on_can_still_say_that_nothing_ran() {
    let clock = Arc::new(TokioClock::new());
    let store = MemoryDedupeStore::new(clock.clone(), MemoryLimits::default());
    let wish = |owner: &str| ClaimRequest {
        key: StoredKey::from_bytes([1; 32]),
        content: None,
        tool: "pay".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session".into(),
            workspace_id: None,
            actor_id: "actor".into(),
            request_id: owner.to_owned(),
            tool_call_id: None,
            params_digest: Digest::of(b""),
            shadow: false,
        }),
        owner: owner.into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    };
    let granted = store.claim(&wish("holder")).await;
    assert!(matches!(granted, Ok(Claim::Granted { .. })), "{granted:?}");
    clock.jump_ms(200_000);
    let unknown = store.claim(&wish("duplicate")).await;
    assert!(matches!(unknown, Ok(Claim::Ended(_))), "{unknown:?}");
    // A breaker that was slow to answer has refused the call: nothing ran.
    let key = wish("holder").key;
    assert_eq!(store.release(&key, "holder").await, Ok(Ok(())));
    let granted = store.claim(&wish("duplicate")).await;
    assert!(matches!(granted, Ok(Claim::Granted { .. })), "{granted:?}");
}
