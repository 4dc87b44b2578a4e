//! The real binary, run as people and programs run it: one process a call, state on disk.
//!
//! Every test has a home, a state directory and a workspace of its own. Nothing here waits by the
//! clock: what has to happen first is polled for, with a bound that only ends a failure.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

mod capability;
mod common;
#[path = "common/pty.rs"]
mod pty;
