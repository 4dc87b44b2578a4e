//! Calls that wait for leave to start.

use super::{
    Arc, Bench, ClaimRequest, Cleared, Digest, Hold, LEASE_MS, RecordState, Refused, StoreFactory,
    done, ok, wish, with_content,
};

fn held(wish: ClaimRequest) -> ClaimRequest {
    ClaimRequest {
        hold: Hold::Held,
        ..wish
    }
}

/// A holder that is lost while it waits ran nothing: whoever comes next may run.
pub async fn a_call_lost_while_it_waited_is_granted_again(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let first = held(wish(1, "first"));
    bench.granted(first.clone()).await;
    assert!(bench.get(&first).await.expect("a record").held);
    bench.in_flight(wish(1, "second")).await;
    bench.clock.advance(LEASE_MS + 1);
    // Also with other arguments, as after a cancelled call.
    let mut other = held(wish(1, "second"));
    Arc::make_mut(&mut other.request).params_digest = Digest::of(b"other");
    bench.granted(other.clone()).await;
    // The one that stalled comes back and is told.
    let begun = ok(bench.store.begin(&first.key, "first", LEASE_MS)).await;
    assert_eq!(begun, Err(Refused::NotTheHolder));
    assert_eq!(
        bench.finalise(&first, done()).await,
        Err(Refused::NotTheHolder)
    );
    let begun = ok(bench.store.begin(&other.key, "second", LEASE_MS)).await;
    assert_eq!(begun, Ok(()));
    assert_eq!(bench.finalise(&other, done()).await, Ok(()));
}

/// From the beginning on, a lost holder may have had its effect.
pub async fn a_call_that_began_is_unknown_when_lost(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let first = held(wish(1, "first"));
    bench.granted(first.clone()).await;
    // Its lease ended while it waited; beginning is also a renewal.
    bench.clock.advance(LEASE_MS + 1);
    let begun = ok(bench.store.begin(&first.key, "first", LEASE_MS)).await;
    assert_eq!(begun, Ok(()));
    assert!(!bench.get(&first).await.expect("a record").held);
    bench.in_flight(wish(1, "second")).await;
    bench.clock.advance(LEASE_MS + 1);
    bench.ended(wish(1, "second"), RecordState::Unknown).await;
    let again = ok(bench.store.begin(&first.key, "first", LEASE_MS)).await;
    assert_eq!(again, Err(Refused::NotTheHolder));
}

/// Nobody else lets a call start, and nobody starts a call that is not there.
pub async fn beginning_is_for_the_holder_only(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let first = held(wish(1, "first"));
    let gone = ok(bench.store.begin(&first.key, "first", LEASE_MS)).await;
    assert_eq!(gone, Err(Refused::Gone));
    bench.granted(first.clone()).await;
    let other = ok(bench.store.begin(&first.key, "second", LEASE_MS)).await;
    assert_eq!(other, Err(Refused::NotTheHolder));
    assert!(bench.get(&first).await.expect("a record").held);
    assert_eq!(bench.clear(&first.key).await, Cleared::Forgotten);
    let cleared = ok(bench.store.begin(&first.key, "first", LEASE_MS)).await;
    assert_eq!(cleared, Err(Refused::Gone));
}

/// Another call sent its content while it stalled: what it waited for leave to send is sent.
pub async fn a_call_whose_content_was_taken_over_may_not_begin(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let first = held(with_content(wish(1, "first")));
    let second = held(with_content(wish(2, "second")));
    bench.granted(first.clone()).await;
    assert_eq!(bench.in_flight(second.clone()).await.key, first.key);
    bench.clock.advance(LEASE_MS + 1);
    bench.granted(second.clone()).await;
    let passed_over = bench.get(&first).await.expect("a record");
    assert_eq!(passed_over.state, RecordState::Cancelled);
    assert!(!passed_over.held && passed_over.lock_until_ms.is_none());
    // It comes back, says that it lives, and wants to begin.
    for extended in [
        ok(bench.store.renew(&first.key, "first", LEASE_MS)).await,
        ok(bench.store.begin(&first.key, "first", LEASE_MS)).await,
    ] {
        assert_eq!(extended, Err(Refused::NotTheHolder));
    }
    let begun = ok(bench.store.begin(&second.key, "second", LEASE_MS)).await;
    assert_eq!(begun, Ok(()));
    // Delivered again, the first joins the second.
    let ticket = bench.in_flight(held(with_content(wish(1, "third")))).await;
    assert_eq!(ticket.key, second.key);
}
