//! Who hears that a call waits for a person.

use holdfast_reliability::store::StoreResult;
use tokio::sync::broadcast;

use super::model::ApprovalState;
use super::service::Approvals;

/// Notes about calls that begin to wait which a listener may be behind; then it misses the oldest.
pub const APPROVAL_NOTES_MAX: usize = 256;

/// A call waits for a person's answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waiting {
    /// The call's request.
    pub request: String,
    /// The approval that it waits for.
    pub approval: String,
}

/// Tells whoever listens in this process.
pub(super) struct Notes(broadcast::Sender<Waiting>);

impl Default for Notes {
    fn default() -> Self {
        Self(broadcast::Sender::new(APPROVAL_NOTES_MAX))
    }
}

impl Approvals {
    /// Hears of every call of this process that begins to wait from now on.
    pub fn waits(&self) -> broadcast::Receiver<Waiting> {
        self.notes.0.subscribe()
    }

    /// A call begins to wait.
    pub(super) fn tell_waits(&self, request: &str, approval: &str) {
        // Nobody has to listen.
        let _ = self.notes.0.send(Waiting {
            request: request.to_owned(),
            approval: approval.to_owned(),
        });
    }

    /// What people are asked for a run and have not answered.
    pub async fn waiting_for_run(&self, run: &str) -> StoreResult<Vec<String>> {
        let mut waiting = Vec::new();
        for id in self.marked_open().await? {
            let Some(seen) = self.seen_if_readable(&id).await? else {
                continue;
            };
            let of = seen.approval.request.envelope.target.run_id.as_deref();
            let is_open = seen.approval.state_at(self.now_ms()) == ApprovalState::Pending;
            if is_open && of == Some(run) {
                waiting.push(id);
            }
        }
        Ok(waiting)
    }
}
