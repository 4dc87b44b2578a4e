//! Foreign bytes as a call envelope: no panic, and what is accepted survives being written and read.

#![no_main]

use holdfast_contract::ToolCallEnvelope;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match ToolCallEnvelope::parse(bytes) {
        Err(error) => {
            assert!(!error.field.is_empty() && !error.reason.is_empty());
        }
        Ok(envelope) => {
            assert!(envelope.check().is_ok(), "accepted, and yet not valid");
            let written = serde_json::to_vec(&envelope).expect("an envelope can be written");
            let again = ToolCallEnvelope::parse(&written).expect("what was written can be read");
            assert_eq!(envelope, again);
        }
    }
});
