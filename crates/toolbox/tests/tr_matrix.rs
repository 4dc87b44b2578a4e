//! The acceptance matrix of the reliability layer, row by row, over the whole stack.
//!
//! Every test also holds its row's non-regression column. Time is tokio's, paused.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

#[path = "tr/breaker.rs"]
mod breaker;
#[path = "common/stack.rs"]
mod common;
#[path = "tr/control.rs"]
mod control;
#[path = "tr/hooks.rs"]
mod hooks;
#[path = "tr/idempotency.rs"]
mod idempotency;
#[path = "tr/retry.rs"]
mod retry;
#[path = "tr/telemetry.rs"]
mod telemetry;
