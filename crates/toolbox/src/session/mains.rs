//! Main sessions: opened, replaced when they have ended, and refused once a person has cancelled them.
//!
//! A Main is what its callers say it is, so its end binds only those who look: every call of a Main
//! asks the store, because the person who cancels it does so from another process.

use std::path::PathBuf;
use std::sync::Arc;

use holdfast_contract::{Channel, SessionContext, SessionKind};
use holdfast_reliability::store::documents::{Created, Document, Replaced, Replacement};
use holdfast_reliability::store::{StoreError, StoreResult};
use serde_json::json;

use super::model::Session;
use super::step::{self, StepRefused};
use super::tree::{KIND, Live, ROUNDS_MAX, SessionTree, TreeError, read};

impl SessionTree {
    /// Opens a Main session, or goes on with the one that has this key.
    pub async fn open_main(
        &self,
        id: &str,
        agent_id: &str,
        workspace_root: PathBuf,
        channel: Option<Arc<dyn Channel>>,
    ) -> Result<Session, TreeError> {
        let mut context = SessionContext::main(id, agent_id, workspace_root);
        if let Some(channel) = channel {
            context = context.with_channel(channel);
        }
        self.open_main_with(context).await
    }

    /// As [`Self::open_main`], with whatever else the session is to hold: its agent's memory. A
    /// session that was open before keeps its agent and its workspace; one that has ended by itself
    /// is replaced by a fresh one.
    pub async fn open_main_with(&self, mut context: SessionContext) -> Result<Session, TreeError> {
        let id = context.session_id.clone();
        let fresh = self.fresh_main(&id, &context.agent_id, context.workspace_root.clone());
        let session = match self.create(&fresh).await? {
            Created::New(_) => fresh,
            Created::Exists(document) => self.taken_up(document, fresh).await?,
        };
        let held = SessionContext::main(&id, &session.agent_id, session.workspace_root.clone());
        context.agent_id = held.agent_id;
        context.workspace_root = held.workspace_root;
        (context.read, context.write, context.exec) = (held.read, held.write, held.exec);
        self.enliven(context, &session);
        Ok(session)
    }

    fn fresh_main(&self, id: &str, agent_id: &str, workspace_root: PathBuf) -> Session {
        let now_ms = self.now_ms();
        let fresh = step::main(id, agent_id, workspace_root, None, now_ms);
        step::stirred(fresh, &self.limits, now_ms)
    }

    /// The Main that was found, whose time begins anew; or the fresh one in its place, where it
    /// idled out or has done its work.
    async fn taken_up(&self, mut found: Document, fresh: Session) -> Result<Session, TreeError> {
        for _ in 0..ROUNDS_MAX {
            let session = read(&found)?;
            if session.kind != SessionKind::Main {
                return Err(TreeError::Exists(session.id));
            }
            if session.is_cancelled_main() {
                return Err(TreeError::Cancelled(session.id));
            }
            if session.state.has_ended() {
                match self.put_in_place(&found, &fresh).await? {
                    None => return Ok(fresh),
                    Some(newer) => found = newer,
                }
                continue;
            }
            match self.stir(&session.id).await {
                Err(TreeError::Refused(StepRefused::Ended)) => {
                    found = self.load(&session.id).await?.1;
                }
                other => return other,
            }
        }
        let why = format!("too many open the session {:?} at once", fresh.id);
        Err(StoreError::Unavailable(why).into())
    }

    /// Puts a fresh Main in the place of one that is over; what is there instead, if somebody was
    /// faster.
    async fn put_in_place(
        &self,
        over: &Document,
        fresh: &Session,
    ) -> Result<Option<Document>, TreeError> {
        let mut change = Replacement::of(over, json!(fresh));
        change.expires_at_ms = None;
        // Whoever lives here under this key is the former one.
        self.live.write().remove(&fresh.id);
        Ok(match self.store.replace(change).await? {
            Replaced::Done(_) => None,
            Replaced::Changed(newer) => Some(newer),
            Replaced::Gone => match self.create(fresh).await? {
                Created::New(_) => None,
                Created::Exists(newer) => Some(newer),
            },
        })
    }

    /// Cancels a Main that nobody has opened: the session of calls, which needs no place in the tree
    /// until it makes a session below it. From then on no tool runs in it.
    pub async fn cancel_main(&self, id: &str) -> Result<Session, TreeError> {
        // Nobody knows its agent and its workspace here; whoever opens it again brings its own.
        let fresh = self.fresh_main(id, "", PathBuf::new());
        if let Created::Exists(document) = self.create(&fresh).await? {
            self.taken_up(document, fresh).await?;
        }
        self.cancel(id).await
    }

    /// Lets a Main that was cancelled be used again, as a fresh one of the same agent in the same
    /// workspace. What it had begun before stays told to end.
    pub async fn reopen(&self, id: &str) -> Result<Session, TreeError> {
        for _ in 0..ROUNDS_MAX {
            let (session, document) = self.load(id).await?;
            if !session.is_cancelled_main() {
                return Err(StepRefused::NotCancelled.into());
            }
            self.ended(&session).await?;
            if session.agent_id.is_empty() {
                // Nobody has ever opened it: it needs no place in the tree.
                self.live.write().remove(id);
                self.store.remove(KIND, id).await?;
                return Ok(session);
            }
            let fresh = self.fresh_main(id, &session.agent_id, session.workspace_root);
            if self.put_in_place(&document, &fresh).await?.is_none() {
                return Ok(fresh);
            }
        }
        let why = format!("too many change the session {id:?} at once");
        Err(StoreError::Unavailable(why).into())
    }

    /// Why no tool may run in a Main: a person has cancelled it, here or from another process. While
    /// the store is away, what this process has heard counts.
    pub async fn refusal(&self, id: &str) -> StoreResult<Option<String>> {
        let is_cancelled = match self.store.document(KIND, id).await {
            Ok(None) => false,
            Ok(Some(document)) => {
                let session = read(&document)?;
                if session.is_cancelled_main() != self.has_heard(id) {
                    // Those below it that wait here for its end hear of it; or it is open again.
                    self.note(&session);
                }
                session.is_cancelled_main()
            }
            Err(_) if self.has_heard(id) => true,
            Err(error) => return Err(error),
        };
        Ok(is_cancelled.then(|| TreeError::Cancelled(id.to_owned()).to_string()))
    }

    /// Whether this process knows that a person has cancelled a Main that lives here.
    fn has_heard(&self, id: &str) -> bool {
        let live = self.live.read();
        live.get(id).is_some_and(Live::is_cancelled_main)
    }

    /// Whether a session lives here, and has not been ended from elsewhere.
    pub async fn lives(&self, id: &str) -> Result<bool, TreeError> {
        if self.context(id).is_none() {
            return Ok(false);
        }
        match self.look(id).await {
            Ok(session) => Ok(!session.state.has_ended()),
            Err(TreeError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
