//! What a binary knows beyond the ordinary one.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use holdfast_memory::Backend;

/// Where a memory is to be kept, and how much of it.
#[derive(Debug, Clone, Copy)]
pub struct MemoryPlace<'a> {
    /// The state directory.
    pub state_dir: &'a Path,
    /// Records at most.
    pub records_max: u64,
}

/// Opens a place for records. What can not be opened says so when it is first used.
pub type MemoryOpener = fn(MemoryPlace<'_>) -> Arc<dyn Backend>;

/// Parts that are too heavy for everybody and come from a binary that has them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Extras {
    /// `memory.store: lancedb`
    pub lancedb: Option<MemoryOpener>,
}

static EXTRAS: OnceLock<Extras> = OnceLock::new();

impl Extras {
    /// For this process. The first time counts.
    pub(crate) fn install(self) {
        let _ = EXTRAS.set(self);
    }

    /// What this process has.
    pub(crate) fn installed() -> Self {
        EXTRAS.get().copied().unwrap_or_default()
    }
}
