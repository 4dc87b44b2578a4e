//! What the crate `trust` promises, one module a capability, in one program.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod provenance;
mod signals;
mod skills;
