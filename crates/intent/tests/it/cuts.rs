//! What holds for every case when its text is cut or comes in pieces.

use std::fmt::Write as _;

use crate::support::{Case, all_cases};
use holdfast_intent::{FinishReason, Intent, Parsed, Problem, Strategy, StreamParser};
use serde_json::Value;

/// Whether a cut text's intent is allowed: not whole, not to be run, or the same as the whole
/// text's. `same` compares the arguments.
fn is_honest(intent: &Intent, whole: &Parsed, same: fn(&Value, &Value) -> bool) -> bool {
    let guess = intent.strategy == Strategy::Fuzzy && !intent.is_runnable();
    let arguments = Value::Object(intent.arguments.clone());
    !intent.complete
        || guess
        || whole.intents.iter().any(|known| {
            known.name == intent.name && same(&arguments, &Value::Object(known.arguments.clone()))
        })
}

/// Missing closers are mended when nobody says that the model was cut, so what stood behind them
/// may be missing; but no value is ever half of one.
fn is_part(part: &Value, whole: &Value) -> bool {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .all(|(key, value)| whole.get(key).is_some_and(|known| is_part(value, known))),
        (Value::Array(part), Value::Array(whole)) => {
            part.len() <= whole.len() && part.iter().zip(whole).all(|(a, b)| is_part(a, b))
        }
        _ => part == whole,
    }
}

/// Forms whose arguments can end anywhere, so that only the server knows that they were cut.
/// The same goes for texts that are damaged and cut.
fn ends_anywhere(intent: &Intent, case: &Case, whole: &Parsed) -> bool {
    let damaged = whole
        .intents
        .iter()
        .flat_map(|known| &known.problems)
        .any(|problem| matches!(problem, Problem::Repaired | Problem::Ambiguous));
    damaged
        || case.name.contains("literal closer")
        || case.name.contains("implicit joining")
        || intent.strategy == Strategy::Fuzzy
        || intent.strategy == Strategy::React && !case.text.contains('{')
        || case.text.contains("<think>")
        || case.text.contains("[THINK]")
}

#[test]
fn what_is_cut_is_never_taken_for_whole() {
    let (mut report, mut failed, mut cuts) = (String::new(), 0, 0);
    for case in all_cases() {
        let whole = case.parser.parse_any(&case.text, case.finish);
        // A server's JSON comes whole; only the arguments in it can be cut, and cases say how.
        if case.expect.trim_start().starts_with("none") || case.file == "native" {
            continue;
        }
        for at in (1..case.text.len()).filter(|at| case.text.is_char_boundary(*at)) {
            let text = &case.text[..at];
            for finish in [FinishReason::Length, FinishReason::Unknown] {
                cuts += 1;
                for intent in case.parser.parse_any(text, finish).intents {
                    let cut_known = finish == FinishReason::Length;
                    let same = if cut_known { Value::eq } else { is_part };
                    if (cut_known || !ends_anywhere(&intent, &case, &whole))
                        && !is_honest(&intent, &whole, same)
                    {
                        failed += 1;
                        writeln!(
                            report,
                            "{}: {} ({finish:?})\n      {text:?}\n      {intent:?}",
                            case.file, case.name
                        )
                        .expect("memory");
                    }
                }
            }
        }
    }
    println!("{cuts} cuts");
    assert_eq!(
        failed, 0,
        "{failed} of {cuts} cuts were taken for whole:\n{report}"
    );
}

/// How a text can arrive.
fn chunkings(text: &str) -> Vec<Vec<&[u8]>> {
    let bytes = text.as_bytes();
    let mut found: Vec<Vec<&[u8]>> = [1, 2, 3, 7, 64]
        .iter()
        .map(|size| bytes.chunks(*size).collect())
        .collect();
    found.push(bytes.split_inclusive(|byte| *byte == b'\n').collect());
    found.push(bytes.split_inclusive(|byte| *byte == b' ').collect());
    found.push(vec![b"", bytes, b""]);
    found
}

#[test]
fn pieces_change_nothing() {
    for case in all_cases() {
        let whole = case.parser.parse_any(&case.text, case.finish);
        for chunks in chunkings(&case.text) {
            let mut stream = StreamParser::new(&case.parser);
            for chunk in chunks {
                stream.feed(chunk);
            }
            assert_eq!(
                stream.finish(case.finish),
                whole,
                "{}: {}: pieces change the result",
                case.file,
                case.name
            );
        }
    }
}

#[test]
fn spans_lie_in_the_text_and_in_order() {
    for case in all_cases() {
        let mut last = 0;
        for intent in case.parser.parse_any(&case.text, case.finish).intents {
            let [start, end] = intent.span;
            assert!(
                start >= last && start <= end && case.text.get(start..end).is_some(),
                "{}: {}: {start}..{end} after {last}",
                case.file,
                case.name
            );
            last = start;
        }
    }
}
