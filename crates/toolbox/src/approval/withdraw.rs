//! What becomes of a request whose call goes away.

use std::sync::Arc;

use holdfast_reliability::observe::Event;
use holdfast_reliability::store::documents::{Replaced, Replacement};
use holdfast_reliability::store::{StoreError, StoreResult};
use parking_lot::Mutex;
use serde_json::json;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

use super::model::{Approval, ApprovalState};
use super::service::{Approvals, Lost, Seen, ended_small, read};
use super::step::{Action, step};

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

/// Withdrawals that are being put on record.
#[derive(Default)]
pub(super) struct Withdrawals(Mutex<Vec<JoinHandle<()>>>);

impl Approvals {
    /// Waits until every withdrawal so far is on record. A process that wants to end waits here.
    pub async fn settled(&self) {
        let open = std::mem::take(&mut *self.withdrawals.0.lock());
        for task in open {
            // One that panicked has nothing to wait for.
            let _ = task.await;
        }
    }

    /// Takes back an answer that must not be used any more. One that is over stays as it is.
    pub(super) async fn spend(&self, id: &str) -> StoreResult<()> {
        let mut seen = self.seen(id).await?;
        while let Some(at) = seen {
            match self.advance(&at, Action::Withdraw).await? {
                Ok(spent) => return self.record_withdrawal(&spent).await,
                Err(Lost::Changed(newer)) => seen = Some(*newer),
                Err(Lost::Refused(_) | Lost::Gone) => break,
            }
        }
        Ok(())
    }

    fn put_on_record(self: &Arc<Self>, withdrawn: Approval, change: Replacement) {
        // Without a runtime there is nobody to write; the state says it all the same.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let approvals = self.clone();
        let task = runtime.spawn(async move {
            if let Err(error) = approvals.recorded(&withdrawn, change).await {
                approvals.runtime.tell(&Event::StoreTrouble {
                    what: "approval",
                    error: &error,
                });
            }
        });
        let mut open = self.withdrawals.0.lock();
        open.retain(|task| !task.is_finished());
        open.push(task);
    }

    async fn recorded(&self, withdrawn: &Approval, change: Replacement) -> StoreResult<()> {
        // A change that is waited for comes after those that are not: this one tells how the other
        // went, and takes its place where it was lost.
        let stands = match self.store.replace(change).await? {
            Replaced::Done(document) | Replaced::Changed(document) => read(document)?.approval,
            Replaced::Gone => return Ok(()),
        };
        if !matches!(stands.state, ApprovalState::Withdrawn { .. }) {
            // An answer was faster, and is on record as that.
            return Ok(());
        }
        self.no_longer_open(&withdrawn.id).await;
        self.record_withdrawal(withdrawn).await
    }

    async fn record_withdrawal(&self, withdrawn: &Approval) -> StoreResult<()> {
        let request = &withdrawn.request;
        let told = json!({"approval": withdrawn.id, "tool": request.tool, "digest": request.digest,
                          "session": request.origin_session});
        let recorded = self.record("approval.withdrawn", told).await;
        recorded.map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}
