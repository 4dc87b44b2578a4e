//! The reliability stack: the layers every tool call passes, and the stores behind them.
//!
//! Each layer has a folder. In it, pure functions decide, a `layer.rs` drives them for one call,
//! and a `store.rs` says what has to be kept where that is needed.
//!
//! | folder | what it promises |
//! |---|---|
//! | [`guard`] | a loop is cut off |
//! | [`idempotency`] | an intent runs at most once |
//! | [`retry`] | only what is safe to repeat is repeated |
//! | [`breaker`] | what is down is left alone |
//! | [`rate`] | what has a limit is not asked more often |
//! | [`deadline`], [`timeout`] | nobody waits for ever |
//! | [`hooks`] | others can watch, and refuse |

pub mod admin;
mod arguments;
pub mod breaker;
pub mod call;
pub mod canonical;
pub mod config;
pub mod deadline;
pub mod exchange;
pub mod execute;
pub mod guard;
mod hint;
pub mod hooks;
pub mod idempotency;
pub mod janitor;
pub mod journal;
pub mod limits;
pub mod observe;
pub mod policy;
pub mod policy_check;
pub mod rate;
pub mod retry;
pub mod runtime;
mod scratch;
pub mod service;
pub mod store;
pub mod timeout;
