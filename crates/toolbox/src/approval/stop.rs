//! Why a call that was to wait for a person does not run.

use holdfast_reliability::idempotency::LostTo;
use holdfast_reliability::store::StoreError;

use super::error::AnswerError;
use super::model::ApprovalState;
use crate::audit::AuditError;

/// Why a call does not run, besides "no".
pub(super) enum Stop {
    /// No, and why.
    Denied(String),
    /// What people said, or that they said nothing, and what to do next. No rule is in the way.
    ByPeople { why: String, next: &'static str },
    /// Something that has to be kept can not be.
    Trouble(StoreError),
    /// Another call goes on with the request: it is not this one's to withdraw.
    TakenOver,
    /// The claim is lost, and nobody goes on with the request: it is withdrawn.
    ClaimLost,
    /// Somebody else goes on with the request, and this call only stood in for an asker that is gone.
    LetGo,
}

impl From<LostTo> for Stop {
    fn from(to: LostTo) -> Self {
        match to {
            LostTo::Another => Self::TakenOver,
            LostTo::Alike | LostTo::Nobody => Self::ClaimLost,
        }
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Trouble(error)
    }
}

impl From<AuditError> for Stop {
    fn from(error: AuditError) -> Self {
        Self::Trouble(match error {
            AuditError::Store(error) => error,
            file @ AuditError::File { .. } => StoreError::Unavailable(file.to_string()),
        })
    }
}

impl From<AnswerError> for Stop {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Store(error) => error.into(),
            AnswerError::Audit(error) => error.into(),
            other => Self::Denied(other.to_string()),
        }
    }
}

/// What to do next where a person said no.
pub(super) const SAID_NO: &str = "A person said no to this very call: do without it, or do something else \
                                  that they may allow. Calling it again asks them nothing new.";
const SAID_NOTHING: &str =
    "Nothing ran. Call it again when somebody is there to answer, or do without it.";

/// Why a call does not run that a person would have to approve, where nobody is asked.
pub(super) fn nobody_here(tool: &str, reasons: &str) -> Stop {
    Stop::ByPeople {
        why: format!(
            "{tool} needs approval: {reasons}; nobody is asked here (permissions.approvals.people)"
        ),
        next: NOBODY_HERE,
    }
}

const NOBODY_HERE: &str = "Nobody can allow it here: do without it.";

/// Why a call does not run whose request is over.
pub(super) fn over(id: &str, state: &ApprovalState) -> Stop {
    let why = refusal(id, state);
    match state {
        ApprovalState::Denied { .. } => Stop::ByPeople { why, next: SAID_NO },
        ApprovalState::Expired { .. } => Stop::ByPeople {
            why,
            next: SAID_NOTHING,
        },
        _ => Stop::Denied(why),
    }
}

/// What a caller is told whose request is over.
fn refusal(id: &str, state: &ApprovalState) -> String {
    match state {
        ApprovalState::Denied { by, reason, .. } => match reason {
            Some(reason) => format!("{by} denied it (approval {id}): {reason}"),
            None => format!("{by} denied it (approval {id})"),
        },
        ApprovalState::Expired { .. } => {
            format!("nobody approved it in time (approval {id}), and silence means no")
        }
        ApprovalState::Used { .. } => format!("another run has used the approval {id}"),
        other => format!("the approval {id} is {}", other.as_str()),
    }
}
