//! `holdfast serve`, the real binary on a real port.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]
#![expect(
    dead_code,
    reason = "the helpers are shared with the other test binaries"
)]

#[path = "server/abuse.rs"]
mod abuse;
#[path = "server/admin.rs"]
mod admin;
#[path = "server/approvals.rs"]
mod approvals;
#[path = "server/calls.rs"]
mod calls;
mod common;
#[path = "server/ending.rs"]
mod ending;
#[path = "server/harness.rs"]
mod harness;
#[path = "server/messages.rs"]
mod messages;
#[path = "server/modes.rs"]
mod modes;
#[path = "server/villain.rs"]
mod villain;
