//! The routes, asked without a socket.

#![expect(
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]

#[path = "http/admin.rs"]
mod admin;
#[path = "http/calls.rs"]
mod calls;
#[path = "http/harness.rs"]
mod harness;
#[path = "http/invoke.rs"]
mod invoke;
#[path = "http/limits.rs"]
mod limits;
