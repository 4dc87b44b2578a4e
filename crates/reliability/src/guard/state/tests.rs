//! The steps of one turn.

use serde_json::json;

use super::*;

fn fail(turn: &mut TurnState, tool: &str, config: &GuardConfig) -> Advice {
    let args = json!({});
    let call = CallIdentity::of(tool, &args);
    let failed = Observation::Failed {
        kind: FailureKind::Deterministic,
        error: "boom",
    };
    turn.observe(&call, &failed, config)
}

#[test]
fn a_host_that_can_not_refuse_still_gets_the_texts() {
    let config = GuardConfig::default();
    let mut turn = TurnState::default();
    let said: Vec<usize> = (0..7)
        .map(|_| fail(&mut turn, "read", &config).texts.len())
        .collect();
    assert_eq!(said, [0, 1, 1, 1, 2, 2, 2]);
    assert_eq!(
        turn.failures_in_turn(),
        5,
        "the count stays at what ended the turn"
    );
}

#[test]
fn calls_that_overlap_are_each_counted() {
    let config = GuardConfig::default();
    let mut turn = TurnState::default();
    let args = json!({});
    let call = CallIdentity::of("read", &args);
    for _ in 0..8 {
        assert_eq!(turn.check(&call, &config), Verdict::Run);
    }
    for _ in 0..4 {
        assert!(!fail(&mut turn, "read", &config).stop_turn);
    }
    assert!(fail(&mut turn, "read", &config).stop_turn);
    // One that was under way when the turn ended: its result is whole, the turn is over.
    let output = OutputDigest::of_text("late");
    let late = Observation::Succeeded {
        mutating: true,
        polls: false,
        output,
    };
    let advice = turn.observe(&call, &late, &config);
    assert!(advice.texts.is_empty() && advice.stop_turn);
    assert!(
        turn.check(&call, &config).is_block(),
        "nothing takes the end of a turn back"
    );
}

#[test]
fn only_a_wrong_call_is_another_attempt_at_getting_it_right() {
    let config = GuardConfig::default();
    let mut turn = TurnState::default();
    for _ in 0..2 {
        assert!(!fail(&mut turn, "exec", &config).stop_turn);
    }
    let (fails, is_wrong) = (json!({}), json!({"cmd": 1}));
    let wrong = CallIdentity::of("exec", &is_wrong);
    let invalid = Observation::Failed {
        kind: FailureKind::Validation,
        error: "there is no argument cmd",
    };
    assert_eq!(turn.observe(&wrong, &invalid, &config).wrong_attempts, 1);
    // This one's arguments are fine: it is blocked because it fails.
    let fails = CallIdentity::of("exec", &fails);
    assert!(turn.check(&fails, &config).is_block());
    let advice = turn.observe(&fails, &Observation::Blocked, &config);
    assert_eq!(advice.wrong_attempts, 0);
    let again = turn.observe(&wrong, &Observation::Blocked, &config);
    assert_eq!(again.wrong_attempts, 2);
}

#[test]
fn why_names_the_rule() {
    let config = GuardConfig::default();
    let mut turn = TurnState::default();
    let args = json!({});
    let call = CallIdentity::of("read", &args);
    let why = |turn: &TurnState| match turn.check(&call, &config) {
        Verdict::Block(block) => block.why,
        Verdict::Run => String::new(),
    };
    let _ = fail(&mut turn, "read", &config);
    let _ = fail(&mut turn, "read", &config);
    insta::assert_snapshot!(why(&turn), @r#"This call of "read" failed 2 times in this turn with the same arguments and the same error (maxIdenticalFailures = 2), and nothing has changed since that could make it work."#);
    for tool in ["a", "b", "c"] {
        let _ = fail(&mut turn, tool, &config);
    }
    insta::assert_snapshot!(why(&turn), @"5 tool failures and refused calls were counted in this turn (maxFailuresPerTurn = 5). No tool runs until the turn ends.");

    let mut turn = TurnState::default();
    let output = OutputDigest::of_text("x");
    for _ in 0..25 {
        let same = Observation::Succeeded {
            mutating: false,
            polls: false,
            output,
        };
        let _ = turn.observe(&call, &same, &config);
    }
    insta::assert_snapshot!(why(&turn), @r#"This call of "read" returned the same result 25 times with the same arguments (cutIdenticalSuccesses = 25), and no call in between returned anything new. A tool that polls can be named in pollingTools."#);
}

#[test]
fn a_state_of_another_version_is_refused() {
    let mut stored = serde_json::to_value(TurnState::default()).unwrap();
    assert!(serde_json::from_value::<TurnState>(stored.clone()).is_ok());
    stored["version"] = json!(1);
    let error = serde_json::from_value::<TurnState>(stored).unwrap_err();
    assert!(error.to_string().contains("version 1"), "{error}");
}
