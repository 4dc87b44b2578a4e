//! The binary; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast::run(holdfast::Extras::default())
}
