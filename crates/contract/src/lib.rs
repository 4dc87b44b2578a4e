//!

pub mod redact;
