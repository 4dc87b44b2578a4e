//! What the crate `intent` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a helper that fails is a test that fails"
)]

mod bfcl;
mod bounds;
mod budget;
mod cases;
mod control;
mod corpus;
mod corrective;
mod cuts;
mod forms;
mod fuzzy_safety;
mod properties;
mod support;
