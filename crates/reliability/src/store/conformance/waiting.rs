//! Duplicates that wait.

use super::{
    Bench, ClaimRequest, Cleared, LEASE_MS, Lifetimes, RecordState, StoreFactory, done, in_time,
    key, last_word, lifetimes, ok, safe, wish,
};

/// Whatever ends or removes the record.
pub async fn waiters_wake_on_every_kind_of_change(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    for (number, way) in (1..).zip(["finalise", "detached", "release", "clear", "unknown"]) {
        let first = wish(number, &format!("first-{number}"));
        bench.granted(first.clone()).await;
        let ticket = bench.in_flight(wish(number, "second")).await;
        let waits: Vec<_> = (0..3)
            .map(|_| bench.store.changed(ticket.clone()))
            .collect();
        let change = async {
            match way {
                "finalise" => assert_eq!(bench.finalise(&first, done()).await, Ok(())),
                "detached" => bench.store.finalise_detached(last_word(&first, done())),
                "release" => {
                    assert_eq!(
                        ok(bench.store.release(&first.key, &first.owner)).await,
                        Ok(())
                    );
                }
                "clear" => assert_eq!(bench.clear(&first.key).await, Cleared::Forgotten),
                _ => {
                    bench.clock.advance(LEASE_MS);
                    bench
                        .ended(wish(number, "third"), RecordState::Unknown)
                        .await;
                }
            }
        };
        in_time(futures_util::future::join(
            futures_util::future::join_all(waits),
            change,
        ))
        .await;
    }
}

/// Nothing is missed between the claim and the wait.
pub async fn a_change_before_the_wait_ends_it_at_once(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    let ticket = bench.in_flight(wish(1, "b")).await;
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
    in_time(bench.store.changed(ticket.clone())).await;
    assert_eq!(bench.clear(&key(1)).await, Cleared::Forgotten);
    in_time(bench.store.changed(ticket)).await;

    // Also when somebody else runs by now.
    bench.granted(safe(wish(2, "c"))).await;
    let ticket = bench.in_flight(safe(wish(2, "d"))).await;
    bench.clock.advance(LEASE_MS);
    bench.granted(safe(wish(2, "d"))).await;
    in_time(bench.store.changed(ticket)).await;
}

/// Nobody says that a holder has stalled.
pub async fn a_wait_ends_with_the_lease(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let short = Lifetimes {
        lease_ms: 30,
        ..lifetimes()
    };
    bench
        .granted(ClaimRequest {
            lifetimes: short,
            ..wish(1, "a")
        })
        .await;
    let ticket = bench.in_flight(wish(1, "b")).await;
    in_time(bench.store.changed(ticket)).await;
}

/// A caller that reached its own deadline.
pub async fn an_abandoned_wait_leaves_nothing_behind(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(wish(1, "a")).await;
    let ticket = bench.in_flight(wish(1, "b")).await;
    let stays = bench.store.changed(ticket.clone());
    tokio::pin!(stays);
    assert!(futures_util::poll!(stays.as_mut()).is_pending());
    for _ in 0..10 {
        let goes = bench.store.changed(ticket.clone());
        tokio::pin!(goes);
        assert!(futures_util::poll!(goes.as_mut()).is_pending());
    }
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
    in_time(stays).await;
}
