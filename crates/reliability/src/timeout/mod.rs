//! The time limit of one attempt.

use std::time::Duration;

use crate::call::{Call, Reply};
use crate::execute::{attempt_limit_ms, timed_out};
use crate::service::Service;

/// How long after its limit a tool is cut off. A tool that keeps its limit itself can say more
/// about what it did than we can, so it gets the first word.
pub const TIMEOUT_GRACE_MS: u64 = 1_000;

/// Cuts an attempt off when the tool does not keep its limit, which it knows from its context.
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
        let cut_off_ms = limit_ms.saturating_add(TIMEOUT_GRACE_MS);
        let cut_off = Duration::from_millis(cut_off_ms);
        if let Ok(reply) = tokio::time::timeout(cut_off, running).await {
            return reply;
        }
        let failure = timed_out(limit_ms);
        if let Some(note) = call.attempts.last_mut() {
            note.finished_at_ms = note.started_at_ms.saturating_add(cut_off_ms);
            note.retriable = failure.retriable;
            note.error_code = Some(failure.code.clone());
        }
        failure.into()
    }
}
