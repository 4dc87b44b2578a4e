//! What becomes of a request whose call goes away.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_reliability::observe::Event;
use holdfast_reliability::store::documents::{Document, Replaced, Replacement};
use holdfast_reliability::store::{StoreError, StoreResult};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::model::{Approval, ApprovalState};
use super::service::{Approvals, Lost, Seen, WITHDRAWN_AGAIN_MS, ended_small, is_over, read};
use super::step::{Action, step};
use crate::audit::AuditError;

/// Withdraws a request when its call is dropped. One whose caller's deadline has passed stays
/// open: whoever delivers the call again finds the answer.
///
/// It is made before the request is: one that others can see already, and whose call goes away
/// before it hears so, has nobody else to withdraw it.
pub(super) struct Withdraw {
    approvals: Arc<Approvals>,
    seen: Option<Seen>,
    deadline_at_ms: Option<u64>,
}

impl Withdraw {
    pub(super) fn new(approvals: &Arc<Approvals>, deadline_at_ms: Option<u64>) -> Self {
        Self {
            approvals: approvals.clone(),
            seen: None,
            deadline_at_ms,
        }
    }

    /// This is the request, as it stands or is about to.
    pub(super) fn watch(&mut self, seen: &Seen) {
        self.seen = Some(seen.clone());
    }

    /// There is nothing to withdraw.
    pub(super) fn stand_down(&mut self) {
        self.seen = None;
    }
}

impl Drop for Withdraw {
    fn drop(&mut self) {
        let now_ms = self.approvals.now_ms();
        let ran_out = self.deadline_at_ms.is_some_and(|end_ms| end_ms <= now_ms);
        let Some(seen) = self.seen.take().filter(|_| !ran_out) else {
            return;
        };
        if let Ok(state) = step(&seen.approval, Action::Withdraw, now_ms) {
            let next = ended_small(Approval {
                state,
                ..seen.approval
            });
            let change = Replacement::of(&seen.document, json!(next));
            // At once: nobody may come to run on it, even if this process is about to end.
            self.approvals.store.replace_detached(change.clone());
            self.approvals.put_on_record(next, change);
        }
    }
}

/// Withdrawals that are being put on record. There are no more than requests that were open when
/// their calls went away: none is made while the store is away.
#[derive(Default)]
pub(super) struct Withdrawals {
    tasks: Mutex<Vec<JoinHandle<()>>>,
    /// Requests whose calls went away here, and since when; the store may not know it yet. With the
    /// intent they were for: another call that goes on with one is still there.
    unrecorded: Mutex<HashMap<(String, String), u64>>,
    /// Nobody waits for a store that is away when the process is to end.
    ends: watch::Sender<bool>,
}

impl Approvals {
    /// Waits until every withdrawal so far is on record, or can not be put there now. A process that
    /// wants to end waits here.
    pub async fn settled(&self) {
        self.withdrawals.ends.send_replace(true);
        let open = std::mem::take(&mut *self.withdrawals.tasks.lock());
        for task in open {
            // One that panicked has nothing to wait for.
            let _ = task.await;
        }
    }

    /// Withdraws all that people are still asked, or have approved and nobody has begun, for a run
    /// that has ended: its calls come back for no answer.
    pub async fn withdraw_run(&self, run: &str) -> StoreResult<()> {
        for id in self.marked_open().await? {
            let seen = self.seen(&id).await?;
            let of = seen.and_then(|seen| seen.approval.request.envelope.target.run_id);
            if of.as_deref() == Some(run) {
                self.spend(&id).await?;
            }
        }
        Ok(())
    }

    /// Takes back an answer that must not be used any more. One that is over stays as it is.
    pub(super) async fn spend(&self, id: &str) -> StoreResult<()> {
        let mut seen = self.seen(id).await?;
        while let Some(at) = seen {
            match self.advance(&at, Action::Withdraw).await? {
                Ok(spent) => {
                    let written = self.write_down(&spent).await;
                    return written.map_err(|error| StoreError::Unavailable(error.to_string()));
                }
                Err(Lost::Changed(newer)) => seen = Some(*newer),
                Err(Lost::Refused(_) | Lost::Gone) => break,
            }
        }
        Ok(())
    }

    /// A request as it stands. One whose call went away here is withdrawn, also while the store does
    /// not know it.
    pub(super) fn known(&self, document: Document) -> StoreResult<Seen> {
        let mut seen = read(document)?;
        let name = (seen.approval.id.clone(), seen.document.group.clone());
        let at_ms = self.withdrawals.unrecorded.lock().get(&name).copied();
        if let Some(at_ms) = at_ms
            && !is_over(&seen.approval)
        {
            seen.approval.state = ApprovalState::Withdrawn { at_ms };
        }
        Ok(seen)
    }

    fn put_on_record(self: &Arc<Self>, withdrawn: Approval, change: Replacement) {
        // Without a runtime there is nobody to write; the state says it all the same.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let name = (withdrawn.id.clone(), change.group.clone());
        let now_ms = self.now_ms();
        self.withdrawals
            .unrecorded
            .lock()
            .insert(name.clone(), now_ms);
        let approvals = self.clone();
        let task = runtime.spawn(async move {
            approvals.until_recorded(&withdrawn, change, &name).await;
        });
        let mut open = self.withdrawals.tasks.lock();
        open.retain(|task| !task.is_finished());
        open.push(task);
    }

    /// Says it until the store has heard it: somebody may come to run on a request that looks open.
    async fn until_recorded(
        &self,
        withdrawn: &Approval,
        change: Replacement,
        name: &(String, String),
    ) {
        let mut ends = self.withdrawals.ends.subscribe();
        let mut was_told = false;
        let done = loop {
            match self.withdrawn(change.clone()).await {
                Ok(done) => break done,
                Err(error) if !was_told => {
                    self.tell_trouble(&error);
                    was_told = true;
                }
                Err(_) => {}
            }
            let pause = Duration::from_millis(WITHDRAWN_AGAIN_MS);
            let told_to_end = tokio::time::timeout(pause, ends.wait_for(|ends| *ends)).await;
            if told_to_end.is_ok() {
                return;
            }
        };
        self.withdrawals.unrecorded.lock().remove(name);
        if done == Withdrawn::Yes
            && let Err(error) = self.write_down(withdrawn).await
        {
            self.tell_trouble(&StoreError::Unavailable(error.to_string()));
        }
    }

    fn tell_trouble(&self, error: &StoreError) {
        self.runtime.tell(&Event::StoreTrouble {
            what: "approval",
            error,
        });
    }

    async fn withdrawn(&self, mut change: Replacement) -> StoreResult<Withdrawn> {
        // A change that is waited for comes after those that are not: this one tells how the other
        // went, and takes its place where it was lost.
        let intent = change.group.clone();
        loop {
            let stands = match self.store.replace(change).await? {
                Replaced::Done(document) | Replaced::Changed(document) => read(document)?,
                Replaced::Gone => return Ok(Withdrawn::No),
            };
            if stands.document.group != intent {
                // Another call goes on with it.
                return Ok(Withdrawn::No);
            }
            if matches!(stands.approval.state, ApprovalState::Withdrawn { .. }) {
                return Ok(Withdrawn::Yes);
            }
            // An answer was faster. A yes that nobody has used is nobody's: its caller is gone.
            let Ok(state) = step(&stands.approval, Action::Withdraw, self.now_ms()) else {
                return Ok(Withdrawn::No);
            };
            let next = ended_small(Approval {
                state,
                ..stands.approval
            });
            change = Replacement::of(&stands.document, json!(next));
        }
    }

    async fn write_down(&self, withdrawn: &Approval) -> Result<(), AuditError> {
        self.no_longer_open(&withdrawn.id).await;
        let request = &withdrawn.request;
        let told = json!({"approval": withdrawn.id, "tool": request.tool, "digest": request.digest,
                          "session": request.origin_session});
        self.record("approval.withdrawn", told).await
    }
}

/// Whether a request is withdrawn, or was over or gone by then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Withdrawn {
    Yes,
    No,
}
