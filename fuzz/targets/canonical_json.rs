//! Any JSON: its canonical form is JSON of the same value, is its own form, and never panics.
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
    assert_same(&value, &back);
    assert_eq!(canonical_string(&back), form);
    let exact = CanonicalOptions::EXACT;
    assert_eq!(digest(&value, &exact), digest(&back, &exact));
    let guard = CanonicalOptions::LOOP_GUARD;
    assert_eq!(digest(&value, &guard), digest(&back, &guard));
});

/// Equality that does not rest on the canonical form. Numbers are compared as doubles, which tells
/// less than their decimals but is nobody else's code; parsing has bounded the depth.
fn assert_same(a: &Value, b: &Value) {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            let double = |text: &str| text.parse::<f64>().expect("a number") + 0.0;
            assert_eq!(double(a.as_str()), double(b.as_str()), "{a} / {b}");
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len());
            a.iter().zip(b).for_each(|(a, b)| assert_same(a, b));
        }
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()));
            a.values()
                .zip(b.values())
                .for_each(|(a, b)| assert_same(a, b));
        }
        (a, b) => assert_eq!(a, b),
    }
}
