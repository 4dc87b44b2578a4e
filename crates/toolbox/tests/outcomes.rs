//! What becomes of a call, in every case: status, code, record, and what a duplicate gets.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

#[path = "outcomes/cancelled.rs"]
mod cancelled;
#[path = "common/stack.rs"]
mod common;
#[path = "outcomes/content.rs"]
mod content;
#[path = "outcomes/keys.rs"]
mod keys;
#[path = "outcomes/modes.rs"]
mod modes;
#[path = "outcomes/rate.rs"]
mod rate;
#[path = "outcomes/reconcile.rs"]
mod reconcile;
#[path = "outcomes/store.rs"]
mod store;
#[path = "outcomes/table.rs"]
mod table;
#[path = "outcomes/unknown.rs"]
mod unknown;
