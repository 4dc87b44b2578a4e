//! The acceptance matrix of the reliability layer, row by row, over the whole stack.
//!
//! Every test also holds its row's non-regression column. Time is tokio's, paused.

mod breaker;
mod control;
mod hooks;
mod idempotency;
mod retry;
mod telemetry;
