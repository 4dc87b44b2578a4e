//! Begins, watches and ends subagents.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use holdfast_contract::{
    Cause, SessionContext, SessionKind, ToolCallEnvelope, ToolContext, ToolError,
};
use holdfast_reliability::canonical::Digest;
use holdfast_reliability::exchange::Exchanged;
use holdfast_toolbox::session::model::CANCEL_GRACE_MS;
use holdfast_toolbox::session::{
    Named, Session, SessionResult, SessionStatus, SessionTree, Spawn, Spent, TreeError,
};
use holdfast_toolbox::stack::Sessions;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::account::{Account, Left, used};
use super::again::is_suspended;
use super::result::result_of;
use super::tools::SPAWN;
use super::{SUBAGENT_LOOK_MS, SUBAGENT_PREFIX, SUBAGENTS_MAX};
use crate::chat::{Message, Role};
use crate::run::{Ending, RunError, RunErrorCode, RunState};
use crate::runs::{Listener, Outcome, Runs, wholly};
use crate::settings::RunSettings;

/// A subagent to be made.
pub(super) struct Wish {
    pub(super) task: String,
    pub(super) kind: SessionKind,
    pub(super) label: Option<String>,
    pub(super) timeout_ms: Option<u64>,
    pub(super) token_budget: Option<u64>,
}

/// A subagent that has begun.
pub(super) struct Begun {
    pub(super) session: Session,
    pub(super) run: String,
}

/// One that runs here: its run, its parent, and on whose behalf.
pub(super) struct Child {
    pub(super) run: String,
    pub(super) parent: String,
    pub(super) client: String,
    pub(super) actor: String,
}

/// The subagents of one process.
pub struct Subagents {
    pub(super) tree: Arc<SessionTree>,
    settings: Exchanged<RunSettings>,
    places: Arc<Semaphore>,
    pub(super) here: Mutex<HashMap<String, Child>>,
    /// Runs at work here that may use only so much, by their sessions.
    pub(super) accounts: Mutex<HashMap<String, Account>>,
    /// How many have ended, for whoever waits for one.
    ended: watch::Sender<u64>,
    runs: OnceLock<Weak<Runs>>,
}

impl Subagents {
    /// Subagents in this tree, whose runs have these settings.
    pub fn new(tree: Arc<SessionTree>, settings: RunSettings) -> Arc<Self> {
        Arc::new(Self {
            tree,
            settings: Exchanged::new(settings),
            places: Arc::new(Semaphore::new(SUBAGENTS_MAX)),
            here: Mutex::default(),
            accounts: Mutex::default(),
            ended: watch::Sender::new(0),
            runs: OnceLock::new(),
        })
    }

    /// Runs that begin from now on have these settings.
    pub fn exchange_settings(&self, settings: RunSettings) {
        self.settings.exchange(settings);
    }

    /// The tree that they live in.
    pub fn tree(&self) -> &Arc<SessionTree> {
        &self.tree
    }

    /// The contexts for a stack: the tree's for the sessions that live in it, none for subagents
    /// that do not, and for all others what `otherwise` says.
    pub fn sessions(&self, otherwise: Sessions) -> Sessions {
        let (tree, in_tree) = (self.tree.clone(), self.tree.sessions());
        Arc::new(move |envelope: &ToolCallEnvelope| -> Arc<SessionContext> {
            let key = &envelope.target.session_key;
            if key.starts_with(SUBAGENT_PREFIX) || tree.context(key).is_some() {
                in_tree(envelope)
            } else {
                otherwise(envelope)
            }
        })
    }

    pub(crate) fn attach(&self, runs: &Arc<Runs>) {
        // Who was first stays.
        let _ = self.runs.set(Arc::downgrade(runs));
    }

    pub(super) fn runs(&self) -> Result<Arc<Runs>, ToolError> {
        let runs = self.runs.get().and_then(Weak::upgrade);
        runs.ok_or_else(|| ToolError::failed("there is no model here that a subagent could ask"))
    }

    /// The key of the session that a call makes: the same for the same call.
    pub(super) fn key_of(ctx: &ToolContext) -> String {
        let call = ctx.call.idempotency_key.as_ref();
        let identity = call.unwrap_or(&ctx.call.request_id);
        let digest = Digest::of(identity.as_bytes()).to_string();
        let short: String = digest
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .take(32)
            .collect();
        format!("{SUBAGENT_PREFIX}{short}")
    }

    /// Begins one.
    pub(super) async fn spawn(
        self: &Arc<Self>,
        wish: Wish,
        ctx: &ToolContext,
    ) -> Result<Begun, ToolError> {
        let runs = self.runs()?;
        let place = self.place()?;
        let parent = ctx.session.session_id.clone();
        self.enter_tree(ctx).await?;
        let (client, actor) = self.behalf_of(&runs, &parent).await;
        let left = self.left(&parent).await.map_err(|error| refused(&error))?;
        if let Some(why) = left.used_up() {
            return Err(ToolError::failed(why));
        }
        let spawn = Spawn {
            kind: wish.kind,
            context_summary: wish.task.clone(),
            token_budget: wish
                .token_budget
                .map(|wished| wished.min(left.tokens.unwrap_or(u64::MAX))),
        };
        let named = Named {
            id: Self::key_of(ctx),
            label: wish.label,
            ttl_ms_max: wish.timeout_ms,
        };
        let made = self.tree.spawn_named(&parent, spawn, named).await;
        let session = made.map_err(|error| refused(&error))?;
        let mut state = self.run_of(&runs, &session, left, wish.task);
        // What people have approved or refused for somebody holds for all that calls on their behalf.
        state.actor = actor;
        let desk = self.clone();
        // A run that begins is watched over, also when its parent is gone meanwhile.
        wholly(async move { desk.begin(&runs, session, state, client, place).await }).await
    }

    /// Room for one more.
    pub(super) fn place(&self) -> Result<OwnedSemaphorePermit, ToolError> {
        self.places.clone().try_acquire_owned().map_err(|_| {
            let message = format!("{SUBAGENTS_MAX} subagents are at work already");
            let cause = Cause::Throttled {
                retry_after_ms: None,
            };
            ToolError::ExecutionError { message, cause }
        })
    }

    /// Whoever has subagents is in the tree.
    pub(super) async fn enter_tree(&self, ctx: &ToolContext) -> Result<(), ToolError> {
        let lives = self.tree.lives(&ctx.session.session_id).await;
        if !lives.map_err(|error| refused(&error))? {
            let opened = self.tree.open_main_with((*ctx.session).clone()).await;
            opened.map_err(|error| refused(&error))?;
        }
        Ok(())
    }

    async fn begin(
        self: &Arc<Self>,
        runs: &Arc<Runs>,
        session: Session,
        state: RunState,
        client: String,
        place: OwnedSemaphorePermit,
    ) -> Result<Begun, ToolError> {
        let run = state.id.clone();
        let child = Child {
            run: run.clone(),
            parent: session.parent.clone().unwrap_or_default(),
            client: client.clone(),
            actor: state.actor.clone(),
        };
        self.here.lock().insert(session.id.clone(), child);
        match runs.start_child(state, &client, place).await {
            Ok(listener) => {
                self.watch(&session.id, listener);
                Ok(Begun { session, run })
            }
            Err(error) => {
                self.here.lock().remove(&session.id);
                let why = SessionResult::new(SessionStatus::Failed, error.to_string());
                // What can not be written down is given up by the next process.
                let _ = self.tree.finish(&session.id, why).await;
                Err(ToolError::failed(error.to_string()))
            }
        }
    }

    fn run_of(&self, runs: &Runs, session: &Session, left: Left, task: String) -> RunState {
        let runtime = runs.agent().stack().runtime();
        let id = holdfast_contract::clock::new_request_id(&*runtime.clock, &*runtime.entropy);
        let now_ms = runtime.clock.now_ms();
        let mut settings = self.settings.now().as_ref().clone();
        left.bounds(&mut settings);
        if let Some(end_ms) = session.expires_at_ms {
            let left_ms = end_ms.saturating_sub(now_ms);
            settings.run_timeout_ms = settings.run_timeout_ms.min(left_ms);
        }
        let messages = vec![Message::text(Role::User, task)];
        let mut state = RunState::new(format!("run-{id}"), "gpt-oss", messages, settings, now_ms);
        state.session.clone_from(&session.id);
        state.parent.clone_from(&session.parent);
        state
    }

    /// Who asked for the run at the root, and on whose behalf it calls.
    async fn behalf_of(&self, runs: &Runs, session: &str) -> (String, String) {
        if let Some(child) = self.here.lock().get(session) {
            return (child.client.clone(), child.actor.clone());
        }
        let of_run = match session.strip_prefix("run:") {
            Some(run) => runs.store().get(run).await.ok(),
            None => None,
        };
        of_run.map_or_else(
            || ("local".to_owned(), "local".to_owned()),
            |run| (run.client, run.state.actor),
        )
    }

    pub(super) fn watch(self: &Arc<Self>, id: &str, listener: Listener) {
        let (desk, id) = (self.clone(), id.to_owned());
        tokio::spawn(async move { desk.watch_over(&id, listener).await });
    }

    /// Waits for the end of a subagent's run, ends it when it is told to end and does not, and
    /// hands its result up.
    async fn watch_over(&self, id: &str, mut listener: Listener) {
        let outcome = tokio::select! {
            outcome = listener.outcome() => outcome,
            () = self.told_to_end(id) => {
                let grace = Duration::from_millis(CANCEL_GRACE_MS);
                if let Ok(outcome) = tokio::time::timeout(grace, listener.outcome()).await {
                    outcome
                } else {
                    if let Ok(runs) = self.runs() {
                        let _ = runs.cancel(listener.run()).await;
                    }
                    listener.outcome().await
                }
            }
        };
        if let Outcome::Ended(state) = &*outcome {
            // What the last answer took. A store that is away is met again below.
            let _ = self.tree.book(id, used(state)).await;
        }
        if let Some(result) = result_of(&outcome) {
            // A session that is over its budget, or its time, has its result already. What can not
            // be written down is given up by the next process.
            let _ = self.tree.finish(id, result).await;
        }
        self.here.lock().remove(id);
        self.ended.send_modify(|count| *count += 1);
    }

    /// Ready when a subagent is told to end, here or by another process.
    async fn told_to_end(&self, id: &str) {
        let elsewhere = async {
            loop {
                tokio::time::sleep(Duration::from_millis(SUBAGENT_LOOK_MS)).await;
                match self.look(id).await {
                    Ok(false) | Err(TreeError::Store(_)) => {}
                    Ok(true) | Err(_) => return,
                }
            }
        };
        tokio::select! {
            () = self.tree.cancelled(id) => {}
            () = elsewhere => {}
        }
    }

    /// Whether a subagent or its parent was told to end; what holds for the parent holds for it.
    async fn look(&self, id: &str) -> Result<bool, TreeError> {
        let is_ending = |it: &Session| it.end_by_ms.is_some() || it.state.has_ended();
        let session = self.tree.look(id).await?;
        if is_ending(&session) {
            return Ok(true);
        }
        let Some(parent) = &session.parent else {
            return Ok(false);
        };
        let is_over = is_ending(&self.tree.get(parent).await?);
        if is_over {
            self.tree.cancel(id).await?;
        }
        Ok(is_over)
    }

    /// One as it stands. Waits until it has ended or is suspended.
    pub(super) async fn settled(&self, id: &str) -> Result<Session, ToolError> {
        let mut ended = self.ended.subscribe();
        loop {
            ended.mark_unchanged();
            let is_here = self.here.lock().contains_key(id);
            if !is_here {
                break;
            }
            tokio::select! {
                _ = ended.changed() => {}
                () = self.tree.paused(id) => break,
            }
        }
        self.get(id).await
    }

    /// One as it stands.
    pub(super) async fn get(&self, id: &str) -> Result<Session, ToolError> {
        self.tree.get(id).await.map_err(|error| refused(&error))
    }

    /// Those of a session, and the runs of those that run here. Waits until one has ended or is
    /// suspended, at most so long, when any is at work. One that is suspended is not: it waits for
    /// its parent.
    pub(super) async fn list(
        &self,
        parent: &str,
        wait: Duration,
    ) -> Result<Vec<(Session, Option<String>)>, ToolError> {
        let mut ended = self.ended.subscribe();
        let children = self.children(parent).await?;
        let at_work: Vec<String> = children
            .iter()
            .filter(|(session, run)| run.is_some() && !is_suspended(session))
            .map(|(session, _)| session.id.clone())
            .collect();
        if wait.is_zero() || at_work.is_empty() {
            return Ok(children);
        }
        let stopped = at_work.iter().map(|id| self.tree.paused(id));
        let mut stopped: FuturesUnordered<_> = stopped.collect();
        tokio::select! {
            // Whoever ended meanwhile is found below.
            _ = ended.changed() => {}
            _ = stopped.next() => {}
            () = tokio::time::sleep(wait) => {}
        }
        self.children(parent).await
    }

    async fn children(&self, parent: &str) -> Result<Vec<(Session, Option<String>)>, ToolError> {
        let found = self.tree.children(parent).await;
        let found = found.map_err(|error| refused(&error))?;
        let here = self.here.lock();
        let with_run = |session: Session| {
            let run = here.get(&session.id).map(|child| child.run.clone());
            (session, run)
        };
        Ok(found.into_iter().map(with_run).collect())
    }

    /// Only a parent has a say.
    pub(super) async fn own(&self, parent: &str, id: &str) -> Result<Session, ToolError> {
        let session = self.get(id).await?;
        if session.parent.as_deref() == Some(parent) {
            return Ok(session);
        }
        Err(refused(&TreeError::NotFound(id.to_owned())))
    }

    /// Tells one to end.
    pub(super) async fn kill(&self, parent: &str, id: &str) -> Result<Session, ToolError> {
        let session = self.own(parent, id).await?;
        if session.state.has_ended() {
            return Ok(session);
        }
        match self.tree.cancel(id).await {
            Ok(session) => Ok(session),
            // It ended by itself meanwhile.
            Err(TreeError::Refused(_)) => self.get(id).await,
            Err(error) => Err(refused(&error)),
        }
    }

    /// Books what the last answer took, waits while the session is suspended, and says whether the
    /// run may go on.
    pub(crate) async fn may_ask(&self, state: &RunState) -> Result<(), Ending> {
        let id = &state.session;
        match self.tree.spend_up_to(id, used(state)).await {
            Ok(Spent::Fine | Spent::Paused) | Err(TreeError::Refused(_)) => {}
            Ok(Spent::OverBudget) => {
                let why = "the token budget of the session is spent";
                return Err(Ending::Failed(RunError::new(
                    RunErrorCode::BudgetExceeded,
                    why,
                )));
            }
            Err(error) => {
                return Err(Ending::Failed(RunError::new(
                    RunErrorCode::ToolExecutionFailed,
                    error.to_string(),
                )));
            }
        }
        tokio::select! {
            () = self.tree.goes_on(id) => {}
            () = self.tree.cancelled(id) => {}
        }
        if self.tree.is_ending(id) {
            return Err(Ending::Cancelled);
        }
        // Others may have used what was left when it began, or while it waited.
        self.is_anything_left(id).await
    }

    pub(crate) async fn recalled(&self, session: &str) {
        self.tree.cancelled(session).await;
    }

    /// A run has ended, and what it began ends with it. The subagents' own runs are watched over.
    pub(crate) async fn parent_ended(&self, state: &RunState) {
        let spawned = state.tools_called.iter().any(|tool| tool == SPAWN);
        if state.parent.is_some() || !spawned && self.tree.context(&state.session).is_none() {
            return;
        }
        self.run_ended(state).await;
    }

    /// The session of a run that has ended ends, if there is one.
    pub(crate) async fn run_ended(&self, state: &RunState) {
        let outcome = Outcome::Ended(Box::new(state.clone()));
        if let Some(result) = result_of(&outcome) {
            // Without a store there is nothing to tell them by; their time bounds them.
            let _ = self.tree.finish(&state.session, result).await;
        }
    }

    /// Nobody here goes on with a run: what it began here is told to end. Its own session stays, for
    /// whoever takes it up.
    pub(crate) async fn parent_lost(&self, session: &str) {
        let here: Vec<String> = {
            let here = self.here.lock();
            let theirs = here.iter().filter(|(_, child)| child.parent == session);
            theirs.map(|(id, _)| id.clone()).collect()
        };
        for id in here {
            // One that has ended needs not be told; without a store their time bounds them.
            let _ = self.tree.cancel(&id).await;
        }
    }
}

pub(super) fn refused(error: &TreeError) -> ToolError {
    ToolError::failed(error.to_string())
}
