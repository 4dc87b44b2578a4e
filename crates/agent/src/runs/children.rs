//! The runs of subagents.

use std::sync::Arc;

use holdfast_reliability::store::StoreError;
use tokio::sync::OwnedSemaphorePermit;

use super::desk::{Begins, Keeping, ResumeError, Runs, StartError};
use super::live::{Listener, Unheard};
use super::store::KeptRun;
use crate::run::RunState;
use crate::subagents::{Orphan, Subagents};

impl Runs {
    /// Lets the tools of these subagents begin runs here.
    pub fn adopt(self: &Arc<Self>, subagents: Arc<Subagents>) {
        subagents.attach(self);
        // Who was first stays.
        let _ = self.subagents.set(subagents);
    }

    /// Begins the run of a subagent, in a place that was had before: one that waited for a place
    /// of those who wait for it would wait for ever. To be done [`wholly`](super::wholly).
    pub(crate) async fn start_child(
        self: &Arc<Self>,
        state: RunState,
        client: &str,
        place: OwnedSemaphorePermit,
    ) -> Result<Listener, StartError> {
        if *self.leaving.borrow() {
            return Err(StartError::Leaving);
        }
        let hold = self.in_hand(&state.id)?;
        let begins = Begins {
            state,
            client: client.to_owned(),
            keeping: Keeping::Durable,
            unheard: Unheard::GoOn,
            by: None,
        };
        self.begin(begins, hold, place).await
    }

    /// Subagents end with their process: those whose process is gone are given up, so that their
    /// parents hear of it. Only those that were suspended wait to be let go on.
    pub(super) async fn give_up_children(&self) -> Result<(), StoreError> {
        let Some(subagents) = self.subagents.get() else {
            return Ok(());
        };
        let mut after = None;
        loop {
            let page = self.store.abandoned_children(after.as_deref()).await?;
            for run in page.runs {
                if subagents.lost(&run.state).await? == Orphan::Ended
                    // Who was faster has ended it too.
                    && let Ok(ended) = self.store.cancel(&run.state.id).await
                {
                    self.log_end(&ended);
                    self.withdraw(&ended.id).await;
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
}
