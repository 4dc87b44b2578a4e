//! Calls whose callers are gone: they wait for a person, or were approved and nobody runs them.
//!
//! A server stands in for callers that were gone when it started, and hears the answers that it takes
//! itself. Others are given by another process, on requests whose callers died since, or for which
//! it let go of a request: so it looks.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::{BoxFuture, join_all, pending, select};
use holdfast_reliability::call::Starts;
use holdfast_reliability::store::StoreResult;
use holdfast_toolbox::approval::{Approval, resume_one};
use tokio::task::JoinHandle;

use crate::limits::{APPROVED_LOOK_MS, APPROVED_TRIES_MAX};
use crate::server::{CallSlot, Counted, Server, Stage};

/// A call that was entered again, and may have come back unrun: answered from a record, or refused by
/// something that passes.
struct Entered {
    task: JoinHandle<()>,
    tries: u32,
    /// Looks to let pass before the next try.
    rest: u32,
}

impl Entered {
    /// Whether it is to be entered once more, as seen by one more look.
    fn is_due(&mut self) -> bool {
        if !self.task.is_finished() || self.tries >= APPROVED_TRIES_MAX {
            return false;
        }
        self.rest = self.rest.saturating_sub(1);
        self.rest == 0
    }

    /// The first try, or one more: each rests twice as long as the one before.
    fn again(task: JoinHandle<()>, tries_before: u32) -> Self {
        Self {
            task,
            tries: tries_before + 1,
            rest: 2 << tries_before,
        }
    }
}

/// A request whose call is entered here, once and no more.
struct Once<'a> {
    server: &'a Server,
    id: &'a str,
    _counted: Counted<'a>,
}

impl<'a> Once<'a> {
    fn new(server: &'a Server, id: &'a str) -> Option<Self> {
        let is_new = server.entered.lock().insert(id.to_owned());
        is_new.then(|| Self {
            server,
            id,
            _counted: Counted::new(&server.requests),
        })
    }
}

impl Drop for Once<'_> {
    fn drop(&mut self) {
        self.server.entered.lock().remove(self.id);
    }
}

/// Takes a place among the calls when one that was entered again starts, and not while it waits.
struct Start {
    server: Arc<Server>,
    place: OnceLock<Option<CallSlot>>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let has_place = self.place.get().is_some();
        to.debug_struct("Start")
            .field("has_place", &has_place)
            .finish_non_exhaustive()
    }
}

impl Starts for Start {
    fn starts(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let place = self.server.wait_for_place().await;
            // It starts once.
            let _ = self.place.set(place);
        })
    }
}

impl Server {
    /// Looks now and then for calls that were approved, and runs those that nobody runs, until the server
    /// ends.
    pub async fn look_for_approved(self: Arc<Self>) {
        let mut seen = BTreeSet::new();
        let mut entered: BTreeMap<String, Entered> = BTreeMap::new();
        loop {
            tokio::time::sleep(Duration::from_millis(APPROVED_LOOK_MS)).await;
            if self.is_ending() {
                return;
            }
            // A store that is away has nothing to tell now.
            let Ok(approved) = self.approved_here().await else {
                continue;
            };
            entered.retain(|id, one| approved.contains(id) || !one.task.is_finished());
            // A caller that lives has used its approval between two looks.
            for id in approved.intersection(&seen) {
                if self.entered.lock().contains(id) {
                    continue;
                }
                let before = entered.get_mut(id);
                let tries = before.as_ref().map_or(0, |one| one.tries);
                if before.is_none_or(Entered::is_due) {
                    let task = self.resume(BTreeSet::from([id.clone()]));
                    entered.insert(id.clone(), Entered::again(task, tries));
                }
            }
            seen = approved;
        }
    }

    /// Enters the calls again that wait for a person, or were approved, and whose process is gone.
    /// They wait on here. Those of other workspaces are left for whoever serves those.
    pub async fn resume_all(self: &Arc<Self>) -> StoreResult<()> {
        let open = self.approvals.open_requests().await?;
        let ids: BTreeSet<String> = open.into_iter().map(|approval| approval.id).collect();
        if !ids.is_empty() {
            self.resume(ids);
        }
        Ok(())
    }

    /// Enters these again, if they are of this workspace. One whose call waits somewhere joins it.
    pub(crate) fn resume(self: &Arc<Self>, ids: BTreeSet<String>) -> JoinHandle<()> {
        let server = self.clone();
        tokio::spawn(async move {
            let calls = ids.iter().map(|id| server.resume_here(id));
            // What became of each is in its record, its audit entries and the log.
            join_all(calls).await;
        })
    }

    async fn resume_here(self: &Arc<Self>, id: &str) {
        // Counted before it looks whether the server is ending, which then waits for it.
        let Some(_once) = Once::new(self, id) else {
            return;
        };
        // A store that is away has nothing to tell now.
        let Ok(Some(approval)) = self.approvals.get(id).await else {
            return;
        };
        if !self.is_to_enter(&approval).await {
            return;
        }
        if self.is_ending() {
            return;
        }
        let start = Arc::new(Start {
            server: self.clone(),
            place: OnceLock::new(),
        });
        let cancelled = self.has_come_to(Stage::Cancelling);
        let call = resume_one(
            &self.stack,
            &self.approvals,
            approval,
            start.clone(),
            cancelled,
        );
        // Whoever comes next takes up what has not started here: it waits for a person, for a place, or for
        // another that runs. What has started is let finish.
        let let_go = async {
            self.has_come_to(Stage::Draining).await;
            if start.place.get().is_some() {
                pending::<()>().await;
            }
        };
        select(pin!(call), pin!(let_go)).await;
    }

    /// Whether a call is to be entered again here.
    async fn is_to_enter(&self, approval: &Approval) -> bool {
        approval.request.workspace_root == self.workspace
            && self.approvals.is_open(approval)
            && !self.is_a_runs(approval).await
    }

    /// Whether a call is the business of one of the model's runs: the run makes it again when it is
    /// gone on with, and nobody does when it has ended.
    async fn is_a_runs(&self, approval: &Approval) -> bool {
        match (&self.executor, &approval.request.envelope.target.run_id) {
            (Some(executor), Some(run)) => executor.runs.store().is_known(run).await,
            _ => false,
        }
    }

    /// Those of this workspace.
    async fn approved_here(&self) -> StoreResult<BTreeSet<String>> {
        let mut approved = self.approvals.approved().await?;
        approved.retain(|approval| approval.request.workspace_root == self.workspace);
        Ok(approved.into_iter().map(|approval| approval.id).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Enters a call that never runs for as many looks, and says at which.
    async fn entered_at(looks: u32) -> Vec<u32> {
        let done = || tokio::spawn(async {});
        let mut at = vec![0];
        let mut one = Entered::again(done(), 0);
        for look in 1..=looks {
            // Lets the task end.
            tokio::task::yield_now().await;
            if one.is_due() {
                one = Entered::again(done(), one.tries);
                at.push(look);
            }
        }
        at
    }

    #[tokio::test]
    async fn what_comes_back_unrun_is_entered_more_and_more_rarely_and_then_left() {
        assert_eq!(entered_at(1_000).await, [0, 2, 6, 14, 30]);
    }

    #[tokio::test]
    async fn what_is_still_being_run_is_not_entered_beside_it() {
        let mut one = Entered::again(tokio::spawn(std::future::pending()), 0);
        for _ in 0..100 {
            assert!(!one.is_due());
        }
    }
}
