//! What the judge says of texts, by capability.
#![expect(
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]

mod differential;
mod input;
mod rules;
mod texts;
