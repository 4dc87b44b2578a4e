//! The caller's own clock, which wins over every other.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{ErrorCode, Status};

use crate::call::{Call, Failure, Judged, Reply};
use crate::guard::FailureKind;
use crate::idempotency::ends_in_doubt;
use crate::retry::Evidence;
use crate::runtime::Runtime;
use crate::service::Service;

/// How long the loop guard may take, after the deadline, to note down that a call was cut off. A
/// call that is cut off by its caller again and again is a loop like any other.
pub const DEADLINE_GRACE_MS: u64 = 100;

/// Answers at the caller's deadline, whatever is still going on inside.
///
/// What is going on is dropped: a claim then ends as cancelled or unknown, and a command is killed.
pub struct Deadline<S> {
    inner: S,
    runtime: Arc<Runtime>,
    grace_ms: u64,
}

impl<S: Service> Deadline<S> {
    /// Cuts off what the call does, inside the loop guard, which has to know of it.
    pub fn new(inner: S, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            runtime,
            grace_ms: 0,
        }
    }

    /// Cuts off the loop guard too, should its own bookkeeping hang.
    pub fn backstop(inner: S, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            runtime,
            grace_ms: DEADLINE_GRACE_MS,
        }
    }
}

impl<S: Service> Service for Deadline<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let Some(deadline_at_ms) = call.envelope.control.deadline_at_ms else {
            return self.inner.call(call).await;
        };
        let left_ms = deadline_at_ms.saturating_sub(self.runtime.clock.now_ms());
        if left_ms == 0 {
            return passed(call);
        }
        let left_ms = left_ms.saturating_add(self.grace_ms);
        match tokio::time::timeout(Duration::from_millis(left_ms), self.inner.call(call)).await {
            Ok(reply) => reply,
            Err(_) => passed(call),
        }
    }
}

/// The answer to a caller that cancelled: whoever waits for the call drops it, and tells this.
pub fn cancelled(call: &Call) -> Reply {
    gone(call, "the call was cancelled", Judged::Neutral).unwrap_or_else(|| {
        let (code, message) = (ErrorCode::Cancelled, "the call was cancelled");
        Failure::before_start(code, message, Judged::Neutral).into()
    })
}

/// What is known of a call whose caller does not wait any longer; `None` when nothing can have
/// happened.
fn gone(call: &Call, why: &str, judged: Judged) -> Option<Reply> {
    // The tool has answered, and only a hook or a store kept the answer back.
    if let Some(output) = call.started.output() {
        return Some(Reply::done(output.clone()));
    }
    if !ends_in_doubt(call) {
        return None;
    }
    let message = format!("{why} while the tool was running, so the effect may have happened");
    let mut failure = Failure::before_start(ErrorCode::OutcomeUnknown, message, judged);
    failure.evidence = Evidence::MayHaveHappened;
    Some(failure.into())
}

fn passed(call: &Call) -> Reply {
    const WHY: &str = "the caller's deadline passed";
    // That a person takes long speaks neither against the call nor against its tool.
    let waits = call.waiting_approval.is_some() || call.held_claim.is_some();
    let judged = if waits && !call.started.is_set() {
        Judged::Neutral
    } else {
        Judged::Counts(FailureKind::Retryable)
    };
    gone(call, WHY, judged).unwrap_or_else(|| {
        Failure::before_start(ErrorCode::Timeout, WHY, judged)
            .with_status(Status::Timeout)
            .into()
    })
}
