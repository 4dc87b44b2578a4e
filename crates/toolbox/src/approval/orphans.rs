//! Requests whose askers are gone, as somebody finds them who asks the same.
//!
//! Whether an asker lives is known by the claim of its call: who gets that can have the request.
//! Where the claim is held, its holder is asked, by a mark on the request, which it looks at anyway
//! for its answer. An asker that lives takes the mark off; one that stands in for an asker lets go;
//! one that is dead does nothing, and its claim falls to whoever waits for it.

use holdfast_contract::ToolCallEnvelope;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::observe::Event;
use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{
    Document, DocumentFilter, NewDocument, Replaced, Replacement, all_documents,
};
use serde_json::{Value, json};

use super::model::{Approval, Subject};
use super::service::{Approvals, Seen};

const OUTCOME_KIND: &str = "approval-outcome";
/// How long whoever asks the same again gets what came of a call that was run after its asker had
/// gone.
pub const APPROVAL_OUTCOME_MS: u64 = 10 * 60 * 1000;

impl Approvals {
    /// The requests of identical calls that may be open, or that were run with nobody to take the
    /// outcome.
    pub(super) async fn alike(&self, subject: &Subject<'_>) -> StoreResult<Vec<String>> {
        let fingerprint = subject.fingerprint();
        // In this order: one that is run in between has its outcome before it is no longer open.
        let mut ids = self.marked_open_for(&fingerprint).await?;
        let filter = DocumentFilter::of(OUTCOME_KIND).group(&fingerprint);
        for outcome in all_documents(&*self.store, filter).await? {
            if !ids.contains(&outcome.id) {
                ids.push(outcome.id);
            }
        }
        Ok(ids)
    }

    /// Asks whoever holds the request's claim whether its asker lives; says whether the mark is on.
    pub(super) async fn want(&self, seen: &Seen, by: StoredKey) -> StoreResult<bool> {
        let marked = Approval {
            wanted_by: Some(by.to_string()),
            ..seen.approval.clone()
        };
        let replaced = self.change(seen, &marked).await?;
        Ok(matches!(replaced, Replaced::Done(_)))
    }

    /// Says that its asker lives. Who can not be told now asks on, and is told later.
    pub(super) async fn keep(&self, seen: Seen) -> Seen {
        let kept = Approval {
            wanted_by: None,
            ..seen.approval.clone()
        };
        let stands = match self.change(&seen, &kept).await {
            Ok(Replaced::Done(document) | Replaced::Changed(document)) => self.known(document),
            Ok(Replaced::Gone) => return seen,
            Err(error) => Err(error),
        };
        stands.unwrap_or_else(|error| {
            self.runtime.tell(&Event::StoreTrouble {
                what: "approval",
                error: &error,
            });
            seen
        })
    }

    async fn change(&self, seen: &Seen, next: &Approval) -> StoreResult<Replaced> {
        let change = Replacement::of(&seen.document, json!(next));
        let replaced = self.store.replace(change).await;
        self.changed().notify_waiters();
        replaced
    }

    /// Makes a request that of another call with the same arguments, if it still stands as it was
    /// seen.
    pub(super) async fn rewrite(
        &self,
        seen: &Seen,
        envelope: &ToolCallEnvelope,
        key: StoredKey,
    ) -> StoreResult<Option<Seen>> {
        let mut approval = seen.approval.clone();
        approval.request.envelope = envelope.clone();
        approval.wanted_by = None;
        let change = Replacement {
            group: key.to_string(),
            ..Replacement::of(&seen.document, json!(approval))
        };
        let replaced = self.store.replace(change).await?;
        self.changed().notify_waiters();
        match replaced {
            Replaced::Done(document) => self.known(document).map(Some),
            Replaced::Changed(_) | Replaced::Gone => Ok(None),
        }
    }

    /// A call is about to run whose asker is gone: who asks the same soon gets what comes of it.
    pub(super) async fn leave_outcome(&self, approval: &Approval) -> StoreResult<()> {
        let new = NewDocument {
            kind: OUTCOME_KIND.to_owned(),
            id: approval.id.clone(),
            group: approval.request.subject().fingerprint(),
            body: Value::Null,
            expires_at_ms: Some(self.now_ms().saturating_add(APPROVAL_OUTCOME_MS)),
        };
        self.store.create(new).await.map(|_| ())
    }

    /// The note about an outcome that nobody has had, or that somebody is about to have.
    pub(super) async fn outcome_left(&self, id: &str) -> StoreResult<Option<OutcomeLeft>> {
        let document = self.store.document(OUTCOME_KIND, id).await?;
        Ok(document.map(OutcomeLeft))
    }

    /// Makes an outcome this call's to tell. Of several one gets it.
    pub(super) async fn take_outcome(
        &self,
        left: &OutcomeLeft,
        by: StoredKey,
    ) -> StoreResult<bool> {
        let change = Replacement::of(&left.0, json!(by.to_string()));
        let replaced = self.store.replace(change).await?;
        Ok(matches!(replaced, Replaced::Done(_)))
    }

    /// Nobody else is told it.
    pub(super) async fn forget_outcome(&self, id: &str) -> StoreResult<()> {
        self.store.remove(OUTCOME_KIND, id).await.map(|_| ())
    }
}

/// A note that a call was run after its asker had gone.
pub(super) struct OutcomeLeft(Document);

impl OutcomeLeft {
    /// Who was to tell it.
    pub(super) fn taken_by(&self) -> Option<StoredKey> {
        self.0.body.as_str()?.parse().ok()
    }
}
