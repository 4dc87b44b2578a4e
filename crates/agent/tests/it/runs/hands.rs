//! A run is in one hand at most, and what was cancelled does not come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_agent::model::{Model, ModelError, ModelReply, ModelRequest};
use holdfast_agent::run::{Ending, Loop, Phase, PlannedCall, RunErrorCode};
use holdfast_agent::runs::{Keeping, Outcome, Owner, RunStore, Runs, RunsLimits};
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_reliability::store::{StoreError, StoreResult};
use serde_json::Map;
use tokio::sync::Semaphore;

use crate::runs::{Desk, Held, SLOW_MS, answered, desk, desk_on, slow_desk, stack};

const HOUR_MS: u64 = 60 * 60 * 1000;

/// The next process on the documents of another desk.
fn next_on(before: &Desk, name: &str) -> Desk {
    let stack = stack();
    let clock = stack.runtime().clock.clone();
    let model = Arc::new(Held(Semaphore::new(0)));
    let store = RunStore::new(before.documents.clone(), clock, Owner::alone(name), "/work");
    Desk {
        model: model.clone(),
        documents: before.documents.clone(),
        runs: Runs::new(Loop::new(model, stack), store, RunsLimits::default()),
    }
}

/// Whoever says "resume" and "cancel" at once, at any distance: a run that is said to be cancelled
/// ends as that, and nobody is told that it can not be.
#[tokio::test(start_paused = true)]
async fn a_cancelled_run_stays_cancelled_whoever_resumes_it_meanwhile() {
    for ahead_ms in (0..=6 * SLOW_MS).step_by(10) {
        for cancel_ms in [0, 3 * SLOW_MS] {
            let resume_ms = (3 * SLOW_MS + cancel_ms).saturating_sub(ahead_ms);
            let before = slow_desk();
            drop(before.start("a").await.expect("begins"));
            before.runs.leave().await;
            let next = next_on(&before, "two");
            let after = |wait_ms: u64| tokio::time::sleep(Duration::from_millis(wait_ms));
            let (_, cancelled) = tokio::join!(
                async {
                    after(resume_ms).await;
                    next.runs.resume("a").await.map(|_| ())
                },
                async {
                    after(cancel_ms).await;
                    next.runs.cancel("a").await
                }
            );
            assert!(
                cancelled.is_ok(),
                "{cancelled:?} at {resume_ms}/{cancel_ms}"
            );
            tokio::time::sleep(Duration::from_millis(10 * SLOW_MS)).await;
            let ending = next.ending("a").await;
            assert_eq!(ending, Some(Ending::Cancelled), "{resume_ms}/{cancel_ms}");
            assert!(!next.runs.is_live("a"), "{resume_ms}/{cancel_ms}");
        }
    }
}

/// Documents that can not be changed for a while.
struct Shut {
    behind: MemoryDocumentStore,
    is_shut: AtomicBool,
}

impl InterposedDocuments for Shut {
    fn behind(&self) -> &dyn DocumentStore {
        &self.behind
    }

    fn before(&self, _: DocumentStep<'_>) -> StoreResult<()> {
        if self.is_shut.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("shut".to_owned()));
        }
        Ok(())
    }
}

fn shut_desk() -> (Arc<Shut>, Desk) {
    let stack = stack();
    let behind = MemoryDocumentStore::new(stack.runtime().clock.clone());
    let is_shut = AtomicBool::new(false);
    let shut = Arc::new(Shut { behind, is_shut });
    (shut.clone(), desk_on(stack, shut, RunsLimits::default()))
}

#[tokio::test(start_paused = true)]
async fn a_cancel_outlasts_a_state_that_is_away() {
    let (shut, desk) = shut_desk();
    let mut listener = desk.start("a").await.expect("begins");
    shut.is_shut.store(true, Ordering::SeqCst);
    desk.runs.cancel("a").await.expect("is live");
    let outcome = listener.outcome().await;
    assert!(matches!(&*outcome, Outcome::Lost(_)), "{outcome:?}");
    assert!(!desk.runs.is_live("a"));
    shut.is_shut.store(false, Ordering::SeqCst);
    // Nobody takes it up before the state has heard of it.
    let _ = desk.runs.resume_all().await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(desk.ending("a").await, Some(Ending::Cancelled));
    assert_eq!(desk.runs.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_lost_its_state_is_taken_up_by_the_same_process() {
    let (shut, desk) = shut_desk();
    let mut listener = desk.start("a").await.expect("begins");
    shut.is_shut.store(true, Ordering::SeqCst);
    desk.model.0.add_permits(1);
    let outcome = listener.outcome().await;
    assert!(matches!(&*outcome, Outcome::Lost(_)), "{outcome:?}");
    shut.is_shut.store(false, Ordering::SeqCst);
    assert_eq!(desk.runs.resume_all().await, Ok(1));
    desk.model.0.add_permits(1);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let ending = desk.ending("a").await;
    assert!(
        matches!(ending, Some(Ending::Answered { .. })),
        "{ending:?}"
    );
}

/// Says more than can be kept twice in one document.
struct Wordy;

#[async_trait]
impl Model for Wordy {
    async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        Ok(ModelReply {
            content: "word ".repeat(1_950_000),
            ..ModelReply::default()
        })
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_can_not_be_kept_ends_its_run() {
    let desk = desk(RunsLimits::default());
    let clock = desk.runs.agent().stack().runtime().clock.clone();
    let store = RunStore::new(desk.documents.clone(), clock, Owner::alone("one"), "/work");
    let runs = Runs::new(
        Loop::new(Arc::new(Wordy), stack()),
        store,
        RunsLimits::default(),
    );
    let keeping = Keeping::Durable;
    let begun = runs.start(desk.task("a"), "local", keeping).await;
    let outcome = begun.expect("begins").outcome().await;
    let Outcome::Ended(state) = &*outcome else {
        panic!("it was lost");
    };
    let Some(Ending::Failed(error)) = state.ending() else {
        panic!("it has an answer");
    };
    assert_eq!(error.code, RunErrorCode::ToolExecutionFailed);
    assert!(error.message.contains("bytes"), "{error}");
    assert_eq!(desk.ending("a").await, state.ending().cloned());
    assert_eq!(runs.resume_all().await, Ok(0), "nothing is left");
}

/// A run in whose step every process dies does not kill the next ones for ever.
#[tokio::test(start_paused = true)]
async fn a_run_that_comes_no_further_waits_for_a_person() {
    let first = desk(RunsLimits::default());
    drop(first.start("a").await.expect("begins"));
    first.runs.leave().await;
    let mut taken = 0;
    for round in 0..20 {
        let next = next_on(&first, &format!("p{round}"));
        taken += next.runs.resume_all().await.expect("looks");
        tokio::time::sleep(Duration::from_secs(1)).await;
        next.runs.leave().await;
    }
    assert!(taken < 20, "it is taken up again and again");
    let person = next_on(&first, "person");
    let mut resumed = person.runs.resume("a").await.expect("goes on");
    person.model.0.add_permits(1);
    assert!(answered(&*resumed.outcome().await));
}

/// The record of a call does not live longer because somebody took its run up and left it again.
#[tokio::test]
async fn a_call_in_doubt_is_as_old_as_it_was_the_first_time() {
    let mut run = desk(RunsLimits::default()).task("a");
    run.phase = Phase::Act(vec![PlannedCall {
        name: "exec".to_owned(),
        arguments: Map::new(),
        call_id: None,
        mutating: true,
        guess: false,
        chained: None,
        result: None,
    }]);
    let began_ms = 1_000;
    for round in 1..=3 {
        let now_ms = began_ms + round * 22 * HOUR_MS;
        run.take_up(now_ms - 22 * HOUR_MS, 22 * HOUR_MS, now_ms);
        let doubt = run.doubt.expect("it may have begun");
        assert_eq!((doubt.place, doubt.since_ms), (0, began_ms), "{round}");
    }
}
