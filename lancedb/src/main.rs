//! `holdfast` with `LanceDB`: the ordinary command line, and `memory.store: lancedb` works.

use std::process::ExitCode;
use std::sync::Arc;

use holdfast::{Extras, MemoryPlace};
use holdfast_lancedb::LanceMemory;
use holdfast_memory::Backend;

fn open(place: MemoryPlace<'_>) -> Arc<dyn Backend> {
    Arc::new(LanceMemory::new(place.state_dir, place.records_max))
}

fn main() -> ExitCode {
    holdfast::run(Extras {
        lancedb: Some(open),
    })
}
