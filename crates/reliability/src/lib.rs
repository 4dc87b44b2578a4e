//!

pub mod canonical;
pub mod idempotency;
