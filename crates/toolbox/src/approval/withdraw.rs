//! What becomes of a request whose call goes away.

use std::sync::Arc;

use holdfast_reliability::store::documents::Replacement;
use serde_json::json;

use super::model::Approval;
use super::service::{Approvals, Seen};
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
            let next = Approval {
                state,
                ..seen.approval
            };
            let change = Replacement::of(&seen.document, json!(next));
            self.approvals.store.replace_detached(change);
        }
    }
}
