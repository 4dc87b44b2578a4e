//! Requests whose askers are gone, as somebody finds them who asks the same.
//!
//! Whether an asker lives is known by the claim of its call: who gets that can have the request.
//! Where the claim is held, its holder is asked, by a mark on the request, which it looks at anyway
//! for its answer. An asker that lives takes the mark off; one that stands in for an asker lets go;
//! one that is dead does nothing, and its claim falls to whoever waits for it.

use holdfast_contract::{ApprovalRoute, ToolCallEnvelope};
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::observe::Event;
use holdfast_reliability::store::StoreResult;
use holdfast_reliability::store::documents::{Replaced, Replacement};
use serde_json::json;

use super::model::{Approval, Wanted};
use super::service::{Approvals, Seen, read};

/// How long a stand-in heeds the mark of somebody who wants its request, and has not said so again:
/// a seeker that died must not keep a server from standing in.
pub const APPROVAL_WANTED_MS: u64 = 5_000;
/// How long a call looks whether the asker of an identical one lives: longer than the claim of one that
/// died, and than a stand-in takes to let go.
pub const APPROVAL_SEEK_MS_MAX: u64 = 30_000;

impl Wanted {
    /// Whether whoever made the mark may still be there.
    pub(super) fn is_fresh(&self, now_ms: u64) -> bool {
        // Also not from far ahead: a store that went back in time would hold on to it until then.
        now_ms.abs_diff(self.at_ms) < APPROVAL_WANTED_MS
    }

    /// Whether it is time to say it again. Well before nobody heeds it any more.
    pub(super) fn is_half_over(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.at_ms) >= APPROVAL_WANTED_MS / 2
    }
}

impl Approvals {
    /// Asks whoever holds the request's claim whether its asker lives; says whether the mark is on.
    pub(super) async fn want(&self, seen: &Seen, by: StoredKey) -> StoreResult<bool> {
        let marked = Approval {
            wanted_by: Some(Wanted {
                key: by.to_string(),
                at_ms: self.marks_now_ms(),
            }),
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
        route: &ApprovalRoute,
        key: StoredKey,
    ) -> StoreResult<Option<Seen>> {
        let mut approval = seen.approval.clone();
        approval.request.envelope = envelope.clone();
        approval.request.channel.clone_from(&route.channel);
        // It is shown again, on this call's channel.
        approval.undelivered = None;
        approval.wanted_by = None;
        let change = Replacement {
            group: key.to_string(),
            ..Replacement::of(&seen.document, json!(approval))
        };
        let replaced = self.store.replace(change).await?;
        self.changed().notify_waiters();
        match replaced {
            // As it was written: what is known here of its former call is not true of this one.
            Replaced::Done(document) => read(document).map(Some),
            Replaced::Changed(_) | Replaced::Gone => Ok(None),
        }
    }
}
