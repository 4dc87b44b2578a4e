//! Everything in one process's memory: bounded, and gone with the process.
//!
//! For read-only calls, for tests, and for hosts that bring their own durability.

mod bounds;
mod breakers;
mod by_key;
mod dedupe;
mod documents;
mod turns;

pub use bounds::{MEMORY_BYTES_MAX, MEMORY_KEYS_MAX, MemoryLimits};
pub use breakers::MemoryBreakerStore;
pub use dedupe::MemoryDedupeStore;
pub use documents::MemoryDocumentStore;
pub use turns::MemoryGuardStore;
