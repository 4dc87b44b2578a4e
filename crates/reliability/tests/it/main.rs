//! What the crate `reliability` promises, one module a capability, in one program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod canonical_props;
mod guard_cases;
mod guard_prd;
mod guard_properties;
mod janitor;
#[cfg(feature = "redis")]
mod redis_away;
#[cfg(feature = "redis")]
mod redis_breakers;
#[cfg(feature = "redis")]
mod redis_conformance;
#[cfg(feature = "redis")]
mod redis_tls;
mod store_conformance;
