//! The binary; see the library.

use std::process::ExitCode;

/// A call makes and drops about thirty small pieces, and keeps some of them for a day: the system's
/// allocator takes a third of its time for that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    holdfast::run(holdfast::Extras::default())
}
