//! The table of outcomes, row by row.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{
    CallHints, DedupeMode, Effect, PermissionTier, Status, ToolError, ToolResultEnvelope,
};
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Ask, Build, DAY_MS, MINUTE_MS, ask, error_of, http, pass};

#[derive(Clone, Copy, PartialEq, Debug)]
enum Duplicate {
    Same,
    Runs,
}
use Duplicate::{Runs, Same};

/// What is kept: state and time to live.
type Kept = Option<(RecordState, u64)>;
const DONE: Kept = Some((RecordState::Done, DAY_MS));
const FAILED: Kept = Some((RecordState::Failed, 5 * MINUTE_MS));
const UNKNOWN: Kept = Some((RecordState::Unknown, DAY_MS));

/// What the caller is told: status, code, terminal, retriable.
type Told = (Status, &'static str, bool, bool);

struct Row {
    what: &'static str,
    tool: ScriptedTool,
    change: fn(Ask) -> Ask,
    told: Told,
    kept: Kept,
    /// What a duplicate gets under `enforced` and under `bestEffort`.
    duplicate: [Duplicate; 2],
}

fn row(
    what: &'static str,
    tool: ScriptedTool,
    told: Told,
    kept: Kept,
    duplicate: [Duplicate; 2],
) -> Row {
    Row {
        what,
        tool,
        change: |ask| ask,
        told,
        kept,
        duplicate,
    }
}

fn mutating(reaction: Reaction) -> ScriptedTool {
    ScriptedTool::mutating("tool", [reaction])
}

fn read_only(reaction: Reaction) -> ScriptedTool {
    ScriptedTool::read_only("tool", [reaction])
}

fn idempotent(reaction: Reaction) -> ScriptedTool {
    ScriptedTool::new("tool", Effect::External, true, [reaction])
}

fn fails(error: ToolError) -> Reaction {
    Reaction::Fail(error)
}

fn lost(code: &'static str) -> ToolError {
    ToolError::transport(code, "lost")
}

fn timeout() -> ToolError {
    ToolError::timed_out(Duration::from_secs(1))
}

/// Terminal failures, and calls that end before anything can have happened.
fn plain_rows() -> Vec<Row> {
    let execution = (Status::Error, "execution_failed", true, false);
    let denied = ToolError::PermissionDenied {
        tier: PermissionTier::Workspace,
        reason: "no right".into(),
    };
    vec![
        row(
            "done",
            mutating(Reaction::Succeed),
            (Status::Success, "", false, false),
            DONE,
            [Same, Same],
        ),
        row(
            "done, read-only",
            read_only(Reaction::Succeed),
            (Status::Success, "", false, false),
            DONE,
            [Same, Same],
        ),
        row(
            "non-zero exit",
            mutating(Reaction::Exit(1)),
            (Status::Success, "", false, false),
            DONE,
            [Same, Same],
        ),
        row(
            "terminal failure",
            mutating(fails(ToolError::failed("no"))),
            execution,
            FAILED,
            [Same, Same],
        ),
        row(
            "terminal failure, read-only",
            read_only(fails(ToolError::failed("no"))),
            execution,
            FAILED,
            [Same, Same],
        ),
        row(
            "the tool's own code",
            mutating(fails(ToolError::coded("no_funds", "no"))),
            (Status::Error, "no_funds", true, false),
            FAILED,
            [Same, Same],
        ),
        row(
            "bad request",
            mutating(fails(http(422))),
            (Status::Error, "http_422", true, false),
            FAILED,
            [Same, Same],
        ),
        row(
            "panic, read-only",
            read_only(Reaction::Panic),
            (Status::Error, "tool_panicked", true, false),
            FAILED,
            [Same, Same],
        ),
        row(
            "the tool refuses the arguments",
            mutating(fails(ToolError::invalid(Some("path"), "bad"))),
            (Status::Error, "invalid_arguments", true, false),
            None,
            [Runs, Runs],
        ),
        row(
            "the tool has no right",
            mutating(fails(denied)),
            (Status::Error, "permission_denied", true, false),
            None,
            [Runs, Runs],
        ),
        Row {
            change: |ask| ask.params(json!({"path": 5})),
            ..row(
                "bad arguments",
                mutating(Reaction::Succeed),
                (Status::Error, "invalid_arguments", true, false),
                None,
                [Same, Same],
            )
        },
        Row {
            change: |ask| ask.with(|envelope| envelope.tool_name = "no_such".into()),
            ..row(
                "unknown tool",
                mutating(Reaction::Succeed),
                (Status::Error, "tool_not_found", true, false),
                None,
                [Same, Same],
            )
        },
    ]
}

/// Failures that may go away.
fn retriable_rows() -> Vec<Row> {
    let exhausted = |code| (Status::RetryExhausted, code, false, true);
    let timed_out = (Status::Timeout, "timeout", false, true);
    let vouched = |ask: Ask| {
        ask.hints(CallHints {
            expected_retry_safe: Some(true),
            ..CallHints::default()
        })
    };
    vec![
        row(
            "503",
            mutating(fails(http(503))),
            exhausted("http_503"),
            FAILED,
            [Same, Runs],
        ),
        row(
            "429",
            mutating(fails(http(429))),
            exhausted("http_429"),
            FAILED,
            [Same, Runs],
        ),
        row(
            "refused",
            mutating(fails(lost("ECONNREFUSED"))),
            exhausted("ECONNREFUSED"),
            FAILED,
            [Same, Runs],
        ),
        row(
            "no such host",
            mutating(fails(lost("ENOTFOUND"))),
            exhausted("ENOTFOUND"),
            FAILED,
            [Same, Runs],
        ),
        row(
            "500, read-only",
            read_only(fails(http(500))),
            exhausted("http_500"),
            FAILED,
            [Same, Runs],
        ),
        row(
            "reset, idempotent",
            idempotent(fails(lost("ECONNRESET"))),
            exhausted("ECONNRESET"),
            FAILED,
            [Same, Runs],
        ),
        row(
            "hangs, read-only",
            read_only(Reaction::Hang),
            timed_out,
            FAILED,
            [Same, Runs],
        ),
        row(
            "hangs, idempotent",
            idempotent(Reaction::Hang),
            timed_out,
            FAILED,
            [Same, Runs],
        ),
        row(
            "says timeout, read-only",
            read_only(fails(timeout())),
            timed_out,
            FAILED,
            [Same, Runs],
        ),
        Row {
            change: vouched,
            ..row(
                "500, vouched for",
                mutating(fails(http(500))),
                exhausted("http_500"),
                FAILED,
                [Same, Runs],
            )
        },
        Row {
            change: vouched,
            ..row(
                "hangs, vouched for",
                mutating(Reaction::Hang),
                timed_out,
                FAILED,
                [Same, Runs],
            )
        },
    ]
}

/// Failures after which nobody knows.
fn unknown_rows() -> Vec<Row> {
    let unknown = (Status::Error, "outcome_unknown", true, false);
    [
        ("hangs", Reaction::Hang),
        ("takes effect and hangs", Reaction::EffectThenHang),
        ("says timeout", fails(timeout())),
        ("408", Reaction::EffectThenFail(http(408))),
        ("500", Reaction::EffectThenFail(http(500))),
        ("502", Reaction::EffectThenFail(http(502))),
        ("504", Reaction::EffectThenFail(http(504))),
        (
            "connection lost",
            Reaction::EffectThenFail(lost("ECONNRESET")),
        ),
        (
            "socket timeout",
            Reaction::EffectThenFail(lost("ETIMEDOUT")),
        ),
        ("a code nobody knows", fails(lost("EWHATEVER"))),
        ("panic", Reaction::Panic),
    ]
    .into_iter()
    .map(|(what, reaction)| row(what, mutating(reaction), unknown, UNKNOWN, [Same, Same]))
    .collect()
}

fn assert_told(what: &str, result: &ToolResultEnvelope, told: Told) {
    let (status, code, terminal, retriable) = told;
    if code.is_empty() {
        assert_eq!(result.status, status, "{what}");
    } else {
        assert_eq!(
            error_of(result),
            (code, status, terminal, retriable),
            "{what}"
        );
    }
}

async fn check(row: Row) {
    let what = row.what;
    let tool = Arc::new(row.tool);
    // The breaker has a table of its own.
    let settings = json!({"openMode": "off"});
    let harness = Build::new(&tool).reliability(settings).stack();
    let call = (row.change)(ask("tool").key("k"));

    let first = harness.call(&call).await;
    assert_told(what, &first, row.told);
    assert!(!first.from_cache, "{what}");
    assert_eq!(harness.record().await, row.kept, "{what}");

    for (mode, expected) in [DedupeMode::Enforced, DedupeMode::BestEffort]
        .into_iter()
        .zip(row.duplicate)
    {
        let before = tool.executions();
        let duplicate = harness.call(&call.again().mode(mode)).await;
        // Whether from the record or by running, a duplicate learns the same.
        assert_told(what, &duplicate, row.told);
        assert_eq!(
            tool.executions() > before,
            expected == Runs,
            "{what} {mode:?}"
        );
        let cached = expected == Same && row.kept.is_some();
        assert_eq!(duplicate.from_cache, cached, "{what} {mode:?}");
        assert_eq!(duplicate.attempts > 0, expected == Runs, "{what} {mode:?}");
    }

    // A record is kept for as long as it says, and not longer.
    if let Some((_, ttl_ms)) = row.kept {
        let before = tool.executions();
        let age_ms = harness.records().await[0].updated_at_ms;
        let left_ms = ttl_ms + age_ms - holdfast_contract::Clock::now_ms(&*harness.clock);
        pass(left_ms - 1).await;
        harness.call(&call.again()).await;
        assert_eq!(tool.executions(), before, "{what}");
        pass(1).await;
        harness.call(&call.again()).await;
        assert!(tool.executions() > before, "{what}");
    }
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_are_certain() {
    for row in plain_rows() {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn outcomes_that_may_go_away() {
    for row in retriable_rows() {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn outcomes_nobody_knows() {
    for row in unknown_rows() {
        check(row).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_denied_call_leaves_no_record() {
    let tool = Arc::new(mutating(Reaction::Succeed));
    let harness = Build::new(&tool)
        .with(|build| build.permissions.denied_tools = vec!["tool".into()])
        .stack();
    let result = harness.call(&ask("tool").key("k")).await;
    let expected = ("permission_denied", Status::Error, true, false);
    assert_eq!(error_of(&result), expected);
    assert_eq!((harness.record().await, tool.executions()), (None, 0));
}

#[tokio::test(start_paused = true)]
async fn a_call_the_guard_refuses_leaves_no_record() {
    let tool = Arc::new(mutating(fails(ToolError::failed("no"))));
    let harness = Build::new(&tool).stack();
    for number in 0..2 {
        let call = ask("tool").key(&format!("k{number}")).turn("loop");
        harness.call(&call).await;
    }
    let result = harness.call(&ask("tool").key("k2").turn("loop")).await;
    assert_eq!(
        error_of(&result),
        ("loop_detected", Status::Error, true, false)
    );
    assert_eq!((harness.records().await.len(), tool.executions()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn best_effort_does_not_wait_for_a_running_call() {
    let slow = Reaction::SucceedAfter(Duration::from_secs(5));
    let tool = Arc::new(mutating(slow));
    let harness = Build::new(&tool).stack();
    let first = ask("tool").key("k");
    let second = first.again().mode(DedupeMode::BestEffort);
    let (first, second) = tokio::join!(harness.call(&first), harness.call(&second));
    let expected = ("duplicate_in_flight", Status::Error, false, true);
    assert_eq!(error_of(&second), expected);
    assert_eq!((second.duration_ms, second.attempts), (0, 0));
    assert!(first.is_success());
    assert_eq!((harness.record().await, tool.executions()), (DONE, 1));
}

#[tokio::test(start_paused = true)]
async fn an_output_too_large_for_a_record_is_done_all_the_same() {
    let tool = Arc::new(mutating(Reaction::Succeed));
    let settings = json!({"store": {"payloadBytesMax": 1}});
    let harness = Build::new(&tool).reliability(settings).stack();
    let call = ask("tool").key("k");
    assert!(harness.call(&call).await.is_success());
    assert_eq!(harness.record().await, DONE);
    for mode in [DedupeMode::Enforced, DedupeMode::BestEffort] {
        let duplicate = harness.call(&call.again().mode(mode)).await;
        let expected = ("output_too_large", Status::Error, true, false);
        assert_eq!(error_of(&duplicate), expected);
        assert!(duplicate.from_cache);
    }
    assert_eq!(tool.executions(), 1);
}

#[tokio::test(start_paused = true)]
async fn only_a_caller_that_vouches_and_asks_overrides_an_unknown_outcome() {
    let script = [Reaction::EffectThenFail(http(500)), Reaction::Succeed];
    let tool = Arc::new(ScriptedTool::mutating("tool", script));
    let harness = Build::new(&tool).stack();
    let call = ask("tool").key("k");
    harness.call(&call).await;
    let vouched = CallHints {
        expected_retry_safe: Some(true),
        ..CallHints::default()
    };
    for timid in [
        call.again().mode(DedupeMode::BestEffort),
        call.again().hints(vouched),
    ] {
        let result = harness.call(&timid).await;
        assert_eq!(error_of(&result).0, "outcome_unknown");
    }
    assert_eq!(tool.executions(), 1);
    let bold = call.again().hints(vouched).mode(DedupeMode::BestEffort);
    assert!(harness.call(&bold).await.is_success());
    assert_eq!((harness.record().await, tool.executions()), (DONE, 2));
}
