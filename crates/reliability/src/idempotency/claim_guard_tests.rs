//! The lease of a call that waits, is queued and runs.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::Clock;
use holdfast_testkit::{SeededEntropy, TokioClock};

use super::*;
use crate::canonical::Digest;
use crate::idempotency::held::HeldClaim;
use crate::idempotency::record::RecordRequest;
use crate::idempotency::transition::{Hold, OnRetriableFailure};
use crate::observe::Observers;
use crate::store::memory::{MemoryDedupeStore, MemoryLimits};

const HELD_MS: u64 = 15_000;
const RUNNING_MS: u64 = 120_000;

fn lifetimes(lease_ms: u64) -> Lifetimes {
    Lifetimes {
        lease_ms,
        ..Lifetimes::default()
    }
}

fn wish() -> ClaimRequest {
    ClaimRequest {
        key: StoredKey::from_bytes([1; 32]),
        content: None,
        tool: "message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session".into(),
            workspace_id: None,
            actor_id: "actor".into(),
            request_id: "request".to_owned(),
            tool_call_id: None,
            params_digest: Digest::of(b"digest"),
            shadow: false,
        }),
        owner: "owner".into(),
        lifetimes: lifetimes(HELD_MS),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::Held,
    }
}

struct House {
    clock: Arc<TokioClock>,
    runtime: Runtime,
    store: Arc<dyn DedupeStore>,
    guard: ClaimGuard,
    held: HeldClaim,
}

impl House {
    async fn new() -> Self {
        let clock = Arc::new(TokioClock::new());
        let entropy = Arc::new(SeededEntropy::new(1));
        let memory = MemoryDedupeStore::new(clock.clone(), MemoryLimits::default());
        let (store, wish): (Arc<dyn DedupeStore>, _) = (Arc::new(memory), wish());
        store.claim(&wish).await.expect("claims");
        let guard = ClaimGuard {
            store: store.clone(),
            key: wish.key,
            owner: wish.owner.clone(),
            lifetimes: lifetimes(RUNNING_MS),
            lease: Arc::new(Lease::new(&wish, RUNNING_MS)),
            when_given_up: RepeatSafety::Unsafe,
            payload_bytes_max: 1,
            started: Arc::default(),
            open: Some(LastWord::ByProgress),
        };
        let held = HeldClaim::of(&store, &wish, guard.lease()).expect("is held");
        Self {
            runtime: Runtime::new(clock.clone(), entropy, Observers::new()),
            clock,
            store,
            guard,
            held,
        }
    }

    async fn lease_left_ms(&self) -> u64 {
        let record = self.store.get(&self.guard.key).await.expect("reads");
        let until_ms = record.expect("a record").lock_until_ms.expect("a lease");
        until_ms.saturating_sub(self.clock.now_ms())
    }

    async fn while_kept<T>(&self, goes_on: impl Future<Output = T>) -> T {
        tokio::select! {
            never = self.guard.keep(&self.runtime) => match never {},
            done = goes_on => done,
        }
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_has_begun_and_is_queued_keeps_the_lease_of_its_tool() {
    let house = House::new().await;
    let goes_on = async {
        pass(61).await;
        assert!(house.lease_left_ms().await <= HELD_MS);
        assert!(house.held.begin().await.expect("begins").is_ok());
        // A renewal that was on its way when it began.
        let late = house
            .store
            .renew(&house.guard.key, &house.guard.owner, HELD_MS);
        assert!(late.await.expect("renews").is_ok());
        pass(5).await;
        for _ in 0..30 {
            assert!(house.lease_left_ms().await >= RUNNING_MS / 2);
            pass(10).await;
        }
    };
    house.while_kept(goes_on).await;
    assert!(!house.held.is_lost());
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_not_its_any_more_is_noticed_while_it_waits() {
    let house = House::new().await;
    let goes_on = async {
        let (key, owner) = (&house.guard.key, &house.guard.owner);
        let given = house.store.release(key, owner).await.expect("releases");
        assert!(given.is_ok() && !house.held.is_lost());
        pass(6).await;
    };
    house.while_kept(goes_on).await;
    assert!(house.held.is_lost());
    assert!(!house.held.is_held().await.expect("asks"));
}
