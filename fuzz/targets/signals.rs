//! Any text: looking for signals never panics, stays within its bounds, and less trust never makes
//! a text less suspicious.
#![no_main]

use holdfast_contract::Trust;
use holdfast_trust::signal::scan;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let by_trust = Trust::ALL.map(|trust| scan(&text, trust));
    for found in &by_trust {
        assert!((0.0..=1.0).contains(&found.confidence()));
        assert!(found.found.len() <= 8);
        assert_eq!(found.is_empty(), found.id.is_empty());
    }
    assert!(by_trust.is_sorted_by(|less, more| less.confidence() >= more.confidence()));
});
