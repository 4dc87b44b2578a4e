//! The caller's own clock, which wins over every other.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{ErrorCode, Status};

use crate::call::{Call, Failure, Judged, Reply};
use crate::guard::FailureKind;
use crate::idempotency::layer::repeat_safety;
use crate::retry::{Evidence, RepeatSafety};
use crate::runtime::Runtime;
use crate::service::Service;

/// Answers at the caller's deadline, whatever is still going on inside.
///
/// What is going on is dropped: a claim then ends as cancelled or unknown, and a command is killed.
pub struct Deadline<S> {
    inner: S,
    runtime: Arc<Runtime>,
}

impl<S: Service> Deadline<S> {
    /// Wraps everything the caller waits for.
    pub fn new(inner: S, runtime: Arc<Runtime>) -> Self {
        Self { inner, runtime }
    }
}

impl<S: Service> Service for Deadline<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let Some(deadline_at_ms) = call.envelope.control.deadline_at_ms else {
            return self.inner.call(call).await;
        };
        let left_ms = deadline_at_ms.saturating_sub(self.runtime.clock.now_ms());
        if left_ms == 0 {
            return passed(call).into();
        }
        match tokio::time::timeout(Duration::from_millis(left_ms), self.inner.call(call)).await {
            Ok(reply) => reply,
            Err(_) => passed(call).into(),
        }
    }
}

/// The answer to a caller that cancelled: whoever waits for the call drops it, and tells this.
pub fn cancelled(call: &Call) -> Failure {
    if may_have_happened(call) {
        return unknown(
            "the call was cancelled while the tool was running, so the effect may have happened",
            Judged::Neutral,
        );
    }
    Failure::before_start(
        ErrorCode::Cancelled,
        "the call was cancelled",
        Judged::Neutral,
    )
}

fn may_have_happened(call: &Call) -> bool {
    call.started.is_set() && repeat_safety(call) == RepeatSafety::Unsafe
}

fn unknown(message: &str, judged: Judged) -> Failure {
    let mut failure = Failure::before_start(ErrorCode::OutcomeUnknown, message, judged);
    failure.evidence = Evidence::MayHaveHappened;
    failure
}

fn passed(call: &Call) -> Failure {
    if may_have_happened(call) {
        return unknown(
            "the caller's deadline passed while the tool was running, so the effect may have happened",
            Judged::Counts(FailureKind::Retryable),
        );
    }
    Failure::before_start(
        ErrorCode::Timeout,
        "the caller's deadline passed",
        Judged::Counts(FailureKind::Retryable),
    )
    .with_status(Status::Timeout)
}
