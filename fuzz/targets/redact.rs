//! Any text: redacting it twice is redacting it once, and a planted secret goes.
#![no_main]

use holdfast_contract::redact::{Redactor, RedactorOptions};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const PLANTED: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

fuzz_target!(|text: &str| {
    let redactor = Redactor::new(&RedactorOptions {
        extra_fields: vec!["taxId".to_owned()],
    });
    let once = redactor.redact_text(text);
    assert_eq!(redactor.redact_text(&once), once);
    let planted = format!("{text} {PLANTED}");
    assert!(!redactor.redact_text(&planted).contains(PLANTED));
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        let once = redactor.redact_value(&value);
        assert_eq!(redactor.redact_value(&once), once);
    }
});
