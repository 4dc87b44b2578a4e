//! What becomes of a request whose call goes away.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use holdfast_reliability::idempotency::{HeldClaim, Standing};
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
/// open: whoever delivers the call again finds the answer. So does one whose claim is another's by now.
///
/// It is made before the request is: one that others can see already, and whose call goes away
/// before it hears so, has nobody else to withdraw it.
pub(super) struct Withdraw {
    approvals: Arc<Approvals>,
    seen: Option<Seen>,
    deadline_at_ms: Option<u64>,
    claim: Option<HeldClaim>,
}

impl Withdraw {
    pub(super) fn new(
        approvals: &Arc<Approvals>,
        deadline_at_ms: Option<u64>,
        claim: Option<HeldClaim>,
    ) -> Self {
        Self {
            approvals: approvals.clone(),
            seen: None,
            deadline_at_ms,
            claim,
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
        let Some(withdrawal) = Withdrawal::of(seen, now_ms) else {
            return;
        };
        let claim = self.claim.take();
        let standing = claim.as_ref().map(|claim| claim.standing(now_ms));
        match (standing, claim) {
            // Whoever has the claim waits on the same request.
            (Some(Standing::Anothers), _) => {}
            (Some(Standing::Unsure), Some(claim)) => {
                self.approvals.withdraw_if_nobodys(withdrawal, claim);
            }
            _ => self.approvals.withdraw_at_once(withdrawal),
        }
    }
}

/// A request as it is once it is withdrawn, and the change that makes it so.
struct Withdrawal {
    withdrawn: Approval,
    change: Replacement,
}

impl Withdrawal {
    /// None where it is over.
    fn of(seen: Seen, now_ms: u64) -> Option<Self> {
        let state = step(&seen.approval, Action::Withdraw, now_ms).ok()?;
        let withdrawn = ended_small(Approval {
            state,
            ..seen.approval
        });
        let change = Replacement::of(&seen.document, json!(withdrawn));
        Some(Self { withdrawn, change })
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
            let seen = self.seen_if_readable(&id).await?;
            let of = seen.and_then(|seen| seen.approval.request.envelope.target.run_id);
            if of.as_deref() == Some(run) {
                self.spend(&id).await?;
            }
        }
        Ok(())
    }

    /// Takes back an answer that must not be used any more, and says whether that was done here. One that
    /// is over stays as it is.
    pub(super) async fn spend(&self, id: &str) -> StoreResult<bool> {
        let mut seen = self.seen(id).await?;
        while let Some(at) = seen {
            match self.advance(&at, Action::Withdraw).await? {
                Ok(spent) => {
                    let written = self.write_down(&spent).await;
                    let away = |error: AuditError| StoreError::Unavailable(error.to_string());
                    return written.map(|()| true).map_err(away);
                }
                Err(Lost::Changed(newer)) => seen = Some(*newer),
                Err(Lost::Refused(_) | Lost::Gone) => break,
            }
        }
        Ok(false)
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

    /// Withdraws what is this call's, or nobody's.
    fn withdraw_at_once(self: &Arc<Self>, withdrawal: Withdrawal) {
        // At once: nobody may come to run on it, even if this process is about to end.
        self.store.replace_detached(withdrawal.change.clone());
        // Without a runtime there is nobody to write; the state says it all the same.
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let name = self.unrecorded(&withdrawal);
        let approvals = self.clone();
        self.track(runtime.spawn(async move {
            approvals.until_recorded(withdrawal, &name).await;
        }));
    }

    /// Withdraws it where nobody has taken this call for dead and goes on with it. Who can not be asked
    /// leaves it open: that ends by itself, and what was taken from another does not come back.
    fn withdraw_if_nobodys(self: &Arc<Self>, withdrawal: Withdrawal, claim: HeldClaim) {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        let approvals = self.clone();
        self.track(runtime.spawn(async move {
            let asked = approvals.until_done(|| claim.is_gone_on_with()).await;
            if asked != Some(false) {
                return;
            }
            let name = approvals.unrecorded(&withdrawal);
            approvals.until_recorded(withdrawal, &name).await;
        }));
    }

    fn track(&self, task: JoinHandle<()>) {
        let mut open = self.withdrawals.tasks.lock();
        open.retain(|task| !task.is_finished());
        open.push(task);
    }

    /// From now on it is withdrawn here, whatever the store says.
    fn unrecorded(&self, withdrawal: &Withdrawal) -> (String, String) {
        let (id, intent) = (&withdrawal.withdrawn.id, &withdrawal.change.group);
        let name = (id.clone(), intent.clone());
        let mut unrecorded = self.withdrawals.unrecorded.lock();
        unrecorded.insert(name.clone(), self.now_ms());
        name
    }

    /// Says it until the store has heard it: somebody may come to run on a request that looks open.
    async fn until_recorded(&self, withdrawal: Withdrawal, name: &(String, String)) {
        let Withdrawal { withdrawn, change } = withdrawal;
        let done = self.until_done(|| self.withdrawn(change.clone())).await;
        let Some(done) = done else {
            return;
        };
        self.withdrawals.unrecorded.lock().remove(name);
        if done == Withdrawn::Yes
            && let Err(error) = self.write_down(&withdrawn).await
        {
            self.tell_trouble(&StoreError::Unavailable(error.to_string()));
        }
    }

    /// Asks a store until it answers, or the process is to end.
    async fn until_done<T, F: Future<Output = StoreResult<T>>>(
        &self,
        ask: impl Fn() -> F,
    ) -> Option<T> {
        let mut ends = self.withdrawals.ends.subscribe();
        let mut was_told = false;
        loop {
            match ask().await {
                Ok(done) => return Some(done),
                Err(error) if !was_told => {
                    self.tell_trouble(&error);
                    was_told = true;
                }
                Err(_) => {}
            }
            let pause = Duration::from_millis(WITHDRAWN_AGAIN_MS);
            let told_to_end = tokio::time::timeout(pause, ends.wait_for(|ends| *ends)).await;
            if told_to_end.is_ok() {
                return None;
            }
        }
    }

    pub(super) fn tell_trouble(&self, error: &StoreError) {
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
