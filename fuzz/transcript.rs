//! What has to hold for every transcript; shared by the targets of the formats.

use holdfast_transcript::scan::scan_bytes;
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{Format, Strategy, read};
use serde_json::value::RawValue;

pub fn check(format: Format, bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        // What an adapter accepts is JSON to everybody, and what is not it does not accept.
        let is_json = serde_json::from_slice::<&RawValue>(line).is_ok();
        assert_eq!(
            read::entry(format, line).is_ok(),
            is_json,
            "{}",
            line.escape_ascii()
        );
    }
    // The whole, in whatever format it turns out to be.
    let Ok(report) = scan_bytes("-", bytes) else {
        return;
    };
    for strategy in Strategy::ALL {
        let Ok(Some(repaired)) = repair_bytes(bytes, strategy) else {
            continue;
        };
        assert!(!report.findings.is_empty(), "a repair without a finding");
        let Ok(left) = scan_bytes("-", &repaired) else {
            continue;
        };
        for found in left.findings {
            let is_compacted = found.description.contains("was compacted away");
            let may_stay = strategy.leaves(found.fault, is_compacted);
            assert!(
                may_stay,
                "{}: {found:?}\n{}",
                strategy.name(),
                repaired.escape_ascii()
            );
        }
        assert_eq!(
            repair_bytes(&repaired, strategy).ok().flatten(),
            None,
            "{}",
            strategy.name()
        );
    }
}
