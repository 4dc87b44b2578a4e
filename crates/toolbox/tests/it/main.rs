//! What the crate `toolbox` promises, one module a capability, in one program.

// The layers are nested types, and so are the futures of a call.
#![recursion_limit = "256"]
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod attacks;
mod audit_log;
mod common;
mod confinement;
mod exec_limits;
mod git;
mod guard;
mod guarded;
mod let_out;
mod outcomes;
mod permission;
mod redis_chaos;
mod redis_rates;
mod reserved;
mod simulation;
mod stack;
mod tools_exec;
mod tools_files;
mod tools_memory;
mod tr;
mod views;
