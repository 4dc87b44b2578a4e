//! The reliability stack: the layers every tool call passes, and the stores behind them.

pub mod breaker;
pub mod canonical;
pub mod guard;
pub mod idempotency;
pub mod policy_check;
pub mod retry;
