//! What the judge says of texts, by capability.

mod differential;
mod rules;
