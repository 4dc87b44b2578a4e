//! What the crate `web` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

mod common;
mod gateway;
mod gateway_tools;
mod rebinding;
mod web;
