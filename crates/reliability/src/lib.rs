//!

pub mod guard;
