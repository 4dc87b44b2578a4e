//! What the crate `memory` promises, one module a capability, in one program.

#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod embeddings;
mod memory_conformance;
mod recovery_drill;
