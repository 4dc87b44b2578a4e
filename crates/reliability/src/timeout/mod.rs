//! The time limit of one attempt.

use std::time::Duration;

use crate::call::{Call, Reply};
use crate::execute::{attempt_limit_ms, timed_out};
use crate::service::Service;

/// How long before the end of its limit a tool is to end by itself, at most. A tool that keeps its
/// time can say more about what it did than we can, so it gets the first word.
pub const TIMEOUT_GRACE_MS: u64 = 1_000;

/// The share of a short limit that is kept for the tool's own end.
const GRACE_SHARE: u64 = 5;

/// What a tool is told of its limit. The grace is inside of the limit, so an attempt takes no longer
/// than is configured.
///
/// ```
/// use holdfast_reliability::timeout::told_limit_ms;
///
/// assert_eq!(told_limit_ms(30_000), 29_000);
/// assert_eq!(told_limit_ms(500), 400);
/// ```
pub const fn told_limit_ms(limit_ms: u64) -> u64 {
    let share_ms = limit_ms / GRACE_SHARE;
    let grace_ms = if share_ms < TIMEOUT_GRACE_MS {
        share_ms
    } else {
        TIMEOUT_GRACE_MS
    };
    limit_ms - grace_ms
}

/// Cuts an attempt off at its limit, when the tool has not ended by itself a moment earlier.
pub struct AttemptTimeout<S> {
    inner: S,
}

impl<S: Service> AttemptTimeout<S> {
    /// Wraps the execution.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

impl<S: Service> Service for AttemptTimeout<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        let limit_ms = attempt_limit_ms(call);
        let running = self.inner.call(call);
        let cut_off = Duration::from_millis(limit_ms);
        if let Ok(reply) = tokio::time::timeout(cut_off, running).await {
            return reply;
        }
        let failure = timed_out(limit_ms);
        if let Some(note) = call.attempts.last_mut() {
            note.finished_at_ms = note.started_at_ms.saturating_add(limit_ms);
            note.retriable = failure.retriable;
            note.error_code = Some(failure.code.clone());
        }
        failure.into()
    }
}
