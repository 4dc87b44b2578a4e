//! The end of every run is written down, however it came.

use std::sync::Arc;

use crate::common::{Held, stack, task};
use holdfast_agent::log::{Format, Level, RunLog, Watch};
use holdfast_agent::run::Loop;
use holdfast_agent::runs::{
    Cancelled, Event, Keeping, Listener, Outcome, Owner, RunStore, Runs, RunsLimits, StartError,
};
use holdfast_contract::redact::{Redactor, RedactorOptions};
use holdfast_reliability::observe::log::LineSink;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_reliability::store::unavailable::UnavailableStore;
use holdfast_testkit::TokioClock;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

#[derive(Default)]
struct Lines(Mutex<Vec<Value>>);

impl LineSink for Lines {
    fn line(&self, line: &[u8]) {
        let event = serde_json::from_slice(line).expect("a line is JSON");
        self.0.lock().push(event);
    }
}

struct Process {
    model: Arc<Held>,
    lines: Arc<Lines>,
    runs: Arc<Runs>,
}

fn process(name: &str, documents: &Arc<dyn DocumentStore>, clock: &Arc<TokioClock>) -> Process {
    let (lines, stack) = (Arc::<Lines>::default(), stack(Vec::new()));
    let redactor = Redactor::new(&RedactorOptions::default());
    let log = RunLog::new(
        lines.clone(),
        clock.clone(),
        redactor,
        Level::Info,
        Format::Json,
    );
    let watch = Watch::new(Arc::new(log), None, clock.clone());
    let model = Arc::new(Held(Semaphore::new(0)));
    let agent = Loop::new(model.clone(), stack).with_watch(watch);
    let store = RunStore::new(
        documents.clone(),
        clock.clone(),
        Owner::alone(name),
        "/work",
    );
    let runs = Runs::new(agent, store, RunsLimits::default());
    Process { model, lines, runs }
}

impl Process {
    /// A run that waits for its first answer.
    async fn begun(&self) -> Listener {
        let state = task(self.runs.agent().stack());
        let begun = self.runs.start(state, "local", Keeping::Durable).await;
        let mut listener = begun.expect("begins");
        assert_eq!(listener.next().await, Some(Event::Asks { iteration: 1 }));
        listener
    }

    /// How often its end was written down, and with which outcomes.
    fn ends(&self) -> Vec<Value> {
        let lines = self.lines.0.lock();
        let ends = lines
            .iter()
            .filter(|line| line["event"] == "executor_run_end");
        ends.map(|line| {
            assert_eq!(line["run_id"], "r", "{line}");
            line["outcome"].clone()
        })
        .collect()
    }
}

fn kept() -> (Arc<dyn DocumentStore>, Arc<TokioClock>) {
    let clock = Arc::new(TokioClock::new());
    (Arc::new(MemoryDocumentStore::new(clock.clone())), clock)
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_answered_run_says_so_once() {
    let (documents, clock) = kept();
    let one = process("one", &documents, &clock);
    let mut listener = one.begun().await;
    one.model.0.add_permits(1);
    listener.outcome().await;
    assert_eq!(one.ends(), ["answered"]);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_has_its_end_in_the_log() {
    let (documents, clock) = kept();
    let one = process("one", &documents, &clock);
    let mut listener = one.begun().await;
    let cancelled = one.runs.cancel("r").await.expect("is live");
    assert_eq!(cancelled, Cancelled::Asked);
    listener.outcome().await;
    assert_eq!(one.ends(), ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_left_has_not_ended_until_somebody_cancels_it() {
    let (documents, clock) = kept();
    let one = process("one", &documents, &clock);
    drop(one.begun().await);
    one.runs.leave().await;
    assert!(one.ends().is_empty());
    let two = process("two", &documents, &clock);
    let cancelled = two.runs.cancel("r").await.expect("cancelled");
    assert!(matches!(cancelled, Cancelled::Done(_)));
    assert_eq!(two.ends(), ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_somebody_else_took_is_lost_and_says_so() {
    let (documents, clock) = kept();
    let one = process("one", &documents, &clock);
    let mut listener = one.begun().await;
    let two = process("two", &documents, &clock);
    let mut taken = two.runs.resume("r").await.expect("goes on");
    two.model.0.add_permits(1);
    taken.outcome().await;
    assert_eq!(two.ends(), ["answered"]);
    one.model.0.add_permits(1);
    assert!(matches!(&*listener.outcome().await, Outcome::Lost(_)));
    assert_eq!(one.ends(), ["lost"]);
}

/// Its client is told that it may have begun: so is whoever looks for it later.
#[tokio::test(start_paused = true)]
async fn a_run_of_which_nobody_knows_whether_it_began_is_in_the_log() {
    let (_, clock) = kept();
    let away = UnavailableStore::new(StoreError::Unavailable("away".to_owned()));
    let documents: Arc<dyn DocumentStore> = Arc::new(away);
    let one = process("one", &documents, &clock);
    let state = task(one.runs.agent().stack());
    let begun = one.runs.start(state, "local", Keeping::Durable).await;
    let Err(StartError::InDoubt(run)) = begun.map(|_| ()) else {
        panic!("it began");
    };
    assert_eq!(run, "r");
    assert_eq!(one.ends(), ["lost"]);
}
