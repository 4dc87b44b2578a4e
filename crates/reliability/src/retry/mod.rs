//! Retry: whether to try again, and when.
//!
//! Four questions, each with a file of its own. What does the failure mean
//! ([`Classified`], `classify`)? What does this tool allow ([`RetryPolicy`])? How long is the
//! wait ([`backoff_ms`])? Does the process as a whole still retry a sane share of its calls
//! ([`RetryBudget`])? [`decide`] asks them in order and answers with [`Next`].
//!
//! Why a budget and not only a maximum of attempts: when a dependency goes down, every call
//! fails, and a maximum of four attempts turns each call into four. The budget lets retries
//! through only as a share of recent calls, so an outage is not answered with more load.
//!
//! Nothing here waits, reads a clock or draws a random number: times and randomness come in.

mod backoff;
mod budget;
mod classify;
mod codes;
mod decide;
mod http;
pub mod layer;
mod policy;
mod retry_after;
mod shared;
mod transport;

pub use backoff::{backoff_ms, backoff_window_ms};
pub use budget::{RetryBudget, RetryBudgetOverrides, RetryBudgetPolicy};
pub use classify::{Classified, Evidence, THROTTLED};
pub use codes::CodeList;
pub use decide::{GiveUp, Next, RepeatSafety, decide};
pub use layer::Retry;
pub use policy::{CallBudget, RetryOverrides, RetryPolicy};
pub use retry_after::{RETRY_AFTER_MS_MAX, parse_retry_after};
pub use shared::SharedRetryBudget;
pub use transport::{RequestSent, TransportCode, UnknownTransportCode};
