//! The acceptance matrix of the reliability layer, row by row, over the whole stack.
//!
//! Every test also holds its row's non-regression column. Time is tokio's, paused.

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
