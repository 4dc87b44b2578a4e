//! One key, one effect.
//!
//! [`key`] says which calls are the same call, [`record`] what is remembered about one,
//! [`transition`] how a record lives, and [`layer`] drives it all for each call.

mod claim_guard;
mod derive;
mod ending;
mod held;
pub mod key;
pub mod layer;
mod lease;
mod lost;
mod reconcile;
pub mod record;
mod repeated;
mod replay;
pub mod transition;
#[cfg(test)]
mod wished;

pub use derive::HELD_LEASE_MS_MAX;
pub(crate) use derive::{ends_in_doubt, is_known_by_call_id, repeat_safety};
pub use held::{ForeignClaim, HeldClaim, TakenOver};
pub use layer::{DedupeStores, Idempotency};
pub use lease::{LostTo, RENEW_AGAIN_MS, RENEW_AGAIN_TIMES_MAX, Standing};
