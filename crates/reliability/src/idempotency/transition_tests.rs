//! The rules by themselves, without any store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use holdfast_contract::{ResultOutput, Status};
use proptest::prelude::*;
use serde_json::json;

use super::*;

const NOW_MS: u64 = 1_000_000;
const LEASE_MS: u64 = 1_000;

fn lifetimes() -> Lifetimes {
    Lifetimes {
        lease_ms: LEASE_MS,
        ..Lifetimes::default()
    }
}

fn wish(key: u8, owner: &str) -> ClaimRequest {
    ClaimRequest {
        key: StoredKey::from_bytes([key; 32]),
        content: None,
        tool: "message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session".into(),
            actor_id: "actor".into(),
            request_id: "request".to_owned(),
            tool_call_id: None,
            params_digest: Digest::of(b"digest"),
        }),
        owner: owner.into(),
        lifetimes: lifetimes(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

fn granted(wish: &ClaimRequest) -> DedupeRecord {
    match claim(None, None, wish, NOW_MS) {
        ClaimDecision::Grant { record } => Arc::unwrap_or_clone(record),
        other => panic!("not granted: {other:?}"),
    }
}

fn failure(should_retriable: bool) -> RecordError {
    RecordError {
        code: "timeout".to_owned(),
        message: "too slow".to_owned(),
        terminal: !should_retriable,
        should_retriable,
        status: Status::Timeout,
    }
}

fn done() -> Ending {
    Ending::Done(ResultOutput {
        content: Arc::new(json!("sent")),
        metadata: None,
    })
}

fn last_word(record: &DedupeRecord, ending: Ending) -> Finalisation {
    Finalisation {
        key: record.key,
        owner: record.owner.clone(),
        ending,
        execution: Execution::default(),
        lifetimes: lifetimes(),
    }
}

fn in_state(state: RecordState) -> DedupeRecord {
    let record = granted(&wish(1, "first"));
    let ending = match state {
        RecordState::Inflight => return record,
        RecordState::Done => done(),
        RecordState::Failed => Ending::Failed(failure(true)),
        RecordState::Cancelled => Ending::Cancelled,
        RecordState::Unknown => Ending::Unknown(failure(false)),
    };
    finalise(Some(&record), &last_word(&record, ending), NOW_MS).unwrap()
}

fn word(decision: &ClaimDecision) -> &'static str {
    match decision {
        ClaimDecision::Grant { .. } => "grant",
        ClaimDecision::InFlight { .. } => "in flight",
        ClaimDecision::Ended { store: false, .. } => "ended",
        ClaimDecision::Ended { store: true, .. } => "turned unknown",
        ClaimDecision::Conflict { .. } => "conflict",
    }
}

#[test]
fn every_state_has_its_answer() {
    use Holder::{Dead, MayLive};
    use OnRetriableFailure::{Replay, RunAgain};
    use RecordState::{Cancelled, Done, Failed, Inflight, Unknown};
    let table = [
        (Inflight, MayLive, 0, Replay, "in flight"),
        (Inflight, MayLive, LEASE_MS - 1, Replay, "in flight"),
        (Inflight, MayLive, LEASE_MS, Replay, "turned unknown"),
        (Inflight, Dead, 0, Replay, "turned unknown"),
        (Inflight, Dead, 0, RunAgain, "turned unknown"),
        (Done, MayLive, 0, Replay, "ended"),
        (Done, MayLive, 0, RunAgain, "ended"),
        (Failed, MayLive, 0, Replay, "ended"),
        (Failed, MayLive, 0, RunAgain, "grant"),
        (Cancelled, MayLive, 0, Replay, "grant"),
        (Unknown, MayLive, 0, Replay, "ended"),
        (Unknown, MayLive, 0, RunAgain, "ended"),
        // A record's time is over: as if it had never been.
        (Done, MayLive, 25 * 60 * 60 * 1000, Replay, "grant"),
        (Unknown, MayLive, 25 * 60 * 60 * 1000, Replay, "grant"),
        // But never one in flight: its holder may have slept as long.
        (
            Inflight,
            Dead,
            25 * 60 * 60 * 1000,
            Replay,
            "turned unknown",
        ),
        (
            Inflight,
            MayLive,
            99 * 60 * 60 * 1000,
            Replay,
            "turned unknown",
        ),
    ];
    for (state, holder, later_ms, on_retriable_failure, expected) in table {
        let record = in_state(state);
        let wish = ClaimRequest {
            on_retriable_failure,
            ..wish(1, "second")
        };
        let decision = claim(Some((&record, holder)), None, &wish, NOW_MS + later_ms);
        assert_eq!(
            word(&decision),
            expected,
            "{state:?} {holder:?} +{later_ms} {on_retriable_failure:?}"
        );
    }
}

#[test]
fn both_sides_have_to_vouch_before_a_lost_call_runs_again() {
    for (before, now, expected) in [
        (RepeatSafety::Safe, RepeatSafety::Safe, "grant"),
        (RepeatSafety::Safe, RepeatSafety::Unsafe, "turned unknown"),
        (RepeatSafety::Unsafe, RepeatSafety::Safe, "turned unknown"),
        (RepeatSafety::Unsafe, RepeatSafety::Unsafe, "turned unknown"),
    ] {
        let record = granted(&ClaimRequest {
            repeat: before,
            ..wish(1, "first")
        });
        let wish = ClaimRequest {
            repeat: now,
            ..wish(1, "second")
        };
        let decision = claim(Some((&record, Holder::Dead)), None, &wish, NOW_MS);
        assert_eq!(word(&decision), expected, "{before:?} {now:?}");
    }
}

#[test]
fn a_call_lost_while_it_waited_ran_nothing() {
    let first = ClaimRequest {
        hold: Hold::Held,
        ..wish(1, "first")
    };
    let waiting = granted(&first);
    let begun = begin(Some(&waiting), "first", LEASE_MS, NOW_MS).unwrap();
    let mut other_arguments = wish(1, "second");
    Arc::make_mut(&mut other_arguments.request).params_digest = Digest::of(b"other");
    let table = [
        (&waiting, Holder::MayLive, 0, "in flight", "conflict"),
        (&waiting, Holder::Dead, 0, "grant", "grant"),
        (&waiting, Holder::MayLive, LEASE_MS, "grant", "grant"),
        (&begun, Holder::MayLive, 0, "in flight", "conflict"),
        (&begun, Holder::Dead, 0, "turned unknown", "conflict"),
        (
            &begun,
            Holder::MayLive,
            LEASE_MS,
            "turned unknown",
            "conflict",
        ),
    ];
    for (record, holder, later_ms, same, other) in table {
        for (wish, expected) in [(wish(1, "second"), same), (other_arguments.clone(), other)] {
            let decision = claim(Some((record, holder)), None, &wish, NOW_MS + later_ms);
            assert_eq!(word(&decision), expected, "{holder:?} +{later_ms}");
        }
    }
    // Nor does it answer for its content.
    let echo = ClaimRequest {
        content: Some(ContentLookup {
            key: StoredKey::from_bytes([9; 32]),
            unknown_window_ms: 600_000,
            echo_window_ms: 30_000,
        }),
        ..wish(2, "second")
    };
    let decision = claim(None, Some((&waiting, Holder::Dead)), &echo, NOW_MS);
    assert_eq!(word(&decision), "grant");
    let decision = claim(None, Some((&begun, Holder::Dead)), &echo, NOW_MS);
    assert_eq!(word(&decision), "turned unknown");
}

#[test]
fn only_the_holder_of_a_waiting_call_may_begin() {
    let first = ClaimRequest {
        hold: Hold::Held,
        ..wish(1, "first")
    };
    let waiting = granted(&first);
    assert_eq!(
        begin(Some(&waiting), "second", LEASE_MS, NOW_MS),
        Err(Refused::NotTheHolder)
    );
    assert_eq!(begin(None, "first", LEASE_MS, NOW_MS), Err(Refused::Gone));
    let begun = begin(Some(&waiting), "first", LEASE_MS, NOW_MS + 7).unwrap();
    assert!(waiting.held && !begun.held);
    assert_eq!(begun.lock_until_ms, Some(NOW_MS + 7 + LEASE_MS));
    let ended = finalise(Some(&begun), &last_word(&begun, done()), NOW_MS).unwrap();
    assert_eq!(
        begin(Some(&ended), "first", LEASE_MS, NOW_MS),
        Err(Refused::NotTheHolder)
    );
}

#[test]
fn other_arguments_conflict_unless_nothing_ran() {
    for state in [
        RecordState::Inflight,
        RecordState::Done,
        RecordState::Failed,
        RecordState::Unknown,
    ] {
        let record = in_state(state);
        let mut other = wish(1, "second");
        Arc::make_mut(&mut other.request).params_digest = Digest::of(b"other");
        let decision = claim(Some((&record, Holder::MayLive)), None, &other, NOW_MS);
        assert_eq!(
            decision,
            ClaimDecision::Conflict {
                recorded_digest: Digest::of(b"digest")
            }
        );
    }
}

#[test]
fn content_sent_under_another_key_answers_a_cancelled_call() {
    let content = |key: u8, owner: &str| ClaimRequest {
        content: Some(ContentLookup {
            key: StoredKey::from_bytes([9; 32]),
            unknown_window_ms: 600_000,
            echo_window_ms: 30_000,
        }),
        ..wish(key, owner)
    };
    let mine = granted(&content(1, "first"));
    let mine = finalise(Some(&mine), &last_word(&mine, Ending::Cancelled), NOW_MS).unwrap();
    let theirs = granted(&content(2, "second"));
    let theirs = finalise(
        Some(&theirs),
        &last_word(&theirs, Ending::Unknown(failure(false))),
        NOW_MS,
    )
    .unwrap();
    let decision = claim(
        Some((&mine, Holder::MayLive)),
        Some((&theirs, Holder::MayLive)),
        &content(1, "third"),
        NOW_MS + 1,
    );
    let ClaimDecision::Ended {
        record,
        store: false,
    } = decision
    else {
        panic!("the message would be sent twice: {decision:?}");
    };
    assert_eq!(record.key, theirs.key);
}

#[test]
fn a_renewed_call_is_kept_for_its_whole_time_after_it_is_lost() {
    let mut record = granted(&wish(1, "first"));
    let day_ms = lifetimes().done_ms;
    let mut now_ms = NOW_MS;
    while now_ms < NOW_MS + day_ms + LEASE_MS {
        now_ms += LEASE_MS / 2;
        record = renew(Some(&record), "first", LEASE_MS, now_ms).unwrap();
    }
    let lost_ms = now_ms + LEASE_MS;
    let decision = claim(
        Some((&record, Holder::MayLive)),
        None,
        &wish(1, "second"),
        lost_ms,
    );
    assert_eq!(word(&decision), "turned unknown");
}

#[derive(Debug, Clone)]
enum Move {
    Claim {
        safe: bool,
        run_again: bool,
        dead: bool,
        hold: Hold,
    },
    Begin {
        owner: usize,
    },
    Finalise {
        owner: usize,
        ending: u8,
    },
    Renew {
        owner: usize,
    },
    Release {
        owner: usize,
    },
    Wait {
        ms: u64,
    },
    Clear,
}

fn any_move() -> impl Strategy<Value = Move> {
    prop_oneof![
        4 => (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>())
            .prop_map(|(safe, run_again, dead, held)| {
                { let hold = if held { Hold::Held } else { Hold::None };
                Move::Claim { safe, run_again, dead, hold } }
            }),
        3 => (0..6_usize).prop_map(|owner| Move::Begin { owner }),
        4 => (0..6_usize, 0..5_u8).prop_map(|(owner, ending)| Move::Finalise { owner, ending }),
        1 => (0..6_usize).prop_map(|owner| Move::Renew { owner }),
        1 => (0..6_usize).prop_map(|owner| Move::Release { owner }),
        2 => (0..2 * LEASE_MS).prop_map(|ms| Move::Wait { ms }),
        1 => Just(Move::Clear),
    ]
}

/// One key and its history. Owners are numbered by their claims.
#[derive(Default)]
struct World {
    record: Option<DedupeRecord>,
    now_ms: u64,
    claims: usize,
    /// Successes since the key was last cleared, by owner.
    succeeded: HashMap<String, u64>,
    /// Who waits, and has never been let go.
    waiting: HashSet<Arc<str>>,
    /// Whether every claim since then was made as unsafe to repeat.
    all_unsafe: bool,
}

impl World {
    /// Stores the next record, checking that its version moves on.
    fn put(&mut self, next: DedupeRecord, renewed: bool) {
        if let Some(before) = &self.record {
            assert!(next.version > before.version || renewed && next.version == before.version);
            // A new claim that overrides the doubt is judged where it is granted.
            if before.state == RecordState::Unknown
                && !matches!(next.state, RecordState::Unknown | RecordState::Inflight)
            {
                assert_eq!(
                    next.owner, before.owner,
                    "an unknown outcome was overruled by another"
                );
            }
        }
        self.record = Some(next);
    }

    fn go(&mut self, chosen: &Move) {
        match *chosen {
            Move::Wait { ms } => self.now_ms += ms,
            Move::Clear => {
                self.record = None;
                self.succeeded.clear();
                self.all_unsafe = true;
            }
            Move::Claim {
                safe,
                run_again,
                dead,
                hold,
            } => self.claim(safe, run_again, dead, hold),
            Move::Begin { owner } => self.begin(&owner.to_string()),
            Move::Finalise { owner, ending } => self.finalise(&owner.to_string(), ending),
            Move::Renew { owner } => {
                if let Ok(next) = renew(
                    self.record.as_ref(),
                    &owner.to_string(),
                    LEASE_MS,
                    self.now_ms,
                ) {
                    self.put(next, true);
                }
            }
            Move::Release { owner } => {
                if release(self.record.as_ref(), &owner.to_string()).is_ok() {
                    self.record = None;
                }
            }
        }
    }

    fn begin(&mut self, owner: &str) {
        if let Ok(next) = begin(self.record.as_ref(), owner, LEASE_MS, self.now_ms) {
            self.waiting.remove(owner);
            self.put(next, true);
        }
    }

    fn claim(&mut self, safe: bool, run_again: bool, dead: bool, hold: Hold) {
        let wish = ClaimRequest {
            hold,
            repeat: if safe {
                RepeatSafety::Safe
            } else {
                RepeatSafety::Unsafe
            },
            on_retriable_failure: if run_again {
                OnRetriableFailure::RunAgain
            } else {
                OnRetriableFailure::Replay
            },
            ..wish(1, &self.claims.to_string())
        };
        let holder = if dead { Holder::Dead } else { Holder::MayLive };
        let existing = self.record.clone();
        match claim(
            existing.as_ref().map(|record| (record, holder)),
            None,
            &wish,
            self.now_ms,
        ) {
            ClaimDecision::Grant { record } => {
                self.claims += 1;
                self.all_unsafe &= !safe;
                // An unknown outcome is only run again by a caller that vouches and asks for it.
                let doubted = existing.is_some_and(|before| before.state == RecordState::Unknown);
                assert!(!doubted || (safe && run_again));
                if hold == Hold::Held {
                    self.waiting.insert(wish.owner.to_string());
                }
                self.put(Arc::unwrap_or_clone(record), false);
            }
            ClaimDecision::Ended {
                record,
                store: true,
            } => self.put(Arc::unwrap_or_clone(record), false),
            ClaimDecision::InFlight { .. } | ClaimDecision::Ended { .. } => {}
            ClaimDecision::Conflict { .. } => panic!("all arguments are equal here"),
        }
    }

    fn finalise(&mut self, owner: &str, ending: u8) {
        // A call that was never let go has nothing to tell but that it did not run.
        let ending = if self.waiting.contains(owner) {
            3
        } else {
            ending
        };
        let ending = match ending {
            0 => done(),
            1 => Ending::Failed(failure(true)),
            2 => Ending::Failed(failure(false)),
            3 => Ending::Cancelled,
            _ => Ending::Unknown(failure(false)),
        };
        let word = Finalisation {
            key: StoredKey::from_bytes([1; 32]),
            owner: owner.into(),
            ending,
            execution: Execution::default(),
            lifetimes: lifetimes(),
        };
        if let Ok(next) = finalise(self.record.as_ref(), &word, self.now_ms) {
            if next.state == RecordState::Done {
                *self.succeeded.entry(owner.to_owned()).or_default() += 1;
            }
            self.put(next, false);
        }
        if self.all_unsafe {
            assert!(
                self.succeeded.values().sum::<u64>() <= 1,
                "a call that must not be repeated succeeded twice: {:?}",
                self.succeeded
            );
        }
    }
}

proptest! {
    #[test]
    fn no_sequence_runs_an_unsafe_call_to_success_twice(
        moves in proptest::collection::vec(any_move(), 1..60),
    ) {
        // Short of a record's lifetime: after it a key is a new one.
        let mut world = World { now_ms: NOW_MS, all_unsafe: true, ..World::default() };
        for chosen in &moves {
            world.go(chosen);
            if let Some(record) = &world.record {
                let running = record.state == RecordState::Inflight;
                prop_assert_eq!(running, record.lock_until_ms.is_some());
                prop_assert!(record.expires_at_ms >= record.updated_at_ms);
                prop_assert_eq!(record.payload.is_some(), record.state == RecordState::Done);
            }
        }
    }

    #[test]
    fn an_ending_is_taken_once(first in 0..4_u8, second in 0..5_u8) {
        let mut world = World { now_ms: NOW_MS, all_unsafe: true, ..World::default() };
        world.claim(false, false, false, Hold::None);
        world.finalise("0", first);
        let after_first = world.record.clone();
        world.finalise("0", second);
        prop_assert_eq!(after_first, world.record);
    }
}
