//! A call goes on with the request of an identical one whose asker is gone.
//!
//! Whoever was cut off while a person thought asks again, under a new id. Asked about as another
//! call it would run beside the first, which may be approved and run for nobody. So it takes the
//! request over: the same answer, one run.
//!
//! A request belongs to the intent whose key it is grouped by. It changes hands by one
//! compare-and-set, made while the former intent's claim is held: so nobody who could use it for
//! that intent is there, and whoever comes back to it later finds that it is another's.

use std::time::Duration;

use holdfast_contract::Need;
use holdfast_reliability::call::{Call, Entry};
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{RecordState, SharedRecord};
use holdfast_reliability::idempotency::{HeldClaim, TakenOver};
use serde_json::json;

use super::error::AnswerError;
use super::layer::APPROVAL_POLL_MS;
use super::model::{ApprovalRequest, ApprovalState, Subject, digest_of};
use super::own::is_of;
use super::service::{Approvals, Seen};
use super::withdraw::Withdraw;

/// What is left of an identical call whose asker is gone.
pub(super) enum Left {
    /// Nothing.
    Nothing,
    /// Its request, which is this call's from now on.
    Request(Box<Seen>),
    /// It was run, and nobody has had the outcome.
    Outcome(SharedRecord),
}

/// A call that looks for what is left of another.
struct Seeker<'a> {
    approvals: &'a Approvals,
    claim: &'a HeldClaim,
    call: &'a Call,
    need: &'a Need,
    digest: String,
}

/// What is left of a call like this one. Without a claim nobody can tell whose asker lives; and one
/// with a key of its own says itself which intent it means.
pub(super) async fn what_is_left(
    approvals: &Approvals,
    call: &Call,
    need: &Need,
    guard: &mut Withdraw,
) -> Result<Left, AnswerError> {
    let Some(claim) = &call.held_claim else {
        return Ok(Left::Nothing);
    };
    if call.entry == Entry::Resumed || !call.is_unnamed() {
        return Ok(Left::Nothing);
    }
    let seeker = Seeker {
        approvals,
        claim,
        call,
        need,
        digest: digest_of(&call.envelope),
    };
    let subject = Subject::of(&call.envelope, &call.session, &seeker.digest);
    for id in approvals.alike(&subject).await? {
        match seeker.left_of(&id, guard).await? {
            Left::Nothing => {}
            left => return Ok(left),
        }
    }
    Ok(Left::Nothing)
}

impl Seeker<'_> {
    async fn left_of(&self, id: &str, guard: &mut Withdraw) -> Result<Left, AnswerError> {
        let mut has_asked = false;
        loop {
            let Some((seen, key)) = self.adoptable(id).await? else {
                return Ok(Left::Nothing);
            };
            if let ApprovalState::Used { .. } = seen.approval.state {
                return self.outcome(id, key).await;
            }
            let is_wanted = seen.approval.wanted_by == Some(self.claim.key().to_string());
            if !seen.approval.is_open(self.approvals.now_ms()) || (has_asked && !is_wanted) {
                // It is over; or its asker lives and has said so.
                return Ok(Left::Nothing);
            }
            match self.claim.take_over(key).await? {
                TakenOver::Free(former) => {
                    let ours = self.hand_over(&seen, guard).await?;
                    former.release().await?;
                    if let Some(ours) = ours {
                        return Ok(Left::Request(Box::new(ours)));
                    }
                }
                TakenOver::Running(_) if is_wanted => self.pause().await,
                TakenOver::Running(_) => {
                    has_asked = self.approvals.want(&seen, self.claim.key()).await?;
                }
                // It ran a moment ago, or without its request.
                TakenOver::Ended(_) | TakenOver::Other => return self.outcome(id, key).await,
            }
        }
    }

    /// The request as it stands, if this call can have it, and whose it is.
    async fn adoptable(&self, id: &str) -> Result<Option<(Seen, StoredKey)>, AnswerError> {
        let Some(seen) = self.approvals.seen(id).await? else {
            return Ok(None);
        };
        let request = &seen.approval.request;
        let fits = is_of(request, self.call, self.need, &self.digest) && is_for(request, self.call);
        let key = seen.document.group.parse().ok().filter(|_| fits);
        Ok(key.map(|key| (seen, key)))
    }

    /// Makes a request this call's, if it still stands as it was seen.
    async fn hand_over(
        &self,
        seen: &Seen,
        guard: &mut Withdraw,
    ) -> Result<Option<Seen>, AnswerError> {
        let (envelope, key) = (&self.call.envelope, self.claim.key());
        let Some(ours) = self.approvals.rewrite(seen, envelope, key).await? else {
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

    /// What came of it, for one who asks. Whoever was to tell it and is gone has told nobody.
    async fn outcome(&self, id: &str, key: StoredKey) -> Result<Left, AnswerError> {
        let Some(left) = self.approvals.outcome_left(id).await? else {
            return Ok(Left::Nothing);
        };
        let own = self.claim.key();
        if let Some(taker) = left.taken_by().filter(|taker| *taker != own)
            && self.claim.outcome_of(taker).await?.is_some()
        {
            return Ok(Left::Nothing);
        }
        if !self.approvals.take_outcome(&left, own).await? {
            return Ok(Left::Nothing);
        }
        let outcome = self.claim.outcome_of(key).await?;
        if !outcome
            .as_ref()
            .is_some_and(|it| it.state == RecordState::Done)
        {
            // A failure leaves no record with whoever is told it, and is told once.
            self.approvals.forget_outcome(id).await?;
        }
        Ok(outcome.map_or(Left::Nothing, Left::Outcome))
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
