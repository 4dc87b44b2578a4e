//! Why an answer was not taken.

use holdfast_reliability::store::StoreError;

use super::step::Refused;
use crate::audit::AuditError;

/// Why an answer was not taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// There is no such request.
    #[error("there is no approval request {0:?}")]
    NotFound(String),
    /// The request does not take it.
    #[error("the request {id} can not be answered like that: {why}")]
    Refused {
        /// Which.
        id: String,
        /// Why.
        why: Refused,
    },
    /// Somebody who is not among those who may answer by message.
    #[error("{0:?} is not among permissions.approvals.senders")]
    Sender(String),
    /// Nobody may answer by message.
    #[error(
        "nobody may answer by message: name who may, as the channel names them, in permissions.approvals.senders"
    )]
    NoSenders,
    /// A rule is not made by message.
    #[error(
        "a message approves {0} once or for its session; for a policy: holdfast approvals approve {0} --for policy"
    )]
    PolicyByMessage(String),
    /// A channel does not show all of it.
    #[error(
        "the prompt for {0} does not show secrets that are in its arguments, so it is not answered by message; `holdfast approvals show {0}` shows all of it, and there it can be answered"
    )]
    NotShownWhole(String),
    /// The store can not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The audit log can not be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
}
