//! Equal content under another key.

use holdfast_contract::Clock;

use super::{
    Bench, Ending, LEASE_MS, RecordState, StoreFactory, best_effort, done, failed, key, safe,
    unknown, wish, with_content,
};

/// It is the same message, being sent.
pub async fn equal_content_in_flight_is_joined(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(with_content(wish(1, "a"))).await;
    let ticket = bench.in_flight(with_content(wish(2, "b"))).await;
    assert_eq!(
        ticket.key,
        key(1),
        "the one to wait for is the one that runs"
    );
    assert_eq!(bench.get(&wish(2, "b")).await, None);
    bench
        .finalise(&wish(1, "a"), done())
        .await
        .expect("it is the holder");
    let record = bench
        .ended(with_content(wish(2, "b")), RecordState::Done)
        .await;
    assert_eq!(record.key, key(1));
}

/// Shortly after, it is an echo; later, it is meant.
pub async fn an_echo_of_a_finished_call_is_answered_within_its_window(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&with_content(wish(1, "a")), done()).await;
    let mut never = with_content(wish(2, "b"));
    if let Some(lookup) = &mut never.content {
        lookup.echo_window_ms = 0;
    }
    bench.clock.advance(29_999);
    bench
        .ended(with_content(wish(2, "b")), RecordState::Done)
        .await;
    bench.granted(never.clone()).await;
    bench
        .finalise(&never, done())
        .await
        .expect("it is the holder");
    // The newest one counts.
    bench.clock.advance(29_999);
    let record = bench
        .ended(with_content(wish(3, "c")), RecordState::Done)
        .await;
    assert_eq!(record.key, key(2));
    bench.clock.advance(1);
    bench.granted(with_content(wish(3, "c"))).await;
}

/// The model that asks again under a new id gets the first answer.
pub async fn an_unknown_outcome_answers_for_its_content_within_its_window(
    factory: &dyn StoreFactory,
) {
    let bench = Bench::new(factory);
    bench.run(&with_content(wish(1, "a")), unknown()).await;
    bench.clock.advance(599_999);
    let record = bench
        .ended(with_content(safe(wish(2, "b"))), RecordState::Unknown)
        .await;
    assert_eq!(record.key, key(1));
    bench.clock.advance(1);
    bench.granted(with_content(wish(2, "b"))).await;
}

/// An outcome that was unknown long ago does not hide what was finished just now.
pub async fn an_old_unknown_does_not_hide_a_fresh_echo(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&with_content(wish(1, "a")), unknown()).await;
    bench.clock.advance(600_000);
    bench.run(&with_content(wish(2, "b")), done()).await;
    bench.clock.advance(1_000);
    let record = bench
        .ended(with_content(wish(3, "c")), RecordState::Done)
        .await;
    assert_eq!(record.key, key(2));
}

/// In the same step as for its own key.
pub async fn a_lost_call_with_equal_content_turns_unknown(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(with_content(wish(1, "a"))).await;
    bench.clock.advance(LEASE_MS);
    let record = bench
        .ended(with_content(wish(2, "b")), RecordState::Unknown)
        .await;
    assert_eq!((record.key, record.version), (key(1), 2));
    assert_eq!(bench.get(&wish(1, "a")).await, Some(record));
    assert_eq!(bench.get(&wish(2, "b")).await, None);
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
}

/// The window runs from when it was lost, not from when somebody asks; and what is sent then is
/// what answers for its echo.
pub async fn a_call_lost_long_ago_answers_for_its_content_no_more(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(with_content(wish(1, "a"))).await;
    let lost_ms = bench.clock.now_ms() + LEASE_MS;
    bench.clock.advance(LEASE_MS + 600_000);
    bench.run(&with_content(wish(2, "b")), done()).await;
    let lost = bench.get(&wish(1, "a")).await.expect("a record");
    assert_eq!((lost.state, lost.version), (RecordState::Unknown, 2));
    assert_eq!(lost.updated_at_ms, lost_ms);
    bench.clock.advance(29_999);
    let record = bench
        .ended(with_content(wish(3, "c")), RecordState::Done)
        .await;
    assert_eq!(record.key, key(2));
    // Its own key has its answer, and its holder may still bring the truth.
    bench
        .ended(with_content(wish(1, "d")), RecordState::Unknown)
        .await;
    assert_eq!(bench.finalise(&wish(1, "a"), done()).await, Ok(()));
}

/// Whoever asks for the lost call itself does not begin the window of its content.
pub async fn asking_for_a_lost_call_does_not_begin_its_window(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(with_content(wish(1, "a"))).await;
    let asked_ms = bench.clock.now_ms() + LEASE_MS + 599_999;
    bench.clock.advance(LEASE_MS + 599_999);
    let own = bench
        .ended(with_content(wish(1, "b")), RecordState::Unknown)
        .await;
    assert_eq!(own.expires_at_ms, asked_ms + own_kept_ms());
    bench
        .ended(with_content(wish(2, "c")), RecordState::Unknown)
        .await;
    bench.clock.advance(1);
    bench.granted(with_content(wish(2, "c"))).await;
}

fn own_kept_ms() -> u64 {
    wish(1, "a").lifetimes.unknown_ms
}

/// Nothing was sent.
pub async fn failed_and_cancelled_content_does_not_answer(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.run(&with_content(wish(1, "a")), failed(false)).await;
    bench
        .run(&with_content(wish(2, "b")), Ending::Cancelled)
        .await;
    bench.granted(with_content(wish(3, "c"))).await;
}

/// It was cancelled, and somebody sent the same since.
pub async fn content_answers_before_a_cancelled_call_runs_again(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench
        .run(&with_content(wish(1, "a")), Ending::Cancelled)
        .await;
    bench.run(&with_content(wish(2, "b")), failed(true)).await;
    bench.run(&with_content(wish(3, "c")), done()).await;
    for again in [wish(1, "d"), best_effort(wish(2, "e"))] {
        let record = bench.ended(with_content(again), RecordState::Done).await;
        assert_eq!(record.key, key(3));
    }
}

/// Tools that may well be asked the same thing twice.
pub async fn without_a_content_key_content_does_not_matter(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    bench.granted(with_content(wish(1, "a"))).await;
    bench.granted(wish(2, "b")).await;
    bench.in_flight(with_content(wish(3, "c"))).await;
}
