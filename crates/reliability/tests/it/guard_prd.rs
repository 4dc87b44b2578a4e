//! The test scenarios of the original tool-guard plugin, one test a row. Each also checks that
//! ordinary work beside the scenario is left alone.

use holdfast_reliability::guard::{
    Advice, AttributionEntry, BlockCode, CallIdentity, ErrorClass, FailureKind, GuardAction,
    GuardConfig, NON_RETRYABLE_TAG, Observation, OutputDigest, TurnState, Verdict, attribute_model,
    classify_error, classify_failure, decorate_error,
};
use serde_json::{Value, json};

const MISSING_PATH: &str = "Missing required parameter: path";

/// A host in small: asks, runs, reports, and shows what the model sees.
struct Host {
    turn: TurnState,
    config: GuardConfig,
    executed: u32,
}

struct Answer {
    text: String,
    code: Option<BlockCode>,
    advice: Advice,
}

impl Host {
    fn new(config: GuardConfig) -> Self {
        config.validate().unwrap();
        Self {
            turn: TurnState::default(),
            config,
            executed: 0,
        }
    }

    fn call(&mut self, tool: &str, args: &Value, outcome: Result<&str, &str>) -> Answer {
        let call = CallIdentity::of(tool, args);
        if let Verdict::Block(block) = self.turn.check(&call, &self.config) {
            let advice = self
                .turn
                .observe(&call, &Observation::Blocked, &self.config);
            assert!(!block.why.is_empty());
            let text = decorate_error(&block.text, &advice);
            return Answer {
                text,
                code: Some(block.code),
                advice,
            };
        }
        self.executed += 1;
        let what = match outcome {
            Ok(output) => Observation::Succeeded {
                mutating: false,
                polls: false,
                output: OutputDigest::of_text(output),
            },
            Err(error) => Observation::Failed {
                kind: classify_failure(error),
                error,
            },
        };
        let advice = self.turn.observe(&call, &what, &self.config);
        let text = match outcome {
            Ok(output) => holdfast_reliability::guard::decorate_output(output, &advice),
            Err(error) => decorate_error(error, &advice),
        };
        Answer {
            text,
            code: None,
            advice,
        }
    }

    /// Ordinary work: a call that succeeds comes back exactly as the tool answered.
    #[track_caller]
    fn ordinary(&mut self, path: &str) {
        let answer = self.call("read", &json!({ "path": path }), Ok("content"));
        assert_eq!(answer.text, "content");
        assert!(answer.advice.is_silent());
    }
}

impl Default for Host {
    fn default() -> Self {
        Self::new(GuardConfig::default())
    }
}

#[test]
fn guard_1_identical_failure_loop() {
    let mut host = Host::default();
    host.ordinary("before");

    let first = host.call("read", &json!({}), Err(MISSING_PATH));
    assert_eq!(
        first.text,
        "Missing required parameter: path [NON-RETRYABLE]"
    );
    let second = host.call("read", &json!({}), Err(MISSING_PATH));
    insta::assert_snapshot!(second.text, @r#"
    Missing required parameter: path [NON-RETRYABLE]
    [LOOP DETECTED] Tool "read" failed 2 times with identical arguments.
    This is a non-retryable error. Do NOT retry this call.
    Try a different approach or report the issue.
    "#);
    assert_eq!(second.advice.action, GuardAction::LoopDetected);

    let third = host.call("read", &json!({}), Err(MISSING_PATH));
    assert_eq!(third.code, Some(BlockCode::LoopDetected));
    insta::assert_snapshot!(third.text, @r#"
    [LOOP DETECTED] Tool "read" failed 2 times with identical arguments.
    This is a non-retryable error. Do NOT retry this call.
    Try a different approach or report the issue.
    "#);
    assert_eq!(
        host.executed, 3,
        "two failing calls and an ordinary one ran"
    );

    host.ordinary("after");
}

#[test]
fn guard_2_different_failures() {
    let mut host = Host::default();
    for tool in ["a", "b", "c", "d"] {
        let answer = host.call(tool, &json!({}), Err("boom"));
        assert_eq!(answer.text, "boom");
        assert!(!answer.advice.stop_turn);
    }
    host.ordinary("still allowed");

    let fifth = host.call("e", &json!({}), Err("boom"));
    insta::assert_snapshot!(fifth.text, @r"
    boom
    [TOOL ERROR LIMIT] 5 tool failures in this turn.
    Stopping tool execution. Review your approach before continuing.
    ");
    assert!(fifth.advice.stop_turn);
    assert_eq!(fifth.advice.action, GuardAction::HardCap);

    let executed = host.executed;
    let after = host.call("read", &json!({ "path": "x" }), Ok("content"));
    assert_eq!(after.code, Some(BlockCode::ToolErrorLimit));
    let limit = &fifth.text["boom\n".len()..];
    let answer = "\nNo tool runs any more in this turn. Answer now, with what you have.";
    assert_eq!(after.text, format!("{limit}{answer}"));
    assert_eq!(host.executed, executed, "nothing runs any more");
}

#[test]
fn guard_3_mixed_success_and_failure() {
    let mut host = Host::default();
    for round in 0..4 {
        let failing = host.call("stat", &json!({ "round": round }), Err("boom"));
        assert_eq!(failing.text, "boom");
        host.ordinary(&format!("file {round}"));
    }
    assert_eq!(
        host.turn.failures_in_turn(),
        4,
        "successes are not failures"
    );
    for file in 0..100 {
        host.ordinary(&format!("other {file}"));
    }
    assert!(!host.turn.is_stopped());
}

#[test]
fn guard_4_error_classification() {
    assert_eq!(classify_error(MISSING_PATH), ErrorClass::NonRetryable);
    assert_eq!(
        classify_error("Expected string but received null"),
        ErrorClass::NonRetryable
    );
    assert_eq!(
        classify_error("Missing parameters for edit"),
        ErrorClass::NonRetryable
    );
    assert_eq!(classify_error("timeout"), ErrorClass::Retryable);
    assert_eq!(classify_failure("timeout"), FailureKind::Retryable);

    let mut host = Host::default();
    let validation = host.call("read", &json!({}), Err(MISSING_PATH));
    assert!(validation.text.ends_with(NON_RETRYABLE_TAG));
    let timeout = host.call("fetch", &json!({}), Err("timeout"));
    assert_eq!(timeout.text, "timeout", "a retryable error is not tagged");
    let again = host.call("fetch", &json!({}), Ok("page"));
    assert_eq!(again.text, "page", "and may be retried");
}

#[test]
fn guard_5_model_attribution() {
    assert_eq!(attribute_model(None, "call_abc"), "fireworks/openai-compat");
    assert_eq!(attribute_model(None, "toolu_abc"), "anthropic");
    assert_eq!(attribute_model(None, "abc"), "unknown");
    assert_eq!(
        attribute_model(Some("gpt-oss-120b"), "toolu_abc"),
        "gpt-oss-120b"
    );

    let mut host = Host::default();
    let answer = host.call("read", &json!({}), Err(MISSING_PATH));
    let entry = AttributionEntry {
        timestamp: "2026-02-13T10:00:00Z".to_owned(),
        model_id: attribute_model(None, "call_1").to_owned(),
        tool: "read".to_owned(),
        args: json!({}),
        error_type: "invalid_arguments".to_owned(),
        error: MISSING_PATH.to_owned(),
        request_id: None,
        tool_call_id: Some("call_1".to_owned()),
        session_key: None,
        turn_id: None,
        action: answer.advice.action,
    };
    insta::assert_snapshot!(entry.to_json_line().unwrap(), @r#"{"timestamp":"2026-02-13T10:00:00Z","modelId":"fireworks/openai-compat","tool":"read","args":{},"errorType":"invalid_arguments","error":"Missing required parameter: path","toolCallId":"call_1","action":"continue"}"#);
}

#[test]
fn guard_6_turn_reset() {
    let mut host = Host::default();
    for _ in 0..6 {
        let _ = host.call("read", &json!({}), Err(MISSING_PATH));
    }
    assert!(host.turn.is_stopped());

    host.turn = TurnState::default();
    host.ordinary("in the next turn");
    let answer = host.call("read", &json!({}), Err(MISSING_PATH));
    assert_eq!(
        answer.text,
        "Missing required parameter: path [NON-RETRYABLE]"
    );
    assert_eq!(host.turn.failures_in_turn(), 1);
}

#[test]
fn guard_7_config_override() {
    let config: GuardConfig = serde_json::from_value(json!({
        "maxIdenticalFailures": 3,
        "maxFailuresPerTurn": 4,
        "logPath": "/var/log/guard.log",
        "enabled": true,
    }))
    .unwrap();
    let mut host = Host::new(config);
    for _ in 0..2 {
        let answer = host.call("read", &json!({}), Err(MISSING_PATH));
        assert_eq!(
            answer.text,
            "Missing required parameter: path [NON-RETRYABLE]"
        );
    }
    let third = host.call("read", &json!({}), Err(MISSING_PATH));
    assert!(
        third
            .text
            .contains("failed 3 times with identical arguments.")
    );
    host.ordinary("beside it");
    let fourth = host.call("read", &json!({}), Err(MISSING_PATH));
    assert_eq!(fourth.code, Some(BlockCode::LoopDetected));
    assert!(
        fourth
            .text
            .contains("[TOOL ERROR LIMIT] 4 tool failures in this turn.")
    );

    let mut off = Host::new(GuardConfig {
        enabled: false,
        ..GuardConfig::default()
    });
    for _ in 0..20 {
        let answer = off.call("read", &json!({}), Err(MISSING_PATH));
        assert_eq!(
            answer.text, MISSING_PATH,
            "switched off, the guard changes nothing"
        );
    }
    assert_eq!(off.executed, 20);
}
