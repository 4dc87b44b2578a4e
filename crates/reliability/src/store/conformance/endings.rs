//! What becomes of a holder's word.

use super::{
    Arc, Bench, ClaimRequest, Cleared, DedupeRecord, Ending, LEASE_MS, RecordState, Refused,
    ResultOutput, START_MS, StoreFactory, done, execution, failed, fresh_record, in_time, json,
    key, last_word, lifetimes, ok, safe, unknown, wish, with_content,
};

/// It was given up on, and comes back.
pub async fn the_owner_brings_the_truth_about_its_unknown(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    bench.clock.advance(LEASE_MS);
    bench.ended(wish(1, "b"), RecordState::Unknown).await;
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
    let record = bench.ended(wish(1, "c"), RecordState::Done).await;
    assert_eq!((record.version, record.error.as_ref()), (3, None));

    // Or it said itself that it did not know.
    bench.run(&wish(2, "d"), unknown()).await;
    assert_eq!(
        bench.finalise(&wish(2, "d"), unknown()).await,
        Err(Refused::NotTheHolder)
    );
    assert_eq!(bench.finalise(&wish(2, "d"), failed(false)).await, Ok(()));
    bench.ended(wish(2, "e"), RecordState::Failed).await;
}

/// Only who ran it can know.
pub async fn nobody_else_upgrades_an_unknown(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&wish(1, "a"), unknown()).await;
    for ending in [done(), failed(true), Ending::Cancelled, unknown()] {
        let refused = bench.finalise(&wish(1, "b"), ending).await;
        assert_eq!(refused, Err(Refused::NotTheHolder));
    }
    assert_eq!(
        ok(bench.store.release(&key(1), "b")).await,
        Err(Refused::NotTheHolder)
    );
    bench.ended(wish(1, "c"), RecordState::Unknown).await;
    // Its holder comes back and knows that nothing ran.
    assert_eq!(ok(bench.store.release(&key(1), "a")).await, Ok(()));
    bench.granted(wish(1, "d")).await;
}

/// Not even its owner changes it.
pub async fn a_certain_ending_is_final(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    for (number, ending) in (1..).zip([done(), failed(true), Ending::Cancelled]) {
        let first = wish(number, &format!("first-{number}"));
        bench.run(&first, ending).await;
        let before = bench.get(&first).await;
        for second in [done(), failed(false), Ending::Cancelled, unknown()] {
            assert_eq!(
                bench.finalise(&first, second).await,
                Err(Refused::NotTheHolder)
            );
        }
        assert_eq!(bench.get(&first).await, before);
    }
}

/// Somebody cleared it.
pub async fn a_last_word_without_a_record_is_refused(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    assert_eq!(
        bench.finalise(&wish(1, "a"), done()).await,
        Err(Refused::Gone)
    );
    bench.granted(wish(1, "a")).await;
    assert_eq!(bench.clear(&key(1)).await, Cleared::Forgotten);
    assert_eq!(
        bench.finalise(&wish(1, "a"), done()).await,
        Err(Refused::Gone)
    );
    assert_eq!(bench.get(&wish(1, "a")).await, None);
    // The next holder is not disturbed by the former one.
    bench.granted(wish(1, "b")).await;
    assert_eq!(
        bench.finalise(&wish(1, "a"), done()).await,
        Err(Refused::NotTheHolder)
    );
    assert_eq!(bench.finalise(&wish(1, "b"), done()).await, Ok(()));
}

/// From a drop, and from a thread that knows no runtime.
pub async fn a_detached_last_word_is_taken(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    let ticket = bench.in_flight(wish(1, "b")).await;
    let store = bench.store.clone();
    let thread = std::thread::spawn(move || {
        store.finalise_detached(last_word(&wish(1, "a"), unknown()));
    });
    in_time(bench.store.changed(ticket)).await;
    thread.join().expect("it does not panic");
    bench.ended(wish(1, "b"), RecordState::Unknown).await;
    // A refused one has no effect.
    bench
        .store
        .finalise_detached(last_word(&wish(1, "b"), done()));
    bench.ended(wish(1, "c"), RecordState::Unknown).await;
}

/// Nothing ran, so nothing is remembered.
pub async fn a_released_claim_lets_the_next_run(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    assert_eq!(ok(bench.store.release(&key(1), "a")).await, Ok(()));
    assert_eq!(bench.get(&wish(1, "a")).await, None);
    bench.granted(wish(1, "b")).await;
    // The same token may be used again once it is free.
    bench.granted(wish(2, "a")).await;
}

/// And only while the call runs.
pub async fn release_is_for_the_holder_only(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    assert_eq!(
        ok(bench.store.release(&key(1), "a")).await,
        Err(Refused::Gone)
    );
    bench.granted(wish(1, "a")).await;
    assert_eq!(
        ok(bench.store.release(&key(1), "b")).await,
        Err(Refused::NotTheHolder)
    );
    bench.in_flight(wish(1, "c")).await;
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
    assert_eq!(
        ok(bench.store.release(&key(1), "a")).await,
        Err(Refused::NotTheHolder)
    );
    bench.ended(wish(1, "d"), RecordState::Done).await;
}

/// Every field, to the digit.
pub async fn records_come_back_as_they_were_written(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let mut full = with_content(safe(wish(1, "a")));
    full.tool = "œuvre \"quoted\" \\ \u{0}\u{7f}\u{1F980}".into();
    full.idempotency_key = "it's; DROP TABLE records --".into();
    Arc::make_mut(&mut full.request).tool_call_id = Some(String::new());
    // For ever.
    full.lifetimes.done_ms = u64::MAX;
    bench.granted(full.clone()).await;
    let content: serde_json::Value = serde_json::from_str(
        r#"{"z":9007199254740993,"a":1.0,"m":-0.0,"e":1E400,"n":null,"t":"\u0000\ud83e\udd80",
            "l":[[],{},""],"d":0.10000000000000000001}"#,
    )
    .expect("it is JSON");
    let metadata = content.as_object().cloned();
    let output = ResultOutput {
        content: Arc::new(content),
        metadata,
    };
    assert_eq!(
        bench.finalise(&full, Ending::Done(output.clone())).await,
        Ok(())
    );
    let expected = DedupeRecord {
        state: RecordState::Done,
        expires_at_ms: u64::MAX,
        ttl_ms: u64::MAX,
        execution: Some(execution()),
        payload: Some(output),
        lock_until_ms: None,
        version: 2,
        ..fresh_record(
            &ClaimRequest {
                lifetimes: lifetimes(),
                ..full.clone()
            },
            START_MS,
        )
    };
    assert_eq!(bench.get(&full).await.as_deref(), Some(&expected));
    let record = bench
        .ended(
            ClaimRequest {
                owner: "b".into(),
                ..full
            },
            RecordState::Done,
        )
        .await;
    assert_eq!(*record, expected);
    bench.clock.advance(lifetimes().done_ms * 400);
    assert_eq!(ok(bench.store.sweep()).await, 0);
}

/// What a tool can answer, a duplicate can get.
pub async fn deep_and_large_payloads_come_back(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let mut deep = json!("bottom");
    for _ in 0..200 {
        deep = json!([deep]);
    }
    let large = json!("x".repeat(8 * 1024 * 1024));
    for (number, content) in (1..).zip([deep, large]) {
        let output = ResultOutput {
            content: Arc::new(content),
            metadata: None,
        };
        let first = wish(number, &format!("first-{number}"));
        bench.run(&first, Ending::Done(output.clone())).await;
        let record = bench.ended(wish(number, "other"), RecordState::Done).await;
        assert!(
            record.payload.as_ref() == Some(&output),
            "the payload has changed"
        );
    }
}
