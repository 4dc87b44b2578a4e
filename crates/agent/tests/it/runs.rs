//! Runs in one process: places, listeners, and clients that go away.

mod hands;
mod heavy;
mod keys;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::Held;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};
use holdfast_agent::chat::{Message, Role};
use holdfast_agent::run::{Ending, Loop, RunState};
use holdfast_agent::runs::{
    CLIENT_AWAY_MS_MAX, Cancelled, Event, Keeping, Listener, Lost, Outcome, Owner, ResumeError,
    RunStore, RunStoreError, Runs, RunsLimits, StartError,
};
use holdfast_agent::settings::RunSettings;
use holdfast_agent::subagents::Subagents;
use holdfast_contract::{Clock, SessionContext};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::{MemoryDocumentStore, MemoryLimits};
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::session::{SessionLimits, SessionTree};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use tokio::sync::Semaphore;

struct Desk {
    model: Arc<Held>,
    documents: Arc<dyn DocumentStore>,
    runs: Arc<Runs>,
}

fn stack() -> Arc<ToolStack> {
    let runtime = Arc::new(Runtime::new(
        Arc::new(TokioClock::new()),
        Arc::new(SeededEntropy::new(7)),
        Observers::new(),
    ));
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(SessionContext::main("run", "main", "/nonexistent".into()));
    let parts = Parts::new(runtime, stores, Arc::new(move |_| session.clone()));
    Arc::new(ToolStack::new(parts).expect("a stack"))
}

fn desk(limits: RunsLimits) -> Desk {
    let stack = stack();
    let clock = stack.runtime().clock.clone();
    desk_on(stack, Arc::new(MemoryDocumentStore::new(clock)), limits)
}

fn desk_on(stack: Arc<ToolStack>, documents: Arc<dyn DocumentStore>, limits: RunsLimits) -> Desk {
    let clock = stack.runtime().clock.clone();
    let model = Arc::new(Held(Semaphore::new(0)));
    let store = RunStore::new(documents.clone(), clock, Owner::alone("one"), "/work");
    let runs = Runs::new(Loop::new(model.clone(), stack), store, limits);
    Desk {
        model,
        documents,
        runs,
    }
}

impl Desk {
    fn task(&self, id: &str) -> RunState {
        let messages = vec![Message::text(Role::User, "Hello")];
        let now_ms = self.runs.agent().stack().runtime().clock.now_ms();
        RunState::new(id, "gpt-oss", messages, RunSettings::default(), now_ms)
    }

    async fn start(&self, id: &str) -> Result<Listener, StartError> {
        let task = self.task(id);
        self.runs.start(task, "local", Keeping::Durable).await
    }

    async fn ending(&self, id: &str) -> Option<Ending> {
        let run = self.runs.store().get(id).await.expect("a run");
        run.state.ending().cloned()
    }
}

fn answered(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Ended(state)
        if matches!(state.ending(), Some(Ending::Answered { .. })))
}

#[tokio::test(start_paused = true)]
async fn a_queue_is_as_long_as_it_may_be() {
    let desk = desk(RunsLimits {
        runs_max: 1,
        waiting_max: 1,
        ..RunsLimits::default()
    });
    let mut first = desk.start("a").await.expect("begins");
    let second = desk.start("b");
    tokio::pin!(second);
    assert!(
        futures_util::poll!(second.as_mut()).is_pending(),
        "it waits"
    );
    assert!(matches!(desk.start("c").await, Err(StartError::Busy)));
    desk.model.0.add_permits(2);
    assert!(answered(&*first.outcome().await));
    assert!(answered(&*second.await.expect("begins").outcome().await));
}

#[tokio::test(start_paused = true)]
async fn whoever_leaves_the_queue_gives_its_place_back() {
    let desk = desk(RunsLimits {
        runs_max: 1,
        waiting_max: 1,
        ..RunsLimits::default()
    });
    let _first = desk.start("a").await.expect("begins");
    for name in ["b", "c", "d"] {
        let waits = tokio::time::timeout(Duration::from_secs(1), desk.start(name)).await;
        assert!(waits.is_err(), "{name} was let in or turned away");
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_stays_away_cancels_its_run() {
    let desk = desk(RunsLimits::default());
    drop(desk.start("a").await.expect("begins"));
    tokio::time::sleep(Duration::from_millis(CLIENT_AWAY_MS_MAX - 1)).await;
    assert_eq!(desk.ending("a").await, None, "it may come back");
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(desk.ending("a").await, Some(Ending::Cancelled));
    assert_eq!(desk.runs.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_back_hears_all_of_it() {
    let desk = desk(RunsLimits::default());
    drop(desk.start("a").await.expect("begins"));
    tokio::time::sleep(Duration::from_millis(CLIENT_AWAY_MS_MAX / 2)).await;
    let mut back = desk.runs.attach("a").expect("it runs");
    assert_eq!(back.next().await, Some(Event::Asks { iteration: 1 }));
    tokio::time::sleep(Duration::from_millis(CLIENT_AWAY_MS_MAX)).await;
    desk.model.0.add_permits(1);
    assert!(matches!(back.next().await, Some(Event::Heard { .. })));
    assert_eq!(back.next().await, None);
    assert!(answered(&*back.outcome().await));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_ends_leaves_its_runs_to_be_gone_on_with() {
    let desk = desk(RunsLimits::default());
    let mut listener = desk.start("a").await.expect("begins");
    let leaving = desk.runs.clone();
    tokio::join!(leaving.leave(), async {
        assert_eq!(*listener.outcome().await, Outcome::Left);
    });
    assert!(matches!(desk.start("b").await, Err(StartError::Leaving)));
    assert_eq!(desk.ending("a").await, None);
    // The next process, on the same documents. Time in which nobody worked does not count.
    tokio::time::sleep(Duration::from_secs(1000)).await;
    let stack = stack();
    let model = Arc::new(Held(Semaphore::new(0)));
    let store = |workspace: &str| {
        let clock = desk.runs.agent().stack().runtime().clock.clone();
        RunStore::new(
            desk.documents.clone(),
            clock,
            Owner::alone("two"),
            workspace,
        )
    };
    let agent = || Loop::new(model.clone(), stack.clone());
    let elsewhere = Runs::new(agent(), store("/other"), RunsLimits::default());
    assert_eq!(elsewhere.resume_all().await.expect("looks"), 0);
    assert!(matches!(
        elsewhere.resume("a").await.map(|_| ()),
        Err(ResumeError::Store(RunStoreError::Elsewhere(..)))
    ));
    let next = Runs::new(agent(), store("/work"), RunsLimits::default());
    // What a person stopped, a server does not go on with by itself.
    assert_eq!(next.store().set_aside("a").await, Ok(()));
    assert_eq!(next.resume_all().await.expect("looks"), 0);
    // Everybody who wants to go on with it listens to the same one.
    let (first, second) = tokio::join!(next.resume("a"), next.resume("a"));
    let (mut resumed, mut also) = (first.expect("goes on"), second.expect("listens"));
    assert_eq!(next.in_flight(), 1);
    model.0.add_permits(1);
    assert!(answered(&*also.outcome().await));
    let outcome = resumed.outcome().await;
    assert!(answered(&outcome), "{outcome:?}");
    assert!(matches!(
        next.resume("a").await.map(|_| ()),
        Err(ResumeError::Store(RunStoreError::Ended(_)))
    ));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_taken_over_stops() {
    let desk = desk(RunsLimits::default());
    let mut listener = desk.start("a").await.expect("begins");
    assert_eq!(listener.next().await, Some(Event::Asks { iteration: 1 }));
    // A store that shares no directory can not see that the owner lives.
    let clock = desk.runs.agent().stack().runtime().clock.clone();
    let store = RunStore::new(desk.documents.clone(), clock, Owner::alone("two"), "/work");
    let model = Arc::new(Held(Semaphore::new(1)));
    let other = Runs::new(Loop::new(model, stack()), store, RunsLimits::default());
    let mut taken = other.resume("a").await.expect("goes on");
    assert!(answered(&*taken.outcome().await));
    desk.model.0.add_permits(1);
    let lost = listener.outcome().await;
    assert!(
        matches!(&*lost, Outcome::Lost(Lost::Taken(why)) if why.contains("another process")),
        "{lost:?}"
    );
}

/// Documents that are kept at once, and said to be kept a little later, as a disk does it.
struct SlowStore(MemoryDocumentStore);

const SLOW_MS: u64 = 50;

impl InterposedDocuments for SlowStore {
    fn behind(&self) -> &dyn DocumentStore {
        &self.0
    }

    fn after(&self, step: DocumentStep<'_>) -> BoxFuture<'_, ()> {
        match step {
            DocumentStep::Create(_) | DocumentStep::Replace => {
                tokio::time::sleep(Duration::from_millis(SLOW_MS)).boxed()
            }
            _ => ready(()).boxed(),
        }
    }
}

/// Documents that count how often they are listed.
struct CountedStore {
    behind: Arc<dyn DocumentStore>,
    lists: AtomicUsize,
}

impl InterposedDocuments for CountedStore {
    fn behind(&self) -> &dyn DocumentStore {
        &*self.behind
    }

    fn before(&self, step: DocumentStep<'_>) -> StoreResult<()> {
        if step == DocumentStep::List {
            self.lists.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    }
}

/// Twenty runs, two places, and a line that clients have filled: each run is looked for once, waits
/// for its turn and ends.
#[tokio::test(start_paused = true)]
async fn what_was_left_is_looked_for_once_and_waits_for_its_turn() {
    let before = desk(RunsLimits::default());
    let names: Vec<String> = (0..20).map(|number| format!("left-{number:02}")).collect();
    for name in &names {
        before.start(name).await.expect("begins");
    }
    before.runs.leave().await;
    let documents = Arc::new(CountedStore {
        behind: before.documents.clone(),
        lists: AtomicUsize::new(0),
    });
    let stack = stack();
    let clock = stack.runtime().clock.clone();
    let store = RunStore::new(documents.clone(), clock, Owner::alone("two"), "/work");
    let model = Arc::new(Held(Semaphore::new(0)));
    let limits = RunsLimits {
        runs_max: 2,
        waiting_max: 1,
        ..RunsLimits::default()
    };
    let next = Desk {
        model: model.clone(),
        documents: documents.clone(),
        runs: Runs::new(Loop::new(model, stack), store, limits),
    };
    let _both = (next.start("a").await, next.start("b").await);
    let waits = next.start("c");
    tokio::pin!(waits);
    assert!(futures_util::poll!(waits.as_mut()).is_pending());
    assert_eq!(next.runs.resume_all().await, Ok(20));
    for _ in 0..3 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        assert_eq!(next.runs.resume_all().await, Ok(0), "they wait already");
    }
    next.model.0.add_permits(23);
    assert!(answered(&*waits.await.expect("begins").outcome().await));
    tokio::time::sleep(Duration::from_mins(1)).await;
    for name in &names {
        let ending = next.ending(name).await;
        assert!(
            matches!(ending, Some(Ending::Answered { .. })),
            "{name}: {ending:?}"
        );
    }
    assert_eq!(documents.lists.load(Ordering::SeqCst), 1);
    assert_eq!(next.runs.resume_all().await, Ok(0), "nothing is left");
}

/// Nobody else is left to end it.
#[tokio::test(start_paused = true)]
async fn cancelling_a_run_that_was_left_ends_its_session() {
    let before = desk(RunsLimits::default());
    let mut task = before.task("a");
    task.session = "run:a".to_owned();
    let started = before.runs.start(task, "local", Keeping::Durable).await;
    drop(started.expect("begins"));
    before.runs.leave().await;
    let next = desk_on(stack(), before.documents.clone(), RunsLimits::default());
    let tree = Arc::new(SessionTree::new(
        before.documents.clone(),
        next.runs.agent().stack().runtime().clone(),
        SessionLimits::default(),
        Vec::new(),
    ));
    let opened = tree.open_main("run:a", "main", "/work".into(), None);
    opened.await.expect("opened");
    next.runs
        .adopt(Subagents::new(tree.clone(), RunSettings::default()));
    let cancelled = next.runs.cancel("a").await.expect("cancelled");
    assert!(matches!(cancelled, Cancelled::Done(_)));
    let session = tree.get("run:a").await.expect("a session");
    assert!(session.state.has_ended(), "{session:?}");
}

fn slow_desk() -> Desk {
    let stack = stack();
    let clock = stack.runtime().clock.clone();
    desk_on(
        stack,
        Arc::new(SlowStore(MemoryDocumentStore::new(clock))),
        RunsLimits::default(),
    )
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_while_it_is_kept_ends_as_it_is_kept() {
    let desk = slow_desk();
    let mut listener = desk.start("a").await.expect("begins");
    desk.model.0.add_permits(1);
    // The answer is there, and being kept.
    tokio::time::sleep(Duration::from_millis(SLOW_MS / 2)).await;
    desk.runs.cancel("a").await.expect("is live");
    let outcome = listener.outcome().await;
    let Outcome::Ended(state) = &*outcome else {
        panic!("{outcome:?}");
    };
    assert!(state.ending().is_some());
    assert_eq!(desk.ending("a").await, state.ending().cloned());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_while_its_run_begins_cancels_it() {
    let desk = slow_desk();
    let waits = Duration::from_millis(SLOW_MS / 2);
    let begun = tokio::time::timeout(waits, desk.start("a")).await;
    assert!(begun.is_err(), "it is still being kept");
    tokio::time::sleep(Duration::from_millis(CLIENT_AWAY_MS_MAX + 10 * SLOW_MS)).await;
    assert_eq!(desk.ending("a").await, Some(Ending::Cancelled));
    assert!(!desk.runs.is_live("a"));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_comes_and_goes_is_waited_for_anew() {
    let desk = desk(RunsLimits::default());
    drop(desk.start("a").await.expect("begins"));
    tokio::time::sleep(Duration::from_millis(CLIENT_AWAY_MS_MAX - 10)).await;
    drop(desk.runs.attach("a").expect("is live"));
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(desk.ending("a").await, None, "it was here a moment ago");
    tokio::time::sleep(Duration::from_millis(CLIENT_AWAY_MS_MAX)).await;
    assert_eq!(desk.ending("a").await, Some(Ending::Cancelled));
}

/// From the moment it is in hand it can be heard and stopped.
#[tokio::test(start_paused = true)]
async fn a_run_that_begins_here_is_joined_not_taken_up() {
    let desk = slow_desk();
    let (begun, joined) = tokio::join!(desk.start("a"), async {
        tokio::time::sleep(Duration::from_millis(SLOW_MS / 2)).await;
        desk.runs.resume("a").await
    });
    let (mut begun, mut joined) = (begun.expect("begins"), joined.expect("listens"));
    assert_eq!(desk.runs.in_flight(), 1);
    desk.model.0.add_permits(1);
    assert!(answered(&*begun.outcome().await) && answered(&*joined.outcome().await));
}

/// The clock of a shared store, which is not this machine's.
struct Ahead(Arc<dyn Clock>, u64);

impl Clock for Ahead {
    fn now_ms(&self) -> u64 {
        self.0.now_ms() + self.1
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_has_its_time_also_where_its_store_has_another_clock() {
    let first = stack();
    let clock = first.runtime().clock.clone();
    let ahead: Arc<dyn Clock> = Arc::new(Ahead(clock.clone(), 10_000_000));
    let documents: Arc<dyn DocumentStore> = Arc::new(MemoryDocumentStore::new(ahead.clone()));
    let process = |name: &str, stack: Arc<ToolStack>| {
        let store = RunStore::new(
            documents.clone(),
            ahead.clone(),
            Owner::alone(name),
            "/work",
        );
        let store = store.with_loop_clock(clock.clone());
        let model = Arc::new(Held(Semaphore::new(0)));
        Runs::new(Loop::new(model, stack), store, RunsLimits::default())
    };
    let one = process("one", first.clone());
    let messages = vec![Message::text(Role::User, "Hello")];
    let task = RunState::new(
        "a",
        "gpt-oss",
        messages,
        RunSettings::default(),
        clock.now_ms(),
    );
    let begun = one.start(task, "local", Keeping::Durable).await;
    let _begun = begun.expect("begins");
    one.leave().await;
    let two = process("two", first);
    let _resumed = two.resume("a").await.expect("goes on");
    let state = two.store().get("a").await.expect("a run").state;
    assert_eq!(state.taken_up_at_ms, clock.now_ms());
    assert!(state.worked_before_ms < 1000, "{}", state.worked_before_ms);
}
