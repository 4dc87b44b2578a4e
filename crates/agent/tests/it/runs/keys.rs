//! The keys by which clients make several requests one run.

use std::sync::Arc;
use std::time::Duration;

use holdfast_agent::run::Loop;
use holdfast_agent::runs::{KeyClaim, Owner, RunKey, RunStore, Runs, RunsLimits, Started};
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::{StoreError, StoreResult};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::runs::{Held, SLOW_MS, desk, slow_desk, stack};

#[tokio::test(start_paused = true)]
async fn the_key_of_a_run_that_is_about_to_begin_is_nobody_elses() {
    let desk = slow_desk();
    let start = async |id: &str| {
        let key = RunKey::new("local", "k", &json!({"messages": []}));
        match desk.runs.start_keyed(desk.task(id), "local", key).await {
            Ok(Started::Begun(listener)) => Ok(listener),
            Ok(Started::Known(known)) => Err(known),
            Err(error) => panic!("{error}"),
        }
    };
    let (first, second) = tokio::join!(start("a"), async {
        tokio::time::sleep(Duration::from_millis(SLOW_MS / 2)).await;
        start("b").await.map(|_| ())
    });
    assert_eq!(second, Err(KeyClaim::Begins));
    let mut first = first.expect("begins");
    let same = Err(KeyClaim::Same("a".to_owned()));
    assert_eq!(start("c").await.map(|_| ()), same);
    // One that ended without an effect and without an answer gives it back.
    desk.runs.cancel("a").await.expect("is live");
    first.outcome().await;
    assert!(start("d").await.is_ok());
}

/// A claim without a run belongs to nobody after a while, whoever made it and however long it lives.
#[tokio::test(start_paused = true)]
async fn a_key_whose_run_never_began_is_free_after_a_while() {
    let dir = tempfile::tempdir().expect("a directory");
    let process = |name: &str, documents: Arc<dyn DocumentStore>| {
        let stack = stack();
        let clock = stack.runtime().clock.clone();
        let owner = Owner::announced(dir.path(), name).expect("announced");
        let store = RunStore::new(documents, clock, owner, "/work");
        let model = Arc::new(Held(Semaphore::new(0)));
        Runs::new(Loop::new(model, stack), store, RunsLimits::default())
    };
    let plain = desk(RunsLimits::default());
    let refusing = Arc::new(NoRuns(plain.documents.clone()));
    let (one, two) = (
        process("one", refusing),
        process("two", plain.documents.clone()),
    );
    let start = async |runs: &Arc<Runs>, id: &str| {
        let key = RunKey::new("local", "k", &json!({}));
        runs.start_keyed(plain.task(id), "local", key).await
    };
    // It claims the key, and can not begin; the key can not be given back either.
    assert!(start(&one, "a").await.is_err());
    let early = start(&two, "b").await;
    assert!(matches!(early, Ok(Started::Known(KeyClaim::Begins))));
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert!(matches!(start(&two, "c").await, Ok(Started::Begun(_))));
}

/// Documents that take keys, and no runs.
struct NoRuns(Arc<dyn DocumentStore>);

impl InterposedDocuments for NoRuns {
    fn behind(&self) -> &dyn DocumentStore {
        &*self.0
    }

    fn before(&self, step: DocumentStep<'_>) -> StoreResult<()> {
        match step {
            DocumentStep::Create("run") => Err(StoreError::Full("no runs".to_owned())),
            DocumentStep::Replace => Err(StoreError::Unavailable("no changes".to_owned())),
            _ => Ok(()),
        }
    }
}
