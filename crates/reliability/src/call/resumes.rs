//! Calls that are entered again.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::BoxFuture;

/// A call that is entered again from the record of its approval.
#[derive(Debug, Clone)]
pub struct Resumes {
    /// The approval.
    pub approval: String,
    /// Who hears that it starts.
    pub starts: Arc<dyn Starts>,
}

/// Hears that a call which was entered again has its answer and is about to start, and may hold it up
/// until there is a place for it. Until then it only waits: for a person, or for another that runs.
pub trait Starts: std::fmt::Debug + Send + Sync {
    /// Ready when it may start.
    fn starts(&self) -> BoxFuture<'_, ()>;
}

/// Starts without waiting.
#[derive(Debug)]
pub struct AtOnce;

impl Starts for AtOnce {
    fn starts(&self) -> BoxFuture<'_, ()> {
        Box::pin(ready(()))
    }
}
