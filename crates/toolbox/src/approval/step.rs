//! The life of a request as pure functions.

use holdfast_contract::{Answer, Gate, Scope};

use super::model::{Approval, ApprovalState};

/// What is to happen to a request.
#[derive(Debug, Clone, Copy)]
pub enum Action<'a> {
    /// A person answers.
    Answer {
        /// What.
        answer: &'a Answer,
        /// Who.
        by: &'a str,
        /// How long a yes may wait to be used.
        use_within_ms: u64,
    },
    /// The call starts.
    Use {
        /// Over the arguments that are about to run.
        digest: &'a str,
    },
    /// Its time is over.
    Expire,
    /// The caller went away.
    Withdraw,
}

/// Why it does not happen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Somebody else was faster, or it is over.
    #[error("it is {0} already")]
    Over(&'static str),
    /// Nobody answered in time.
    #[error("it expired, and silence means no")]
    Expired,
    /// Nobody approves their own request.
    #[error("{0:?} asked for it, and nobody approves their own request")]
    OwnRequest(String),
    /// The gate takes answers for one call only.
    #[error("its gate is strict: it can be approved once, not for a session or as a policy")]
    OnceOnly,
    /// Nobody has approved it.
    #[error("nobody has approved it yet")]
    NotApproved,
    /// These are not the arguments that were approved.
    #[error("the arguments are not the ones that were approved")]
    Changed,
    /// Its time is not over.
    #[error("its time is not over")]
    NotYet,
}

/// The next state, or why there is none.
pub fn step(
    approval: &Approval,
    action: Action<'_>,
    now_ms: u64,
) -> Result<ApprovalState, Refused> {
    let state = approval.state_at(now_ms);
    match action {
        Action::Answer {
            answer,
            by,
            use_within_ms,
        } => {
            match state {
                ApprovalState::Pending => {}
                ApprovalState::Expired { .. } => return Err(Refused::Expired),
                over => return Err(Refused::Over(over.as_str())),
            }
            answered(approval, answer, by, use_within_ms, now_ms)
        }
        Action::Use { digest } => match state {
            ApprovalState::Approved { .. } if digest != approval.request.digest => {
                Err(Refused::Changed)
            }
            ApprovalState::Approved { by, .. } => Ok(ApprovalState::Used { by, at_ms: now_ms }),
            ApprovalState::Pending => Err(Refused::NotApproved),
            ApprovalState::Expired { .. } => Err(Refused::Expired),
            over => Err(Refused::Over(over.as_str())),
        },
        Action::Expire => match (&approval.state, state) {
            (
                ApprovalState::Pending | ApprovalState::Approved { .. },
                expired @ ApprovalState::Expired { .. },
            ) => Ok(expired),
            (ApprovalState::Pending | ApprovalState::Approved { .. }, _) => Err(Refused::NotYet),
            (over, _) => Err(Refused::Over(over.as_str())),
        },
        Action::Withdraw => match state {
            ApprovalState::Pending | ApprovalState::Approved { .. } => {
                Ok(ApprovalState::Withdrawn { at_ms: now_ms })
            }
            ApprovalState::Expired { .. } => Err(Refused::Expired),
            over => Err(Refused::Over(over.as_str())),
        },
    }
}

fn answered(
    approval: &Approval,
    answer: &Answer,
    by: &str,
    use_within_ms: u64,
    now_ms: u64,
) -> Result<ApprovalState, Refused> {
    let scope = match answer {
        // Saying no to oneself is fine.
        Answer::Deny { reason } => {
            return Ok(ApprovalState::Denied {
                by: by.to_owned(),
                at_ms: now_ms,
                reason: reason.clone(),
            });
        }
        Answer::Approve { scope } => *scope,
    };
    if by == approval.request.envelope.target.actor_id {
        return Err(Refused::OwnRequest(by.to_owned()));
    }
    if approval.request.gate == Gate::Strict && scope != Scope::Once {
        return Err(Refused::OnceOnly);
    }
    Ok(ApprovalState::Approved {
        scope,
        by: by.to_owned(),
        at_ms: now_ms,
        use_by_ms: now_ms.saturating_add(use_within_ms),
    })
}
