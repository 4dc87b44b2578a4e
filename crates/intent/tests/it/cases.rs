//! Every case under `cases/`, by file.

use std::fmt::Write as _;

use crate::support::{Case, all_cases};
use holdfast_intent::Parsed;
use serde_json::{Value, json};

/// What differs, or nothing.
fn complaint(case: &Case, parsed: &Parsed) -> Option<String> {
    let mut wanted = Vec::new();
    for line in case.expect.lines().filter(|line| !line.trim().is_empty()) {
        if line.trim() == "none" {
            continue;
        }
        let value: Value =
            serde_json::from_str(line).unwrap_or_else(|_| panic!("{}: {line}", case.name));
        if value.get("name").is_some() {
            wanted.push(value);
            continue;
        }
        let whole = serde_json::to_value(parsed).expect("it serialises");
        for (key, value) in value.as_object().expect("an object") {
            if &whole[key] != value {
                return Some(format!("{key} is {}, not {value}", whole[key]));
            }
        }
    }
    let shown = || serde_json::to_string(&parsed.intents).expect("it serialises");
    if wanted.len() != parsed.intents.len() {
        return Some(format!(
            "{} intents, not {}: {}",
            parsed.intents.len(),
            wanted.len(),
            shown()
        ));
    }
    for (wanted, intent) in wanted.iter().zip(&parsed.intents) {
        let got = serde_json::to_value(intent).expect("it serialises");
        let codes: Vec<&str> = got["problems"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|problem| problem["code"].as_str())
            .collect();
        let same = got["name"] == wanted["name"]
            && wanted
                .get("arguments")
                .is_none_or(|arguments| got["arguments"] == *arguments)
            && got["complete"] == *wanted.get("complete").unwrap_or(&json!(true))
            && wanted
                .get("strategy")
                .is_none_or(|strategy| got["strategy"] == *strategy)
            && wanted
                .get("call_id")
                .is_none_or(|call_id| got["call_id"] == *call_id)
            && wanted
                .get("runnable")
                .is_none_or(|runnable| json!(intent.is_runnable()) == *runnable)
            && wanted
                .get("problems")
                .and_then(Value::as_array)
                .is_none_or(|wanted| {
                    wanted
                        .iter()
                        .all(|code| codes.contains(&code.as_str().unwrap_or("")))
                });
        if !same {
            return Some(format!("expected {wanted}\n      got      {got}"));
        }
        let [start, end] = intent.span;
        if start > end || case.text.get(start..end).is_none() {
            return Some(format!("span {start}..{end} is not in the text"));
        }
    }
    None
}

#[test]
fn every_case_is_read_as_it_says() {
    let (mut report, mut failed, mut total, mut inert) = (String::new(), 0, 0, 0);
    for case in all_cases() {
        total += 1;
        inert += usize::from(case.expect.trim_start().starts_with("none"));
        let parsed = case.parser.parse_any(&case.text, case.finish);
        if let Some(complaint) = complaint(&case, &parsed) {
            failed += 1;
            writeln!(report, "{}: {}\n      {complaint}", case.file, case.name).expect("memory");
        }
    }
    println!("{total} cases, {inert} of them inert, {failed} failed");
    assert_eq!(failed, 0, "{failed} of {total} cases failed:\n{report}");
}
