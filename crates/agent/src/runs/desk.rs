//! Starts, resumes and cancels runs, within bounds.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_reliability::store::StoreError;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, OwnedSemaphorePermit, watch};

use super::live::{Event, Listener, Live, Outcome, Stop, Unheard};
use super::store::{Kept, KeptRun, RunStore, RunStoreError};
use super::turns::{Asked, Place, Turns};
use super::{RESUME_AGAIN_MS, RUNS_MAX, RUNS_WAITING_MAX};
use crate::run::{Checkpoint, CheckpointError, Ending, Happened, Loop, RunState};
use crate::subagents::{Orphan, Subagents};

/// The line of runs that are gone on with.
const RESUMED: &str = "resumed";

/// How many runs there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunsLimits {
    /// At once.
    pub runs_max: usize,
    /// Waiting for one of them to end.
    pub waiting_max: usize,
}

impl Default for RunsLimits {
    fn default() -> Self {
        Self {
            runs_max: RUNS_MAX,
            waiting_max: RUNS_WAITING_MAX,
        }
    }
}

/// Whether a run outlives its process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// It is kept after each step.
    Durable,
    /// It is not: it has no effects, and whoever asked can ask again.
    Passing,
}

/// Why a run does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StartError {
    /// As many wait as may.
    #[error("too many runs at once")]
    Busy,
    /// The process ends.
    #[error("the server is ending")]
    Leaving,
    /// The state is away.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a run is not gone on with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResumeError {
    /// It can not be had.
    #[error(transparent)]
    Store(#[from] RunStoreError),
    /// It can not begin.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// What became of a wish to cancel.
#[derive(Debug, Clone, PartialEq)]
pub enum Cancelled {
    /// It is being cancelled by the one who works on it.
    Asked,
    /// It is cancelled.
    Done(Box<RunState>),
}

/// The runs of one process.
pub struct Runs {
    agent: Loop,
    store: RunStore,
    turns: Arc<Turns>,
    live: Mutex<HashMap<String, Arc<Live>>>,
    taking_up: AsyncMutex<()>,
    /// Held by whoever goes on with all that was left unfinished.
    resuming: Arc<AsyncMutex<()>>,
    /// How many are being worked on, for whoever waits for none.
    count: watch::Sender<usize>,
    leaving: watch::Sender<bool>,
    subagents: OnceLock<Arc<Subagents>>,
}

impl Runs {
    /// No runs yet.
    pub fn new(agent: Loop, store: RunStore, limits: RunsLimits) -> Arc<Self> {
        Arc::new(Self {
            agent,
            store,
            turns: Turns::new(limits),
            live: Mutex::default(),
            taking_up: AsyncMutex::default(),
            resuming: Arc::default(),
            count: watch::Sender::new(0),
            leaving: watch::Sender::new(false),
            subagents: OnceLock::new(),
        })
    }

    /// Lets the tools of these subagents begin runs here.
    pub fn adopt(self: &Arc<Self>, subagents: Arc<Subagents>) {
        subagents.attach(self);
        // Who was first stays.
        let _ = self.subagents.set(subagents);
    }

    /// Begins the run of a subagent, in a place that was had before: one that waited for a place
    /// of those who wait for it would wait for ever. To be done [`wholly`].
    pub(crate) async fn start_child(
        self: &Arc<Self>,
        state: RunState,
        client: &str,
        place: OwnedSemaphorePermit,
    ) -> Result<Listener, StartError> {
        if *self.leaving.borrow() {
            return Err(StartError::Leaving);
        }
        let runs = self;
        let held = runs.store.begins(&state.id);
        let kept = runs.store.begin(&state, client).await?;
        let live = Live::new(&state, Unheard::GoOn);
        Ok(runs.work(live, state, Some(kept), (held, place)))
    }

    /// Subagents end with their process: those whose process is gone are given up, so that their
    /// parents hear of it. Only those that were suspended wait to be let go on.
    async fn give_up_children(&self) -> Result<(), StoreError> {
        let Some(subagents) = self.subagents.get() else {
            return Ok(());
        };
        let mut after = None;
        loop {
            let page = self.store.abandoned_children(after.as_deref()).await?;
            for run in page.runs {
                if subagents.lost(&run.state.session).await? == Orphan::Ended {
                    // Who was faster has ended it too.
                    let _ = self.store.cancel(&run.state.id).await;
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// The run of a subagent whose process is gone, if nobody has ended it.
    pub(crate) async fn orphan(&self, session: &str) -> Result<Option<KeptRun>, StoreError> {
        let mut after = None;
        loop {
            let page = self.store.abandoned_children(after.as_deref()).await?;
            let mut runs = page.runs.into_iter();
            let found = runs.find(|run| run.state.session == session);
            after = page.next;
            if found.is_some() || after.is_none() {
                return Ok(found);
            }
        }
    }

    /// Goes on with it, in a place that was had before, as in [`Self::start_child`].
    pub(crate) async fn resume_child(
        self: &Arc<Self>,
        id: &str,
        place: OwnedSemaphorePermit,
    ) -> Result<Listener, ResumeError> {
        self.go_on_with(id, place).await
    }

    /// The model and its tools.
    pub fn agent(&self) -> &Loop {
        &self.agent
    }

    /// Where runs are kept.
    pub fn store(&self) -> &RunStore {
        &self.store
    }

    /// How many runs are being worked on.
    pub fn in_flight(&self) -> usize {
        self.live.lock().len()
    }

    /// Begins a run for a client, once there is room.
    pub async fn start(
        self: &Arc<Self>,
        state: RunState,
        client: &str,
        keeping: Keeping,
    ) -> Result<Listener, StartError> {
        let slot = self.slot(client).await?;
        let (runs, client) = (self.clone(), client.to_owned());
        // To its end, also when the client goes away meanwhile: what is kept is worked on here.
        wholly(async move {
            let held = runs.store.begins(&state.id);
            let kept = match keeping {
                Keeping::Durable => Some(runs.store.begin(&state, &client).await?),
                Keeping::Passing => None,
            };
            let live = Live::new(&state, Unheard::Cancel);
            Ok(runs.work(live, state, kept, (held, slot)))
        })
        .await
    }

    /// The run of this name, if this process works on it.
    pub fn attach(&self, id: &str) -> Option<Listener> {
        self.live.lock().get(id).map(Live::listen)
    }

    /// Whether this process works on the run of this name.
    pub fn is_live(&self, id: &str) -> bool {
        self.live.lock().contains_key(id)
    }

    /// Goes on with an unfinished run. It goes on also when nobody listens.
    pub async fn resume(self: &Arc<Self>, id: &str) -> Result<Listener, ResumeError> {
        if let Some(listener) = self.attach(id) {
            return Ok(listener);
        }
        let slot = self.slot(RESUMED).await?;
        self.give_up_children().await.map_err(StartError::Store)?;
        self.go_on_with(id, slot).await
    }

    async fn go_on_with(
        self: &Arc<Self>,
        id: &str,
        slot: impl Send + 'static,
    ) -> Result<Listener, ResumeError> {
        let (runs, id) = (self.clone(), id.to_owned());
        wholly(async move {
            // One after the other: two who take up the same run here would not see each other.
            let _alone = runs.taking_up.lock().await;
            if let Some(listener) = runs.attach(&id) {
                return Ok(listener);
            }
            let (state, kept) = runs.store.take_up(&id).await?;
            let live = Live::new(&state, Unheard::GoOn);
            Ok(runs.work(live, state, Some(kept), slot))
        })
        .await
    }

    /// Goes on with everything that was left unfinished, unless a person stopped it; says with how
    /// much. Those that can not be had stay where they are. While that lasts, another look finds
    /// nothing new: each run waits for its place once.
    pub async fn resume_all(self: &Arc<Self>) -> Result<usize, StoreError> {
        let Ok(alone) = self.resuming.clone().try_lock_owned() else {
            return Ok(0);
        };
        self.give_up_children().await?;
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.abandoned(after.as_deref()).await?;
            // Only their names: all of them at once could be larger than memory.
            let open = page.runs.into_iter().filter(|run| !run.set_aside);
            found.extend(open.map(|run| run.state.id));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let (runs, count) = (self.clone(), found.len());
        if count == 0 {
            return Ok(0);
        }
        tokio::spawn(async move {
            for id in found {
                if runs.resume_patiently(&id).await.is_break() {
                    break;
                }
            }
            drop(alone);
        });
        Ok(count)
    }

    /// Goes on with one as soon as there is room, however many clients wait for theirs.
    async fn resume_patiently(self: &Arc<Self>, id: &str) -> ControlFlow<()> {
        loop {
            match self.slot(RESUMED).await {
                Ok(slot) => {
                    // One that can not be had stays where it is.
                    let _ = self.go_on_with(id, slot).await;
                    return ControlFlow::Continue(());
                }
                Err(StartError::Leaving) => return ControlFlow::Break(()),
                Err(_) => tokio::time::sleep(Duration::from_millis(RESUME_AGAIN_MS)).await,
            }
        }
    }

    /// Cancels a run.
    pub async fn cancel(&self, id: &str) -> Result<Cancelled, RunStoreError> {
        let live = self.live.lock().get(id).cloned();
        if let Some(live) = live {
            live.stop(Stop::Cancel);
            return Ok(Cancelled::Asked);
        }
        let state = self.store.cancel(id).await?;
        // Whoever worked on it is gone, so nobody else ends what it began.
        if let Some(subagents) = self.subagents.get() {
            subagents.run_ended(&state).await;
        }
        Ok(Cancelled::Done(Box::new(state)))
    }

    /// Lets go of all runs, as they were last kept, and waits until nobody works on them.
    pub async fn leave(&self) {
        self.leaving.send_replace(true);
        for live in self.live.lock().values() {
            live.stop(Stop::Leave);
        }
        let mut count = self.count.subscribe();
        // The sender lives as long as this.
        let _ = count.wait_for(|count| *count == 0).await;
    }

    /// Room for one more, at once or after a while.
    async fn slot(&self, client: &str) -> Result<Place, StartError> {
        if *self.leaving.borrow() {
            return Err(StartError::Leaving);
        }
        let comes = match self.turns.ask(client).ok_or(StartError::Busy)? {
            Asked::Now(place) => return Ok(place),
            Asked::Later(comes) => comes,
        };
        let mut leaving = self.leaving.subscribe();
        tokio::select! {
            place = comes => place.map_err(|_| StartError::Leaving),
            _ = leaving.wait_for(|leaving| *leaving) => Err(StartError::Leaving),
        }
    }

    fn work(
        self: &Arc<Self>,
        live: Arc<Live>,
        state: RunState,
        kept: Option<Kept>,
        slot: impl Send + 'static,
    ) -> Listener {
        let listener = live.listen();
        self.live.lock().insert(live.id.clone(), live.clone());
        self.count.send_modify(|count| *count += 1);
        // Whoever ends all runs has gone through them already.
        if *self.leaving.borrow() {
            live.stop(Stop::Leave);
        }
        let runs = self.clone();
        let here = Here { runs, live };
        tokio::spawn(async move {
            let session = state.session.clone();
            let outcome = here.go_on(state, kept.as_ref()).await;
            match (here.runs.subagents.get(), &outcome) {
                (Some(subagents), Outcome::Ended(state)) => subagents.parent_ended(state).await,
                (Some(subagents), Outcome::Lost(_)) => subagents.parent_lost(&session).await,
                _ => {}
            }
            here.live.end(outcome);
            drop(here);
            drop(slot);
        });
        listener
    }
}

/// Does something to its end, also when the one who wants it is gone meanwhile.
pub(crate) async fn wholly<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match tokio::spawn(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // Only a runtime that ends cancels it, and that drops whoever waits here as well.
            Err(_) => std::future::pending().await,
        },
    }
}

/// A run that is worked on here, until this is dropped.
struct Here {
    runs: Arc<Runs>,
    live: Arc<Live>,
}

impl Here {
    async fn go_on(&self, state: RunState, kept: Option<&Kept>) -> Outcome {
        let mut stop = self.live.stop.subscribe();
        let begun = state.clone();
        let companion = Companion { here: self, kept };
        let stopped = async {
            let found = stop.wait_for(Option::is_some).await;
            found.ok().and_then(|stop| *stop).unwrap_or(Stop::Leave)
        };
        let why = tokio::select! {
            ended = self.runs.agent.go_on(state, &companion) => return match ended {
                Ok(state) => Outcome::Ended(Box::new(state)),
                Err(error) => Outcome::Lost(error.to_string()),
            },
            why = stopped => why,
        };
        match why {
            Stop::Leave => Outcome::Left,
            Stop::Cancel => {
                let mut state = match kept {
                    Some(kept) => kept.last().await,
                    None => begun,
                };
                state.cancel();
                // Once more, for a store that was away for a moment. A run that is not kept as
                // cancelled would be taken up again.
                if companion.keep(&state).await.is_err()
                    && let Err(error) = companion.keep(&state).await
                {
                    return Outcome::Lost(error.to_string());
                }
                Outcome::Ended(Box::new(state))
            }
        }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // Nobody may wait for what a panic has ended.
        if !self.live.is_over() {
            self.live.end(Outcome::Lost("internal error".to_owned()));
        }
        // Not another's of the same name.
        let mut lives = self.runs.live.lock();
        if lives
            .get(&self.live.id)
            .is_some_and(|live| Arc::ptr_eq(live, &self.live))
        {
            lives.remove(&self.live.id);
        }
        drop(lives);
        self.runs.count.send_modify(|count| *count -= 1);
    }
}

/// Keeps a run, and tells its listeners.
struct Companion<'a> {
    here: &'a Here,
    kept: Option<&'a Kept>,
}

#[async_trait]
impl Checkpoint for Companion<'_> {
    async fn keep(&self, state: &RunState) -> Result<(), CheckpointError> {
        match self.kept {
            Some(kept) => kept.write(&self.here.runs.store, state).await,
            None => Ok(()),
        }
    }

    fn told(&self, state: &RunState, what: Happened<'_>) {
        self.here.live.tell(Event::of(state, what));
    }

    async fn may_ask(&self, state: &RunState) -> Result<(), Ending> {
        match (&state.parent, self.here.runs.subagents.get()) {
            (Some(_), Some(subagents)) => subagents.may_ask(state).await,
            _ => Ok(()),
        }
    }

    async fn recalled(&self, session: &str, parent: Option<&str>) {
        match (parent, self.here.runs.subagents.get()) {
            (Some(_), Some(subagents)) => subagents.recalled(session).await,
            _ => std::future::pending().await,
        }
    }
}
