//! The checker is worth something: it passes the store as it is, and catches one whose
//! compare-and-set was taken out.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Entropy, ResultOutput, SystemClock};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{Execution, RecordRequest};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::store::DedupeStore;
use holdfast_reliability::store::redis::{RedisOptions, RedisState};
use holdfast_testkit::SeededEntropy;
use holdfast_testkit::redis::{Persistence, RedisServer};
use serde_json::json;

use crate::redis_chaos::checker;
use crate::redis_chaos::history::Recorded;

const KEYS: u64 = 20;
const TASKS: u64 = 8;
const STEPS: u64 = 40;

fn wish(key: u64, owner: &str) -> ClaimRequest {
    ClaimRequest {
        key: StoredKey::from_bytes([u8::try_from(key).unwrap(); 32]),
        content: None,
        tool: "tool".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session".into(),
            workspace_id: None,
            actor_id: "actor".into(),
            request_id: owner.to_owned(),
            tool_call_id: None,
            params_digest: Digest::of(b"{}"),
            shadow: false,
        }),
        owner: owner.into(),
        lifetimes: Lifetimes {
            lease_ms: 20,
            ..Lifetimes::default()
        },
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

/// Claims and last words in any order, also by those whose claim was lost or has ended.
async fn play(store: Arc<Recorded<RedisState>>, task: u64, seed: u64) {
    let random = SeededEntropy::new(seed + task);
    let mut held: Vec<ClaimRequest> = Vec::new();
    for step in 0..STEPS {
        let number = random.next_u64();
        if held.is_empty() || number.is_multiple_of(2) {
            let wish = wish(number / 2 % KEYS, &format!("{task}-{step}"));
            let _ = store.claim(&wish).await.unwrap();
            held.push(wish);
        } else {
            let index = usize::try_from(number / 2).unwrap() % held.len();
            let wish = &held[index];
            let ending = if number.is_multiple_of(3) {
                Ending::Cancelled
            } else {
                Ending::Done(ResultOutput {
                    content: Arc::new(json!(1)),
                    metadata: None,
                })
            };
            let word = Finalisation {
                key: wish.key,
                owner: wish.owner.clone(),
                ending,
                execution: Execution::default(),
                lifetimes: wish.lifetimes,
            };
            let _ = store.finalise(word).await.unwrap();
        }
        tokio::time::sleep(Duration::from_millis(number % 5)).await;
    }
}

/// The number of keys that the checker finds fault with.
async fn faults(open: impl Fn(&RedisOptions) -> Arc<RedisState>) -> usize {
    let server = RedisServer::start(Persistence::None, &[]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut tasks = tokio::task::JoinSet::new();
    for task in 0..TASKS {
        let state = open(&RedisOptions::single(server.url()));
        let history = dir.path().join(task.to_string());
        let recorded = Arc::new(Recorded::starting_at(state, &history, task));
        tasks.spawn(play(recorded, task, 11));
    }
    tasks.join_all().await;
    let histories = checker::read(dir.path());
    assert!(histories.len() > 10);
    checker::wrong(&histories).len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_store_passes_the_checker() {
    let open = |options: &RedisOptions| RedisState::open(options, Arc::new(SystemClock)).unwrap();
    assert_eq!(faults(open).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_compare_and_set_is_caught() {
    let open = |options: &RedisOptions| {
        RedisState::open_without_compare(options, Arc::new(SystemClock)).unwrap()
    };
    assert!(faults(open).await > 0);
}
