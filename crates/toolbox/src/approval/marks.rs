//! How many requests are open, without loading them.
//!
//! A request holds a whole call, and one that is over is kept for a month. So each has a small mark
//! beside it for as long as a call may come to run on it, and the marks are counted. They are grouped
//! by what is asked, so that who asks the same finds it.

use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{DocumentFilter, NewDocument, all_documents};
use serde_json::Value;

use super::model::{Approval, ApprovalState};
use super::service::Approvals;

const KIND: &str = "approval-open";
/// The group of marks that older versions made, which did not say what is asked. There are such for
/// as long as a request of before the upgrade is open.
pub(super) const UNNAMED: &str = "";

impl Approvals {
    /// How many requests may be open.
    pub(super) async fn count_open(&self) -> StoreResult<usize> {
        Ok(self.marked_open().await?.len())
    }

    /// The names of requests that may be open.
    pub(super) async fn marked_open(&self) -> StoreResult<Vec<String>> {
        let marks = all_documents(&*self.store, DocumentFilter::of(KIND)).await?;
        Ok(marks.into_iter().map(|mark| mark.id).collect())
    }

    /// The same for those of one identical call, or those of which it is not said.
    pub(super) async fn marked_open_for(&self, fingerprint: &str) -> StoreResult<Vec<String>> {
        let filter = DocumentFilter::of(KIND).group(fingerprint);
        let marks = all_documents(&*self.store, filter).await?;
        Ok(marks.into_iter().map(|mark| mark.id).collect())
    }

    /// Requests that were approved and that nobody has used. Those that are over are not loaded: this is
    /// asked for again and again. One that can not be read keeps no other from being found.
    pub async fn approved(&self) -> StoreResult<Vec<Approval>> {
        let now_ms = self.now_ms();
        let mut approved = Vec::new();
        for id in self.marked_open().await? {
            if let Some(found) = self.seen_if_readable(&id).await?
                && matches!(
                    found.approval.state_at(now_ms),
                    ApprovalState::Approved { .. }
                )
            {
                approved.push(found.approval);
            }
        }
        Ok(approved)
    }

    /// Marks a request as open, for as long as it can be.
    pub(super) async fn mark_open(&self, approval: &Approval) -> StoreResult<()> {
        let until_ms = approval.request.expires_at_ms;
        let until_ms = until_ms.saturating_add(self.config.now().approvals.use_within_ms);
        let mark = NewDocument {
            kind: KIND.to_owned(),
            id: approval.id.clone(),
            group: approval.request.subject().fingerprint(),
            body: Value::Null,
            expires_at_ms: Some(until_ms),
        };
        self.store.create(mark).await.map(|_| ())
    }

    /// Takes the mark off. One that stays goes by itself.
    pub(super) async fn no_longer_open(&self, id: &str) {
        let _ = self.store.remove(KIND, id).await;
    }
}
