//! What the crate `testkit` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]

mod house;
