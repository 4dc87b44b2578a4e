//! One transaction for everything that waits, and no answer before its commit.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::join_all;
use tokio::task::JoinSet;

use super::*;
use crate::idempotency::record::RecordState;
use crate::idempotency::transition::Refused;
use crate::store::RecordFilter;
use crate::store::conformance::{done, key, last_word};
use crate::store::sqlite::errors::StepError;
use crate::store::sqlite::queue::DETACHED_QUEUE_MAX;
use crate::store::sqlite::writer::Durability;
use crate::store::{ClearIf, Cleared};

/// Starts operations so that all of them wait behind a commit that is held up.
async fn queued(
    store: &Arc<SqliteState>,
    wishes: Vec<ClaimRequest>,
) -> JoinSet<(String, Result<Claim, StoreError>)> {
    let waiting = store.shared.queue.len() + wishes.len();
    let mut tasks = JoinSet::new();
    for wish in wishes {
        let store = store.clone();
        tasks.spawn(async move { (wish.owner.to_string(), store.claim(&wish).await) });
    }
    until(async || store.shared.queue.len() == waiting).await;
    tasks
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_together_is_committed_together() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let gate = Gate::close(&store);
    let first = tokio::spawn({
        let store = store.clone();
        async move { granted(&store, 0, "first").await }
    });
    gate.wait_until_reached();
    let before = store.commits();
    let wishes = (1..=64)
        .map(|number| wish(number, &format!("owner-{number}")))
        .collect();
    let tasks = queued(&store, wishes).await;
    drop(gate);
    first.await.unwrap();
    for (owner, claim) in tasks.join_all().await {
        assert!(
            matches!(claim, Ok(Claim::Granted { .. })),
            "{owner}: {claim:?}"
        );
    }
    assert_eq!(
        store.commits() - before,
        2,
        "the one that was held up, and one for all the others"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_needs_far_fewer_commits_than_claims() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let mut tasks = JoinSet::new();
    for task in 0..64_u16 {
        let store = store.clone();
        tasks.spawn(async move {
            for turn in 0..8 {
                granted(&store, task * 8 + turn, &format!("owner-{task}-{turn}")).await;
            }
        });
    }
    tasks.join_all().await;
    assert!(
        store.commits() < 64 * 8 / 4,
        "{} commits for 512 claims",
        store.commits()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_is_answered_after_its_commit() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let answered = Arc::new(AtomicBool::new(false));
    let gate = Gate::close(&store);
    let task = tokio::spawn({
        let (store, answered) = (store.clone(), answered.clone());
        async move {
            granted(&store, 1, "a").await;
            answered.store(true, Ordering::SeqCst);
        }
    });
    gate.wait_until_reached();
    // The lock is there before anybody can see the record; the record is not, nor is the answer.
    assert_eq!(lock_files(dir.path()).len(), 1);
    assert_eq!(store.get(&key(1)).await.unwrap(), None);
    assert!(!answered.load(Ordering::SeqCst));
    drop(gate);
    task.await.unwrap();
    assert!(store.get(&key(1)).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_failed_commit_nobody_has_a_claim() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let broken = StoreError::Unavailable("the disk is on fire".to_owned());
    let hooked = broken.clone();
    store.shared.hooks.set(move || Some(hooked.clone()));
    let wishes: Vec<ClaimRequest> = (0..8)
        .map(|number| wish(number, &format!("owner-{number}")))
        .collect();
    let claims = join_all(wishes.iter().map(|wish| store.claim(wish))).await;
    for claim in claims {
        assert_eq!(claim.map(|_| ()), Err(broken.clone()));
    }
    store.shared.hooks.set(|| None);
    assert_eq!(store.size().await.unwrap().records, 0);
    until(async || store.shared.locks.held_count() == 0).await;
    granted(&store, 0, "owner-0").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_fails_does_not_fail_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let gate = Gate::close(&store);
    let held_up = tokio::spawn({
        let store = store.clone();
        async move { granted(&store, 0, "first").await }
    });
    gate.wait_until_reached();
    let before = store.commits();
    let tasks = queued(
        &store,
        vec![wish(1, "good-1"), wish(2, "good-2"), wish(3, "good-3")],
    )
    .await;
    let bad_sql = store.write(Durability::Relaxed, |step| {
        step.conn
            .execute("INSERT INTO records_usage VALUES (2, 0, 0)", [])?;
        Ok(())
    });
    let panics = store.write(Durability::Relaxed, |step| -> Result<(), StepError> {
        step.conn
            .execute("UPDATE records_usage SET records = 77", [])?;
        panic!("a bug in a step")
    });
    let (bad_sql, panics, ()) = tokio::join!(bad_sql, panics, async { drop(gate) });
    assert!(
        matches!(bad_sql, Err(StoreError::Unavailable(_))),
        "{bad_sql:?}"
    );
    assert!(
        matches!(panics, Err(StoreError::Unavailable(_))),
        "{panics:?}"
    );
    for (owner, claim) in tasks.join_all().await {
        assert!(
            matches!(claim, Ok(Claim::Granted { .. })),
            "{owner}: {claim:?}"
        );
    }
    held_up.await.unwrap();
    assert_eq!(store.commits() - before, 2);
    assert_eq!(store.size().await.unwrap().records, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_finds_no_room_does_not_fail_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        pages_max: Some(100),
        ..SqliteOptions::default()
    };
    let store = open_with(dir.path(), options).unwrap();
    let gate = Gate::close(&store);
    let held_up = tokio::spawn({
        let store = store.clone();
        async move { granted(&store, 0, "first").await }
    });
    gate.wait_until_reached();
    let tasks = queued(&store, vec![wish(1, "good-1"), wish(2, "good-2")]).await;
    let too_much = store.write(Durability::Synced, |step| {
        step.conn.execute(
            "UPDATE records SET body = hex(zeroblob(1000000)) WHERE owner = 'first'",
            [],
        )?;
        Ok(())
    });
    let last_wish = wish(3, "good-3");
    let last = store.claim(&last_wish);
    let (too_much, last, ()) = tokio::join!(too_much, last, async { drop(gate) });
    assert!(matches!(too_much, Err(StoreError::Full(_))), "{too_much:?}");
    assert!(matches!(last, Ok(Claim::Granted { .. })), "{last:?}");
    for (owner, claim) in tasks.join_all().await {
        assert!(
            matches!(claim, Ok(Claim::Granted { .. })),
            "{owner}: {claim:?}"
        );
    }
    held_up.await.unwrap();
    assert_eq!(store.size().await.unwrap().records, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_that_loses_the_whole_transaction_does_not_fail_its_batch() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let gate = Gate::close(&store);
    let held_up = tokio::spawn({
        let store = store.clone();
        async move { granted(&store, 0, "first").await }
    });
    gate.wait_until_reached();
    let tasks = queued(&store, vec![wish(1, "good-1"), wish(2, "good-2")]).await;
    // As SQLite does by itself when it runs out of space or memory in the middle of a statement.
    let loses_all = store.write(Durability::Synced, |step| -> Result<(), StepError> {
        step.conn.execute_batch("ROLLBACK")?;
        Err(StoreError::Full("no space".to_owned()).into())
    });
    let (loses_all, ()) = tokio::join!(loses_all, async { drop(gate) });
    assert_eq!(loses_all, Err(StoreError::Full("no space".to_owned())));
    for (owner, claim) in tasks.join_all().await {
        assert!(
            matches!(claim, Ok(Claim::Granted { .. })),
            "{owner}: {claim:?}"
        );
    }
    held_up.await.unwrap();
    assert_eq!(store.size().await.unwrap().records, 3);
    assert_eq!(store.shared.locks.held_count(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_do_not_wait_for_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    granted(&store, 1, "a").await;
    let gate = Gate::close(&store);
    let task = tokio::spawn({
        let store = store.clone();
        async move { store.finalise(last_word(&wish(1, "a"), done())).await }
    });
    gate.wait_until_reached();
    let seen = store.get(&key(1)).await.unwrap().unwrap();
    assert_eq!(seen.state, RecordState::Inflight);
    assert_eq!(store.size().await.unwrap().in_flight, 1);
    drop(gate);
    assert_eq!(task.await.unwrap(), Ok(Ok(())));
    assert_eq!(
        store.get(&key(1)).await.unwrap().unwrap().state,
        RecordState::Done
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_whose_caller_has_gone_is_taken_back() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let gate = Gate::close(&store);
    let task = tokio::spawn({
        let store = store.clone();
        async move { granted(&store, 1, "gone").await }
    });
    gate.wait_until_reached();
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    drop(gate);
    until(async || store.commits() >= 2).await;
    assert_eq!(store.get(&key(1)).await.unwrap(), None);
    until(async || store.shared.locks.held_count() == 0).await;
    granted(&store, 1, "next").await;
    assert_eq!(
        store.release(&key(1), "gone").await,
        Ok(Err(Refused::NotTheHolder))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_taken_in_is_written_before_the_store_ends() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for number in 0..20 {
        granted(&store, number, &format!("owner-{number}")).await;
    }
    for number in 0..20 {
        store.finalise_detached(last_word(&wish(number, &format!("owner-{number}")), done()));
    }
    drop(store);
    assert!(lock_files(dir.path()).is_empty());
    let store = open(dir.path());
    for number in 0..20 {
        assert_eq!(
            store.get(&key(number)).await.unwrap().unwrap().state,
            RecordState::Done
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn detached_writes_are_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let gate = Gate::close(&store);
    let add = || store.write_detached(Durability::Relaxed, |_| Ok(()));
    assert!(add());
    gate.wait_until_reached();
    for _ in 0..DETACHED_QUEUE_MAX {
        assert!(add());
    }
    assert!(!add());
    // Who can wait still finds room.
    let waits = store.write(Durability::Relaxed, |_| Ok(7));
    let (seven, ()) = tokio::join!(waits, async { drop(gate) });
    assert_eq!(seven, Ok(7));
    assert!(add());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_is_not_left_hanging_by_the_end_of_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    granted(&store, 1, "a").await;
    let Claim::InFlight { ticket } = claim(&store, wish(1, "b")).await else {
        panic!("it is in flight");
    };
    let shared = store.shared.clone();
    let waits = tokio::spawn(async move { super::super::waiters::changed(&shared, ticket).await });
    drop(store);
    tokio::time::timeout(HANG, waits).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_expired_records_are_swept() {
    let dir = tempfile::tempdir().unwrap();
    let clock = crate::store::conformance::ManualClock::new(1_000_000);
    let store = SqliteState::open(dir.path(), clock.clone(), SqliteOptions::default()).unwrap();
    join_all((0..2_500_u16).map(|number| {
        let store = &store;
        async move {
            let owner = format!("owner-{number}");
            granted(store, number, &owner).await;
            let last_word = last_word(&wish(number, &owner), done());
            assert_eq!(store.finalise(last_word).await, Ok(Ok(())));
        }
    }))
    .await;
    assert_eq!(store.sweep().await, Ok(0));
    clock.advance(24 * 60 * 60 * 1000);
    assert_eq!(store.sweep().await, Ok(2_500));
}

#[tokio::test]
async fn usage_follows_every_kind_of_change() {
    let dir = tempfile::tempdir().unwrap();
    let clock = crate::store::conformance::ManualClock::new(1_000_000);
    let options = SqliteOptions {
        keys_max: 6,
        ..SqliteOptions::default()
    };
    let store = SqliteState::open(dir.path(), clock.clone(), options).unwrap();
    let agrees = async |records: u64, in_flight: u64| {
        let counted = store
            .read(|conn| {
                Ok(conn.query_row(
                    "SELECT count(*), coalesce(sum(bytes), 0), count(*) FILTER
                         (WHERE state = 'inflight') FROM records",
                    [],
                    |row| Ok([row.get(0)?, row.get(1)?, row.get::<_, i64>(2)?]),
                )?)
            })
            .await
            .unwrap();
        let size = store.size().await.unwrap();
        let sized = [size.records, size.bytes, size.in_flight];
        assert_eq!(sized.map(u64::cast_signed), counted);
        assert_eq!((size.records, size.in_flight), (records, in_flight));
    };
    for number in 0..5 {
        granted(&store, number, "a").await;
    }
    agrees(5, 5).await;
    assert_eq!(store.renew(&key(0), "a", 90_000).await, Ok(Ok(())));
    assert_eq!(store.release(&key(0), "a").await, Ok(Ok(())));
    agrees(4, 4).await;
    for number in 1..4 {
        let last_word = last_word(&wish(number, "a"), done());
        assert_eq!(store.finalise(last_word).await, Ok(Ok(())));
    }
    agrees(4, 1).await;
    for expected in [Cleared::Forgotten, Cleared::NotThere] {
        assert_eq!(store.clear(&key(1), ClearIf::There).await, Ok(expected));
    }
    agrees(3, 1).await;
    for number in 5..9 {
        granted(&store, number, "b").await;
    }
    // One more than there is room for: one that has ended is forgotten.
    agrees(6, 5).await;
    let undone = store.write(Durability::Relaxed, |step| -> Result<(), StepError> {
        assert_eq!(
            super::super::rows::clear(step, &key(8), None)?,
            Cleared::Forgotten
        );
        Err(StoreError::Full("after it has written".to_owned()).into())
    });
    let wish = wish(8, "b");
    let (undone, kept) = tokio::join!(undone, store.release(&wish.key, "b"));
    assert!(undone.is_err());
    assert_eq!(kept, Ok(Ok(())));
    agrees(5, 4).await;
    assert_eq!(store.flush(&RecordFilter::default()).await, Ok(1));
    agrees(4, 4).await;
    // What is in flight is kept twice as long: its holder may have slept.
    clock.advance(24 * 60 * 60 * 1000);
    assert_eq!(store.sweep().await, Ok(0));
    clock.advance(24 * 60 * 60 * 1000);
    assert_eq!(store.sweep().await, Ok(4));
    agrees(0, 0).await;
}
