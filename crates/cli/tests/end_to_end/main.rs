//! What the crate `cli` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod capability;
mod common;
mod executor;
mod harness;
mod operations;
mod ops;
#[cfg(feature = "otlp")]
mod otlp;
mod pty;
#[cfg(feature = "redis")]
mod redis;
mod server;
mod soak;
