//! Whatever a session went through, repair makes it whole and loses nothing that was.

use std::collections::HashSet;

use crate::common::provider::accepts;
use crate::common::{Call, Said, What, has_parents, lines};
use holdfast_transcript::scan::scan_bytes;
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{
    Fault, Finding, Format, Strategy as Repair, validate_tool_result_pairing,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a repair puts in the place of a lost result, as people read it in their sessions.
const STAND_IN: &str = "[holdfast] The result of this call was lost. Whether it had an effect is not known: look before you repeat it.";

fn id() -> impl Strategy<Value = String> {
    // Few, so that they collide.
    (0_u8..6).prop_map(|number| format!("call\"{number}"))
}

fn what() -> impl Strategy<Value = What> {
    let call = || {
        id().prop_map(|id| Call {
            id,
            name: "x".to_owned(),
            arguments: json!({}),
        })
    };
    prop_oneof![
        2 => "[a-z\"\\\\é]{1,6}".prop_map(What::User),
        3 => ("[a-z]{0,3}", prop::collection::vec(call(), 0..3))
            .prop_map(|(text, calls)| What::Assistant { text, calls }),
        5 => (id(), "ok|no").prop_map(|(call, text)| What::Result { call, text }),
        1 => id().prop_map(|call| What::ResultAndText { call, text: "ok".to_owned() }),
        1 => id().prop_map(|call| What::TextAndResult { call, text: "ok".to_owned() }),
        1 => id().prop_map(|call| What::Result { call, text: STAND_IN.to_owned() }),
        1 => prop::collection::vec(prop_oneof![
            Just(What::User("before".to_owned())),
            call().prop_map(|call| What::Assistant { text: String::new(), calls: vec![call] }),
            id().prop_map(|call| What::Result { call, text: "ok".to_owned() }),
        ], 0..4).prop_map(|instead| What::Compacted { kept: String::new(), instead }),
    ]
}

/// A session that anything may have happened to.
fn session() -> impl Strategy<Value = (Format, Vec<Said>)> {
    let entry = (
        what(),
        prop::option::weighted(0.08, any::<prop::sample::Index>()),
        prop::option::weighted(0.06, 1_usize..40),
        prop::bool::weighted(0.05),
        any::<prop::sample::Index>(),
    );
    (
        prop::sample::select(Format::ALL.to_vec()),
        prop::collection::vec(entry, 1..24),
    )
        .prop_map(|(format, entries)| {
            let mut said: Vec<Said> = Vec::new();
            for (number, (what, back, written, is_lost, kept)) in entries.into_iter().enumerate() {
                let mut entry = Said::new(number, what);
                entry.written = written;
                if let What::Compacted { kept: first, .. } = &mut entry.what {
                    // Any entry so far, and now and then one that is not there.
                    *first = match kept.index(said.len() + 1) {
                        at if at < said.len() => said[at].id.clone(),
                        _ => "gone".to_owned(),
                    };
                }
                if has_parents(format) {
                    // People go back to what they said themselves.
                    let questions: Vec<&Said> = said
                        .iter()
                        .filter(|said| matches!(said.what, What::User(_)) && said.written.is_none())
                        .collect();
                    if let Some(back) = back.filter(|_| !questions.is_empty()) {
                        entry.parent = Some(back.get(&questions).id.clone());
                    }
                    // The first one may continue another session.
                    if is_lost && number > 0 {
                        entry.parent = Some("gone".to_owned());
                    }
                }
                said.push(entry);
            }
            (format, said)
        })
}

/// The session as bytes, with the line ends and gaps that files have.
fn bytes(format: Format, said: &[Said], style: u8) -> Vec<u8> {
    let end = if style & 1 == 1 { "\r\n" } else { "\n" };
    let mut text = String::new();
    for (number, (_, line)) in lines(format, said).iter().enumerate() {
        if style & 2 == 2 && number % 3 == 1 {
            text.push_str(end);
        }
        text.push_str(line);
        text.push_str(end);
    }
    if style & 4 == 4 {
        text.truncate(text.trim_end().len());
    }
    text.into_bytes()
}

fn findings(text: &[u8]) -> Vec<Finding> {
    match scan_bytes("-", text) {
        Ok(report) => report.findings,
        // A session of half lines only is in no format.
        Err(_) => Vec::new(),
    }
}

/// An entry without what a repair may change in it.
fn core(line: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(line) else {
        return line.trim_end().to_owned();
    };
    for key in ["parentId", "parentUuid", "firstKeptEntryId"] {
        if let Some(parent) = value.get_mut(key) {
            *parent = Value::Null;
        }
    }
    value.to_string()
}

fn entry_lines(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .map(core)
        .collect()
}

/// Whether some lines are all in others, in their order.
fn is_within(lines: &[String], others: &[String]) -> Result<(), String> {
    let mut others = others.iter();
    for line in lines {
        if !others.any(|other| other == line) {
            return Err(line.clone());
        }
    }
    Ok(())
}

fn check_repair(format: Format, text: &[u8], strategy: Repair) -> Result<(), TestCaseError> {
    let Ok(repaired) = repair_bytes(text, strategy) else {
        return Ok(());
    };
    let found = findings(text);
    let Some(repaired) = repaired else {
        prop_assert!(
            found.iter().all(|found| may_stay(found, strategy)),
            "nothing done about {:?}",
            found
        );
        return Ok(());
    };
    let left = findings(&repaired);
    let shown = String::from_utf8_lossy(&repaired).into_owned();
    if strategy == Repair::RemoveOrphans {
        for found in &left {
            prop_assert!(may_stay(found, strategy), "{:?} in\n{}", found, shown);
        }
        prop_assert_eq!(
            lost_results(text, &repaired),
            Vec::<String>::new(),
            "{}",
            shown
        );
    } else {
        prop_assert_eq!(&left, &Vec::new(), "{}", shown);
        prop_assert_eq!(accepts(format, &shown), Ok(()), "{}", shown);
    }
    let again = repair_bytes(&repaired, strategy).ok().flatten();
    prop_assert_eq!(again, None, "twice:\n{}", shown);
    survived(text, &found, &repaired, strategy)
}

/// What `remove_orphans` leaves: calls, and results whose call is there.
fn may_stay(found: &Finding, strategy: Repair) -> bool {
    strategy == Repair::RemoveOrphans
        && match found.fault {
            Fault::InvalidLine | Fault::BrokenParent => false,
            Fault::OrphanedToolResult => found.description.contains("was compacted away"),
            _ => true,
        }
}

/// What the results in a text say of the calls that are in it, each once; what stands in for a result
/// says nothing.
fn said(text: &[u8]) -> HashSet<String> {
    let lines: Vec<Value> = String::from_utf8_lossy(text)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect();
    let mut calls = HashSet::new();
    let mut results = Vec::new();
    let mut open: Vec<&Value> = lines.iter().collect();
    while let Some(value) = open.pop() {
        let kind = value["type"].as_str().unwrap_or_default();
        let named = match kind {
            "function_call_output" => Some("call_id"),
            "toolResponse" => Some("id"),
            _ => None,
        };
        let mut keys = ["tool_use_id", "toolCallId", "tool_call_id"]
            .into_iter()
            .chain(named);
        let answers = keys.find_map(|key| value[key].as_str());
        let calls_as = match kind {
            "function_call" => &value["call_id"],
            "tool_call" if value["data"].is_object() => &value["data"]["id"],
            "tool_use" | "toolCall" | "function" | "toolRequest" | "tool_call" => &value["id"],
            _ => &Value::Null,
        };
        if let Some(id) = answers {
            let said = ["content", "output", "toolResult"].map(|key| value[key].to_string());
            results.push((id.to_owned(), said.concat()));
        }
        calls.extend(calls_as.as_str().map(str::to_owned));
        match value {
            Value::Object(members) => open.extend(members.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    results.retain(|(id, said)| calls.contains(id) && !said.contains(STAND_IN));
    results.into_iter().map(|(id, said)| id + &said).collect()
}

/// What was said before a repair and is not said after it.
fn lost_results(text: &[u8], repaired: &[u8]) -> Vec<String> {
    let after = said(repaired);
    said(text)
        .into_iter()
        .filter(|it| !after.contains(it))
        .collect()
}

/// Every healthy entry is still there, in order.
fn survived(
    text: &[u8],
    found: &[Finding],
    repaired: &[u8],
    strategy: Repair,
) -> Result<(), TestCaseError> {
    let (old, new) = (entry_lines(text), entry_lines(repaired));
    if strategy == Repair::Truncate {
        let broken: HashSet<u32> = found
            .iter()
            .filter(|found| found.fault == Fault::InvalidLine)
            .map(|found| found.entry)
            .collect();
        let whole: Vec<String> = (0..)
            .zip(old)
            .filter(|(number, _)| !broken.contains(number))
            .map(|(_, line)| line)
            .collect();
        prop_assert!(whole.starts_with(&new), "not a beginning");
        return Ok(());
    }
    let unhealthy: HashSet<u32> = found
        .iter()
        .filter(|found| {
            found.fault != Fault::BrokenParent && found.fault != Fault::MissingToolResult
        })
        .map(|found| found.entry)
        .collect();
    // The result of a call that uses an id again goes with it.
    let reused: HashSet<&str> = found
        .iter()
        .filter(|found| found.fault == Fault::DuplicateToolCallId)
        .filter_map(|found| found.id.as_deref())
        .collect();
    // What stands in for a result goes when the real one is there.
    let stood_in_for: HashSet<&str> = found
        .iter()
        .filter(|found| found.fault == Fault::DuplicateToolResult)
        .filter_map(|found| found.id.as_deref())
        .collect();
    let names = |ids: &HashSet<&str>, line: &str| {
        let quoted = |id: &&str| json!(id).to_string();
        ids.iter().any(|id| line.contains(&quoted(id)))
    };
    let goes_too = |line: &str| {
        strategy == Repair::Reconstruct
            && (names(&reused, line) || line.contains(STAND_IN) && names(&stood_in_for, line))
    };
    let healthy: Vec<String> = (0..)
        .zip(old)
        .filter(|(number, line)| !unhealthy.contains(number) && !goes_too(line))
        .map(|(_, line)| line)
        .collect();
    prop_assert_eq!(
        is_within(&healthy, &new),
        Ok(()),
        "lost from\n{}\n->\n{}",
        String::from_utf8_lossy(text),
        String::from_utf8_lossy(repaired)
    );
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3_000))]

    #[test]
    fn remove_orphans_leaves_only_what_it_says((format, said) in session(), style in 0_u8..8) {
        check_repair(format, &bytes(format, &said, style), Repair::RemoveOrphans)?;
    }

    #[test]
    fn reconstruct_makes_every_session_whole((format, said) in session(), style in 0_u8..8) {
        check_repair(format, &bytes(format, &said, style), Repair::Reconstruct)?;
    }

    #[test]
    fn truncate_cuts_back_to_a_whole_session((format, said) in session(), style in 0_u8..8) {
        check_repair(format, &bytes(format, &said, style), Repair::Truncate)?;
    }

    #[test]
    fn documents_are_repaired_like_lines((format, mut said) in session(), strategy in prop::sample::select(Repair::ALL.to_vec()), wrapped in any::<bool>()) {
        if !has_parents(format) && format != Format::Codex {
            for entry in &mut said {
                entry.written = None;
            }
            let items: Vec<String> = lines(format, &said).into_iter().map(|(_, line)| line).collect();
            let list = format!("[\n  {}\n]", items.join(",\n  "));
            let text = if wrapped { format!("{{\"model\":\"m\",\"messages\":{list}}}\n") } else { list };
            if let Ok(Some(repaired)) = repair_bytes(text.as_bytes(), strategy) {
                let value: Value = serde_json::from_slice(&repaired).expect("still JSON");
                let items = if wrapped { value["messages"].clone() } else { value };
                let as_lines: String = items.as_array().expect("a list").iter().flat_map(|item| [item.to_string(), "\n".to_owned()]).collect();
                if strategy != Repair::RemoveOrphans {
                    prop_assert_eq!(accepts(format, &as_lines), Ok(()));
                    prop_assert_eq!(findings(&repaired), Vec::new());
                }
            }
        }
    }

    #[test]
    fn values_are_judged_like_lines((format, mut said) in session()) {
        for entry in &mut said {
            entry.written = None;
        }
        let text = bytes(format, &said, 0);
        let values: Vec<Value> = lines(format, &said).iter().map(|(_, line)| serde_json::from_str(line).expect("JSON")).collect();
        let from_lines: Vec<_> = findings(&text).into_iter()
            .map(|found| (found.fault, found.entry as usize, (found.fault != Fault::BrokenParent).then_some(found.id).flatten())).collect();
        let from_values: Vec<_> = validate_tool_result_pairing(&values).into_iter()
            .map(|issue| (issue.fault, issue.message_index, issue.tool_use_id)).collect();
        prop_assert_eq!(from_lines, from_values);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..600), strategy in prop::sample::select(Repair::ALL.to_vec())) {
        let _ = repair_bytes(&bytes, strategy);
        findings(&bytes);
    }

    #[test]
    fn no_cut_or_splice_panics((format, said) in session(), from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), strategy in prop::sample::select(Repair::ALL.to_vec())) {
        let mut text = bytes(format, &said, 0);
        let (from, to) = (from.index(text.len() + 1), to.index(text.len() + 1));
        let cut: Vec<u8> = text.drain(from.min(to)..from.max(to)).collect();
        let _ = repair_bytes(&text, strategy);
        text.splice(0..0, cut);
        let _ = repair_bytes(&text, strategy);
    }
}
