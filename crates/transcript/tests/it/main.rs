//! What the crate `transcript` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a helper that fails is a test that fails"
)]

mod agents;
mod common;
mod damage;
mod databases;
mod files;
mod glued;
mod mutation;
mod pending;
mod properties;
mod reading;
mod store;
