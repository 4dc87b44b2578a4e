//! A call goes on with the request of an identical one whose asker is gone.
//!
//! Whoever was cut off while a person thought asks again, under a new id. Asked about as another
//! call it would run beside the first, which may be approved and run for nobody. So it takes the
//! request over: the same answer, one run. Where the first was run already there is nothing to take
//! over: asking once more is another wish, and a person is asked about it.
//!
//! A request belongs to the intent whose key it is grouped by. It changes hands by one
//! compare-and-set, made while the former intent's claim is held: so nobody who could use it for
//! that intent is there, and whoever comes back to it later finds that it is another's.

use std::time::Duration;

use holdfast_contract::{ApprovalRoute, Need};
use holdfast_reliability::call::{Call, Entry};
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::{HeldClaim, TakenOver};
use serde_json::json;

use super::error::AnswerError;
use super::layer::APPROVAL_POLL_MS;
use super::marks::UNNAMED;
use super::model::{ApprovalRequest, Subject, digest_of};
use super::orphans::APPROVAL_SEEK_MS_MAX;
use super::own::is_of;
use super::service::{Approvals, Seen};
use super::withdraw::Withdraw;

/// A call that looks for what is left of another.
struct Seeker<'a> {
    approvals: &'a Approvals,
    claim: &'a HeldClaim,
    call: &'a Call,
    need: &'a Need,
    route: &'a ApprovalRoute,
    digest: String,
}

/// The request that is left of a call like this one, and is this call's from now on. Without a claim nobody can tell whose asker lives; and one
/// with a key of its own says itself which intent it means.
pub(super) async fn what_is_left(
    approvals: &Approvals,
    call: &Call,
    need: &Need,
    route: &ApprovalRoute,
    guard: &mut Withdraw,
) -> Result<Option<Seen>, AnswerError> {
    let Some(claim) = &call.held_claim else {
        return Ok(None);
    };
    if call.entry == Entry::Resumed || !call.is_unnamed() {
        return Ok(None);
    }
    let seeker = Seeker {
        approvals,
        claim,
        call,
        need,
        route,
        digest: digest_of(&call.envelope),
    };
    let subject = Subject::of(&call.envelope, &call.session, &seeker.digest);
    // Those from before requests were marked by what they ask are looked into one by one.
    for group in [&*subject.fingerprint(), UNNAMED] {
        for id in approvals.marked_open_for(group).await? {
            if let Some(ours) = seeker.left_of(&id, guard).await? {
                return Ok(Some(ours));
            }
        }
    }
    Ok(None)
}

impl Seeker<'_> {
    async fn left_of(&self, id: &str, guard: &mut Withdraw) -> Result<Option<Seen>, AnswerError> {
        let mut has_asked = false;
        let begun_ms = self.approvals.now_ms();
        loop {
            let Some((seen, key)) = self.adoptable(id).await? else {
                return Ok(None);
            };
            let (now_ms, marks_now_ms) = (self.approvals.now_ms(), self.approvals.marks_now_ms());
            let own = self.claim.key().to_string();
            let mark = seen.approval.wanted_by.as_ref();
            let mark = mark.filter(|mark| mark.key == own);
            let is_too_long = now_ms.saturating_sub(begun_ms) > APPROVAL_SEEK_MS_MAX;
            if !seen.approval.is_open(now_ms) || (has_asked && mark.is_none()) || is_too_long {
                // It is over; or its asker lives, and has said so or would have died by now.
                return Ok(None);
            }
            match self.claim.take_over(key).await? {
                TakenOver::Free(former) => {
                    let ours = self.hand_over(&seen, guard).await?;
                    // What is not given back now is given back when it is dropped.
                    let _ = former.release().await;
                    if let Some(ours) = ours {
                        return Ok(Some(ours));
                    }
                }
                TakenOver::Running if mark.is_some_and(|mark| !mark.is_half_over(marks_now_ms)) => {
                    self.pause().await;
                }
                TakenOver::Running => {
                    has_asked |= self.approvals.want(&seen, self.claim.key()).await?;
                }
                // It ran a moment ago, or without its request.
                TakenOver::Over => return Ok(None),
            }
        }
    }

    /// The request as it stands, if this call can have it, and whose it is.
    async fn adoptable(&self, id: &str) -> Result<Option<(Seen, StoredKey)>, AnswerError> {
        let Some(seen) = self.approvals.seen_if_readable(id).await? else {
            return Ok(None);
        };
        let request = &seen.approval.request;
        let fits = is_of(request, self.call, self.need, &self.digest)
            && is_for(request, self.call)
            && request.asked_session == self.route.asked_session;
        let key = seen.document.group.parse().ok();
        // What is under its own key it has found already, and its own claim it can not take over.
        let key = key.filter(|key| fits && *key != self.claim.key());
        Ok(key.map(|key| (seen, key)))
    }

    /// Makes a request this call's, if it still stands as it was seen.
    async fn hand_over(
        &self,
        seen: &Seen,
        guard: &mut Withdraw,
    ) -> Result<Option<Seen>, AnswerError> {
        let (envelope, key) = (&self.call.envelope, self.claim.key());
        let Some(ours) = self
            .approvals
            .rewrite(seen, envelope, self.route, key)
            .await?
        else {
            return Ok(None);
        };
        guard.watch(&ours);
        let (request, before) = (&ours.approval.request, &seen.approval.request.envelope);
        let told = json!({"approval": ours.approval.id, "tool": request.tool,
                          "digest": request.digest, "session": request.origin_session,
                          "request": envelope.request_id, "before": before.request_id});
        self.approvals.record("approval.handed_over", told).await?;
        Ok(Some(ours))
    }

    async fn pause(&self) {
        let pause = Duration::from_millis(APPROVAL_POLL_MS);
        // Either way the request is looked at again.
        let _ = tokio::time::timeout(pause, self.approvals.changed().notified()).await;
    }
}

/// Whether a request is nobody else's: one under a key is found by its key, and a run makes its
/// calls again itself.
fn is_for(request: &ApprovalRequest, call: &Call) -> bool {
    let (asked, now) = (&request.envelope.target, &call.envelope.target);
    request.envelope.payload.idempotency_key.is_none()
        && request.hook_key.is_none()
        && asked.run_id == now.run_id
        && asked.session_key == now.session_key
        && asked.tenant_id == now.tenant_id
        && asked.workspace_id == now.workspace_id
}
