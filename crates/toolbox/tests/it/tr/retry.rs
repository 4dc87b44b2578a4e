//! TR-5 to TR-7: only what is worth a retry gets one, and not for ever.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_contract::{Effect, Status, ToolError};
use holdfast_reliability::breaker::{BreakerPolicy, BreakerStore, CircuitBreakerState};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::stack::{Build, Custom, ask, effect_of, error_of, http, message_of};

/// Two transient failures, then success: the waits in between.
async fn waits_with_seed(seed: u64) -> Vec<u64> {
    let elapsed = Duration::from_secs(3);
    let script = [
        Reaction::Fail(ToolError::timed_out(elapsed)),
        Reaction::Fail(ToolError::transport("ECONNRESET", "connection lost")),
        Reaction::Succeed,
    ];
    let tool = Arc::new(ScriptedTool::read_only("fetch", script));
    let harness = Build::new(&tool).with(|build| build.seed = seed).stack();
    let result = harness.call(&ask("fetch")).await;

    assert_eq!((effect_of(&result), result.status), (1, Status::Success));
    assert_eq!((result.attempts, tool.executions()), (3, 3));
    let reasons: Vec<&str> = result
        .retried_by
        .iter()
        .map(|note| note.reason_code.as_str())
        .collect();
    assert_eq!(reasons, ["timeout", "ECONNRESET"]);
    let waits: Vec<u64> = result.retried_by.iter().map(|note| note.delay_ms).collect();
    // The tool takes no time, so the call took what was waited.
    assert_eq!(result.duration_ms, waits.iter().sum::<u64>());
    assert_eq!(harness.log.of("tool_call_retry").len(), 2);

    // When nothing is wrong one attempt is enough.
    let stable = harness.call(&ask("fetch")).await;
    assert_eq!((stable.attempts, stable.retried_by.len()), (1, 0));
    assert_eq!((stable.duration_ms, tool.executions()), (0, 4));
    waits
}

#[tokio::test(start_paused = true)]
async fn attempt_ends_at_its_limit_and_leaves_room_for_another() {
    let tool = Arc::new(ScriptedTool::read_only("fetch", [Reaction::Hang]));
    let settings = json!({"tools": {"fetch": {"timeoutMs": 13_000}}});
    let harness = Build::new(&tool).reliability(settings).stack();
    let one = harness.call(&ask("fetch").attempts(1)).await;
    assert_eq!((one.status, one.duration_ms), (Status::Timeout, 13_000));

    let call = ask("fetch").params(json!({"n": 2}));
    let retried = harness.call(&call).await;
    assert_eq!((retried.status, retried.attempts), (Status::Timeout, 3));
    let told = message_of(&retried);
    assert_eq!(told, "the tool did not answer within 13000 ms");
}

#[tokio::test(start_paused = true)]
async fn call_that_also_failed_otherwise_is_exhausted_and_not_timed_out() {
    let timed_out = || Reaction::Fail(ToolError::timed_out(Duration::from_secs(1)));
    for (script, status) in [
        (vec![timed_out(), timed_out()], Status::Timeout),
        (
            vec![Reaction::Fail(http(503)), timed_out()],
            Status::RetryExhausted,
        ),
        (
            vec![timed_out(), Reaction::Fail(http(503))],
            Status::RetryExhausted,
        ),
    ] {
        let tool = Arc::new(ScriptedTool::read_only("fetch", script));
        let harness = Build::new(&tool).stack();
        let result = harness.call(&ask("fetch").attempts(2)).await;
        assert_eq!((result.status, result.attempts), (status, 2), "{result:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn tool_is_told_less_than_its_limit_and_the_caller_the_limit() {
    let told_ms = Arc::new(Mutex::new(None));
    let heard = told_ms.clone();
    let tool = Arc::new(Custom::new("slow", Effect::None, move |_, ctx| {
        let limit_ms = ctx.call.time_limit_ms.expect("a limit");
        *heard.lock().unwrap() = Some(limit_ms);
        Err(ToolError::timed_out(Duration::from_millis(limit_ms)))
    }));
    let settings = json!({"tools": {"slow": {"timeoutMs": 5_000}}});
    let harness = Build::new(&tool).reliability(settings).stack();
    let result = harness.call(&ask("slow").attempts(1)).await;
    assert_eq!(*told_ms.lock().unwrap(), Some(4_000));
    assert_eq!(
        message_of(&result),
        "the tool did not answer within 5000 ms"
    );
}

#[tokio::test(start_paused = true)]
async fn tr_05_transient_failures_are_retried_with_growing_jitter() {
    let mut first = BTreeSet::new();
    let mut second = BTreeSet::new();
    for seed in 0..16 {
        let waits = waits_with_seed(seed).await;
        assert!(waits[0] <= 200 && waits[1] <= 400, "{waits:?}");
        first.insert(waits[0]);
        second.insert(waits[1]);
    }
    // Full jitter: sixteen callers do not come back together, and the window does grow.
    assert!(first.len() > 8 && second.len() > 8, "{first:?} {second:?}");
    assert!(first.iter().any(|wait| *wait < 100) && first.iter().any(|wait| *wait > 100));
    assert!(second.iter().any(|wait| *wait > 200), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn tr_06_a_terminal_error_is_answered_after_one_attempt() {
    for status in [400, 401, 403, 404, 413, 422] {
        let fails = Reaction::Fail(http(status));
        let tool = Arc::new(ScriptedTool::mutating("post", [fails]));
        let harness = Build::new(&tool).stack();
        let result = harness.call(&ask("post")).await;
        let code = format!("http_{status}");
        assert_eq!(error_of(&result), (&*code, Status::Error, true, false));
        assert_eq!((result.attempts, tool.executions()), (1, 1));
        assert!(result.retried_by.is_empty());
        // What the tool says arrives as it was said.
        assert_eq!(message_of(&result), format!("the server said {status}"));
        // And it does not speak against the tool.
        let circuits = harness.circuits().await;
        assert_eq!(circuits[0].1, CircuitBreakerState::Closed);
    }
}

#[tokio::test(start_paused = true)]
async fn tr_07_a_retry_budget_ends() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(http(503))]));
    let harness = Build::new(&tool).stack();
    let result = harness.call(&ask("post")).await;
    let expected = ("http_503", Status::RetryExhausted, false, true);
    assert_eq!(error_of(&result), expected);
    assert_eq!((result.attempts, tool.executions()), (4, 4));
    assert_eq!(result.retried_by.len(), 3);
    for (note, window_ms) in result.retried_by.iter().zip([200, 400, 800]) {
        assert!(note.delay_ms <= window_ms, "{note:?}");
    }
    assert!(result.duration_ms <= 1_400);

    // The breaker has seen every attempt.
    let breakers = harness.breakers.breakers().await.unwrap();
    let seen = breakers[0].1.snapshot(&BreakerPolicy::mutating(), 0);
    assert_eq!((seen.consecutive_failures, seen.calls), (4, 4));

    // A server that wants more time than there is ends it at once.
    let late = ToolError::http(429, Some(120_000), "come back tomorrow");
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(late)]));
    let harness = Build::new(&tool).stack();
    let result = harness.call(&ask("post")).await;
    assert_eq!(error_of(&result).1, Status::RetryExhausted);
    assert_eq!((result.attempts, result.duration_ms), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn tr_07_the_retry_budget_of_all_calls_is_a_setting() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(http(503))]));
    let settings = json!({
        "openMode": "off", "retryBudget": {"retryPercent": 50, "minRetriesPerSecond": 0},
    });
    let harness = Build::new(&tool).reliability(settings).stack();
    let mut attempts = 0;
    for _ in 0..20 {
        let result = harness.call(&ask("post")).await;
        assert_eq!(error_of(&result).1, Status::RetryExhausted);
        attempts += result.attempts;
    }
    // Half as many retries as calls, whatever each call would like.
    assert_eq!((attempts, tool.executions()), (30, 30));
}

/// How far a command came is worth knowing above all when nobody knows how it ended.
#[tokio::test(start_paused = true)]
async fn what_a_tool_had_until_its_time_was_up_is_in_the_answer_and_redacted() {
    let cut_off = ToolError::Timeout {
        elapsed: Duration::from_secs(1),
        so_far: Some(Box::new(
            json!({"stdout": "step 1\npassword=hunter2-and-more\n"}),
        )),
    };
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(cut_off)]));
    let harness = Build::new(&tool).stack();
    let result = harness.call(&ask("post")).await;
    assert_eq!(error_of(&result).0, "outcome_unknown");
    let details = result.error.unwrap().details.unwrap();
    let stdout = details["stdout"].as_str().unwrap();
    assert!(stdout.starts_with("step 1\n"), "{stdout}");
    assert!(!stdout.contains("hunter2"), "{stdout}");
}

/// What is said about repeating is what happened.
#[tokio::test(start_paused = true)]
async fn a_call_that_was_tried_twice_does_not_say_that_it_was_not_repeated() {
    let timed_out = || Reaction::Fail(ToolError::timed_out(Duration::from_secs(1)));
    for (script, says) in [
        (vec![timed_out()], "it was not repeated"),
        (
            vec![Reaction::Fail(http(503)), timed_out()],
            "it was tried 2 times and is not tried again",
        ),
    ] {
        let tool = Arc::new(ScriptedTool::mutating("post", script));
        let harness = Build::new(&tool).stack();
        let result = harness.call(&ask("post")).await;
        assert_eq!(error_of(&result).0, "outcome_unknown");
        assert!(message_of(&result).ends_with(says), "{result:?}");
    }
}
