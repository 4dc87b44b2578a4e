//! The rules by themselves, without any store.

use std::sync::Arc;

use holdfast_contract::{ResultOutput, Status};
use serde_json::json;

use super::*;
use crate::idempotency::wished::{self, LEASE_MS, wish};

const NOW_MS: u64 = 1_000_000;
const WINDOW_MS: u64 = 600_000;

fn lifetimes() -> Lifetimes {
    wished::lifetimes(LEASE_MS)
}

fn granted(wish: &ClaimRequest) -> DedupeRecord {
    match claim(None, None, wish, NOW_MS) {
        ClaimDecision::Grant { record, .. } => Arc::unwrap_or_clone(record),
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
    let echo = echo(2, "second");
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
    let mine = granted(&echo(1, "first"));
    let mine = finalise(Some(&mine), &last_word(&mine, Ending::Cancelled), NOW_MS).unwrap();
    let theirs = granted(&echo(2, "second"));
    let theirs = finalise(
        Some(&theirs),
        &last_word(&theirs, Ending::Unknown(failure(false))),
        NOW_MS,
    )
    .unwrap();
    let decision = claim(
        Some((&mine, Holder::MayLive)),
        Some((&theirs, Holder::MayLive)),
        &echo(1, "third"),
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

fn echo(key: u8, owner: &str) -> ClaimRequest {
    ClaimRequest {
        content: Some(ContentLookup {
            key: StoredKey::from_bytes([9; 32]),
            unknown_window_ms: WINDOW_MS,
            echo_window_ms: 30_000,
        }),
        ..wish(key, owner)
    }
}

#[test]
fn a_lost_call_answers_for_its_content_from_when_it_was_lost() {
    use Holder::{Dead, MayLive};
    let lost = granted(&echo(1, "first"));
    let lost_ms = NOW_MS + LEASE_MS;
    let table = [
        // A dead process is noticed before its lease is over, and may have acted until then.
        (Dead, NOW_MS + 1, "turned unknown", NOW_MS + 1),
        (MayLive, lost_ms, "turned unknown", lost_ms),
        (Dead, lost_ms + WINDOW_MS - 1, "turned unknown", lost_ms),
        (MayLive, lost_ms + WINDOW_MS - 1, "turned unknown", lost_ms),
        // Nobody asked for half a day: the doubt does not begin with the question.
        (Dead, lost_ms + WINDOW_MS, "grant", lost_ms),
        (MayLive, lost_ms + 12 * 60 * 60 * 1000, "grant", lost_ms),
    ];
    for (holder, now_ms, expected, since_ms) in table {
        let told = format!("{holder:?} at {now_ms}");
        let decision = claim(None, Some((&lost, holder)), &echo(2, "second"), now_ms);
        assert_eq!(word(&decision), expected, "{told}");
        let (ClaimDecision::Ended { record, .. }
        | ClaimDecision::Grant {
            passed_over: Some(record),
            ..
        }) = decision
        else {
            panic!("{told}: what is known of the lost call is not put down: {decision:?}");
        };
        assert_eq!(record.state, RecordState::Unknown, "{told}");
        assert_eq!(record.updated_at_ms, since_ms, "{told}");
        // Its own key is refused for as long as if it had been lost just now.
        let kept_ms = lifetimes().unknown_ms;
        assert_eq!(record.expires_at_ms, now_ms + kept_ms, "{told}");
        assert_eq!(record.ttl_ms, now_ms + kept_ms - since_ms, "{told}");
        let own = claim(Some((&record, holder)), None, &echo(1, "third"), now_ms + 1);
        assert_eq!(word(&own), "ended", "{told}");
    }
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

#[path = "transition_moves.rs"]
mod moves;
