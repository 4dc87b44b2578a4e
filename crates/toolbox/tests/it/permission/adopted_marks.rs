//! The marks on requests whose askers are gone, and what is told of those that were resumed.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{Answer, Clock, Effect, PermissionTier, Tool};
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::{DocumentStore, NewDocument};
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryDocumentStore, MemoryLimits};
use holdfast_reliability::store::{StoreError, StoreResult};
use holdfast_testkit::TokioClock;
use holdfast_toolbox::approval::{ResumeWhich, ResumedBy, resume_open};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::permission::adopted::{
    Asking, asking, house, kill, open, orphan, resume, wait_until_asked, yes,
};
use crate::permission::bench::{Bench, Build, Probe, Recorded, ask, word};

const NO: Answer = Answer::Deny { reason: None };

fn probe() -> Arc<Probe> {
    Probe::new("probe", PermissionTier::Elevated, Effect::Workspace)
}

async fn is_wanted(bench: &Bench, id: &str) -> bool {
    let stands = bench.approvals.get(id).await.unwrap().unwrap();
    stands.wanted_by.is_some()
}

#[tokio::test(start_paused = true)]
async fn what_was_refused_while_somebody_wanted_it_is_gone_on_with_by_nobody() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let mut stand_in = Box::pin(resume_open(
        &bench.stack,
        &bench.approvals,
        &ResumeWhich::All,
    ));
    for _ in 0..5 {
        assert!(futures_util::poll!(&mut stand_in).is_pending());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let mut seeker = asking(&bench);
    while !is_wanted(&bench, &id).await {
        assert!(futures_util::poll!(&mut seeker).is_pending());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bench.approvals.answer(&id, &NO, "person").await.unwrap();
    let resumed = stand_in.await.unwrap();
    assert_eq!(word(&resumed[0].result), "permission_denied");
    assert_eq!(resumed[0].by, ResumedBy::Us);
    assert!(!resumed[0].is_well());
    assert!(!is_wanted(&bench, &id).await, "it is over");
    assert_eq!(word(&seeker.await), "permission_denied");
    assert_eq!(probe.runs(), 0);
}

/// As versions left it that did not mark requests by what they ask.
async fn marked_as_before(bench: &Bench, id: &str) {
    assert!(bench.documents.remove("approval-open", id).await.unwrap());
    let stands = bench.approvals.get(id).await.unwrap().unwrap();
    let mark = NewDocument {
        kind: "approval-open".to_owned(),
        id: id.to_owned(),
        group: String::new(),
        body: Value::Null,
        expires_at_ms: Some(stands.request.expires_at_ms),
    };
    bench.documents.create(mark).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn requests_of_an_older_version_are_gone_on_with() {
    let (bench, probe) = house().await;
    let id = orphan(&bench).await;
    marked_as_before(&bench, &id).await;
    // Another's, which is left alone.
    let mut other: Asking<'_> = Box::pin(bench.stack.call(ask("probe", "main", json!({"n": 2}))));
    let both = wait_until_asked(&bench, &mut other, 2).await;
    let left = both.into_iter().find(|it| it.id != id).unwrap().id;
    kill(other);
    marked_as_before(&bench, &left).await;
    yes(&bench, &id).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(word(&asking(&bench).await), "ran");
    assert_eq!((probe.runs(), resume(&bench).await), (1, 0));
    let open: Vec<String> = open(&bench).await.into_iter().map(|it| it.id).collect();
    assert_eq!(open, [left]);
}

/// Documents of a store with a time of its own.
struct Timed {
    inner: MemoryDocumentStore,
    clock: Arc<TokioClock>,
}

impl InterposedDocuments for Timed {
    fn behind(&self) -> &dyn DocumentStore {
        &self.inner
    }

    fn time_ms(&self) -> Option<u64> {
        Some(self.clock.now_ms())
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_is_fresh_by_the_stores_time_whatever_the_clocks_say() {
    for behind_ms in [-60_000, 60_000] {
        let right = Arc::new(TokioClock::new());
        let wrong = Arc::new(TokioClock::new());
        wrong.jump_ms(behind_ms);
        let documents = Arc::new(Timed {
            inner: MemoryDocumentStore::new(right.clone()),
            clock: right.clone(),
        });
        let records = MemoryDedupeStore::new(right.clone(), MemoryLimits::default());
        let (records, probe) = (Arc::new(records), probe());
        let machine = |clock: Arc<TokioClock>, seed| {
            let build = Build {
                documents: Some(documents.clone()),
                records: Some(records.clone()),
                machine: Some((clock, seed)),
                ..Build::default()
            };
            build.bench(vec![probe.clone() as Arc<dyn Tool>])
        };
        let (one, two) = (machine(right, 1), machine(wrong, 2));
        for bench in [&one, &two] {
            bench.main("/w".into(), Some(Recorded::silent())).await;
        }
        let id = orphan(&one).await;
        tokio::time::sleep(Duration::from_secs(20)).await;
        let (stack, approvals) = (one.stack.clone(), one.approvals.clone());
        let stand_in =
            tokio::spawn(async move { resume_open(&stack, &approvals, &ResumeWhich::All).await });
        tokio::time::sleep(Duration::from_secs(1)).await;
        let stack = two.stack.clone();
        let call =
            tokio::spawn(async move { stack.call(ask("probe", "main", json!({"n": 1}))).await });
        let resumed = stand_in.await.unwrap().unwrap();
        assert_eq!(resumed[0].by, ResumedBy::Another, "{behind_ms}");
        yes(&two, &id).await;
        assert_eq!(word(&call.await.unwrap()), "ran", "{behind_ms}");
        assert_eq!(probe.runs(), 1, "{behind_ms}");
    }
}

/// Documents that can be looked at so often, and then not any more.
struct Looked {
    inner: MemoryDocumentStore,
    looks_left: Mutex<Option<u32>>,
}

impl InterposedDocuments for Looked {
    fn behind(&self) -> &dyn DocumentStore {
        &self.inner
    }

    fn before(&self, step: DocumentStep<'_>) -> StoreResult<()> {
        let mut left = self.looks_left.lock();
        match (step, left.as_mut()) {
            (DocumentStep::Look, Some(0)) => Err(StoreError::Unavailable("gone".to_owned())),
            (DocumentStep::Look, Some(left)) => {
                *left -= 1;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_goes_away_at_the_end_does_not_cost_the_results() {
    let documents = Arc::new(Looked {
        inner: MemoryDocumentStore::new(Arc::new(TokioClock::new())),
        looks_left: Mutex::new(None),
    });
    let probe = probe();
    let build = Build {
        documents: Some(documents.clone()),
        ..Build::default()
    };
    let bench = build.bench(vec![probe.clone() as Arc<dyn Tool>]);
    bench.main("/w".into(), Some(Recorded::silent())).await;
    let good = orphan(&bench).await;
    let mut other: Asking<'_> = Box::pin(bench.stack.call(ask("probe", "main", json!({"n": 2}))));
    let both = wait_until_asked(&bench, &mut other, 2).await;
    let bad = both.into_iter().find(|it| it.id != good).unwrap().id;
    kill(other);
    yes(&bench, &good).await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    let (stack, approvals) = (bench.stack.clone(), bench.approvals.clone());
    let resuming =
        tokio::spawn(async move { resume_open(&stack, &approvals, &ResumeWhich::All).await });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(probe.runs(), 1);
    bench.approvals.answer(&bad, &NO, "person").await.unwrap();
    // The one that waits sees the answer, and nobody sees anything after it.
    *documents.looks_left.lock() = Some(1);
    let resumed = resuming.await.unwrap().unwrap();
    let of = |id: &str| resumed.iter().find(|it| it.approval.id == id).unwrap();
    assert_eq!(
        (word(&of(&good).result), of(&good).is_well()),
        ("ran", true)
    );
    assert_eq!(word(&of(&bad).result), "permission_denied");
    assert!(of(&bad).trouble.is_some() && !of(&bad).is_well());
}
