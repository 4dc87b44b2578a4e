//! Runs what was approved after its process had died.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use holdfast_contract::{ErrorCode, ToolResultEnvelope};
use holdfast_reliability::store::StoreResult;

use super::model::{Approval, ApprovalState};
use super::service::Approvals;
use crate::stack::ToolStack;

/// Which requests to enter again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResumeWhich {
    /// Those that were approved: each runs now.
    Approved,
    /// Those that still wait for an answer as well: a server waits on for them.
    All,
    /// These, whatever they wait for.
    These(BTreeSet<String>),
}

impl ResumeWhich {
    /// Whether it takes this one.
    pub fn takes(&self, approval: &Approval) -> bool {
        match self {
            Self::Approved => matches!(approval.state, ApprovalState::Approved { .. }),
            Self::All => true,
            Self::These(ids) => ids.contains(&approval.id),
        }
    }
}

/// A call that was entered again, and its answer.
#[derive(Debug, Clone)]
pub struct Resumed {
    /// The request.
    pub approval: Approval,
    /// What came of it.
    pub result: ToolResultEnvelope,
    /// Whose it was to run.
    pub by: ResumedBy,
}

/// Who goes on with a call whose asker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumedBy {
    /// Whoever resumed it: the result says how it went.
    Us,
    /// Another call, which asks the same: nothing failed, and the result is not about it.
    Another,
}

impl Resumed {
    /// Whether it was run well, or is somebody else's to run.
    pub fn is_well(&self) -> bool {
        self.by == ResumedBy::Another || self.result.is_success()
    }
}

/// Enters the captured calls of open requests into the stack again, all at once. A call whose
/// first process still lives is joined, not run beside it.
///
/// The caller's deadline is left behind: its caller is gone.
pub async fn resume_open(
    stack: &ToolStack,
    approvals: &Approvals,
    which: &ResumeWhich,
) -> StoreResult<Vec<Resumed>> {
    let open = approvals.open_requests().await?;
    let calls = open
        .into_iter()
        .filter(|approval| which.takes(approval))
        .map(|approval| async move {
            let result = stack.call_resumed(&approval).await;
            let by = approvals.who_has(&approval, &result).await?;
            if by == ResumedBy::Us && is_coded(&result, ErrorCode::PermissionDenied) {
                // It was refused for another reason than its answer: a rule, or what it would touch
                // has changed. It is not entered again.
                approvals.spend(&approval.id).await?;
            }
            Ok(Resumed {
                approval,
                result,
                by,
            })
        });
    join_all(calls).await.into_iter().collect()
}

/// Whether it failed with this code.
pub(super) fn is_coded(result: &ToolResultEnvelope, code: ErrorCode) -> bool {
    let failed = result.error.as_ref();
    failed.is_some_and(|error| error.code == code.as_str())
}
