//! Foreign bytes as an export of memories: no panic, and what is accepted survives being written
//! and read.

#![no_main]

use holdfast_memory::transfer::{ImportReader, format};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(reader) = ImportReader::new(bytes) else {
        return;
    };
    for read in reader {
        match read {
            Err(error) => assert!(error.line > 1 && !error.reason.is_empty()),
            Ok(record) => {
                let written = serde_json::to_vec(&format::to_wire(&record)).expect("JSON");
                let again = format::read_record(&written, format::FORMAT_VERSION);
                // Compared in writing: a vector may hold a number that is not equal to itself.
                let again = again.expect("what was written can be read");
                let twice = serde_json::to_vec(&format::to_wire(&again)).expect("JSON");
                assert_eq!(written, twice);
            }
        }
    }
});
