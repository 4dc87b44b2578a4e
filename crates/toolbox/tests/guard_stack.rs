//! The loop guard through the whole stack: what the model reads, and what is not run.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

#[path = "guard/attribution.rs"]
mod attribution;
#[path = "common/stack.rs"]
mod common;
#[path = "guard/failing.rs"]
mod failing;
#[path = "guard/repeating.rs"]
mod repeating;
