//! Any text as JSON: valid JSON is read as a strict reader does, everything else is survived.
#![no_main]

use holdfast_intent::json::{Ending, read_at, read_text};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    if let Some(read) = read_text(text) {
        assert!(read.end <= text.len() && text.is_char_boundary(read.end));
    }
    let plain = text.trim_start_matches([' ', '\n', '\r', '\t']);
    let Ok(value) = serde_json::from_str::<Value>(plain) else {
        return;
    };
    if !plain.starts_with(['{', '[']) {
        return;
    }
    // Deeper than a call may nest is not read at all.
    let Some(read) = read_at(plain, 0, plain.len()) else {
        return;
    };
    // Of two values under one name a strict reader keeps the last, and ours says that it is not known
    // which was meant.
    if !read.ambiguous {
        assert_eq!(read.value, value);
    }
    assert_eq!(read.ending, Ending::Whole);
});
