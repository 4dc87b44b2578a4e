//! Calls that fail: layers A, B and C.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::join_all;
use holdfast_contract::{Effect, PermissionTier, Status, Tool, ToolContext, ToolError, ToolResult};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Ask, Build, Custom, Harness, ask, error_of, http, message_of};

const LOOP: &str = "[LOOP DETECTED] Tool \"read\" failed 2 times with identical arguments.\n\
    This is a non-retryable error. Do NOT retry this call.\n\
    Try a different approach or report the issue.";
const LIMIT: &str = "[TOOL ERROR LIMIT] 5 tool failures in this turn.\n\
    Stopping tool execution. Review your approach before continuing.";
/// What a call reads that comes after that.
const ANSWER: &str = "[TOOL ERROR LIMIT] 5 tool failures in this turn.\n\
    Stopping tool execution. Review your approach before continuing.\n\
    No tool runs any more in this turn. Answer now, with what you have.";
const MISSING: &str = "Missing required parameter: path. \
    Schema of path: {\"description\":\"The file.\",\"type\":\"string\"}";

fn reader() -> Arc<Custom> {
    let mut tool = Custom::new("read", Effect::None, |_, _| {
        Ok(ToolResult::new(json!("text"), ""))
    });
    tool.schema = json!({
        "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": {
            "path": {"type": "string", "description": "The file."},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "token": {"type": "string"},
        },
    });
    Arc::new(tool)
}

fn in_turn(tool: &str, params: Value) -> Ask {
    ask(tool).turn("turn").params(params)
}

/// The code and the message that a model reads.
async fn reads(harness: &Harness, call: Ask) -> (String, String) {
    let result = harness.call(&call).await;
    (
        error_of(&result).0.to_owned(),
        message_of(&result).to_owned(),
    )
}

fn said(code: &str, message: impl Into<String>) -> (String, String) {
    (code.to_owned(), message.into())
}

#[tokio::test(start_paused = true)]
async fn read_without_a_path_is_cut_off_to_the_letter() {
    let tool = reader();
    let harness = Build::new(&tool).stack();
    let call = || in_turn("read", json!({}));
    let tagged = format!("{MISSING} [NON-RETRYABLE]");
    assert_eq!(
        reads(&harness, call()).await,
        said("invalid_arguments", &*tagged)
    );
    let second = format!("{tagged}\n{LOOP}");
    assert_eq!(
        reads(&harness, call()).await,
        said("invalid_arguments", second)
    );
    // From the third on it is not even looked at. Spelling it differently hides nothing.
    assert_eq!(reads(&harness, call()).await, said("loop_detected", LOOP));
    assert_eq!(reads(&harness, call()).await, said("loop_detected", LOOP));
    // Refused calls count: a model that ignores every text still ends.
    let fifth = format!("{LOOP}\n{LIMIT}");
    assert_eq!(reads(&harness, call()).await, said("loop_detected", fifth));
    // Now nothing runs any more, however right it is.
    let right = in_turn("read", json!({"path": "a"}));
    assert_eq!(
        reads(&harness, right).await,
        said("tool_error_limit", ANSWER)
    );
    assert_eq!(tool.executions(), 0);

    // The next turn starts afresh.
    let result = harness
        .call(&ask("read").params(json!({"path": "a"})))
        .await;
    assert!(result.is_success());
    let result = harness.call(&ask("read").turn("next")).await;
    assert_eq!(message_of(&result), tagged);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_the_same_however_it_is_spelled() {
    let mut tool = Custom::new("read", Effect::None, |_, _| Err(http(404)));
    tool.schema = json!({"type": "object", "required": ["path"]});
    let tool = Arc::new(tool);
    let harness = Build::new(&tool).stack();
    let spelled = |name: &str| in_turn(name, json!({"other": {}}));
    reads(&harness, in_turn("read", json!({"other": null}))).await;
    // A new spelling gets its one try, and is counted with the others.
    for name in [" read", "read "] {
        let answer = reads(&harness, spelled(name)).await;
        assert!(answer.1.contains(LOOP), "{answer:?}");
    }
    for name in [" read", "read "] {
        let answer = reads(&harness, spelled(name)).await;
        assert!(answer.1.starts_with(LOOP), "{answer:?}");
    }
    assert_eq!(tool.executions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_deterministic_failure_is_not_run_a_third_time() {
    let script = [Reaction::Fail(ToolError::failed("no such file"))];
    let tool = Arc::new(ScriptedTool::read_only("read", script));
    let harness = Build::new(&tool).stack();
    let call = || in_turn("read", json!({"path": "a"}));
    // It is the world that is wrong, not the call: no tag.
    assert_eq!(
        reads(&harness, call()).await,
        said("execution_failed", "no such file")
    );
    let second = format!("no such file\n{LOOP}");
    assert_eq!(
        reads(&harness, call()).await,
        said("execution_failed", second)
    );
    assert_eq!(reads(&harness, call()).await, said("loop_detected", LOOP));
    assert_eq!(tool.executions(), 2);
    // Another call of the same tool is another matter.
    let other = reads(&harness, in_turn("read", json!({"path": "b"}))).await;
    assert_eq!(other.0, "execution_failed");
    // So is the same call in another session, of another actor, of another tenant.
    let others: [fn(&mut holdfast_contract::ToolCallEnvelope); 3] = [
        |envelope| envelope.target.session_key = "other".into(),
        |envelope| envelope.target.actor_id = "other".into(),
        |envelope| envelope.target.tenant_id = Some("other".into()),
    ];
    for other in others {
        let result = reads(&harness, call().with(other)).await;
        assert_eq!(result, said("execution_failed", "no such file"));
    }
}

#[tokio::test(start_paused = true)]
async fn five_different_failures_end_the_turn() {
    let tool = Arc::new(ScriptedTool::read_only(
        "read",
        [Reaction::Fail(ToolError::failed("no"))],
    ));
    let other = Arc::new(ScriptedTool::mutating("other", [Reaction::Succeed]));
    let harness = Build::new(&tool).and(&other).stack();
    for number in 0..4 {
        let call = in_turn("read", json!({"path": number.to_string()}));
        assert_eq!(reads(&harness, call).await, said("execution_failed", "no"));
    }
    let fifth = reads(&harness, in_turn("read", json!({"path": "4"}))).await;
    assert_eq!(fifth, said("execution_failed", format!("no\n{LIMIT}")));
    let result = harness.call(&in_turn("other", json!({}))).await;
    assert_eq!(
        error_of(&result),
        ("tool_error_limit", Status::Error, true, false)
    );
    assert_eq!(message_of(&result), ANSWER);
    assert_eq!((tool.executions(), other.executions()), (5, 0));
    assert!(harness.call(&ask("other")).await.is_success());
}

#[tokio::test(start_paused = true)]
async fn the_limits_are_settings() {
    let tool = Arc::new(ScriptedTool::read_only(
        "read",
        [Reaction::Fail(ToolError::failed("no"))],
    ));
    let harness = Build::new(&tool)
        .with(|build| {
            build.guard.max_identical_failures = 3;
            build.guard.max_failures_per_turn = 4;
        })
        .stack();
    let mut codes = Vec::new();
    for _ in 0..5 {
        codes.push(reads(&harness, in_turn("read", json!({}))).await.0);
    }
    let (failed, cut) = ("execution_failed", "loop_detected");
    assert_eq!(codes, [failed, failed, failed, cut, "tool_error_limit"]);

    let harness = Build::new(&tool)
        .with(|build| build.guard.enabled = false)
        .stack();
    for _ in 0..10 {
        assert_eq!(reads(&harness, in_turn("read", json!({}))).await.1, "no");
    }
}

#[tokio::test(start_paused = true)]
async fn retryable_failures_count_toward_the_limit_only() {
    let tool = Arc::new(ScriptedTool::mutating("read", [Reaction::Fail(http(503))]));
    let settings = json!({"openMode": "off", "retry": {"maxAttempts": 1}});
    let harness = Build::new(&tool).reliability(settings).stack();
    for _ in 0..4 {
        let answer = reads(&harness, in_turn("read", json!({}))).await;
        assert_eq!(answer, said("http_503", "the server said 503"));
    }
    let fifth = reads(&harness, in_turn("read", json!({}))).await;
    assert_eq!(fifth.1, format!("the server said 503\n{LIMIT}"));
    assert_eq!(tool.executions(), 5);
}

#[tokio::test(start_paused = true)]
async fn invented_names_are_one_mistake() {
    let harness = Build::new(&reader()).stack();
    let first = harness.call(&in_turn("raed", json!({"path": "a"}))).await;
    let expected = "There is no tool named \"raed\". Did you mean read? [NON-RETRYABLE]";
    assert_eq!(message_of(&first), expected);
    let second = harness.call(&in_turn("fly", json!({}))).await;
    let expected = "There is no tool named \"fly\". Known tools: read. [NON-RETRYABLE]";
    assert_eq!(message_of(&second), expected);
    // The third attempt at the shared pseudo-tool goes to the parent.
    let third = harness.call(&in_turn("swim", json!({}))).await;
    assert!(hint(&third).contains("parent session"), "{third:?}");
    assert!(!hint(&second).contains("parent session"));
    // The same invention twice is a loop; the fifth failure ends the turn.
    let again = harness.call(&in_turn("fly", json!({}))).await;
    assert!(message_of(&again).contains("[LOOP DETECTED] Tool \"fly\" failed 2 times"));
    let cut = harness.call(&in_turn("fly", json!({}))).await;
    assert_eq!(error_of(&cut).0, "loop_detected");
    assert!(message_of(&cut).ends_with(LIMIT));
}

fn hint(result: &holdfast_contract::ToolResultEnvelope) -> &str {
    result.error.as_ref().unwrap().hint.as_deref().unwrap_or("")
}

#[tokio::test(start_paused = true)]
async fn a_validation_error_names_field_reason_and_schema() {
    let harness = Build::new(&reader()).stack();
    for (params, message) in [
        (
            json!({"path": 5}),
            "Expected string but received number for parameter path. \
             Schema of path: {\"description\":\"The file.\",\"type\":\"string\"} [NON-RETRYABLE]",
        ),
        (
            json!({"path": "a", "lines": [1, "x"]}),
            "Expected integer but received string for parameter lines/1. \
             Schema of lines/1: {\"type\":\"integer\"} [NON-RETRYABLE]",
        ),
        (
            json!({"path": "a", "mode": "r"}),
            "Unknown parameter: mode. Known parameters: lines, path, token [NON-RETRYABLE]",
        ),
        (
            json!({"path": "a", "token": 5}),
            "Expected string but received number for parameter token. \
             Schema of token: {\"type\":\"string\"} [NON-RETRYABLE]",
        ),
    ] {
        let result = harness.call(&ask("read").params(params)).await;
        assert_eq!(message_of(&result), message);
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_have_the_types_of_the_schema_before_anybody_judges_by_them() {
    let mut tool = Custom::new("list", Effect::External, |params, _| {
        Ok(ToolResult::new(params.clone(), ""))
    });
    tool.schema = json!({"type": "object", "additionalProperties": false, "properties": {
        "limit": {"type": "integer"}, "all": {"type": "boolean"}}});
    let harness = Build::new(&Arc::new(tool)).stack();
    let given = json!({"limit": "5", "all": null});
    let result = harness.call(&ask("list").key("k").params(given)).await;
    let output = result.output.as_ref().expect("it ran");
    assert_eq!(*output.content, json!({"limit": 5}));
    // It is one call, whichever way it was written.
    let again = ask("list").key("k").params(json!({"limit": 5}));
    assert!(harness.call(&again).await.from_cache);
    let wrong = harness
        .call(&ask("list").params(json!({"limit": "many"})))
        .await;
    assert_eq!(error_of(&wrong).0, "invalid_arguments");
}

#[tokio::test(start_paused = true)]
async fn the_third_differing_validation_failure_goes_to_the_parent() {
    let tool = reader();
    let harness = Build::new(&tool).stack();
    for (number, params) in [json!({}), json!({"path": 1}), json!({"path": []})]
        .into_iter()
        .enumerate()
    {
        let result = harness.call(&in_turn("read", params)).await;
        assert_eq!(error_of(&result).0, "invalid_arguments");
        assert_eq!(hint(&result).contains("parent session"), number == 2);
        let mark = result.error.as_ref().unwrap().escalation.as_ref();
        let mark = mark.map(|it| (it.tool.as_str(), it.field.as_deref(), it.attempts));
        let expected = ("read", Some("/path"), 3);
        assert_eq!(mark, (number == 2).then_some(expected), "{result:?}");
        assert!(!message_of(&result).contains("[LOOP DETECTED]"));
    }
    // Once the arguments are right, the count starts over.
    assert!(
        harness
            .call(&in_turn("read", json!({"path": "a"})))
            .await
            .is_success()
    );
    let result = harness.call(&in_turn("read", json!({"path": 2.5}))).await;
    assert!(!hint(&result).contains("parent session"));
}

#[tokio::test(start_paused = true)]
async fn what_goes_up_says_the_field_and_the_reason_and_the_same_mistake_goes_up_as_well() {
    let harness = Build::new(&reader()).stack();
    let mut marks = Vec::new();
    for _ in 0..3 {
        let result = harness.call(&in_turn("read", json!({}))).await;
        marks.push(result.error.unwrap().escalation);
    }
    // The third is refused unseen, and is the third all the same.
    let third = marks.pop().unwrap().expect("a mark");
    assert_eq!((third.tool.as_str(), third.attempts), ("read", 3));
    assert_eq!(third.field.as_deref(), Some("/path"));
    assert!(third.reason.starts_with("[LOOP DETECTED]"), "{third:?}");
    assert_eq!(marks, [None, None]);

    let harness = Build::new(&reader()).stack();
    harness.call(&in_turn("read", json!({}))).await;
    harness.call(&in_turn("read", json!({"path": 1}))).await;
    let result = harness.call(&in_turn("read", json!({"path": []}))).await;
    let mark = serde_json::to_value(result.error.unwrap().escalation).unwrap();
    assert_eq!(mark["field"], "/path");
    let reason = mark["reason"].as_str().unwrap();
    assert!(reason.starts_with("Expected string but received array for parameter path"));
    assert!(!reason.contains("NON-RETRYABLE"), "{reason}");
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_call_loops_as_well() {
    let mut tool = Custom::new("read", Effect::External, |_, _| {
        Ok(ToolResult::new(json!(1), ""))
    });
    tool.tier = PermissionTier::Elevated;
    let harness = Build::new(&Arc::new(tool)).stack();
    let first = reads(&harness, in_turn("read", json!({}))).await;
    assert_eq!(first.0, "permission_denied");
    let second = reads(&harness, in_turn("read", json!({}))).await;
    assert_eq!(
        second,
        said("permission_denied", format!("{}\n{LOOP}", first.1))
    );
    assert_eq!(
        reads(&harness, in_turn("read", json!({}))).await,
        said("loop_detected", LOOP)
    );
}

#[tokio::test(start_paused = true)]
async fn a_redelivered_request_is_not_a_second_failure() {
    let tool = Arc::new(ScriptedTool::read_only(
        "read",
        [Reaction::Fail(ToolError::failed("no"))],
    ));
    let harness = Build::new(&tool).stack();
    let request = in_turn("read", json!({}));
    for _ in 0..8 {
        assert_eq!(
            reads(&harness, request.clone()).await,
            said("execution_failed", "no")
        );
    }
    // So is a resumed run that comes by its step again.
    let step = || in_turn("read", json!({"path": "b"})).step("run", 1, 0);
    let step = || step().with(|envelope| envelope.target.turn_id = Some("turn".into()));
    for _ in 0..8 {
        assert_eq!(
            reads(&harness, step()).await,
            said("execution_failed", "no")
        );
    }
    assert_eq!(tool.executions(), 2);
    // The model asking again is counted.
    let again = reads(&harness, in_turn("read", json!({}))).await;
    assert_eq!(again.1, format!("no\n{LOOP}"));
}

#[tokio::test(start_paused = true)]
async fn a_model_whose_server_reuses_ids_is_still_cut_off() {
    // Answered from the record, again and again: by its id within the turn, or by its content.
    // A doubtful outcome is no proof that the same call would fail again: only the turn's limit
    // counts it.
    for (name, reaction, code, end) in [
        (
            "look",
            Reaction::Fail(ToolError::failed("no")),
            "execution_failed",
            "loop_detected",
        ),
        (
            "message",
            Reaction::EffectThenFail(http(500)),
            "outcome_unknown",
            "tool_error_limit",
        ),
    ] {
        let tool = Arc::new(ScriptedTool::mutating(name, [reaction]));
        let harness = Build::new(&tool).stack();
        let mut codes = Vec::new();
        for _ in 0..6 {
            let call = in_turn(name, json!({})).call_id("call_0");
            codes.push(reads(&harness, call).await.0);
        }
        assert_eq!((tool.executions(), &*codes[0]), (1, code));
        assert!(codes.iter().any(|found| found == end), "{name}: {codes:?}");
    }
}

/// Reads nothing, after a while.
struct Missing;

#[async_trait]
impl Tool for Missing {
    fn name(&self) -> &str {
        "read"
    }

    fn description(&self) -> &str {
        "Reads."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object", "properties": {"path": {"type": "string"}}})
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        Effect::None
    }

    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Err(ToolError::coded("not_found", "there is no such file"))
    }
}

/// An agent looks in six places at once, and what it looks for is in none of them.
#[tokio::test(start_paused = true)]
async fn a_batch_of_failing_reads_ends_no_turn() {
    // The host numbers its responses, or sends the calls of one together.
    for named in [true, false] {
        let harness = Build::new(&Arc::new(Missing)).stack();
        let call = |path: String, response: u64, index: u64| {
            let call = in_turn("read", json!({ "path": path }));
            if named {
                call.step("run", response, index)
            } else {
                call
            }
        };
        for response in 0..3 {
            let path = |index| format!("dir-{response}/{index}");
            let calls: Vec<Ask> = (0..6)
                .map(|index| call(path(index), response, index))
                .collect();
            let results = join_all(calls.iter().map(|call| harness.call(call))).await;
            for result in results {
                assert_eq!(error_of(&result).0, "not_found", "named: {named}");
            }
        }
        // Three responses failed. The fourth and the fifth end the turn.
        let mut codes = Vec::new();
        for response in 3..6 {
            let result = harness
                .call(&call(format!("x-{response}"), response, 0))
                .await;
            codes.push(error_of(&result).0.to_owned());
        }
        assert_eq!(
            codes,
            ["not_found", "not_found", "tool_error_limit"],
            "named: {named}"
        );
    }
}
