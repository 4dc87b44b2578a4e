//! The time limit of one attempt.

use std::time::Duration;

use crate::call::{Call, Reply};
use crate::execute::{attempt_limit_ms, timed_out};
use crate::service::Service;

/// Cuts an attempt off at its limit.
///
/// A tool gets the same limit in its context and should keep it itself; this one holds when the
/// tool does not.
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
        match tokio::time::timeout(Duration::from_millis(limit_ms), running).await {
            Ok(reply) => reply,
            Err(_) => timed_out(limit_ms).into(),
        }
    }
}
