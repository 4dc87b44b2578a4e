//! At most one execution per intent.

pub mod key;
