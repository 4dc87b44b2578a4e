//! Turns of calls, as data: `guard_cases/legitimate.json` must never be disturbed,
//! `guard_cases/loops.json` must be told and cut exactly where it says.
//!
//! A step is a call (`tool`, `args`; left out means absent), what would become of it if it ran (`ok`
//! with its output, `exit` with what a command printed, `fails` with its kind and an `error`, or
//! `neutral`), how many milliseconds it `took`, and `expect`: what the guard does, in words, nothing meaning that the call runs and
//! the answer goes through as it is. `times` repeats a step, `repeat` a list of `steps`; `{i}` and
//! `{ii}` in any text are then the round, from 1, plain and with two digits.

use std::fmt::Write as _;

use holdfast_reliability::guard::{
    Advice, BlockCode, CallIdentity, ExitDigest, FailureKind, GuardConfig, Observation,
    OutputDigest, TurnState, Verdict,
};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    why: String,
    #[serde(default)]
    config: GuardConfig,
    steps: Vec<Step>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    tool: Option<String>,
    #[serde(default)]
    args: Value,
    ok: Option<Value>,
    #[serde(default)]
    mutating: bool,
    #[serde(default)]
    polls: bool,
    exit: Option<Value>,
    fails: Option<FailureKind>,
    #[serde(default)]
    error: String,
    #[serde(default)]
    neutral: bool,
    #[serde(default)]
    expect: String,
    /// How long the call takes, in milliseconds.
    #[serde(default)]
    took: u64,
    times: Option<u32>,
    repeat: Option<u32>,
    #[serde(default)]
    steps: Vec<Step>,
}

/// Words of `expect` that a legitimate turn may contain: a wrong call is still told so.
const HARMLESS: [&str; 2] = ["", "tag"];

fn load(text: &str) -> Vec<Case> {
    serde_json::from_str(text).unwrap()
}

fn fill_text(text: &str, round: u32) -> String {
    text.replace("{ii}", &format!("{round:02}"))
        .replace("{i}", &round.to_string())
}

fn fill(value: &Value, round: u32) -> Value {
    match value {
        Value::String(text) => Value::String(fill_text(text, round)),
        Value::Array(items) => items.iter().map(|item| fill(item, round)).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, item)| (key.clone(), fill(item, round)))
            .collect(),
        other => other.clone(),
    }
}

/// The steps one after another, with rounds filled in.
fn unroll(steps: &[Step], round: u32, out: &mut Vec<Step>) {
    for step in steps {
        if let Some(repeat) = step.repeat {
            for round in 1..=repeat {
                unroll(&step.steps, round, out);
            }
            continue;
        }
        for time in 1..=step.times.unwrap_or(1) {
            let round = if step.times.is_some() { time } else { round };
            let mut filled = step.clone();
            filled.tool = step.tool.as_deref().map(|tool| fill_text(tool, round));
            filled.args = fill(&step.args, round);
            filled.ok = step.ok.as_ref().map(|output| fill(output, round));
            filled.exit = step.exit.as_ref().map(|output| fill(output, round));
            filled.error = fill_text(&step.error, round);
            out.push(filled);
        }
    }
}

fn observation(step: &Step) -> Observation<'_> {
    match step {
        Step {
            ok: Some(output),
            mutating,
            polls,
            ..
        } => Observation::Succeeded {
            mutating: *mutating,
            polls: *polls,
            output: OutputDigest::of(output),
        },
        Step {
            exit: Some(output),
            polls,
            ..
        } => Observation::NonZeroExit {
            polls: *polls,
            output: ExitDigest::of(output),
        },
        Step {
            fails: Some(kind),
            error,
            ..
        } => Observation::Failed { kind: *kind, error },
        Step { neutral: true, .. } => Observation::Neutral,
        Step { tool, .. } => panic!("a step of {tool:?} has no outcome"),
    }
}

fn words(verdict: &Verdict, advice: &Advice) -> String {
    let mut words = Vec::new();
    match verdict {
        Verdict::Run => {}
        Verdict::Block(block) if block.code == BlockCode::LoopDetected => {
            assert!(block.text.starts_with("[LOOP DETECTED]"), "{}", block.text);
            words.push("blocked-loop");
        }
        Verdict::Block(block) => {
            assert!(
                block.text.starts_with("[TOOL ERROR LIMIT]"),
                "{}",
                block.text
            );
            words.push("blocked-limit");
        }
    }
    if advice.non_retryable {
        words.push("tag");
    }
    for text in &advice.texts {
        words.push(match text {
            text if text.contains("returned the same") && text.starts_with("[LOOP") => "repeats",
            text if text.starts_with("[LOOP DETECTED]") => "loop",
            text if text.starts_with("[TOOL ERROR LIMIT]") => "limit",
            text if text.starts_with("[NO PROGRESS]") => "advised",
            other => panic!("unknown text {other}"),
        });
    }
    if advice.escalate_to_parent {
        words.push("escalate");
    }
    if advice.stop_turn {
        words.push("stop");
    }
    words.join(" ")
}

/// Runs a case and returns what the guard did at each step, and where that was not expected.
fn run(case: &Case) -> (Vec<String>, String) {
    case.config.validate().unwrap();
    let (mut steps, mut done, mut wrong) = (Vec::new(), Vec::new(), String::new());
    unroll(&case.steps, 1, &mut steps);
    let mut turn = TurnState::default();
    for (at, step) in steps.iter().enumerate() {
        let tool = step.tool.as_deref().expect("a step has a tool");
        let call = CallIdentity::of(tool, &step.args);
        let verdict = turn.check(&call, &case.config);
        assert_eq!(turn.check(&call, &case.config), verdict);
        let what = if verdict.is_block() {
            Observation::Blocked
        } else {
            observation(step)
        };
        if !verdict.is_block() {
            turn.passed(step.took);
        }
        let advice = turn.observe(&call, &what, &case.config);
        let stored = serde_json::to_string(&turn).unwrap();
        assert_eq!(
            serde_json::from_str::<TurnState>(&stored).unwrap(),
            turn,
            "{}",
            case.name
        );
        let got = words(&verdict, &advice);
        if got != step.expect {
            let _ = writeln!(
                wrong,
                "{}: step {} ({tool} {}): expected {:?}, got {got:?}",
                case.name,
                at + 1,
                step.args,
                step.expect
            );
        }
        done.push(got);
    }
    (done, wrong)
}

fn check_all(cases: &[Case], holds: impl Fn(&[String]) -> bool) {
    let mut wrong = String::new();
    let mut names = std::collections::BTreeSet::new();
    for case in cases {
        assert!(names.insert(&case.name), "{} is there twice", case.name);
        assert!(!case.why.is_empty(), "{} says why", case.name);
        let (done, problems) = run(case);
        wrong.push_str(&problems);
        if !holds(&done) {
            let _ = writeln!(wrong, "{}: {done:?}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(cases.len() >= 35, "only {} cases", cases.len());
}

#[test]
fn legitimate_turns_are_never_disturbed() {
    let cases = load(include_str!("guard_cases/legitimate.json"));
    check_all(&cases, |done| {
        done.iter().all(|words| HARMLESS.contains(&words.as_str()))
    });
}

#[test]
fn loops_are_never_missed() {
    let cases = load(include_str!("guard_cases/loops.json"));
    check_all(&cases, |done| {
        done.iter()
            .any(|words| words.contains("loop") || words.contains("limit"))
    });
}
