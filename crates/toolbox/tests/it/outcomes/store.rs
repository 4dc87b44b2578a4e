//! A record store that is full or away.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_contract::{CallHints, Status};
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_reliability::idempotency::transition::{ClaimRequest, Finalisation, Refused};
use holdfast_reliability::store::conformance::interposed::Interposed;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryLimits};
use holdfast_reliability::store::{Claim, DedupeStore, RecordFilter, StoreError, StoreFuture};
use holdfast_testkit::{Reaction, ScriptedTool, TokioClock};

use crate::stack::{Build, ask, effect_of, error_of};

/// A store that fails on command.
struct Flaky {
    inner: MemoryDedupeStore,
    claims: Mutex<Option<StoreError>>,
    last_words: Mutex<Option<StoreError>>,
}

impl Flaky {
    fn new() -> Arc<Self> {
        let clock = Arc::new(TokioClock::new());
        Arc::new(Self {
            inner: MemoryDedupeStore::new(clock, MemoryLimits::default()),
            claims: Mutex::default(),
            last_words: Mutex::default(),
        })
    }

    async fn states(&self) -> Vec<RecordState> {
        let records = self.inner.list(&RecordFilter::default()).await.unwrap();
        records.iter().map(|record| record.state).collect()
    }
}

impl Interposed for Flaky {
    fn behind(&self) -> &dyn DedupeStore {
        &self.inner
    }

    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        match self.claims.lock().unwrap().clone() {
            Some(error) => StoreFuture::ready(Err(error)),
            None => self.inner.claim(wish),
        }
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        match self.last_words.lock().unwrap().clone() {
            Some(error) => StoreFuture::ready(Err(error)),
            None => self.inner.finalise(last_word),
        }
    }
}

const CRITICAL: CallHints = CallHints {
    safety_critical: Some(true),
    expected_retry_safe: None,
    timeout_ms: None,
};

#[tokio::test(start_paused = true)]
async fn without_a_store_only_harmless_calls_run() {
    for (error, code) in [
        (StoreError::Full("no room".into()), "store_full"),
        (StoreError::Unavailable("gone".into()), "store_unavailable"),
    ] {
        let write = Arc::new(ScriptedTool::mutating("write_it", [Reaction::Succeed]));
        let look = Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed]));
        let store = Flaky::new();
        let harness = Build::new(&write)
            .and(&look)
            .with(|build| build.dedupe = Some(DedupeStores::single(store.clone())))
            .stack();
        *store.claims.lock().unwrap() = Some(error);

        // A call with effects fails closed, and so does one that its caller calls critical.
        let call = ask("write_it").key("k");
        for refused in [call.clone(), ask("look").key("k").hints(CRITICAL)] {
            let result = harness.call(&refused).await;
            assert_eq!(error_of(&result), (code, Status::Error, false, true));
            assert_eq!(result.attempts, 0);
        }
        assert_eq!((write.executions(), look.executions()), (0, 0));

        // Without a store a read-only one goes on, each time anew, and that is said aloud. A full
        // store is there, and has decided.
        for count in 1..=2 {
            let result = harness.call(&ask("look").key("k")).await;
            if code == "store_full" {
                assert_eq!(error_of(&result), (code, Status::Error, false, true));
            } else {
                assert_eq!((effect_of(&result), result.from_cache), (count, false));
            }
        }
        assert_eq!(harness.log.of("tool_store_trouble").len(), 4);
        let told = r#"holdfast_store_errors_total{operation="claim"} 4"#;
        assert!(harness.metrics.encode().contains(told));

        // Nothing ran, so the duplicate runs when the store is back.
        *store.claims.lock().unwrap() = None;
        assert_eq!(effect_of(&harness.call(&call.again()).await), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_last_word_that_the_store_does_not_take_is_said_again() {
    let tool = Arc::new(ScriptedTool::mutating("write_it", [Reaction::Succeed]));
    let store = Flaky::new();
    let harness = Build::new(&tool)
        .with(|build| build.dedupe = Some(DedupeStores::single(store.clone())))
        .stack();
    *store.last_words.lock().unwrap() = Some(StoreError::Unavailable("gone".into()));
    let call = ask("write_it").key("k");
    assert!(harness.call(&call).await.is_success());
    assert_eq!(store.states().await, [RecordState::Done]);
    let again = harness.call(&call.again()).await;
    assert_eq!((effect_of(&again), again.from_cache), (1, true));
}

#[tokio::test(start_paused = true)]
async fn a_full_store_evicts_nothing_that_protects() {
    let script = [
        Reaction::SucceedAfter(Duration::from_secs(5)),
        Reaction::EffectThenFail(crate::stack::http(500)),
        Reaction::Succeed,
    ];
    let tool = Arc::new(ScriptedTool::mutating("write_it", script));
    let harness = Build::new(&tool)
        .with(|build| build.limits.keys_max = 1)
        .stack();
    // A running call holds the only place.
    let (running, other) = (ask("write_it").key("a"), ask("write_it").key("b"));
    let (first, second) = tokio::join!(harness.call(&running), harness.call(&other));
    assert!(first.is_success());
    assert_eq!(
        error_of(&second),
        ("store_full", Status::Error, false, true)
    );
    // A finished one makes room; one of unknown outcome does not.
    assert_eq!(error_of(&harness.call(&other).await).0, "outcome_unknown");
    let third = harness.call(&ask("write_it").key("c")).await;
    assert_eq!(error_of(&third).0, "store_full");
    assert_eq!(tool.executions(), 2);
    let again = harness.call(&other.again()).await;
    assert_eq!(error_of(&again).0, "outcome_unknown");
}

#[tokio::test(start_paused = true)]
async fn a_critical_call_is_kept_durably() {
    let look = Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let write = Arc::new(ScriptedTool::mutating("write_it", [Reaction::Succeed]));
    let (durable, memory) = (Flaky::new(), Flaky::new());
    let stores = DedupeStores {
        durable: durable.clone(),
        memory: memory.clone(),
    };
    let harness = Build::new(&look)
        .and(&write)
        .with(|build| build.dedupe = Some(stores))
        .stack();
    harness.call(&ask("look")).await;
    assert_eq!(
        (durable.states().await.len(), memory.states().await.len()),
        (0, 1)
    );
    harness.call(&ask("look").hints(CRITICAL)).await;
    assert_eq!(
        (durable.states().await.len(), memory.states().await.len()),
        (1, 1)
    );
    harness.call(&ask("write_it").key("k")).await;
    assert_eq!(
        (durable.states().await.len(), memory.states().await.len()),
        (2, 1)
    );
}
