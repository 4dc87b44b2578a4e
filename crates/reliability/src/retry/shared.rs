//! A retry budget that several processes draw on.

use futures_util::future::BoxFuture;

/// Counts the calls and retries of all processes.
///
/// Asked besides the process's own budget, and only for a retry that this one allows: a retry waits
/// anyway, and a call that succeeds asks nobody.
pub trait SharedRetryBudget: Send + Sync {
    /// Notes one call. Never waits: calls are told of in bundles.
    fn deposit(&self);

    /// Takes the place of one retry; `false`, and nothing taken, if there is none left. Without an
    /// answer the process's own budget is enough.
    fn withdraw(&self) -> BoxFuture<'_, bool>;
}
