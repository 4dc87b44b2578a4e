//! Properties of the loop guard that hold for every turn.

use holdfast_reliability::guard::{
    CallIdentity, ExitDigest, FailureKind, GuardConfig, Observation, OutputDigest, TurnState,
};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Well above what the limits add up to, well below what a store would mind.
const STATE_BYTES_MAX: usize = 256 * 1024;

#[derive(Clone, Debug)]
enum Outcome {
    Succeeds {
        output: u8,
        mutating: bool,
        polls: bool,
    },
    Exits {
        output: u8,
    },
    Fails {
        kind: FailureKind,
        error: u8,
    },
    Neutral,
}

#[derive(Clone, Debug)]
struct Step {
    tool: u8,
    args: u16,
    outcome: Outcome,
}

fn kind() -> impl Strategy<Value = FailureKind> {
    prop_oneof![
        Just(FailureKind::UnknownTool),
        Just(FailureKind::Validation),
        Just(FailureKind::Permission),
        Just(FailureKind::Deterministic),
        Just(FailureKind::Retryable),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        4 => (0..3_u8, any::<bool>(), prop::bool::weighted(0.1))
            .prop_map(|(output, mutating, polls)| Outcome::Succeeds { output, mutating, polls }),
        2 => (0..3_u8).prop_map(|output| Outcome::Exits { output }),
        3 => (kind(), 0..3_u8).prop_map(|(kind, error)| Outcome::Fails { kind, error }),
        1 => Just(Outcome::Neutral),
    ]
}

fn steps(args: u16, len: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = (0..3_u8, 0..args, outcome()).prop_map(|(tool, args, outcome)| Step {
        tool,
        args,
        outcome,
    });
    prop::collection::vec(step, 0..len)
}

/// Does one step as a host does and says whether the call ran and what the guard said.
fn step(turn: &mut TurnState, step: &Step, config: &GuardConfig) -> (bool, String) {
    const NAMES: [&str; 3] = ["read", "exec", "edit"];
    const TEXTS: [&str; 3] = ["alpha", "beta", "gamma"];
    let args = json!({ "n": step.args });
    let call = CallIdentity::of(NAMES[usize::from(step.tool)], &args);
    let verdict = turn.check(&call, config);
    let what = match step.outcome {
        _ if verdict.is_block() => Observation::Blocked,
        Outcome::Succeeds {
            output,
            mutating,
            polls,
        } => Observation::Succeeded {
            mutating,
            polls,
            output: OutputDigest::of_text(TEXTS[usize::from(output)]),
        },
        Outcome::Exits { output } => Observation::NonZeroExit {
            polls: false,
            output: ExitDigest::of_text(TEXTS[usize::from(output)]),
        },
        Outcome::Fails { kind, error } => Observation::Failed {
            kind,
            error: TEXTS[usize::from(error)],
        },
        Outcome::Neutral => Observation::Neutral,
    };
    let advice = turn.observe(&call, &what, config);
    (!verdict.is_block(), format!("{verdict:?} {advice:?}"))
}

fn reload(turn: &TurnState) -> TurnState {
    serde_json::from_str(&serde_json::to_string(turn).unwrap()).unwrap()
}

/// A value with some of its spelling changed and none of its meaning.
fn respell(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut out = serde_json::Map::new();
            for (key, item) in map.iter().rev() {
                out.insert(format!(" {key}\t"), respell(item));
            }
            out.insert("zz_absent".to_owned(), Value::Null);
            out.insert("aa_empty".to_owned(), json!({ "deep": null }));
            Value::Object(out)
        }
        Value::Array(items) => items.iter().map(respell).collect(),
        Value::Number(number) if number.as_i64().is_some_and(|n| n.abs() < 1 << 53) => {
            serde_json::from_str(&format!("{number}.0")).unwrap()
        }
        other => other.clone(),
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "[ a-zé]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-y]{1,6}", inner, 1..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// One command that returns non-zero, asked again after each of these times: how often it ran.
fn probes(waits_ms: &[u64], config: &GuardConfig) -> u32 {
    let (args, pause) = (
        json!({"command": "test -f done"}),
        json!({"command": "sleep"}),
    );
    let (call, pause) = (
        CallIdentity::of("exec", &args),
        CallIdentity::of("exec", &pause),
    );
    let mut turn = TurnState::default();
    let mut ran = 0;
    for wait_ms in waits_ms {
        let what = if turn.check(&call, config).is_block() {
            Observation::Neutral
        } else {
            ran += 1;
            Observation::NonZeroExit {
                polls: false,
                output: ExitDigest::of_text(""),
            }
        };
        let _ = turn.observe(&call, &what, config);
        turn.passed(*wait_ms);
        let output = OutputDigest::of_text("");
        let slept = Observation::Succeeded {
            mutating: false,
            polls: true,
            output,
        };
        let _ = turn.observe(&pause, &slept, config);
    }
    ran
}

proptest! {
    #[test]
    fn without_waiting_nothing_is_a_probe(
        steps in steps(4, 120),
        probe_wait_ms in 1..u32::MAX,
        max_identical_probes in 2..40_u32,
    ) {
        let config = GuardConfig::default();
        let other = GuardConfig { probe_wait_ms, max_identical_probes, ..config.clone() };
        let (mut turn, mut same) = (TurnState::default(), TurnState::default());
        for one in &steps {
            let (ran, _) = step(&mut turn, one, &config);
            prop_assert_eq!(step(&mut same, one, &other).0, ran);
        }
    }

    #[test]
    fn a_probe_runs_as_long_as_it_waits_and_never_too_often(
        waits_ms in prop::collection::vec(0..60_u64, 1..60),
        probe_wait_ms in 1..40_u32,
        max_identical_failures in 1..5_u32,
        max_identical_probes in 1..20_u32,
    ) {
        let config = GuardConfig { probe_wait_ms, max_identical_failures, max_identical_probes, ..GuardConfig::default() };
        let most = max_identical_probes.max(max_identical_failures);
        let ran = probes(&waits_ms, &config);
        prop_assert!(ran <= most);
        let attempts = u32::try_from(waits_ms.len()).unwrap_or(u32::MAX);
        let patient: Vec<u64> = waits_ms.iter().map(|ms| ms + u64::from(probe_wait_ms)).collect();
        // One failure is all that is allowed where waiting can not make it the first again.
        let expected = if max_identical_failures == 1 { 1..=most } else { attempts.min(most)..=most };
        prop_assert!(expected.contains(&probes(&patient, &config)), "{} of {attempts}", probes(&patient, &config));
        let impatient = vec![0; waits_ms.len()];
        prop_assert_eq!(probes(&impatient, &config), attempts.min(max_identical_failures.min(most)));
    }

    #[test]
    fn no_more_failures_are_executed_than_the_turn_allows(
        steps in steps(20, 300),
        limit in 1..12_u32,
    ) {
        let config = GuardConfig {
            max_failures_per_turn: limit,
            forgive_after: 0,
            ..GuardConfig::default()
        };
        let mut turn = TurnState::default();
        let mut failed = 0;
        for one in &steps {
            let (ran, _) = step(&mut turn, one, &config);
            failed += u32::from(ran && matches!(one.outcome, Outcome::Fails { .. }));
        }
        prop_assert!(failed <= limit);
    }

    #[test]
    fn one_call_never_fails_more_often_than_allowed_without_a_change(
        steps in steps(4, 200),
        limit in 1..4_u32,
    ) {
        let config = GuardConfig {
            max_identical_failures: limit,
            max_failures_per_turn: 1_000,
            ..GuardConfig::default()
        };
        let mut turn = TurnState::default();
        let mut counts = std::collections::BTreeMap::new();
        for one in &steps {
            let (ran, _) = step(&mut turn, one, &config);
            match one.outcome {
                Outcome::Succeeds { .. } if ran => {
                    counts.retain(|(tool, args, _), _| (*tool, *args) != (one.tool, one.args));
                }
                Outcome::Fails { kind: FailureKind::Validation, error } if ran => {
                    let count = counts.entry((one.tool, one.args, error)).or_insert(0_u32);
                    *count += 1;
                    prop_assert!(*count <= limit);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn distinct_successes_are_never_commented(
        count in 1..600_u32,
        mutating in any::<bool>(),
        same_output in any::<bool>(),
    ) {
        let config = GuardConfig::default();
        let mut turn = TurnState::default();
        for n in 0..count {
            let args = json!({ "n": n });
            let call = CallIdentity::of("read", &args);
            prop_assert!(!turn.check(&call, &config).is_block());
            let text = if same_output { String::new() } else { format!("line {n}") };
            let output = OutputDigest::of_text(&text);
            let what = Observation::Succeeded { mutating, polls: false, output };
            prop_assert!(turn.observe(&call, &what, &config).is_silent());
        }
    }

    #[test]
    fn checking_changes_nothing_and_storing_neither(steps in steps(6, 120)) {
        let config = GuardConfig { max_failures_per_turn: 40, ..GuardConfig::default() };
        let (mut kept, mut stored) = (TurnState::default(), TurnState::default());
        for one in &steps {
            let before = kept.clone();
            let args = json!({ "n": one.args });
            let call = CallIdentity::of("read", &args);
            prop_assert_eq!(kept.check(&call, &config), kept.check(&call, &config));
            prop_assert_eq!(&kept, &before);
            stored = reload(&stored);
            prop_assert_eq!(step(&mut kept, one, &config), step(&mut stored, one, &config));
            prop_assert_eq!(&kept, &stored);
        }
    }

    /// Whatever came before, a loop of constant results ends, and soon.
    #[test]
    fn every_short_loop_is_cut(
        before in steps(30, 80),
        period in prop::collection::vec(outcome(), 1..=3),
    ) {
        let config = GuardConfig { max_failures_per_turn: 5, ..GuardConfig::default() };
        let counted = |outcome: &Outcome| {
            !matches!(outcome, Outcome::Neutral | Outcome::Succeeds { polls: true, .. })
        };
        prop_assume!(period.iter().any(counted));
        let mut turn = TurnState::default();
        for one in before.iter().filter(|one| !matches!(one.outcome, Outcome::Fails { .. })) {
            let _ = step(&mut turn, one, &config);
        }
        prop_assume!(!turn.is_stopped());
        let looped: Vec<Step> = (1000..)
            .zip(period)
            .map(|(args, outcome)| Step { tool: 0, args, outcome })
            .collect();
        let mut blocked = 0;
        for _ in 0..40 {
            for one in &looped {
                blocked += u32::from(!step(&mut turn, one, &config).0);
            }
        }
        prop_assert!(blocked > 0);
        prop_assert!(turn.is_stopped());
    }

    #[test]
    fn spelling_never_changes_the_call(value in json_value()) {
        let args = json!({ "v": value });
        let respelt = respell(&args);
        let (a, b) = (CallIdentity::of("t", &args), CallIdentity::of(" T", &respelt));
        prop_assert!(a.same_call(&b), "{} and {}", args, respelt);
    }

    #[test]
    fn different_values_are_different_calls(a in json_value(), b in json_value()) {
        prop_assume!(a != b);
        let (a, b) = (json!({ "v": a }), json!({ "v": b }));
        prop_assert!(!CallIdentity::of("t", &a).same_call(&CallIdentity::of("t", &b)));
    }

    #[test]
    fn any_text_has_a_signature_and_a_digest(text in any::<String>(), digits in "[0-9a-fx:. TZ+ms-]{0,60}") {
        for text in [text, digits] {
            prop_assert_eq!(ExitDigest::of_text(&text), ExitDigest::of(&Value::from(text)));
        }
    }
}

proptest! {
    // Long turns, so fewer of them.
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn the_state_stays_small(steps in steps(u16::MAX, 1_500)) {
        let config = GuardConfig { max_failures_per_turn: u32::MAX, ..GuardConfig::default() };
        let mut turn = TurnState::default();
        for one in &steps {
            let _ = step(&mut turn, one, &config);
        }
        prop_assert!(serde_json::to_string(&turn).unwrap().len() < STATE_BYTES_MAX);
    }
}
