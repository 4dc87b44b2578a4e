//! What becomes of subagents whose process is gone: those at work have failed, and those that were
//! suspended wait for their parents to let them go on.

use std::collections::hash_map::Entry;
use std::sync::Arc;

use holdfast_contract::{ToolContext, ToolError};
use holdfast_reliability::store::StoreError;
use holdfast_toolbox::session::{Session, SessionState, TreeError};

use super::account::used;
use super::desk::{Child, Subagents, refused};
use crate::run::RunState;
use crate::runs::{KeptRun, Runs, wholly};

/// What becomes of a subagent whose process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Orphan {
    /// It has ended, and its run is over.
    Ended,
    /// It is suspended, and can still be let go on.
    Suspended,
}

impl Subagents {
    /// The process of a subagent is gone. What its last answer took may not be booked yet.
    pub(crate) async fn lost(&self, state: &RunState) -> Result<Orphan, StoreError> {
        let id = &state.session;
        if let Err(TreeError::Store(error)) = self.tree.book(id, used(state)).await {
            return Err(error);
        }
        let session = match self.tree.lost(id).await {
            Ok(Some(_)) => return Ok(Orphan::Ended),
            Ok(None) => self.tree.get(id).await,
            Err(error) => Err(error),
        };
        match session {
            Ok(session) if is_suspended(&session) => Ok(Orphan::Suspended),
            Err(TreeError::Store(error)) => Err(error),
            // One that has ended, or is forgotten, is not lost.
            Ok(_) | Err(_) => Ok(Orphan::Ended),
        }
    }

    /// Lets one go on that was suspended. One whose process is gone is taken up here first, and
    /// waits here as it did there.
    pub(super) async fn resume(
        self: &Arc<Self>,
        id: &str,
        ctx: &ToolContext,
    ) -> Result<Session, ToolError> {
        let session = self.own(&ctx.session.session_id, id).await?;
        if is_suspended(&session) {
            let runs = self.runs()?;
            let orphan = runs.orphan(id).await;
            if let Some(run) = orphan.map_err(|error| ToolError::failed(error.to_string()))? {
                self.enter_tree(ctx).await?;
                let desk = self.clone();
                wholly(async move { desk.take_up(&runs, &session, run).await }).await?;
            }
        }
        // Another process that works on it hears of this.
        self.tree.resume(id).await.map_err(|error| refused(&error))
    }

    async fn take_up(
        self: &Arc<Self>,
        runs: &Arc<Runs>,
        session: &Session,
        run: KeptRun,
    ) -> Result<(), ToolError> {
        let id = &session.id;
        let place = self.place()?;
        let name = run.state.id.clone();
        let child = Child {
            run: name.clone(),
            parent: session.parent.clone().unwrap_or_default(),
            client: run.client,
            actor: run.state.actor,
        };
        match self.here.lock().entry(id.clone()) {
            // Somebody here was faster.
            Entry::Occupied(_) => return Ok(()),
            Entry::Vacant(free) => free.insert(child),
        };
        let taken_up = async {
            self.tree
                .revive(id)
                .await
                .map_err(|error| refused(&error))?;
            let resumed = runs.resume_child(&name, place).await;
            resumed.map_err(|error| ToolError::failed(error.to_string()))
        };
        match taken_up.await {
            Ok(listener) => {
                self.watch(id, listener);
                Ok(())
            }
            Err(error) => {
                self.here.lock().remove(id);
                self.tree.let_go(id);
                Err(error)
            }
        }
    }
}

pub(super) fn is_suspended(session: &Session) -> bool {
    matches!(session.state, SessionState::Suspended { .. })
}
