//! Starts, resumes and cancels runs, within bounds.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_reliability::store::StoreError;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, watch};
use tokio::time::Instant;

use super::here::Here;
use super::hold::Hold;
use super::keys::{Claimed, KeyClaim, RunKey};
use super::live::{Listener, Live, Lost, Outcome, Stop, Unheard};
use super::store::{KeptRun, RunStore, RunStoreError};
use super::turns::{Asked, Place, Turns};
use super::weight::{Scale, Weight};
use super::{
    RESUME_AGAIN_MS, RUN_KEY_CLAIM_MS, RUN_STORE_WAIT_MS, RUNS_BYTES_MAX, RUNS_MAX,
    RUNS_WAITING_MAX,
};
use crate::model::Model;
use crate::run::{Loop, RunState, size};
use crate::settings::RunSettings;
use crate::subagents::Subagents;

/// The line of runs that are gone on with.
const RESUMED: &str = "resumed";

/// How many runs there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunsLimits {
    /// At once.
    pub runs_max: usize,
    /// Waiting for one of them to end.
    pub waiting_max: usize,
    /// Bytes that all of them hold together.
    pub bytes_max: usize,
}

impl Default for RunsLimits {
    fn default() -> Self {
        Self {
            runs_max: RUNS_MAX,
            waiting_max: RUNS_WAITING_MAX,
            bytes_max: RUNS_BYTES_MAX,
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
    /// Those at work hold as much as they may.
    #[error("the runs at work hold as much as they may")]
    Heavy,
    /// The process ends.
    #[error("the server is ending")]
    Leaving,
    /// The state is away, and nothing was begun.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The state does not answer. If this run has begun, it is cancelled as soon as it does.
    #[error(
        "the state does not answer, so nobody knows yet whether {0} has begun; it is cancelled"
    )]
    InDoubt(String),
}

/// What became of a run that a client gave a key.
pub enum Started {
    /// It has begun.
    Begun(Listener),
    /// An earlier request has the key.
    Known(KeyClaim),
}

/// A run that is about to begin.
pub(super) struct Begins {
    pub(super) state: RunState,
    pub(super) client: String,
    pub(super) keeping: Keeping,
    pub(super) unheard: Unheard,
    /// Not later than that.
    pub(super) by: Option<Instant>,
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
    pub(super) agent: Loop,
    pub(super) store: RunStore,
    turns: Arc<Turns>,
    scale: Arc<Scale>,
    pub(super) live: Mutex<HashMap<String, Arc<Live>>>,
    /// Held by whoever takes up or cancels a run that nobody here works on.
    taking_up: AsyncMutex<()>,
    /// Held by whoever goes on with all that was left unfinished.
    resuming: Arc<AsyncMutex<()>>,
    /// Those that are cancelled, and whose end could not be kept yet.
    pub(super) unburied: Mutex<HashSet<String>>,
    /// How many are being worked on, for whoever waits for none.
    pub(super) count: watch::Sender<usize>,
    pub(super) leaving: watch::Sender<bool>,
    pub(super) subagents: OnceLock<Arc<Subagents>>,
}

impl Runs {
    /// No runs yet.
    pub fn new(agent: Loop, store: RunStore, limits: RunsLimits) -> Arc<Self> {
        Arc::new(Self {
            agent,
            store,
            turns: Turns::new(limits),
            scale: Scale::new(limits.bytes_max),
            live: Mutex::default(),
            taking_up: AsyncMutex::default(),
            resuming: Arc::default(),
            unburied: Mutex::default(),
            count: watch::Sender::new(0),
            leaving: watch::Sender::new(false),
            subagents: OnceLock::new(),
        })
    }

    pub(super) fn in_hand(&self, id: &str) -> Result<Arc<Hold>, StartError> {
        let hold = self.store.holds.take(id).map(Arc::new);
        hold.ok_or_else(|| StoreError::Full(format!("a run named {id} is there already")).into())
    }

    /// Room for what a run holds.
    fn weigh(&self, state: &RunState) -> Result<Weight, StartError> {
        self.scale.add(size::bytes(state)).ok_or(StartError::Heavy)
    }

    /// The bytes that all runs hold.
    pub fn bytes(&self) -> usize {
        self.scale.bytes()
    }

    /// Begins a run that is in hand. From here on it can be heard and stopped.
    pub(super) async fn begin(
        self: &Arc<Self>,
        begins: Begins,
        hold: Arc<Hold>,
        place: impl Send + 'static,
    ) -> Result<Listener, StartError> {
        let weight = self.weigh(&begins.state)?;
        let live = Live::new(
            &begins.state,
            &begins.client,
            begins.keeping,
            begins.unheard,
        );
        let here = Here::enter(self, live, weight);
        if begins.keeping == Keeping::Passing {
            return Ok(here.work(begins.state, None, (hold, place)));
        }
        match self.keep_first(&begins, hold).await {
            Ok(kept) => Ok(here.work(begins.state, Some(kept), place)),
            Err(error) => {
                here.live.end(Outcome::Lost(Lost::NotBegun));
                Err(error)
            }
        }
    }

    /// Runs that begin from now on ask this model, and those of subagents have these settings.
    pub fn exchange(&self, model: Arc<dyn Model>, subagents: RunSettings) {
        self.agent.exchange_model(model);
        if let Some(desk) = self.subagents.get() {
            desk.exchange_settings(subagents);
        }
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
        let place = self.slot(client).await?;
        let (runs, client) = (self.clone(), client.to_owned());
        // To its end, also when the client goes away meanwhile: what is kept is worked on here.
        wholly(async move {
            let hold = runs.in_hand(&state.id)?;
            let begins = Begins {
                state,
                client,
                keeping,
                unheard: Unheard::Cancel,
                by: None,
            };
            runs.begin(begins, hold, place).await
        })
        .await
    }

    /// The same for a client that has given it a key, unless an earlier request has that. The run
    /// is kept. The key is claimed when the run has its place, so that whoever gets none, or leaves
    /// the line, has claimed nothing.
    pub async fn start_keyed(
        self: &Arc<Self>,
        state: RunState,
        client: &str,
        key: RunKey,
    ) -> Result<Started, StartError> {
        // Whoever only asks again needs no place.
        if let Some(known) = self.store.key_of(&key).await? {
            return Ok(Started::Known(known));
        }
        let place = self.slot(client).await?;
        let (runs, client) = (self.clone(), client.to_owned());
        wholly(async move {
            let hold = runs.in_hand(&state.id)?;
            let by = Instant::now() + Duration::from_millis(RUN_KEY_CLAIM_MS / 2);
            let claim = match runs.store.claim_key(&key, &state.id).await? {
                Claimed::Ours(claim) => claim,
                Claimed::Theirs(known) => return Ok(Started::Known(known)),
            };
            let begins = Begins {
                state,
                client,
                keeping: Keeping::Durable,
                unheard: Unheard::Cancel,
                by: Some(by),
            };
            let begun = runs.begin(begins, hold, place).await;
            // One that is in doubt is cancelled, and gives its key back then.
            if matches!(&begun, Err(error) if !matches!(error, StartError::InDoubt(_))) {
                runs.store.release_key(claim).await;
            }
            begun.map(Started::Begun)
        })
        .await
    }

    /// The run of this name, if this process works on it.
    pub fn attach(&self, id: &str) -> Option<Listener> {
        self.live.lock().get(id).map(Live::listen)
    }

    /// The run of this name as far as it is known, if this process works on it and it is kept
    /// nowhere.
    pub fn passing(&self, id: &str) -> Option<KeptRun> {
        let live = self.live.lock().get(id).cloned();
        let (client, state) = live?.passing()?;
        Some(self.store.unkept(client, state))
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

    pub(super) async fn go_on_with(
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
            // How large it is is known when it is in hand; one after the other, so that each sees
            // what the one before it holds.
            let weight = runs.scale.add(1).ok_or(StartError::Heavy)?;
            let (state, kept) = runs.store.take_up(&id).await?;
            weight.is_too_much(size::bytes(&state));
            let live = Live::new(&state, kept.client(), Keeping::Durable, Unheard::GoOn);
            let here = Here::enter(&runs, live, weight);
            Ok(here.work(state, Some(kept), slot))
        })
        .await
    }

    /// Goes on with everything that was left unfinished, unless a person stopped it; says with how
    /// much. Those that can not be had stay where they are. While that lasts, another look finds
    /// nothing new: each run waits for its place once.
    pub async fn resume_all(self: &Arc<Self>) -> Result<usize, StoreError> {
        self.resume_each(|_| {}).await
    }

    /// The same, and somebody sees each of them before it goes on.
    pub async fn resume_each(
        self: &Arc<Self>,
        mut sees: impl FnMut(&RunState),
    ) -> Result<usize, StoreError> {
        let Ok(alone) = self.resuming.clone().try_lock_owned() else {
            return Ok(0);
        };
        self.give_up_children().await?;
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let page = self.store.abandoned(after.as_deref()).await?;
            // Only their names: all of them at once could be larger than memory.
            let open = page.runs.into_iter().filter(KeptRun::goes_on_by_itself);
            found.extend(open.map(|run| {
                sees(&run.state);
                run.state.id
            }));
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
                Ok(slot) => match self.go_on_with(id, slot).await {
                    Err(ResumeError::Start(StartError::Heavy)) => {}
                    // One that can not be had stays where it is.
                    Ok(_) | Err(_) => return ControlFlow::Continue(()),
                },
                Err(StartError::Leaving) => return ControlFlow::Break(()),
                Err(_) => {}
            }
            tokio::time::sleep(Duration::from_millis(RESUME_AGAIN_MS)).await;
        }
    }

    /// Cancels a run.
    pub async fn cancel(&self, id: &str) -> Result<Cancelled, RunStoreError> {
        loop {
            let alone = self.taking_up.lock().await;
            let live = self.live.lock().get(id).cloned();
            if live.is_some_and(|live| live.stop(Stop::Cancel)) {
                return Ok(Cancelled::Asked);
            }
            if self.unburied.lock().contains(id) {
                return Ok(Cancelled::Asked);
            }
            if !self.store.holds.has(id) {
                let state = self.store.cancel(id).await?;
                drop(alone);
                self.log_end(&state);
                self.ended_by_hand(&state).await;
                return Ok(Cancelled::Done(Box::new(state)));
            }
            drop(alone);
            // Somebody here is about to let go of it.
            let wait = Duration::from_millis(RUN_STORE_WAIT_MS);
            if tokio::time::timeout(wait, self.store.holds.until_free(id))
                .await
                .is_err()
            {
                return Err(RunStoreError::Busy(id.to_owned()));
            }
        }
    }

    pub(super) fn log_end(&self, state: &RunState) {
        if let Some(watch) = self.agent.watch() {
            watch.run_ended(state);
        }
    }

    /// Whoever worked on a run is gone, so nobody else ends what it began.
    pub(super) async fn ended_by_hand(&self, state: &RunState) {
        self.withdraw(&state.id).await;
        if let Some(subagents) = self.subagents.get() {
            subagents.run_ended(state).await;
        }
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
