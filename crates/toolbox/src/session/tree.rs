//! Keeps the tree, and hands each session its context.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::{OwnPlace, SessionContext, SessionKind, ToolCallEnvelope};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
    all_documents,
};
use holdfast_reliability::store::{StoreError, StoreResult};
use parking_lot::RwLock;
use serde_json::json;
use tokio::sync::watch;

use super::model::{
    Session, SessionLimits, SessionResult, SessionState, SessionStatus, Suspension,
};
use super::step::{self, StepRefused};
use crate::stack::Sessions;
use crate::trust::TrustBook;

pub(super) const KIND: &str = "session";
/// How long an ended session can still be looked at.
pub const SESSION_KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1000;
/// What a parent hears instead of a result that could not be handed up.
const WITHHELD: &str =
    "its result is withheld: what it has read could not be put on its parent's account";
/// Rounds of compare-and-set on one session before giving up.
pub(super) const ROUNDS_MAX: usize = 64;

/// A child to be made.
#[derive(Debug, Clone)]
pub struct Spawn {
    /// What it is.
    pub kind: SessionKind,
    /// What it is told: all that it learns from its parent.
    pub context_summary: String,
    /// All it may spend.
    pub token_budget: Option<u64>,
}

/// What became of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The parent can take it.
    ToParent(String),
    /// A Main's result is its owner's.
    ToOwner,
    /// The parent had ended: it is logged and dropped.
    Dropped,
}

/// Why the tree does not change.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// There is no such session.
    #[error("there is no session {0:?}")]
    NotFound(String),
    /// There is one already.
    #[error("there is a session {0:?} already")]
    Exists(String),
    /// A person has told this Main to end.
    #[error(
        "the session {0:?} was cancelled by a person, and no tool runs in it any more; go on in another \
         session, or ask a person to let it go on with `holdfast sessions reopen`"
    )]
    Cancelled(String),
    /// The rules say no.
    #[error(transparent)]
    Refused(#[from] StepRefused),
    /// The store can not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What this process keeps of a session that lives.
pub(super) struct Live {
    pub(super) context: Arc<SessionContext>,
    pub(super) cancelled: watch::Sender<bool>,
    pub(super) pause: watch::Sender<Option<Suspension>>,
    /// When its time is over, also if nobody has written that down.
    over_at_ms: Option<u64>,
    /// When it last called something.
    pub(super) called_at_ms: AtomicU64,
}

impl Live {
    /// A child has a while to wrap up; in a Main nothing runs from then on.
    pub(super) fn is_cancelled_main(&self) -> bool {
        self.context.kind == SessionKind::Main && *self.cancelled.borrow()
    }

    fn note(&mut self, session: &Session) {
        self.pause.send_replace(match session.state {
            SessionState::Suspended { why } => Some(why),
            _ => None,
        });
        // A Main's time begins anew with every call, and a person who cancels it may open it again:
        // only what is written down ends it.
        let ends = [session.expires_at_ms, session.end_by_ms];
        let end_ms = ends.into_iter().flatten().min();
        self.over_at_ms = end_ms.filter(|_| session.kind != SessionKind::Main);
        self.cancelled.send_replace(session.end_by_ms.is_some());
    }
}

/// The tree of sessions of one state.
pub struct SessionTree {
    pub(super) store: Arc<dyn DocumentStore>,
    pub(super) runtime: Arc<Runtime>,
    pub(super) limits: SessionLimits,
    reserved: Vec<PathBuf>,
    own_places: Vec<OwnPlace>,
    pub(super) trust: Option<Arc<TrustBook>>,
    pub(super) live: RwLock<HashMap<String, Live>>,
}

impl SessionTree {
    /// The tree in this store. No tool of any of its sessions may enter `reserved`.
    pub fn new(
        store: Arc<dyn DocumentStore>,
        runtime: Arc<Runtime>,
        limits: SessionLimits,
        reserved: Vec<PathBuf>,
    ) -> Self {
        Self {
            store,
            runtime,
            limits,
            reserved,
            own_places: Vec::new(),
            trust: None,
            live: RwLock::default(),
        }
    }

    /// The same tree, whose sessions see their own directories in the place of these.
    #[must_use]
    pub fn with_own_places(mut self, own_places: Vec<OwnPlace>) -> Self {
        self.own_places = own_places;
        self
    }

    /// The same tree, whose sessions have read what their parents tell them and what their children
    /// give back.
    #[must_use]
    pub fn with_trust(mut self, book: Arc<TrustBook>) -> Self {
        self.trust = Some(book);
        self
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.runtime.clock.now_ms()
    }

    /// One session.
    pub async fn get(&self, id: &str) -> Result<Session, TreeError> {
        Ok(self.load(id).await?.0)
    }

    /// One as the store has it, where another process may have told it to end: whoever waits for
    /// that here hears of it.
    pub async fn look(&self, id: &str) -> Result<Session, TreeError> {
        let session = self.get(id).await?;
        if session.state.has_ended() {
            self.live.write().remove(id);
        } else {
            self.note(&session);
        }
        Ok(session)
    }

    /// The children a session has had, ended ones included.
    pub async fn children(&self, id: &str) -> Result<Vec<Session>, TreeError> {
        let filter = DocumentFilter::of(KIND).group(id);
        let found = all_documents(&*self.store, filter).await?;
        found.iter().map(|it| Ok(read(it)?)).collect()
    }

    /// Suspends a session.
    pub async fn suspend(&self, id: &str) -> Result<Session, TreeError> {
        let session = self.change(id, step::suspend).await?;
        self.note(&session);
        Ok(session)
    }

    /// Lets a suspended session go on.
    pub async fn resume(&self, id: &str) -> Result<Session, TreeError> {
        let session = self.change(id, step::resume).await?;
        self.note(&session);
        Ok(session)
    }

    /// Ends a session with its result, and tells its children to end. Its parent has read what it
    /// has read before the result can be seen; where that can not be noted down, the session has
    /// failed and nobody sees what it said.
    pub async fn finish(&self, id: &str, result: SessionResult) -> Result<Delivery, TreeError> {
        let handed = self.hand_up(&self.get(id).await?).await;
        let result = match &handed {
            Ok(()) => result,
            Err(_) => SessionResult::new(SessionStatus::Failed, WITHHELD),
        };
        let session = self
            .change(id, |session| step::finish(session, result.clone()))
            .await?;
        let delivery = self.ended(&session).await?;
        handed?;
        Ok(delivery)
    }

    /// Puts what a session has read on its parent's account.
    async fn hand_up(&self, session: &Session) -> StoreResult<()> {
        let above = session.parent.as_deref().and_then(|it| self.context(it));
        match (&self.trust, self.context(&session.id), above) {
            (Some(book), Some(from), Some(to)) => book.inherit(&from, &to).await,
            _ => Ok(()),
        }
    }

    /// Tells a session to end.
    pub async fn cancel(&self, id: &str) -> Result<Session, TreeError> {
        let now_ms = self.now_ms();
        let session = self
            .change(id, |session| step::cancel(session, now_ms))
            .await?;
        self.note(&session);
        Ok(session)
    }

    /// Ready when the session is told to end, or has ended.
    pub async fn cancelled(&self, id: &str) {
        let heard = self
            .live
            .read()
            .get(id)
            .map(|live| live.cancelled.subscribe());
        if let Some(mut heard) = heard {
            // The sender goes when the session has ended.
            let _ = heard.wait_for(|cancelled| *cancelled).await;
        }
    }

    /// Gives a session that a restart has left alone its context again, once its parent has one.
    pub async fn revive(&self, id: &str) -> Result<Arc<SessionContext>, TreeError> {
        let session = self.get(id).await?;
        let parent = session.parent.as_deref().unwrap_or_default();
        let above = self.context(parent);
        match above {
            Some(above) if !session.state.has_ended() => {
                Ok(self.enliven(context_of(&session, &above), &session))
            }
            _ => Err(TreeError::NotFound(id.to_owned())),
        }
    }

    /// Nobody works for a session here: it may do nothing here.
    pub fn let_go(&self, id: &str) {
        self.live.write().remove(id);
    }

    /// What a session may do, if it lives here.
    pub fn context(&self, id: &str) -> Option<Arc<SessionContext>> {
        self.live.read().get(id).map(|live| live.context.clone())
    }

    /// The contexts for a stack: a session that does not live here has no rights at all.
    pub fn sessions(self: &Arc<Self>) -> Sessions {
        let tree = self.clone();
        Arc::new(move |envelope: &ToolCallEnvelope| {
            let target = &envelope.target;
            let (id, agent) = (&target.session_key, target.agent_id.as_deref());
            let why = match tree.live.read().get(id) {
                Some(live)
                    if live
                        .over_at_ms
                        .is_some_and(|end_ms| end_ms <= tree.now_ms()) =>
                {
                    "the time of the session is over"
                }
                Some(live) => match *live.pause.borrow() {
                    None => {
                        live.called_at_ms.store(tree.now_ms(), Ordering::Relaxed);
                        return live.context.clone();
                    }
                    Some(Suspension::Spending) => {
                        "the session is suspended: it spent over half of its tokens within five minutes"
                    }
                    Some(Suspension::Asked) => "the session is suspended",
                },
                None => "there is no such session, or it has ended",
            };
            Arc::new(SessionContext::nobody(id, agent.unwrap_or_default(), why))
        })
    }

    /// Notes down whether a session may call tools, and until when.
    pub(super) fn note(&self, session: &Session) {
        if let Some(live) = self.live.write().get_mut(&session.id) {
            live.note(session);
        }
    }

    /// Gives a session its context. Whoever waits for the end of one that lives goes on waiting.
    pub(super) fn enliven(
        &self,
        mut context: SessionContext,
        session: &Session,
    ) -> Arc<SessionContext> {
        context.reserved.clone_from(&self.reserved);
        context.own_places.clone_from(&self.own_places);
        let context = Arc::new(context);
        let mut lives = self.live.write();
        let live = lives
            .entry(context.session_id.clone())
            .or_insert_with(|| Live {
                context: context.clone(),
                cancelled: watch::Sender::new(false),
                pause: watch::Sender::new(None),
                over_at_ms: None,
                called_at_ms: AtomicU64::new(0),
            });
        live.context = context.clone();
        live.note(session);
        context
    }

    /// What the end of a session means for those around it.
    pub(super) async fn ended(&self, session: &Session) -> Result<Delivery, TreeError> {
        self.live.write().remove(&session.id);
        for child in &session.children {
            match self.cancel(child).await {
                Ok(_) | Err(TreeError::Refused(_) | TreeError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        let Some(parent) = &session.parent else {
            return Ok(Delivery::ToOwner);
        };
        match self
            .change(parent, |above| Ok(step::without_child(above, &session.id)))
            .await
        {
            Ok(above) if above.state.has_ended() => Ok(Delivery::Dropped),
            Ok(_) => Ok(Delivery::ToParent(parent.clone())),
            Err(TreeError::NotFound(_)) => Ok(Delivery::Dropped),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn create(&self, session: &Session) -> StoreResult<Created> {
        let new = NewDocument {
            kind: KIND.to_owned(),
            id: session.id.clone(),
            group: session.parent.clone().unwrap_or_default(),
            body: json!(session),
            expires_at_ms: None,
        };
        self.store.create(new).await
    }

    pub(super) async fn load(&self, id: &str) -> Result<(Session, Document), TreeError> {
        let found = self.store.document(KIND, id).await?;
        let document = found.ok_or_else(|| TreeError::NotFound(id.to_owned()))?;
        Ok((read(&document)?, document))
    }

    /// Changes one session by a rule; of several changes at once each is made on the one before.
    pub(super) async fn change(
        &self,
        id: &str,
        mut rule: impl FnMut(&Session) -> Result<Session, StepRefused>,
    ) -> Result<Session, TreeError> {
        for _ in 0..ROUNDS_MAX {
            let (session, document) = self.load(id).await?;
            let next = step::stirred(rule(&session)?, &self.limits, self.now_ms());
            let mut change = Replacement::of(&document, json!(next));
            if next.state.has_ended() {
                change.expires_at_ms = Some(self.now_ms().saturating_add(SESSION_KEPT_MS));
            }
            match self.store.replace(change).await? {
                Replaced::Done(_) => return Ok(next),
                Replaced::Changed(_) => {}
                Replaced::Gone => return Err(TreeError::NotFound(id.to_owned())),
            }
        }
        let why = format!("too many change the session {id:?} at once");
        Err(StoreError::Unavailable(why).into())
    }
}

/// What a child holds: by its kind, and of its parent's channel what its kind may have. A branch
/// sends on behalf of its parent; for a worker the way only leads to prompts.
pub(super) fn context_of(session: &Session, parent: &SessionContext) -> SessionContext {
    let mut context = SessionContext::of_kind(
        session.kind,
        &session.id,
        &session.agent_id,
        session.workspace_root.clone(),
    );
    if session.kind == SessionKind::Branch {
        context.channel.clone_from(&parent.channel);
    }
    context.approval.clone_from(&parent.approval);
    context.memory_read.clone_from(&parent.memory_read);
    if session.kind != SessionKind::Worker {
        context.memory_write.clone_from(&parent.memory_write);
    }
    context
}

pub(super) fn read(document: &Document) -> StoreResult<Session> {
    serde_json::from_value(document.body.clone()).map_err(|error| {
        let id = &document.id;
        StoreError::Unavailable(format!("the session {id:?} can not be read: {error}"))
    })
}
