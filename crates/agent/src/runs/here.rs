//! Works on one run, until it ends, is stopped or can not be kept.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::Entropy;
use holdfast_reliability::observe::Event as Observed;
use holdfast_reliability::observe::runs::RunEvent;
use holdfast_reliability::store::StoreError;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::desk::{Begins, Runs, StartError};
use super::hold::Hold;
use super::kept::{Kept, Unkept};
use super::live::{Listener, Live, Lost, Outcome, Stop};
use super::patience::Patience;
use super::weight::Weight;
use super::{RESUME_AGAIN_MS, RUN_OPEN_KEPT_MS, RUNS_UNBURIED_MAX};
use crate::run::{
    Checkpoint, CheckpointError, Ending, Happened, Phase, RunErrorCode, RunState, size,
};

/// Why a run ends that is larger than others while all hold too much.
const TOO_HEAVY: &str =
    "the runs of this server hold as much as they may, and this one has grown beyond its share";

/// Why a run of which nobody knows whether it has begun does not go on.
const IN_DOUBT: &str = "the state does not answer, so nobody knows whether it has begun; it is \
                        cancelled as soon as the state is back";
/// Why one does not go on that began when nobody waited for it any more.
const BEGUN_TOO_LATE: &str = "the state took too long to begin it; it is cancelled";

impl Runs {
    /// Keeps a run that begins. When the state does not answer nobody knows whether it has begun;
    /// then it is seen to that it ends before it does anything.
    pub(super) async fn keep_first(
        self: &Arc<Self>,
        begins: &Begins,
        hold: Arc<Hold>,
    ) -> Result<Kept, StartError> {
        if self.unburied.lock().len() >= RUNS_UNBURIED_MAX {
            let why = "the state has not answered for a while".to_owned();
            return Err(StoreError::Unavailable(why).into());
        }
        self.store.announce().await?;
        let (state, client) = (&begins.state, begins.client.as_str());
        let mut patience = None;
        let mut why = IN_DOUBT;
        loop {
            match self.store.begin(&hold, state, client).await {
                Ok(kept) if begins.by.is_none_or(|by| Instant::now() < by) => return Ok(kept),
                // Refused for certain, if nothing was sent before.
                Err(error @ StoreError::Full(_)) if patience.is_none() => return Err(error.into()),
                Ok(_) => {
                    why = BEGUN_TOO_LATE;
                    break;
                }
                Err(_) => {}
            }
            let patience = patience.get_or_insert_with(|| Patience::new(self.entropy()));
            if !patience.is_left().await {
                break;
            }
        }
        if let Some(watch) = self.agent.watch() {
            watch.run_lost(&state.id, "lost", why);
        }
        let mut ended = state.outline();
        ended.cancel();
        self.bury(hold, ended, client.to_owned());
        Err(StartError::InDoubt(state.id.clone()))
    }

    fn tell(&self, what: RunEvent<'_>) {
        self.agent.stack().runtime().tell(&Observed::Run(what));
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        self.agent.stack().runtime().entropy.clone()
    }

    /// Ends a run in the state as soon as the state answers. Until then it is in hand, so nobody
    /// here goes on with it.
    fn bury(self: &Arc<Self>, hold: Arc<Hold>, mut ended: RunState, client: String) {
        ended.empty();
        self.unburied.lock().insert(ended.id.clone());
        let runs = self.clone();
        tokio::spawn(async move {
            // For as long as what may be kept of it could be gone on with.
            for _ in 0..RUN_OPEN_KEPT_MS / RESUME_AGAIN_MS {
                if runs.store.entomb(&ended, &client).await.is_ok() {
                    runs.ended_by_hand(&ended).await;
                    break;
                }
                tokio::time::sleep(Duration::from_millis(RESUME_AGAIN_MS)).await;
            }
            drop(hold);
            runs.unburied.lock().remove(&ended.id);
        });
    }

    /// Nobody is asked any more for a run that has ended.
    pub(super) async fn withdraw(&self, run: &str) {
        let stack = self.agent.stack();
        let Some(approvals) = stack.approvals() else {
            return;
        };
        // One that stays open runs nothing: its run does not come back for it.
        if let Err(error) = approvals.withdraw_run(run).await {
            let what = "approval";
            let error = &error;
            stack
                .runtime()
                .tell(&Observed::StoreTrouble { what, error });
        }
    }
}

/// Whether a run's end is written down already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Logged {
    Yes,
    No,
}

/// A run that is worked on here, until this is dropped.
pub(super) struct Here {
    runs: Arc<Runs>,
    pub(super) live: Arc<Live>,
    weight: Weight,
}

impl Here {
    /// From now on the run can be heard and stopped.
    pub(super) fn enter(runs: &Arc<Runs>, live: Arc<Live>, weight: Weight) -> Self {
        runs.live.lock().insert(live.id.clone(), live.clone());
        runs.count.send_modify(|count| *count += 1);
        runs.tell(RunEvent::Begun);
        // Whoever ends all runs has gone through them already.
        if *runs.leaving.borrow() {
            live.stop(Stop::Leave);
        }
        let runs = runs.clone();
        Self { runs, live, weight }
    }

    /// Works on it, in its place.
    pub(super) fn work(
        self,
        state: RunState,
        kept: Option<Kept>,
        place: impl Send + 'static,
    ) -> Listener {
        let listener = self.live.listen();
        tokio::spawn(async move {
            let session = state.session.clone();
            let (outcome, logged) = self.go_on(state, kept.as_ref()).await;
            match (self.runs.subagents.get(), &outcome) {
                (Some(subagents), Outcome::Ended(state)) => subagents.parent_ended(state).await,
                (Some(subagents), Outcome::Lost(_)) => subagents.parent_lost(&session).await,
                _ => {}
            }
            self.end(outcome, logged, kept.as_ref()).await;
            // In nobody's hand before it is gone from here: whoever looks for it finds either.
            drop(kept);
            drop(self);
            drop(place);
        });
        listener
    }

    async fn end(&self, outcome: Outcome, logged: Logged, kept: Option<&Kept>) {
        let (Outcome::Lost(Lost::Away(_)), Some(kept)) = (&outcome, kept) else {
            self.log_end(&outcome, logged);
            self.live.end(outcome);
            return;
        };
        // Whoever cancelled it after it had stopped was told that it is being cancelled.
        let outcome = if let Some(outcome) = self.live.end_unless_cancelled(outcome) {
            outcome
        } else {
            let last = kept.last(&self.runs.store).await;
            self.live.end(self.cancelled(last, Some(kept)).await)
        };
        self.log_end(&outcome, logged);
    }

    /// Steps write down how they ended a run; what ended it otherwise is written down here.
    fn log_end(&self, outcome: &Outcome, logged: Logged) {
        let (Some(watch), Logged::No) = (self.runs.agent.watch(), logged) else {
            return;
        };
        match outcome {
            Outcome::Ended(state) => watch.run_ended(state),
            Outcome::Lost(why) => {
                watch.run_lost(&self.live.id, outcome.word(), &why.to_string());
            }
            // It has not ended.
            Outcome::Left => {}
        }
    }

    async fn go_on(&self, state: RunState, kept: Option<&Kept>) -> (Outcome, Logged) {
        let mut stop = self.live.stop.subscribe();
        let begun = kept.is_none().then(|| state.outline());
        let companion = Companion {
            here: self,
            kept,
            gave_up: Mutex::default(),
        };
        let stopped = async {
            let found = stop.wait_for(Option::is_some).await;
            found.ok().and_then(|stop| *stop).unwrap_or(Stop::Leave)
        };
        let why = tokio::select! {
            // First: whoever was stopped before the first step does not take it.
            biased;
            why = stopped => why,
            ended = self.runs.agent.go_on(state, &companion) => {
                let logged = if ended.is_ok() { Logged::Yes } else { Logged::No };
                let outcome = companion.outcome(ended);
                self.asks_no_more(&outcome).await;
                return (outcome, logged);
            }
        };
        if why == Stop::Leave {
            return (Outcome::Left, Logged::No);
        }
        let last = match kept {
            Some(kept) => Some(kept.last(&self.runs.store).await),
            None => begun,
        };
        let outcome = match last {
            Some(last) => self.cancelled(last, kept).await,
            None => Outcome::Lost(Lost::Fault),
        };
        (outcome, Logged::No)
    }

    /// A run whose time was up may have asked people for a call that nobody wants any more.
    async fn asks_no_more(&self, outcome: &Outcome) {
        let Outcome::Ended(state) = outcome else {
            return;
        };
        let is_cut_off = match state.ending() {
            Some(Ending::Cancelled) => true,
            Some(Ending::Failed(error)) => error.code == RunErrorCode::TimeoutExceeded,
            _ => false,
        };
        if is_cut_off {
            self.runs.withdraw(&state.id).await;
        }
    }

    /// Ends a run that somebody has cancelled. One that is not kept as cancelled would be taken up
    /// again, so it is not let go of before.
    async fn cancelled(&self, mut state: RunState, kept: Option<&Kept>) -> Outcome {
        if matches!(state.phase, Phase::Act(_)) {
            self.runs.withdraw(&state.id).await;
        }
        state.cancel();
        let Some(kept) = kept else {
            return Outcome::Ended(Box::new(state));
        };
        match self.write(kept, &state).await {
            Ok(()) => Outcome::Ended(Box::new(state)),
            Err(Unkept::Away(error)) => {
                let client = kept.client().to_owned();
                self.runs.bury(kept.hold(), state, client);
                Outcome::Lost(Lost::Cancelled(error.to_string()))
            }
            Err(other) => Outcome::Lost(Lost::Taken(other.to_string())),
        }
    }

    /// Keeps a run, and is patient with a state that does not answer.
    async fn write(&self, kept: &Kept, state: &RunState) -> Result<(), Unkept> {
        let mut patience = None;
        loop {
            let away = match kept.write(&self.runs.store, state).await {
                Err(Unkept::Away(error)) => error,
                done => return done,
            };
            let patience = patience.get_or_insert_with(|| Patience::new(self.runs.entropy()));
            if !patience.is_left().await {
                return Err(Unkept::Away(away));
            }
        }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        // Nobody may wait for what a panic has ended.
        if !self.live.is_over() {
            self.live.end(Outcome::Lost(Lost::Fault));
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
        if let Some(subagents) = self.runs.subagents.get() {
            subagents.forget(&self.live.session);
        }
        let outcome = self.live.outcome_word();
        self.runs.tell(RunEvent::Ended { outcome });
        self.runs.count.send_modify(|count| *count -= 1);
    }
}

/// Keeps a run, and tells its listeners.
struct Companion<'a> {
    here: &'a Here,
    kept: Option<&'a Kept>,
    /// What became of the run when it could not be kept.
    gave_up: Mutex<Option<Outcome>>,
}

impl Companion<'_> {
    fn outcome(&self, ended: Result<RunState, CheckpointError>) -> Outcome {
        match ended {
            Ok(state) => Outcome::Ended(Box::new(state)),
            Err(error) => {
                let gave_up = self.gave_up.lock().take();
                gave_up.unwrap_or(Outcome::Lost(Lost::Taken(error.0)))
            }
        }
    }

    /// What can never be kept ends here, and its end is kept instead.
    async fn outgrown(&self, state: &RunState, why: &str) -> Outcome {
        let mut ended = state.outline();
        ended.fail(RunErrorCode::ToolExecutionFailed, why);
        let Some(kept) = self.kept else {
            return Outcome::Ended(Box::new(ended));
        };
        match self.here.write(kept, &ended).await {
            Ok(()) => Outcome::Ended(Box::new(ended)),
            Err(unkept) => lost(&unkept),
        }
    }

    /// Whether a run that has not ended holds more than there is room for.
    fn is_too_heavy(&self, state: &RunState) -> bool {
        let bytes = size::bytes(state).saturating_add(self.here.live.bytes());
        self.here.weight.is_too_much(bytes) && state.ending().is_none()
    }

    fn give_up(&self, outcome: Outcome, why: String) -> CheckpointError {
        *self.gave_up.lock() = Some(outcome);
        CheckpointError(why)
    }
}

fn lost(unkept: &Unkept) -> Outcome {
    let why = unkept.to_string();
    Outcome::Lost(match unkept {
        Unkept::Away(_) => Lost::Away(why),
        Unkept::Taken(_) | Unkept::TooLarge(_) => Lost::Taken(why),
    })
}

#[async_trait]
impl Checkpoint for Companion<'_> {
    async fn keep(&self, state: &RunState) -> Result<(), CheckpointError> {
        if let Some(subagents) = self.here.runs.subagents.get() {
            subagents.note(state);
        }
        if self.is_too_heavy(state) {
            let outcome = self.outgrown(state, TOO_HEAVY).await;
            return Err(self.give_up(outcome, TOO_HEAVY.to_owned()));
        }
        let Some(kept) = self.kept else {
            return Ok(());
        };
        let Err(unkept) = self.here.write(kept, state).await else {
            return Ok(());
        };
        let why = unkept.to_string();
        let outcome = match &unkept {
            Unkept::TooLarge(_) => self.outgrown(state, &why).await,
            Unkept::Away(_) | Unkept::Taken(_) => lost(&unkept),
        };
        Err(self.give_up(outcome, why))
    }

    fn told(&self, state: &RunState, what: Happened<'_>) {
        self.here.live.tell(state, what);
    }

    async fn may_ask(&self, state: &RunState) -> Result<(), Ending> {
        match (&state.parent, self.here.runs.subagents.get()) {
            (Some(_), Some(subagents)) => subagents.may_ask(state).await,
            (None, Some(subagents)) => subagents.parent_may_ask(state).await,
            (_, None) => Ok(()),
        }
    }

    async fn recalled(&self, session: &str, parent: Option<&str>) {
        match (parent, self.here.runs.subagents.get()) {
            (Some(_), Some(subagents)) => subagents.recalled(session).await,
            _ => std::future::pending().await,
        }
    }
}
