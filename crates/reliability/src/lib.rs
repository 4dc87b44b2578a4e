//!

pub mod breaker;
pub mod policy_check;
pub mod retry;
