//! What a claim is answered.

use std::sync::Arc;

use super::{
    Bench, Claim, ClaimRequest, Clock, Ending, LEASE_MS, Lifetimes, RecordState, Refused, START_MS,
    StoreFactory, WaitTicket, best_effort, done, error, execution, failed, fresh_record, key,
    lifetimes, ok, safe, unknown, wish, with_content,
};
use crate::canonical::Digest;

/// Nobody has asked before.
pub async fn a_fresh_key_is_granted_and_recorded(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    assert_eq!(bench.get(&wish(1, "a")).await, None);
    let wish = with_content(wish(1, "a"));
    bench.granted(wish.clone()).await;
    assert_eq!(
        bench.get(&wish).await.as_deref(),
        Some(&fresh_record(&wish, START_MS))
    );
}

/// Somebody is at it.
pub async fn a_running_call_is_in_flight_for_others(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    bench.clock.advance(LEASE_MS - 1);
    let expected = WaitTicket {
        key: key(1),
        version: 1,
        lock_until_ms: START_MS + LEASE_MS,
    };
    assert_eq!(bench.in_flight(wish(1, "b")).await, expected);
    // Also for one who would run a failure again, and one who vouches.
    bench.in_flight(best_effort(safe(wish(1, "c")))).await;
    bench.granted(wish(2, "d")).await;
}

/// The key belongs to another call.
pub async fn other_arguments_are_a_conflict(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let endings = [None, Some(done()), Some(failed(true)), Some(unknown())];
    for (number, ending) in (1..).zip(endings) {
        let first = wish(number, &format!("first-{number}"));
        bench.granted(first.clone()).await;
        if let Some(ending) = ending {
            assert_eq!(bench.finalise(&first, ending).await, Ok(()));
        }
        let before = bench.get(&first).await;
        let mut other = best_effort(safe(wish(number, "other")));
        Arc::make_mut(&mut other.request).params_digest = Digest::of(b"something else");
        match bench.claim(other).await {
            Claim::Conflict { recorded_digest } => {
                assert_eq!(recorded_digest, first.request.params_digest);
            }
            answer => panic!("not a conflict: {answer:?}"),
        }
        assert_eq!(
            bench.get(&first).await,
            before,
            "a conflict changes nothing"
        );
    }
}

/// Nothing ran under the key, so it is free.
pub async fn a_cancelled_record_never_conflicts(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&wish(1, "a"), Ending::Cancelled).await;
    let mut other = wish(1, "b");
    Arc::make_mut(&mut other.request).params_digest = Digest::of(b"something else");
    bench.granted(other).await;
}

/// The output, as often as it is asked for.
pub async fn a_finished_call_answers_its_duplicates(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    bench.clock.advance(10);
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
    for owner in ["b", "c"] {
        let record = bench
            .ended(best_effort(safe(wish(1, owner))), RecordState::Done)
            .await;
        let content = record
            .payload
            .as_ref()
            .map(|payload| payload.content.to_string());
        assert_eq!(content.as_deref(), Some(r#"{"id":7}"#));
        assert_eq!(record.execution, Some(execution()));
        assert_eq!(&*record.owner, "a");
        assert_eq!(record.created_at_ms, START_MS);
        assert_eq!(record.updated_at_ms, START_MS + 10);
        assert_eq!(record.expires_at_ms, START_MS + 10 + lifetimes().done_ms);
        assert_eq!(record.lock_until_ms, None);
        assert_eq!(record.version, 2);
    }
}

/// The failure on record, or a new run for who asked for it.
pub async fn a_failure_is_replayed_or_run_again(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&wish(1, "a"), failed(false)).await;
    let record = bench
        .ended(best_effort(wish(1, "b")), RecordState::Failed)
        .await;
    assert_eq!(record.error, Some(error(false)));
    assert_eq!(record.ttl_ms, lifetimes().failed_ms);

    bench.run(&wish(2, "c"), failed(true)).await;
    bench.ended(wish(2, "d"), RecordState::Failed).await;
    bench.granted(best_effort(wish(2, "e"))).await;
    let record = bench.get(&wish(2, "e")).await.expect("it was granted");
    assert_eq!((&*record.owner, record.version), ("e", 3));
    assert_eq!(record.error, None);
}

/// Nothing ran.
pub async fn a_cancelled_call_may_run(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&wish(1, "a"), Ending::Cancelled).await;
    assert_eq!(
        bench.state(&wish(1, "a")).await,
        Some(RecordState::Cancelled)
    );
    bench.granted(wish(1, "b")).await;
    assert_eq!(
        bench.finalise(&wish(1, "a"), done()).await,
        Err(Refused::NotTheHolder)
    );
    assert_eq!(bench.finalise(&wish(1, "b"), done()).await, Ok(()));
}

/// The same answer, whoever asks.
pub async fn an_unknown_outcome_answers_its_duplicates(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&wish(1, "a"), unknown()).await;
    let record = bench
        .ended(best_effort(wish(1, "b")), RecordState::Unknown)
        .await;
    bench.ended(safe(wish(1, "c")), RecordState::Unknown).await;
    assert_eq!(record.error, Some(error(false)));
    assert_eq!(record.ttl_ms, lifetimes().unknown_ms);
    // Only a caller that vouches for the repeat and asks for it overrides the doubt.
    bench.granted(best_effort(safe(wish(1, "d")))).await;
}

/// Its time is over, swept or not.
pub async fn an_expired_record_is_as_if_it_had_never_been(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&wish(1, "a"), done()).await;
    bench.clock.advance(lifetimes().done_ms - 1);
    bench.ended(wish(1, "b"), RecordState::Done).await;
    bench.clock.advance(1);
    let mut other = wish(1, "c");
    Arc::make_mut(&mut other.request).params_digest = Digest::of(b"something else");
    bench.granted(other.clone()).await;
    let record = bench.get(&other).await.expect("it was granted");
    assert!(
        record.version > 2,
        "a former holder's version must not fit again"
    );
}

/// Its holder is silent for longer than its lease.
pub async fn a_lost_call_turns_unknown(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    bench.clock.advance(LEASE_MS);
    let record = bench.ended(safe(wish(1, "b")), RecordState::Unknown).await;
    assert_eq!(
        record.error.as_ref().map(|error| error.code.as_str()),
        Some("outcome_unknown")
    );
    assert_eq!((&*record.owner, record.version), ("a", 2));
    assert_eq!(record.lock_until_ms, None);
    assert_eq!(
        bench.get(&wish(1, "a")).await,
        Some(record.clone()),
        "it is stored"
    );
    let again = bench.ended(wish(1, "c"), RecordState::Unknown).await;
    assert_eq!(again, record);
}

/// Both vouch that it may run again.
pub async fn a_lost_safe_call_is_taken_over(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let (first, second) = (safe(wish(1, "a")), safe(wish(1, "b")));
    bench.granted(first.clone()).await;
    bench.clock.advance(LEASE_MS);
    bench.granted(second.clone()).await;
    // The former holder has no say any more.
    assert_eq!(
        bench.finalise(&first, done()).await,
        Err(Refused::NotTheHolder)
    );
    assert_eq!(
        ok(bench.store.renew(&first.key, "a", LEASE_MS)).await,
        Err(Refused::NotTheHolder)
    );
    assert_eq!(
        ok(bench.store.release(&first.key, "a")).await,
        Err(Refused::NotTheHolder)
    );
    assert_eq!(bench.finalise(&second, done()).await, Ok(()));
    assert_eq!(
        bench.get(&first).await.map(|record| record.version),
        Some(3)
    );
}

/// One side alone is not enough.
pub async fn a_lost_safe_call_is_unknown_to_who_does_not_vouch(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(safe(wish(1, "a"))).await;
    bench.clock.advance(LEASE_MS);
    bench.ended(wish(1, "b"), RecordState::Unknown).await;
    bench.ended(safe(wish(1, "c")), RecordState::Unknown).await;
}

/// Its holder says that it lives.
pub async fn a_renewed_call_is_not_lost(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    for _ in 0..5 {
        bench.clock.advance(LEASE_MS - 1);
        assert_eq!(ok(bench.store.renew(&key(1), "a", LEASE_MS)).await, Ok(()));
        let ticket = bench.in_flight(wish(1, "b")).await;
        assert_eq!(ticket.lock_until_ms, bench.clock.now_ms() + LEASE_MS);
        assert_eq!(ticket.version, 1, "a renewal is not a change");
    }
    bench.clock.advance(LEASE_MS);
    bench.ended(wish(1, "c"), RecordState::Unknown).await;
}

/// However long a call takes, and also right after it is lost.
pub async fn a_renewed_call_is_not_forgotten(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let day_ms = lifetimes().done_ms;
    let long = ClaimRequest {
        lifetimes: Lifetimes {
            lease_ms: day_ms,
            ..lifetimes()
        },
        ..wish(1, "a")
    };
    bench.granted(long).await;
    bench.clock.advance(day_ms - 1);
    assert_eq!(ok(bench.store.renew(&key(1), "a", LEASE_MS)).await, Ok(()));
    bench.clock.advance(1);
    assert_eq!(ok(bench.store.sweep()).await, 0);
    bench.in_flight(wish(1, "b")).await;
    bench.clock.advance(LEASE_MS);
    assert_eq!(ok(bench.store.sweep()).await, 0);
    bench.ended(wish(1, "c"), RecordState::Unknown).await;
}

/// Nobody else extends a lease, and no lease comes back.
pub async fn renewal_is_for_the_holder_only(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    assert_eq!(
        ok(bench.store.renew(&key(1), "a", LEASE_MS)).await,
        Err(Refused::Gone)
    );
    bench.granted(wish(1, "a")).await;
    assert_eq!(
        ok(bench.store.renew(&key(1), "b", LEASE_MS)).await,
        Err(Refused::NotTheHolder)
    );
    bench.clock.advance(LEASE_MS);
    // Late, but nobody has noticed: it is alive after all.
    assert_eq!(ok(bench.store.renew(&key(1), "a", LEASE_MS)).await, Ok(()));
    bench.clock.advance(LEASE_MS);
    bench.ended(wish(1, "c"), RecordState::Unknown).await;
    assert_eq!(
        ok(bench.store.renew(&key(1), "a", LEASE_MS)).await,
        Err(Refused::NotTheHolder)
    );
}
