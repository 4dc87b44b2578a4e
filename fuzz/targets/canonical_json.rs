//! Any JSON: the canonical form is JSON, is its own form, and the guard's view never panics.
#![no_main]

use holdfast_reliability::canonical::{CanonicalOptions, canonical_string, digest};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|bytes: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(bytes) else {
        return;
    };
    let form = canonical_string(&value);
    let back: Value = serde_json::from_str(&form).expect("canonical JSON is JSON");
    assert_eq!(canonical_string(&back), form);
    let exact = CanonicalOptions::EXACT;
    assert_eq!(digest(&value, &exact), digest(&back, &exact));
    let guard = CanonicalOptions::LOOP_GUARD;
    assert_eq!(digest(&value, &guard), digest(&back, &guard));
});
