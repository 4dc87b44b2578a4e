//! Listing, forgetting, and running out of room.

use super::{
    Arc, Bench, ClaimRequest, ClearIf, Cleared, Clock, Ending, LEASE_MS, Lifetimes, RecordState,
    ResultOutput, SharedRecord, StoreFactory, StoredKey, done, failed, in_time, json, key,
    lifetimes, ok, unknown, wish,
};
use crate::store::{RecordFilter, StoreError, StoreSize};
use xxhash_rust::xxh3::xxh3_64;

async fn listed(bench: &Bench, filter: &RecordFilter) -> Vec<StoredKey> {
    ok(bench.store.list(filter))
        .await
        .iter()
        .map(|record| record.key)
        .collect()
}

fn of(wish: ClaimRequest, session: &str, tool: &str) -> ClaimRequest {
    let mut wish = wish;
    Arc::make_mut(&mut wish.request).session_key = session.into();
    wish.tool = tool.into();
    wish
}

/// Five records, a millisecond apart: 1 done, 2 failed, 3 unknown, 4 cancelled, 5 running.
async fn five(bench: &Bench) {
    let endings = [
        Some(done()),
        Some(failed(true)),
        Some(unknown()),
        Some(Ending::Cancelled),
        None,
    ];
    for (number, ending) in (1..).zip(endings) {
        let session = if number % 2 == 0 { "even" } else { "odd" };
        let tool = if number < 4 { "message" } else { "write" };
        let wish = of(wish(number, &format!("owner-{number}")), session, tool);
        bench.granted(wish.clone()).await;
        if let Some(ending) = ending {
            assert_eq!(bench.finalise(&wish, ending).await, Ok(()));
        }
        bench.clock.advance(1);
    }
}

/// By session, tool, state, prefix and number; newest first.
pub async fn list_filters_and_orders(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let all = RecordFilter::default();
    assert_eq!(listed(&bench, &all).await, []);
    five(&bench).await;
    assert_eq!(listed(&bench, &all).await, [5, 4, 3, 2, 1].map(key));
    let even = RecordFilter {
        session: Some("even".to_owned()),
        ..all.clone()
    };
    assert_eq!(listed(&bench, &even).await, [4, 2].map(key));
    let write = RecordFilter {
        tool: Some("write".to_owned()),
        ..all.clone()
    };
    assert_eq!(listed(&bench, &write).await, [5, 4].map(key));
    let both = RecordFilter {
        tool: Some("write".to_owned()),
        ..even.clone()
    };
    assert_eq!(listed(&bench, &both).await, [key(4)]);
    let unknown = RecordFilter {
        state: Some(RecordState::Unknown),
        ..all.clone()
    };
    assert_eq!(listed(&bench, &unknown).await, [key(3)]);
    let two = RecordFilter {
        limit: Some(2),
        ..all.clone()
    };
    assert_eq!(listed(&bench, &two).await, [5, 4].map(key));
    let prefix = key(3).to_string()[..7].to_uppercase();
    let third = RecordFilter {
        key_prefix: Some(prefix),
        ..all.clone()
    };
    assert_eq!(listed(&bench, &third).await, [key(3)]);
    let none = RecordFilter {
        session: Some("nobody's".to_owned()),
        ..all
    };
    assert_eq!(listed(&bench, &none).await, []);
    // At the same time, by key.
    let bench = Bench::new(factory);
    for number in [3, 1, 2] {
        bench
            .granted(wish(number, &format!("owner-{number}")))
            .await;
    }
    assert_eq!(
        listed(&bench, &RecordFilter::default()).await,
        [1, 2, 3].map(key)
    );
}

/// By the caller's own key: the newest ones of it, and nothing else.
pub async fn given_keys_are_found(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    for number in 1..=5 {
        let mut wish = wish(number, &format!("owner-{number}"));
        wish.idempotency_key = if number == 4 { "other" } else { "mine" }.into();
        bench.granted(wish.clone()).await;
        if number % 2 == 0 {
            assert_eq!(bench.finalise(&wish, done()).await, Ok(()));
        }
        bench.clock.advance(1);
    }
    let given = async |key: &str, limit| {
        let found = ok(bench.store.given(key, limit)).await;
        assert_eq!(found.unread, []);
        let records = found.records.iter();
        records.map(|record| record.key).collect::<Vec<_>>()
    };
    assert_eq!(given("mine", 10).await, [5, 3, 2, 1].map(key));
    assert_eq!(given("mine", 2).await, [5, 3].map(key));
    assert_eq!(given("other", 2).await, [key(4)]);
    assert_eq!(given("computed", 2).await, []);
}

/// Forgetting them could let an effect happen twice.
pub async fn flush_spares_running_calls(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    five(&bench).await;
    let odd = RecordFilter {
        session: Some("odd".to_owned()),
        ..RecordFilter::default()
    };
    assert_eq!(ok(bench.store.flush(&odd)).await, 2);
    assert_eq!(
        listed(&bench, &RecordFilter::default()).await,
        [5, 4, 2].map(key)
    );
    let running = RecordFilter {
        state: Some(RecordState::Inflight),
        ..RecordFilter::default()
    };
    assert_eq!(ok(bench.store.flush(&running)).await, 0);
    let one = RecordFilter {
        limit: Some(1),
        ..RecordFilter::default()
    };
    assert_eq!(ok(bench.store.flush(&one)).await, 1);
    assert_eq!(ok(bench.store.flush(&RecordFilter::default())).await, 1);
    assert_eq!(listed(&bench, &RecordFilter::default()).await, [key(5)]);
    assert_eq!(bench.finalise(&wish(5, "owner-5"), done()).await, Ok(()));
}

/// In any state; then the key is new.
pub async fn clear_says_whether_it_was_there(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    five(&bench).await;
    for number in 1..=5 {
        assert_eq!(bench.clear(&key(number)).await, Cleared::Forgotten);
        assert_eq!(bench.clear(&key(number)).await, Cleared::NotThere);
        bench.granted(wish(number, &format!("next-{number}"))).await;
    }
}

/// Whoever clears what they have looked at does not clear what came after it.
pub async fn clear_spares_what_has_changed_since(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let seen = async |number| {
        let found = ok(bench.store.get(&key(number))).await;
        found.expect("a record")
    };
    let clear = async |record: &SharedRecord| {
        let when = ClearIf::Unchanged(record);
        ok(bench.store.clear(&record.key, when)).await
    };
    // Finished since; and taken back and claimed by another since, with the same version.
    bench.granted(wish(1, "first")).await;
    bench.granted(wish(2, "first")).await;
    let (running, taken_back) = (seen(1).await, seen(2).await);
    assert_eq!(bench.finalise(&wish(1, "first"), done()).await, Ok(()));
    assert_eq!(ok(bench.store.release(&key(2), "first")).await, Ok(()));
    assert_eq!(clear(&taken_back).await, Cleared::NotThere);
    bench.granted(wish(2, "second")).await;
    assert_eq!(seen(2).await.version, taken_back.version);
    assert_eq!(clear(&running).await, Cleared::Changed);
    assert_eq!(clear(&taken_back).await, Cleared::Changed);
    assert_eq!(seen(1).await.state, RecordState::Done);
    assert_eq!(&*seen(2).await.owner, "second");
    // A renewed lease is no change, and what has not changed goes.
    let running = seen(2).await;
    let renewal = bench.store.renew(&running.key, "second", LEASE_MS);
    assert_eq!(ok(renewal).await, Ok(()));
    assert_eq!(clear(&running).await, Cleared::Forgotten);
    assert_eq!(clear(&seen(1).await).await, Cleared::Forgotten);
}

/// No more and no less than a record says of itself.
pub async fn sweep_forgets_exactly_what_has_expired(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    five(&bench).await;
    let lasting = Lifetimes {
        lease_ms: 2 * lifetimes().done_ms,
        ..lifetimes()
    };
    bench
        .granted(ClaimRequest {
            lifetimes: lasting,
            ..wish(6, "owner-6")
        })
        .await;
    let hour_ms = 60 * 60 * 1000;
    let waits = [
        0,
        lifetimes().failed_ms - 4,
        1,
        1,
        1,
        1,
        LEASE_MS,
        23 * hour_ms,
        hour_ms,
        1,
        30 * hour_ms,
    ];
    for wait_ms in waits {
        bench.clock.advance(wait_ms);
        let now_ms = bench.clock.now_ms();
        let before = ok(bench.store.list(&RecordFilter::default())).await;
        let (expired, stay): (Vec<_>, Vec<_>) = before
            .iter()
            .partition(|record| record.is_forgettable(now_ms));
        assert_eq!(ok(bench.store.sweep()).await, expired.len() as u64);
        let stay: Vec<_> = stay.iter().map(|record| record.key).collect();
        assert_eq!(listed(&bench, &RecordFilter::default()).await, stay);
    }
    assert_eq!(
        ok(bench.store.size()).await.records,
        0,
        "everything ends some day"
    );
}

/// Records, bytes, and what runs.
pub async fn size_counts(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    assert_eq!(ok(bench.store.size()).await, StoreSize::default());
    five(&bench).await;
    let size = ok(bench.store.size()).await;
    assert_eq!((size.records, size.in_flight), (5, 1));
    // Without a pattern: a store may well compress.
    let noise: String = (0..100_000_u64)
        .map(|n| 33 + xxh3_64(&n.to_le_bytes()).to_le_bytes()[0] % 90)
        .map(char::from)
        .collect();
    let large = ResultOutput {
        content: Arc::new(json!(noise)),
        metadata: None,
    };
    assert_eq!(
        bench
            .finalise(&wish(5, "owner-5"), Ending::Done(large))
            .await,
        Ok(())
    );
    let larger = ok(bench.store.size()).await;
    assert_eq!((larger.records, larger.in_flight), (5, 0));
    assert!(larger.bytes >= size.bytes + 99_000, "{size:?} {larger:?}");
    assert_eq!(ok(bench.store.flush(&RecordFilter::default())).await, 5);
    assert_eq!(ok(bench.store.size()).await, StoreSize::default());
}

/// Never what runs or what nobody knows.
pub async fn a_full_store_evicts_what_ended_first(factory: &dyn StoreFactory) {
    let bench = Bench::with_keys_max(factory, 5);
    five(&bench).await;
    for (number, gone) in [(11, 1), (12, 2), (13, 4)] {
        bench
            .granted(wish(number, &format!("owner-{number}")))
            .await;
        assert_eq!(bench.get(&wish(gone, "")).await, None, "{gone} ended first");
        assert_eq!(ok(bench.store.size()).await.records, 5);
    }
    assert_eq!(bench.state(&wish(3, "")).await, Some(RecordState::Unknown));
    assert_eq!(bench.state(&wish(5, "")).await, Some(RecordState::Inflight));
}

/// Refused is better than unprotected.
pub async fn a_store_full_of_pinned_records_refuses(factory: &dyn StoreFactory) {
    let bench = Bench::with_keys_max(factory, 2);
    bench.granted(wish(1, "a")).await;
    bench.run(&wish(2, "b"), unknown()).await;
    let refused = in_time(bench.store.claim(&wish(3, "c"))).await;
    assert!(matches!(refused, Err(StoreError::Full(_))), "{refused:?}");
    assert_eq!(bench.get(&wish(3, "c")).await, None);
    // What is there goes on.
    bench.in_flight(wish(1, "d")).await;
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
    bench.granted(wish(3, "c")).await;
    assert_eq!(bench.get(&wish(1, "a")).await, None);
}

/// Whatever its state was.
pub async fn what_has_expired_makes_room(factory: &dyn StoreFactory) {
    let bench = Bench::with_keys_max(factory, 2);
    bench.granted(wish(1, "a")).await;
    bench.run(&wish(2, "b"), unknown()).await;
    bench.clock.advance(lifetimes().unknown_ms);
    bench.granted(wish(3, "c")).await;
}

/// It takes the place of its own record.
pub async fn a_known_key_needs_no_room(factory: &dyn StoreFactory) {
    let bench = Bench::with_keys_max(factory, 2);
    bench.run(&wish(1, "a"), Ending::Cancelled).await;
    bench.run(&wish(2, "b"), done()).await;
    bench.granted(wish(1, "c")).await;
    bench.ended(wish(2, "d"), RecordState::Done).await;
}

/// As it is, and only where nothing is known.
pub async fn a_restored_record_is_as_it_was(factory: &dyn StoreFactory) {
    let (from, to) = (Bench::new(factory), Bench::new(factory));
    five(&from).await;
    to.run(&wish(2, "known"), Ending::Cancelled).await;
    for record in ok(from.store.list(&RecordFilter::default())).await {
        let expected = record.key != key(2);
        assert_eq!(ok(to.store.restore(record.clone())).await, expected);
        if expected {
            assert_eq!(ok(to.store.get(&record.key)).await, Some(record));
        }
    }
    assert_eq!(ok(to.store.size()).await.records, 5);
    let odd = RecordFilter {
        session: Some("odd".to_owned()),
        ..RecordFilter::default()
    };
    assert_eq!(listed(&to, &odd).await.len(), 3);
    to.ended(wish(1, "later"), RecordState::Done).await;
    // Its holder is elsewhere, and its word still counts.
    to.in_flight(wish(5, "later")).await;
    assert_eq!(to.finalise(&wish(5, "owner-5"), done()).await, Ok(()));
}
