//! What the crate `agent` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

mod acting;
mod brake;
mod budgets;
mod chaos;
mod common;
mod http2;
mod log;
mod run;
mod run_end;
mod runs;
