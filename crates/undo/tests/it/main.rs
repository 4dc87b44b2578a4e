//! What the store promises, shown with real files.
#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod attack;
mod basics;
mod conflict;
mod idle;
mod kill;
mod limits;
mod overlap;
mod property;
mod tree;
mod within;
