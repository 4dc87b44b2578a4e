//! Calls that still run are nobody's fault: nothing is invented for them, and when something was,
//! the real result wins.

use crate::common::provider::accepts;
use crate::common::{Call, Said, What, has_parents, lines, text};
use holdfast_transcript::scan::scan_bytes;
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{Fault, Format, Strategy as Repair, validate_tool_result_pairing};
use proptest::prelude::*;
use serde_json::{Value, json};

const STAND_IN: &str = "[holdfast] The result of this call was lost.";

fn result(number: usize) -> What {
    What::Result {
        call: format!("toolu_{number}"),
        text: format!("real {number}"),
    }
}

/// Some rounds that are done, and one whose calls have these results so far.
fn running(rounds: usize, calls: usize, answered: &[usize]) -> Vec<Said> {
    let call = |id: String| Call {
        id,
        name: "read".to_owned(),
        arguments: json!({}),
    };
    let mut said = vec![What::User("go".to_owned())];
    for round in 0..rounds {
        let id = format!("done_{round}");
        said.push(What::Assistant {
            text: String::new(),
            calls: vec![call(id.clone())],
        });
        said.push(What::Result {
            call: id,
            text: "ok".to_owned(),
        });
    }
    said.push(What::Assistant {
        text: "all at once".to_owned(),
        calls: (0..calls).map(|id| call(format!("toolu_{id}"))).collect(),
    });
    said.extend(answered.iter().map(|number| result(*number)));
    let entries = said.into_iter().enumerate();
    entries.map(|(number, it)| Said::new(number, it)).collect()
}

fn found(text: &str) -> Vec<Fault> {
    let report = scan_bytes("-", text.as_bytes()).expect("a session");
    report.findings.into_iter().map(|it| it.fault).collect()
}

fn reconstructed(text: &str) -> String {
    let repaired = repair_bytes(text.as_bytes(), Repair::Reconstruct).expect("a session");
    String::from_utf8(repaired.expect("broken")).expect("UTF-8")
}

/// Which of the last calls have their results, in which order, out of how many.
fn tail() -> impl Strategy<Value = (usize, Vec<usize>)> {
    (1_usize..6).prop_flat_map(|calls| {
        let order = Just((0..calls).collect::<Vec<_>>()).prop_shuffle();
        (order, 0..=calls).prop_map(move |(order, done)| (calls, order[..done].to_vec()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_tail_that_is_answered_in_part_is_left_alone(
        format in prop::sample::select(Format::ALL.to_vec()),
        rounds in 0_usize..4,
        (calls, answered) in tail(),
    ) {
        let lines = lines(format, &running(rounds, calls, &answered));
        let text = text(&lines);
        prop_assert_eq!(found(&text), Vec::new(), "{}", text);
        prop_assert_eq!(accepts(format, &text), Ok(()));
        for strategy in Repair::ALL {
            let repaired = repair_bytes(text.as_bytes(), strategy).expect("a session");
            prop_assert_eq!(repaired, None, "{}", strategy.name());
        }
        let values: Vec<Value> = lines.iter().map(|(_, line)| serde_json::from_str(line).expect("JSON")).collect();
        prop_assert_eq!(validate_tool_result_pairing(&values), Vec::new());
    }

    #[test]
    fn the_real_result_takes_the_place_of_what_stood_in_for_it(
        format in prop::sample::select(Format::ALL.to_vec()),
        (calls, answered) in tail(),
        goes_on in any::<bool>(),
    ) {
        let mut said = running(1, calls, &answered);
        said.push(Said::new(said.len(), What::User("still there?".to_owned())));
        let whole = text(&lines(format, &said));
        let missing: Vec<usize> = (0..calls).filter(|id| !answered.contains(id)).collect();
        prop_assert_eq!(found(&whole).len(), missing.len());
        prop_assume!(!missing.is_empty());
        let mut mended = reconstructed(&whole);
        prop_assert_eq!(mended.matches(STAND_IN).count(), missing.len());
        if !goes_on {
            // The question is taken back, so that the results come right behind what stands in.
            let question = lines(format, &said).pop().expect("a line").1;
            let kept = mended.lines().filter(|line| !is_same(line, &question));
            mended = kept.flat_map(|line| [line, "\n"]).collect();
        }
        for number in &missing {
            let mut late = Said::new(100 + number, result(*number));
            late.parent = has_parents(format).then(|| last_id(format, &mended)).flatten();
            let line = lines(format, &[late]).pop().expect("a line").1;
            mended.push_str(&line);
            mended.push('\n');
        }
        let whole = reconstructed(&mended);
        prop_assert_eq!(whole.matches(STAND_IN).count(), 0, "{}\n->\n{}", mended, whole);
        for number in 0..calls {
            let real = format!("real {number}\"");
            prop_assert_eq!(whole.matches(&real).count(), 1, "{}\n->\n{}", mended, whole);
        }
        prop_assert_eq!(found(&whole), Vec::new());
        prop_assert_eq!(accepts(format, &whole), Ok(()));
    }
}

fn is_same(line: &str, question: &str) -> bool {
    let core = |line: &str| -> Value {
        let mut value: Value = serde_json::from_str(line).expect("JSON");
        for key in ["parentId", "parentUuid"] {
            if let Some(parent) = value.get_mut(key) {
                *parent = Value::Null;
            }
        }
        value
    };
    core(line) == core(question)
}

fn last_id(format: Format, text: &str) -> Option<String> {
    let last: Value = serde_json::from_str(text.lines().last()?).ok()?;
    let key = if format == Format::OpenClaw {
        "id"
    } else {
        "uuid"
    };
    Some(last[key].as_str()?.to_owned())
}
