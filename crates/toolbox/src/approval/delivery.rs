//! Requests that nobody was shown.

use holdfast_contract::visible;
use holdfast_reliability::observe::Event;
use holdfast_reliability::store::documents::Replacement;
use serde_json::json;

use super::model::Approval;
use super::service::{Approvals, Seen};

/// Characters of the reason that are kept.
const WHY_CHARS_MAX: usize = 200;

impl Approvals {
    /// The channel did not take the request. It goes on waiting, for whoever looks: so it says so
    /// itself, and the log does.
    pub(super) async fn not_delivered(&self, seen: &Seen, channel: &str, error: &str) {
        let why = self.runtime.redactor.redact_text(error);
        let why: String = visible::line(&why).chars().take(WHY_CHARS_MAX).collect();
        self.runtime.tell(&Event::Undelivered {
            approval: &seen.approval.id,
            tool: &seen.approval.request.tool,
            channel,
            error: &why,
        });
        let next = Approval {
            undelivered: Some(why),
            ..seen.approval.clone()
        };
        let change = Replacement::of(&seen.document, json!(next));
        // One that was answered meanwhile needs no note, and one that can not be written down is in
        // the log.
        if let Err(error) = self.store.replace(change).await {
            self.runtime.tell(&Event::StoreTrouble {
                what: "approval",
                error: &error,
            });
        }
    }
}
