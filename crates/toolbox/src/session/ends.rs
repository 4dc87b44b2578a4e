//! Sessions whose time is over, and those that nobody works on any more.

use std::sync::atomic::Ordering;

use holdfast_contract::SessionKind;
use holdfast_reliability::store::documents::{DocumentFilter, all_documents};

use super::model::Session;
use super::step::{self, StepRefused};
use super::tree::{KIND, SessionTree, TreeError, read};

impl SessionTree {
    /// Ends what is over its time. Called now and then; says what it ended. A Main that calls
    /// something here is known by that to whoever looks at the store.
    pub async fn tick(&self) -> Result<Vec<Session>, TreeError> {
        let now_ms = self.now_ms();
        for id in self.stirring(now_ms) {
            match self.stir(&id).await {
                // It may have ended.
                Ok(_) | Err(TreeError::NotFound(_) | TreeError::Refused(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.end_all(|session| step::tick(session, now_ms)).await
    }

    /// The time of a Main begins anew.
    pub(super) async fn stir(&self, id: &str) -> Result<Session, TreeError> {
        self.change(id, |session| {
            if session.state.has_ended() {
                return Err(StepRefused::Ended);
            }
            // Every change of a Main does that.
            Ok(session.clone())
        })
        .await
    }

    /// The Mains that live here and have called something of late.
    fn stirring(&self, now_ms: u64) -> Vec<String> {
        let since_ms = now_ms.saturating_sub(self.limits.main_idle_ms / 2);
        let live = self.live.read();
        let calling = live.iter().filter(|(_, live)| {
            live.context.kind == SessionKind::Main
                && live.called_at_ms.load(Ordering::Relaxed) > since_ms
        });
        calling.map(|(id, _)| id.clone()).collect()
    }

    async fn end_all(
        &self,
        end: impl Fn(&Session) -> Option<Session>,
    ) -> Result<Vec<Session>, TreeError> {
        let mut ended = Vec::new();
        for document in all_documents(&*self.store, DocumentFilter::of(KIND)).await? {
            let session = read(&document)?;
            if session.state.has_ended() {
                // Maybe by another process.
                self.live.write().remove(&document.id);
                continue;
            }
            if end(&session).is_none() {
                // Another process may have told it to end, or to wait.
                self.note(&session);
                continue;
            }
            let changed = self
                .change(&document.id, |session| {
                    end(session).ok_or(StepRefused::Ended)
                })
                .await;
            match changed {
                Ok(session) => {
                    self.ended(&session).await?;
                    ended.push(session);
                }
                // It ended by itself meanwhile.
                Err(TreeError::Refused(_) | TreeError::NotFound(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(ended)
    }
}
