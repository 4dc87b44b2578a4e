//! What sessions and those below them have used.

use super::model::Session;
use super::step::{self, Spent};
use super::tree::{SessionTree, TreeError};

/// What was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Used {
    /// Tokens.
    pub tokens: u64,
    /// Money, in billionths.
    pub cost_nanos: u64,
}

impl SessionTree {
    /// Notes down spent tokens. A session that is over its budget ends, and its children with it.
    pub async fn spend(&self, id: &str, tokens: u64) -> Result<Spent, TreeError> {
        self.note_down(id, |_| tokens, 0).await
    }

    /// The same for a session that has used so much since it began: what was noted down before
    /// does not count twice, whichever process did.
    pub async fn spend_up_to(&self, id: &str, total: Used) -> Result<Spent, TreeError> {
        let new = |session: &Session| total.tokens.saturating_sub(session.tokens.spent);
        self.note_down(id, new, total.cost_nanos).await
    }

    async fn note_down(
        &self,
        id: &str,
        tokens: impl Fn(&Session) -> u64,
        cost_nanos: u64,
    ) -> Result<Spent, TreeError> {
        let now_ms = self.now_ms();
        // A budget covers what children spend. Without one nobody has to add that up.
        let below = match self.get(id).await?.tokens.budget {
            Some(_) => self.below(id).await?.tokens,
            None => 0,
        };
        let mut spent = Spent::Fine;
        let session = self
            .change(id, |session| {
                let (mut next, how) = step::spend_beside(session, tokens(session), below, now_ms)?;
                next.tokens.cost_nanos = next.tokens.cost_nanos.max(cost_nanos);
                spent = how;
                Ok(next)
            })
            .await?;
        match spent {
            Spent::Fine => {}
            Spent::Paused => self.note(&session),
            Spent::OverBudget => {
                self.ended(&session).await?;
            }
        }
        Ok(spent)
    }

    /// Counts what a session has used that asks nothing more, also one that has ended: its budget
    /// bounds what it asks next, and those above it have to know.
    pub async fn book(&self, id: &str, total: Used) -> Result<Session, TreeError> {
        self.change(id, |session| {
            let mut next = session.clone();
            next.tokens.spent = next.tokens.spent.max(total.tokens);
            next.tokens.cost_nanos = next.tokens.cost_nanos.max(total.cost_nanos);
            Ok(next)
        })
        .await
    }

    /// What all sessions below this one have used, those that have ended included. It is read from
    /// the store, so it is the same after a restart.
    pub async fn below(&self, id: &str) -> Result<Used, TreeError> {
        let mut used = Used::default();
        let mut open = vec![id.to_owned()];
        while let Some(next) = open.pop() {
            for child in self.children(&next).await? {
                used.tokens = used.tokens.saturating_add(child.tokens.spent);
                used.cost_nanos = used.cost_nanos.saturating_add(child.tokens.cost_nanos);
                open.push(child.id);
            }
        }
        Ok(used)
    }
}
