//! The requests of one intent.

use holdfast_contract::{Need, Reason};
use holdfast_reliability::call::Call;
use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{DocumentFilter, all_documents};

use super::model::{ApprovalRequest, digest_of};
use super::service::{Approvals, KIND, Seen};

impl Approvals {
    /// The open request of this very call, from before its process died.
    pub(super) async fn own(&self, call: &Call, need: &Need) -> StoreResult<Option<Seen>> {
        let now_ms = self.now_ms();
        let filter = DocumentFilter::of(KIND).group(&intent_of(call));
        let digest = digest_of(&call.envelope);
        for document in all_documents(&*self.store, filter).await? {
            let seen = self.known(document)?;
            if seen.approval.is_open(now_ms) && is_of(&seen.approval.request, call, need, &digest) {
                return Ok(Some(seen));
            }
        }
        Ok(None)
    }

    /// Whether the request that a call was entered for is over, or another call's by now.
    pub(super) async fn is_not_its_any_more(&self, call: &Call) -> StoreResult<bool> {
        let Some(id) = &call.resumes else {
            return Ok(false);
        };
        let Some(seen) = self.seen(id).await? else {
            return Ok(true);
        };
        let (asked, now) = (&seen.approval.request.envelope, &call.envelope);
        let is_its = asked.request_id == now.request_id
            && asked.tool_call_id == now.tool_call_id
            && asked.target.turn_id == now.target.turn_id
            && asked.payload.tool_step == now.payload.tool_step;
        Ok(!is_its || !seen.approval.is_open(self.now_ms()))
    }
}

/// Whether a request is about this very call: the same asked by others, or elsewhere, is another.
pub(super) fn is_of(request: &ApprovalRequest, call: &Call, need: &Need, digest: &str) -> bool {
    request.digest == digest
        && are_same(&request.reasons, &need.reasons)
        && request.grants == need.grants
        && request.gate == need.gate
        && request.origin_session == call.session.session_id
        && request.agent == call.session.agent_id
        && request.workspace_root == call.session.workspace_root
        && request.envelope.target.actor_id == call.envelope.target.actor_id
}

/// Whether these are the same reasons. Their texts are for people, and may say how much time is left.
fn are_same(asked: &[Reason], now: &[Reason]) -> bool {
    asked.len() == now.len() && asked.iter().zip(now).all(|(asked, now)| asked.covers(now))
}

/// What a call's requests are found by when it comes again.
pub(super) fn intent_of(call: &Call) -> String {
    match call.stored_key {
        Some(key) => key.to_string(),
        None => format!("request:{}", call.envelope.request_id),
    }
}
