//! Rate limits: what is refused never started, and what may wait gets its turn.

use std::sync::Arc;

use holdfast_contract::{CircuitBreakerState, Status, ToolResultEnvelope};
use holdfast_reliability::idempotency::record::RecordState;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Build, Harness, ask, error_of, http, message_of, pass};

fn poster(reactions: impl IntoIterator<Item = Reaction>) -> Arc<ScriptedTool> {
    Arc::new(ScriptedTool::mutating("post", reactions))
}

/// Two calls in ten seconds for `post`, with what else is said.
fn limited(tool: &Arc<ScriptedTool>, besides: &Value) -> Harness {
    let mut limit = json!({"calls": 2, "windowMs": 10_000});
    limit
        .as_object_mut()
        .unwrap()
        .extend(besides.as_object().unwrap().clone());
    let settings = json!({"tools": {"post": {"rateLimit": limit}}});
    Build::new(tool).reliability(settings).stack()
}

/// A call with a content of its own: one that looks like another would be its echo.
async fn post(harness: &Harness) -> ToolResultEnvelope {
    let call = ask("post");
    let content = call.0.request_id.clone();
    harness
        .call(&call.params(json!({"content": content})))
        .await
}

fn assert_limited(result: &ToolResultEnvelope, retry_after_ms: u64) {
    assert_eq!(
        error_of(result),
        ("rate_limited", Status::Error, false, true)
    );
    let error = result.error.as_ref().unwrap();
    assert_eq!(error.retry_after_ms, Some(retry_after_ms));
    assert_eq!((result.attempts, result.retried_by.len()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_refused_call_never_started_and_runs_when_it_comes_back() {
    let tool = poster([Reaction::Succeed]);
    let harness = limited(&tool, &json!({}));
    for _ in 0..2 {
        assert_eq!(post(&harness).await.status, Status::Success);
    }
    let intent = ask("post").key("k");
    let refused = harness.call(&intent).await;
    assert_limited(&refused, 5_000);
    assert!(message_of(&refused).contains("tool:holdfast.tools/post (2 in 10000 ms)"));
    assert_eq!((tool.executions(), harness.records().await.len()), (2, 2));

    let blocked = harness.log.of("tool_call_blocked");
    assert_eq!(blocked.len(), 1);
    assert_eq!(blocked[0]["errorCode"], "rate_limited");
    let counted =
        r#"holdfast_tool_calls_blocked_total{tool="post",code="rate_limited",mode="live"} 1"#;
    assert!(harness.metrics.encode().contains(counted));

    pass(4_999).await;
    assert_limited(&harness.call(&intent.again()).await, 1);
    pass(1).await;
    let ran = harness.call(&intent.again()).await;
    assert_eq!((ran.status, ran.from_cache), (Status::Success, false));
    // A duplicate is answered from the record and takes no place.
    assert!(harness.call(&intent.again()).await.from_cache);
    assert_eq!(tool.executions(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_wait_gets_its_turn_in_order() {
    let tool = poster([Reaction::Succeed]);
    let harness = limited(&tool, &json!({"burst": 1, "maxWaitMs": 9_999}));
    let (first, second, third) = tokio::join!(post(&harness), post(&harness), post(&harness));
    assert_eq!((first.status, first.duration_ms), (Status::Success, 0));
    assert_eq!(
        (second.status, second.duration_ms),
        (Status::Success, 5_000)
    );
    // Ten seconds were one millisecond too long.
    assert_limited(&third, 10_000);
    assert_eq!(tool.executions(), 2);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_past_the_callers_deadline() {
    let tool = poster([Reaction::Succeed]);
    let harness = limited(&tool, &json!({"burst": 1, "maxWaitMs": 60_000}));
    assert_eq!(post(&harness).await.status, Status::Success);
    let hurried = ask("post").key("k").deadline_in(4_000);
    assert_limited(&harness.call(&hurried).await, 5_000);
    // It took no place: whoever has the time gets this one.
    let patient = harness.call(&hurried.again().deadline_in(6_000)).await;
    assert_eq!(
        (patient.status, patient.duration_ms),
        (Status::Success, 5_000)
    );
}

#[tokio::test(start_paused = true)]
async fn a_retry_takes_a_place_too_and_without_one_the_last_failure_stands() {
    let tool = poster([Reaction::Fail(http(503))]);
    let harness = limited(&tool, &json!({}));
    let call = ask("post").key("k");
    let result = harness.call(&call).await;
    assert_eq!(
        error_of(&result),
        ("http_503", Status::RetryExhausted, false, true)
    );
    assert_eq!((result.attempts, tool.executions()), (2, 2));
    assert!(message_of(&result).contains("not retried: the rate limit of"));
    assert!(result.error.as_ref().unwrap().retry_after_ms > Some(1_000));
    // Something ran, so there is a record of how it failed.
    assert_eq!(harness.record().await.unwrap().0, RecordState::Failed);
    // The refusal says nothing about the service.
    let post = (
        "tool:holdfast.tools/post".to_owned(),
        CircuitBreakerState::Closed,
    );
    assert_eq!(harness.circuits().await, [post]);
}

#[tokio::test(start_paused = true)]
async fn tools_of_one_dependency_share_its_limit() {
    let (first, second) = (
        Arc::new(ScriptedTool::read_only("search", [Reaction::Succeed])),
        Arc::new(ScriptedTool::read_only("fetch", [Reaction::Succeed])),
    );
    let settings = json!({
        "tools": {"search": {"dependency": "site"}, "fetch": {"dependency": "site"}},
        "dependencies": {"site": {"rateLimit": {"calls": 3}}},
        "classes": {"readOnly": {"rateLimit": {"calls": 2}}},
    });
    let harness = Build::new(&first)
        .and(&second)
        .reliability(settings)
        .stack();
    for tool in ["search", "fetch", "search"] {
        assert_eq!(harness.call(&ask(tool)).await.status, Status::Success);
    }
    let by_both = harness.call(&ask("search")).await;
    let by_dependency = harness.call(&ask("fetch")).await;
    // The class gives each of its tools two calls a minute, and the site three to all of them.
    assert_limited(&by_both, 30_000);
    assert_limited(&by_dependency, 20_000);
    assert!(message_of(&by_dependency).contains("dependency:site (3 in 60000 ms)"));
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_takes_no_place_and_a_refused_probe_frees_its_own() {
    let tool = poster([Reaction::Fail(http(503))]);
    let settings = json!({
        "breaker": {"consecutiveFailures": 2, "openCooldownMs": 1_000},
        "tools": {"post": {"rateLimit": {"calls": 3, "windowMs": 30_000}}},
    });
    let harness = Build::new(&tool).reliability(settings).stack();
    let once = || async {
        let call = ask("post").attempts(1);
        let content = call.0.request_id.clone();
        harness
            .call(&call.params(json!({"content": content})))
            .await
    };
    for _ in 0..2 {
        assert_eq!(error_of(&once().await).0, "http_503");
    }
    for _ in 0..10 {
        assert_eq!(error_of(&once().await).0, "circuit_open");
    }
    // The third place is still there for the probe; the one after it has to wait.
    pass(1_000).await;
    tool.then([Reaction::Succeed]);
    assert_eq!(once().await.status, Status::Success);
    for _ in 0..2 {
        assert_eq!(error_of(&once().await).0, "rate_limited");
    }
    pass(9_000).await;
    assert_eq!(once().await.status, Status::Success);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_off_or_watches_refuses_nothing() {
    for (mode, reported) in [("off", 0), ("shadow", 2)] {
        let tool = poster([Reaction::Succeed]);
        let settings = json!({"tools": {"post": {"mode": mode, "rateLimit": {"calls": 2}}}});
        let harness = Build::new(&tool).reliability(settings).stack();
        for _ in 0..4 {
            assert_eq!(post(&harness).await.status, Status::Success);
        }
        let blocked = harness.log.of("tool_call_blocked");
        assert_eq!(blocked.len(), reported, "{mode}");
        assert!(blocked.iter().all(|line| line["shadow"] == true));
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_that_ignores_the_limit_ends_its_turn() {
    let tool = poster([Reaction::Succeed]);
    let harness = limited(&tool, &json!({"calls": 1}));
    let codes = async {
        let mut codes = Vec::new();
        for number in 0..8 {
            let call = ask("post").turn("t").params(json!({"content": number}));
            let result = harness.call(&call).await;
            codes.push(result.error.map_or_else(String::new, |error| error.code));
        }
        codes
    };
    let codes = codes.await;
    assert_eq!(codes[0], "");
    assert_eq!(codes[1], "rate_limited");
    assert_eq!(codes[7], "tool_error_limit", "{codes:?}");
}
