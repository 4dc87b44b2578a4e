//! The forms of model families, scored with cases from the test suites of vLLM, `SGLang` and
//! llama.cpp.
//!
//! The data is not part of the repository: where it is absent the test says so and passes.
//! `HOLDFAST_FORMS_SHOW=1` prints each miss; `HOLDFAST_FORMS_SHOW=<family>` those of one family.

use std::collections::BTreeMap;
use std::path::PathBuf;

use holdfast_intent::{FinishReason, Intent, Parsed, Parser, ToolSet};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What each family has to reach, not counting [`ON_PURPOSE`].
const SHARE_MIN: f64 = 0.95;

/// Cases that we read in another way on purpose: id and reason.
const ON_PURPOSE: &[(&str, &str)] = &[
    (
        "vllm:test_granite_tool_parser.py::TestGraniteToolParser::test_malformed_input[False]#48",
        CUT_OFF,
    ),
    (
        "vllm:test_granite_20b_fc_tool_parser.py::TestGranite20bFcToolParser::test_malformed_input[False]#37",
        CUT_OFF,
    ),
    (
        "vllm:test_longcat_tool_parser.py::TestLongCatToolParser::test_malformed_input[False]#139",
        CUT_OFF,
    ),
    (
        "sglang:test_minimax_m3_detector.py::TestMinimaxM3Malformed::test_truncated_no_closing_tags#423",
        CUT_OFF,
    ),
    (
        "sglang:test_poolside_v1_detector.py::TestPoolsideV1Detector::test_truncated_pre_value_emits_no_calls#459",
        CUT_OFF,
    ),
    (
        "sglang:test_poolside_v1_detector.py::TestPoolsideV1Detector::test_truncated_after_complete_call_keeps_complete#457",
        CUT_OFF,
    ),
    (
        "sglang:test_minicpm5_detector.py::test_duplicate_param_names_invalid_v3#400",
        TWICE,
    ),
    (
        "vllm:test_minicpm5xml_tool_parser.py::test_duplicate_param_names_invalid#154",
        TWICE,
    ),
    (
        "llama.cpp:5389",
        "the schema allows an object, and one is written: it is no string of markup",
    ),
];

/// The others drop such a call. We give it as not complete, so that it never runs and is asked for.
const CUT_OFF: &str = "a call that was cut off is an incomplete intent";
/// The others drop such a call as well.
const TWICE: &str = "an argument given twice makes the intent ambiguous, and it never runs";

/// One case of `cases.jsonl`.
#[derive(Deserialize)]
struct Case {
    id: String,
    group: String,
    text: String,
    tools: Value,
    want: Vec<Wanted>,
}

/// A call as the other parser reads it.
#[derive(Deserialize)]
struct Wanted {
    name: String,
    arguments: Map<String, Value>,
}

/// How many of a family's cases are right.
#[derive(Default)]
struct Score {
    right: usize,
    all: usize,
    /// Misses that are on purpose.
    excused: usize,
}

impl Score {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    fn share(&self) -> f64 {
        (self.right + self.excused) as f64 / self.all as f64
    }
}

fn cases() -> Option<Vec<Case>> {
    let file =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/forms/cases.jsonl");
    let Ok(source) = std::fs::read_to_string(&file) else {
        println!("skipped: no cases in {}", file.display());
        return None;
    };
    let read = |line: &str| serde_json::from_str(line).expect("a case");
    Some(source.lines().map(read).collect())
}

/// Whether two values are the same; 1 and 1.0 are.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64() == other.as_f64()
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .zip(other)
                    .all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => is_same_map(one, other),
        _ => one == other,
    }
}

fn is_same_map(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(key, value)| other.get(key).is_some_and(|other| is_same(value, other)))
}

fn is_right(case: &Case, parsed: &Parsed) -> bool {
    let same = |(wanted, intent): (&Wanted, &Intent)| {
        wanted.name == intent.name && is_same_map(&wanted.arguments, &intent.arguments)
    };
    case.want.len() == parsed.intents.len() && case.want.iter().zip(&parsed.intents).all(same)
}

fn show(case: &Case, parsed: &Parsed) {
    println!("--- {} ({})\n{}\nwanted:", case.id, case.group, case.text);
    for wanted in &case.want {
        println!(
            "  {} {}",
            wanted.name,
            Value::from(wanted.arguments.clone())
        );
    }
    println!("read:");
    for intent in &parsed.intents {
        let arguments = Value::from(intent.arguments.clone());
        println!("  {} {arguments} {:?}", intent.name, intent.problems);
    }
    println!("  {:?}", parsed.problems);
}

#[test]
fn every_family_of_forms_is_read() {
    let Some(cases) = cases() else { return };
    let shown = std::env::var("HOLDFAST_FORMS_SHOW").unwrap_or_default();
    let mut table: BTreeMap<&str, Score> = BTreeMap::new();
    let mut needless = Vec::new();
    for case in &cases {
        let tools = ToolSet::from_json(&case.tools).unwrap_or_else(|| ToolSet::new(Vec::new()));
        let parsed = Parser::new(tools).parse(&case.text, FinishReason::Stop);
        let score = table.entry(&case.group).or_default();
        let right = is_right(case, &parsed);
        let excused = ON_PURPOSE.iter().any(|(id, _)| *id == case.id);
        score.all += 1;
        score.right += usize::from(right);
        score.excused += usize::from(excused && !right);
        let runnable = parsed.intents.iter().filter(|intent| intent.is_runnable());
        assert!(
            !excused || runnable.count() <= case.want.len(),
            "{}: what the others drop would run: {parsed:?}",
            case.id
        );
        if excused && right {
            needless.push(case.id.as_str());
        }
        if !right && !shown.is_empty() && (shown == "1" || case.group.contains(&shown)) {
            show(case, &parsed);
        }
    }
    let mut below = Vec::new();
    println!(
        "{:<32} {:>5} {:>5} {:>10}",
        "family", "cases", "right", "on purpose"
    );
    for (family, score) in &table {
        let Score {
            right,
            all,
            excused,
        } = score;
        println!("{family:<32} {all:>5} {right:>5} {excused:>10}");
        if score.share() < SHARE_MIN {
            below.push(*family);
        }
    }
    let right: usize = table.values().map(|score| score.right).sum();
    println!("{right} of {} cases are right", cases.len());
    for (id, reason) in ON_PURPOSE {
        println!("{id}: {reason}");
    }
    assert!(below.is_empty(), "below the aim: {}", below.join(", "));
    assert!(
        needless.is_empty(),
        "read after all: {}",
        needless.join(", ")
    );
}
