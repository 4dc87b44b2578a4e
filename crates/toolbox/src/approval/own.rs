//! The requests of one intent.

use holdfast_contract::{ErrorCode, Need, Reason, ToolCallEnvelope, ToolResultEnvelope};
use holdfast_reliability::call::Call;
use holdfast_reliability::idempotency::LostTo;
use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{DocumentFilter, all_documents};

use super::model::{Approval, ApprovalRequest, ApprovalState, digest_of};
use super::resume::{ResumedBy, is_coded};
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
        let Some(resumes) = &call.resumes else {
            return Ok(false);
        };
        let Some(seen) = self.seen(&resumes.approval).await? else {
            return Ok(true);
        };
        let is_its = is_same_call(&seen.approval.request.envelope, &call.envelope);
        Ok(!is_its || !seen.approval.is_open(self.now_ms()))
    }

    /// Who has a request that was entered again: another only where its call was not let start here.
    pub(super) async fn who_has(
        &self,
        entered: &Approval,
        result: &ToolResultEnvelope,
    ) -> StoreResult<ResumedBy> {
        let was_stopped = result.attempts == 0
            && (is_coded(result, ErrorCode::Cancelled)
                || is_coded(result, ErrorCode::PermissionDenied));
        if !was_stopped {
            return Ok(ResumedBy::Us);
        }
        let Some(now) = self.get(&entered.id).await? else {
            return Ok(ResumedBy::Us);
        };
        // Of one that is over, a mark says only who came too late.
        let is_open = now.is_open(self.now_ms());
        let mark = now.wanted_by.as_ref().filter(|_| is_open);
        let is_anothers = !is_same_call(&now.request.envelope, &entered.request.envelope)
            || matches!(now.state, ApprovalState::Used { .. })
            || mark.is_some_and(|mark| mark.is_fresh(self.marks_now_ms()));
        Ok(if is_anothers {
            ResumedBy::Another
        } else {
            ResumedBy::Us
        })
    }
}

/// Whether two envelopes are of one delivery, or of the same delivered again.
fn is_same_call(one: &ToolCallEnvelope, other: &ToolCallEnvelope) -> bool {
    one.request_id == other.request_id
        && one.tool_call_id == other.tool_call_id
        && one.target.turn_id == other.target.turn_id
        && one.payload.tool_step == other.payload.tool_step
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

/// Whether a call has its claim, or has it again: what another goes on with is not its to use. A
/// store that is away for a moment does not cost a person's yes: it is asked once more when the call
/// begins.
pub(super) async fn has_claim(call: &Call) -> Result<(), LostTo> {
    match &call.held_claim {
        Some(claim) => claim.regain().await.unwrap_or(Ok(())),
        None => Ok(()),
    }
}
