//! Expired records give their room back without anybody asking.

use std::sync::Arc;

use holdfast_contract::{Clock, SystemEntropy};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{Execution, RecordRequest};
use holdfast_reliability::idempotency::transition::{
    ClaimRequest, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure,
};
use holdfast_reliability::janitor::{Janitor, SWEEP_EVERY_MS, sweep};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::retry::RepeatSafety;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::DedupeStore;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryLimits};
use holdfast_testkit::TokioClock;
use tokio::time::Duration;

fn wish() -> ClaimRequest {
    ClaimRequest {
        key: StoredKey::from_bytes([7; 32]),
        content: None,
        tool: "t".into(),
        idempotency_key: "k".into(),
        request: Arc::new(RecordRequest {
            session_key: "s".into(),
            workspace_id: None,
            actor_id: "a".into(),
            request_id: "r".into(),
            tool_call_id: None,
            params_digest: Digest::of(b"d"),
            shadow: false,
        }),
        owner: "o".into(),
        lifetimes: Lifetimes::default(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

#[tokio::test(start_paused = true)]
async fn claims_that_nobody_renews_are_counted_as_stale() {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    let observers = Observers::new();
    let runtime = Runtime::new(clock.clone(), Arc::new(SystemEntropy), observers);
    let store = || {
        Arc::new(MemoryDedupeStore::new(
            clock.clone(),
            MemoryLimits::default(),
        ))
    };
    let stores = DedupeStores {
        durable: store(),
        memory: store(),
    };
    let metrics = Metrics::new();
    let wish = wish();
    stores.durable.claim(&wish).await.unwrap();
    for (after_ms, stale) in [(0, 0), (wish.lifetimes.lease_ms, 1)] {
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        sweep(&stores, &runtime, Some(&metrics)).await;
        let page = metrics.encode();
        for (scope, number) in [("durable_inflight", 1), ("durable_stale", stale)] {
            let line = format!(
                "openclaw_tool_dedupe_cache_size{{tool=\"all\",scope=\"{scope}\"}} {number}\n"
            );
            assert!(page.contains(&line), "{line}{page}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_expired_is_forgotten_in_the_background() {
    let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
    let runtime = Arc::new(Runtime::new(
        clock.clone(),
        Arc::new(SystemEntropy),
        Observers::new(),
    ));
    let store = Arc::new(MemoryDedupeStore::new(clock, MemoryLimits::default()));
    let metrics = Metrics::new();
    let janitor = Janitor::start(
        DedupeStores::single(store.clone()),
        runtime,
        Some(metrics.clone()),
    );

    let wish = wish();
    store.claim(&wish).await.unwrap();
    let last_word = Finalisation {
        key: wish.key,
        owner: wish.owner,
        ending: Ending::Cancelled,
        execution: Execution::default(),
        lifetimes: wish.lifetimes,
    };
    store.finalise(last_word).await.unwrap().unwrap();

    tokio::time::sleep(Duration::from_millis(SWEEP_EVERY_MS + 1)).await;
    assert_eq!(
        store.size().await.unwrap().records,
        1,
        "not before its time"
    );
    assert!(
        metrics
            .encode()
            .contains("openclaw_tool_dedupe_cache_size{tool=\"all\",scope=\"memory\"} 1")
    );
    let kept = Duration::from_millis(wish.lifetimes.cancelled_ms + SWEEP_EVERY_MS);
    tokio::time::sleep(kept).await;
    assert_eq!(store.size().await.unwrap().records, 0);

    drop(janitor);
}
