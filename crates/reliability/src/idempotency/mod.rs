//! One key, one effect.
//!
//! [`key`] says which calls are the same call, [`record`] what is remembered about one,
//! [`transition`] how a record lives, and [`layer`] drives it all for each call.

mod claim_guard;
pub mod key;
pub mod layer;
pub mod record;
pub mod transition;

pub use layer::{DedupeStores, Idempotency};
