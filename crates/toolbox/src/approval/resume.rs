//! Runs what was approved after its process had died.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;

use futures_util::future::join_all;
use holdfast_contract::{ErrorCode, ToolResultEnvelope};
use holdfast_reliability::call::{AtOnce, Starts};
use holdfast_reliability::store::{StoreError, StoreResult};

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
    /// What could not be found out or written down about its request afterwards. The result is what it
    /// is.
    pub trouble: Option<StoreError>,
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
    /// Whether it was run well, or is somebody else's to run, and all is written down.
    pub fn is_well(&self) -> bool {
        self.trouble.is_none() && (self.by == ResumedBy::Another || self.result.is_success())
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
    let mut open = approvals.open_requests().await?;
    open.retain(|approval| which.takes(approval));
    let calls = open
        .into_iter()
        .map(|approval| resume_one(stack, approvals, approval, Arc::new(AtOnce), pending()));
    Ok(join_all(calls).await)
}

/// Enters one of them, until it is cancelled.
pub async fn resume_one(
    stack: &ToolStack,
    approvals: &Approvals,
    approval: Approval,
    starts: Arc<dyn Starts>,
    cancelled: impl Future<Output = ()>,
) -> Resumed {
    let result = stack.call_resumed(&approval, starts, cancelled).await;
    // A call that has ended is told of, whatever the store says of its request by now.
    let (by, trouble) = match settled(approvals, &approval, &result).await {
        Ok(by) => (by, None),
        Err(error) => (ResumedBy::Us, Some(error)),
    };
    Resumed {
        approval,
        result,
        by,
        trouble,
    }
}

/// Who has the request of a call that was entered again, and whether there is to be more of it.
async fn settled(
    approvals: &Approvals,
    approval: &Approval,
    result: &ToolResultEnvelope,
) -> StoreResult<ResumedBy> {
    let by = approvals.who_has(approval, result).await?;
    let has_run = result.attempts > 0;
    if by == ResumedBy::Us && (has_run || is_coded(result, ErrorCode::PermissionDenied)) {
        // It ran on another request than this one, or was refused for another reason than its
        // answer: a rule, or what it would touch has changed. It is not entered again.
        approvals.spend(&approval.id).await?;
    }
    Ok(by)
}

/// Whether it failed with this code.
pub(super) fn is_coded(result: &ToolResultEnvelope, code: ErrorCode) -> bool {
    let failed = result.error.as_ref();
    failed.is_some_and(|error| error.code == code.as_str())
}
