//! Any bytes as entries of this format: nothing panics, what is accepted is JSON, and a repair is
//! whole and stays as it is.
#![no_main]

use holdfast_transcript::Format;
use libfuzzer_sys::fuzz_target;

#[path = "../transcript.rs"]
mod transcript;

fuzz_target!(|bytes: &[u8]| transcript::check(Format::Codex, bytes));
