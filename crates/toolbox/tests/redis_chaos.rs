//! Many processes, one Redis, and everything that can go wrong with either: every effect at most
//! once, every intent settled, nobody left waiting, and a history that an independent checker finds
//! to be that of one atomic record a key.
//!
//! `HOLDFAST_CHAOS_INTENTS` sets the number of intents (2,000 by default).

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

#[path = "redis/checker.rs"]
mod checker;
#[path = "redis/crowd.rs"]
mod crowd;
#[path = "redis/history.rs"]
mod history;
#[path = "redis/planted.rs"]
mod planted;
#[path = "redis/worker.rs"]
mod worker;
