//! Makes children, waits for them, and gives up those whose process is gone.

use holdfast_contract::clock::new_request_id;
use holdfast_reliability::store::documents::Created;

use super::model::Session;
use super::step::{self, NewChild, StepRefused};
use super::tree::{KIND, SessionTree, Spawn, TreeError, context_of};

/// A child that has to be found again, by whoever asks for the same one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its key.
    pub id: String,
    /// What its parent calls it.
    pub label: Option<String>,
    /// How long it may live, when that is less than its kind may.
    pub ttl_ms_max: Option<u64>,
}

impl SessionTree {
    /// Makes a child of a session that lives here.
    pub async fn spawn(&self, parent: &str, wish: Spawn) -> Result<Session, TreeError> {
        let named = Named {
            id: new_request_id(&*self.runtime.clock, &*self.runtime.entropy),
            label: None,
            ttl_ms_max: None,
        };
        self.spawn_named(parent, wish, named).await
    }

    /// The same, with a key of the caller's. A second one with that key is not made.
    pub async fn spawn_named(
        &self,
        parent: &str,
        wish: Spawn,
        named: Named,
    ) -> Result<Session, TreeError> {
        let above = self
            .context(parent)
            .ok_or_else(|| TreeError::NotFound(parent.to_owned()))?;
        match self.get(&named.id).await {
            Err(TreeError::NotFound(_)) => {}
            Ok(_) => return Err(TreeError::Exists(named.id)),
            Err(error) => return Err(error),
        }
        let now_ms = self.now_ms();
        let spawn = |session: &Session| {
            let new = NewChild {
                id: named.id.clone(),
                kind: wish.kind,
                context_summary: wish.context_summary.clone(),
                token_budget: wish.token_budget,
            };
            step::spawn(session, new, &self.limits, now_ms)
        };
        let mut child = match spawn(&self.get(parent).await?) {
            Err(StepRefused::TooManyChildren(_)) => spawn(&self.without_gone(parent).await?)?.1,
            made => made?.1,
        };
        child.label.clone_from(&named.label);
        let asked_ms = named.ttl_ms_max.map(|ttl_ms| now_ms.saturating_add(ttl_ms));
        child.expires_at_ms = match (child.expires_at_ms, asked_ms) {
            (Some(by_kind), Some(asked)) => Some(by_kind.min(asked)),
            (by_kind, asked) => by_kind.or(asked),
        };
        // First the child, which ends by itself when its time is over; then its place, which does
        // not. Whoever dies in between leaves no place that is taken by nobody.
        if let Created::Exists(_) = self.create(&child).await? {
            return Err(TreeError::Exists(child.id));
        }
        if let Err(error) = self.change(parent, |session| Ok(spawn(session)?.0)).await {
            // What can not be taken back is over with its time.
            let _ = self.store.remove(KIND, &child.id).await;
            return Err(error);
        }
        let context = context_of(&child, &above);
        if let Some(book) = &self.trust {
            book.inherit(&above, &context).await?;
        }
        self.enliven(context, &child);
        Ok(child)
    }

    /// A parent without the children that have ended, or are not there, and whose process could not
    /// say so any more.
    async fn without_gone(&self, parent: &str) -> Result<Session, TreeError> {
        let mut gone = Vec::new();
        for child in self.get(parent).await?.children {
            match self.get(&child).await {
                Ok(session) if !session.state.has_ended() => {}
                Ok(_) | Err(TreeError::NotFound(_)) => gone.push(child),
                Err(error) => return Err(error),
            }
        }
        self.change(parent, |session| {
            let without = |session, child: &String| step::without_child(&session, child);
            Ok(gone.iter().fold(session.clone(), without))
        })
        .await
    }

    /// Ready when the session is not suspended any more, or has ended.
    pub async fn goes_on(&self, id: &str) {
        let pause = self.live.read().get(id).map(|live| live.pause.subscribe());
        if let Some(mut pause) = pause {
            // The sender goes when the session has ended.
            let _ = pause.wait_for(Option::is_none).await;
        }
    }

    /// Ready when the session is suspended, or has ended.
    pub async fn paused(&self, id: &str) {
        let pause = self.live.read().get(id).map(|live| live.pause.subscribe());
        if let Some(mut pause) = pause {
            let _ = pause.wait_for(Option::is_some).await;
        }
    }

    /// Whether the session has been told to end, or has ended.
    pub fn is_ending(&self, id: &str) -> bool {
        let live = self.live.read();
        live.get(id).is_none_or(|live| *live.cancelled.borrow())
    }

    /// The process of a session is gone: what was at work has failed, as after a restart. `None`
    /// when it stays as it is.
    pub async fn lost(&self, id: &str) -> Result<Option<Session>, TreeError> {
        let changed = self
            .change(id, |session| {
                step::restarted(session).ok_or(StepRefused::NotActive)
            })
            .await;
        match changed {
            Ok(session) => {
                self.ended(&session).await?;
                Ok(Some(session))
            }
            Err(TreeError::Refused(_) | TreeError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
