//! Many at once.

use tokio::task::JoinSet;

use super::{
    Arc, AtomicU64, Bench, Claim, ClaimRequest, DedupeStore, Ending, Ordering, RecordState,
    SharedRecord, StoreFactory, done, in_time, key, last_word, ok, wish,
};

const TASKS: usize = 64;

/// Waits where it has to until the key is its own or has ended.
async fn claim_or_wait(store: &dyn DedupeStore, wish: &ClaimRequest) -> Option<SharedRecord> {
    loop {
        match ok(store.claim(wish)).await {
            Claim::Granted { .. } => return None,
            Claim::InFlight { ticket } => in_time(store.changed(ticket)).await,
            Claim::Ended(record) => return Some(record),
            Claim::Conflict { .. } => panic!("all arguments are equal here"),
        }
    }
}

/// However close together they come.
pub async fn one_of_many_is_granted(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    for number in 0..8 {
        let mut tasks = JoinSet::new();
        for task in 0..TASKS {
            let store = bench.store.clone();
            tasks.spawn(async move {
                ok(store.claim(&wish(number, &format!("owner-{number}-{task}")))).await
            });
        }
        let claims = tasks.join_all().await;
        let granted = claims
            .iter()
            .filter(|claim| matches!(claim, Claim::Granted { .. }))
            .count();
        let in_flight = claims
            .iter()
            .filter(|claim| matches!(claim, Claim::InFlight { .. }))
            .count();
        assert_eq!((granted, in_flight), (1, TASKS - 1));
    }
}

/// One runs, the others get what it brought.
pub async fn all_waiters_get_the_result(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let store = bench.store.clone();
        tasks.spawn(async move {
            let wish = wish(1, &format!("owner-{task}"));
            if let Some(record) = claim_or_wait(&*store, &wish).await {
                assert_eq!(record.state, RecordState::Done);
                0
            } else {
                tokio::task::yield_now().await;
                assert_eq!(ok(store.finalise(last_word(&wish, done()))).await, Ok(()));
                1
            }
        });
    }
    let runs: usize = tasks.join_all().await.into_iter().sum();
    assert_eq!(runs, 1);
}

/// A crowd with every ending but success on the way.
pub async fn many_keys_many_tasks_one_effect_each(factory: &dyn StoreFactory) {
    const KEYS: u16 = 16;
    let bench = Bench::new(factory);
    let effects: Arc<Vec<AtomicU64>> = Arc::new((0..KEYS).map(|_| AtomicU64::new(0)).collect());
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        let (store, effects) = (bench.store.clone(), effects.clone());
        tasks.spawn(async move {
            for turn in 0..KEYS {
                // Spread, and different for every task, without a random number.
                let mixed = (task as u64 + 1) * 7_919 + u64::from(turn) * 104_729;
                let number = u16::try_from(mixed % u64::from(KEYS)).expect("it is below KEYS");
                let wish = wish(number, &format!("owner-{task}-{turn}"));
                if claim_or_wait(&*store, &wish).await.is_some() {
                    continue;
                }
                match mixed % 3 {
                    0 => {
                        let released = ok(store.release(&wish.key, &wish.owner)).await;
                        assert_eq!(released, Ok(()));
                    }
                    1 => store.finalise_detached(last_word(&wish, Ending::Cancelled)),
                    _ => {
                        effects[usize::from(number)].fetch_add(1, Ordering::SeqCst);
                        assert_eq!(ok(store.finalise(last_word(&wish, done()))).await, Ok(()));
                    }
                }
            }
        });
    }
    tasks.join_all().await;
    for (number, effects) in effects.iter().enumerate() {
        assert!(
            effects.load(Ordering::SeqCst) <= 1,
            "key {number} had its effect twice"
        );
    }
}

/// Its caller went away before it knew: nothing ran.
pub async fn an_abandoned_claim_does_not_block_its_key(factory: &dyn StoreFactory) {
    let bench = Bench::new(factory);
    for number in 0..50_u16 {
        let given_up = wish(number, &format!("abandoned-{number}"));
        let abandoned = bench.store.claim(&given_up);
        {
            tokio::pin!(abandoned);
            // Once is enough for it to be on its way, and seldom enough for it to be answered.
            if futures_util::poll!(abandoned.as_mut()).is_ready() {
                assert_eq!(
                    ok(bench
                        .store
                        .release(&key(number), &format!("abandoned-{number}")))
                    .await,
                    Ok(())
                );
            }
        }
        let next = wish(number, &format!("next-{number}"));
        let answer = in_time(claim_or_wait(&*bench.store, &next)).await;
        assert_eq!(answer, None);
    }
}
