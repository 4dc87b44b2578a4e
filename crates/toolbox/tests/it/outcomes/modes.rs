//! Layers that are switched off, or only watch.

use std::sync::Arc;

use holdfast_contract::{CircuitBreakerState, DedupeMode, ToolError, ToolResultEnvelope};
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Ask, Build, Harness, ask, error_of, http, pass};

#[tokio::test(start_paused = true)]
async fn without_derived_keys_only_named_intents_are_deduplicated() {
    let tool = Arc::new(ScriptedTool::mutating("change", [Reaction::Succeed]));
    let settings = json!({"deriveIdempotency": "off"});
    let harness = Build::new(&tool).reliability(settings).stack();
    let step = || ask("change").step("run", 1, 0);
    assert!(!harness.call(&step()).await.from_cache);
    assert!(!harness.call(&step()).await.from_cache);
    assert_eq!(harness.record().await, None);
    let named = ask("change").key("k");
    assert!(!harness.call(&named).await.from_cache);
    assert!(harness.call(&named.again()).await.from_cache);
    assert_eq!(tool.executions(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_caller_can_go_without_deduplication() {
    let tool = Arc::new(ScriptedTool::mutating("change", [Reaction::Succeed]));
    let harness = Build::new(&tool).stack();
    for _ in 0..2 {
        let call = ask("change").key("k").mode(DedupeMode::Disabled);
        assert!(!harness.call(&call).await.from_cache);
    }
    assert_eq!((tool.executions(), harness.record().await), (2, None));
}

#[tokio::test(start_paused = true)]
async fn an_open_breaker_that_is_off_or_watches_refuses_nothing() {
    for (mode, reported) in [("off", 0), ("shadow", 3)] {
        let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(http(503))]));
        let settings = json!({"openMode": mode});
        let harness = Build::new(&tool).reliability(settings).stack();
        for _ in 0..8 {
            let result = harness.call(&ask("post").attempts(1)).await;
            assert_eq!(error_of(&result).0, "http_503");
            assert_eq!(result.error.unwrap().breaker_state, None);
        }
        assert_eq!(tool.executions(), 8);
        let blocked = harness.log.of("tool_call_blocked");
        assert_eq!(blocked.len(), reported, "{mode}");
        assert!(blocked.iter().all(|line| line["shadow"] == true));
        // The rest goes on: retries are made, and duplicates answered.
        tool.then([Reaction::Fail(http(503)), Reaction::Succeed]);
        let call = ask("post").key("k");
        assert_eq!(harness.call(&call).await.attempts, 2);
        assert!(harness.call(&call.again()).await.from_cache);
        // The breaker itself is the real one: whoever refuses by it again finds it as it is.
        let circuits = harness.circuits().await;
        let keys: Vec<&str> = circuits.iter().map(|(key, _)| key.as_str()).collect();
        let expected: &[&str] = match mode {
            "off" => &[],
            _ => &["tool:holdfast.tools/post"],
        };
        assert_eq!(keys, expected, "{mode}");
    }
}

/// One script and one list of calls that would set off every layer.
async fn traffic(settings: Value) -> (Arc<ScriptedTool>, Harness, Vec<ToolResultEnvelope>) {
    let script = [
        Reaction::Succeed,
        Reaction::Succeed,
        Reaction::Succeed,
        Reaction::EffectThenFail(http(500)),
        Reaction::Fail(ToolError::failed("no")),
        Reaction::Fail(ToolError::failed("no")),
        Reaction::Fail(ToolError::failed("no")),
        Reaction::Fail(http(503)),
    ];
    let tool = Arc::new(ScriptedTool::mutating("post", script));
    let harness = Build::new(&tool).reliability(settings).stack();
    let mut results = Vec::new();
    for call in calls() {
        results.push(harness.call(&call).await);
    }
    (tool, harness, results)
}

/// Fixed ids, so that two runs can be compared.
fn calls() -> Vec<Ask> {
    let mut calls = vec![
        ask("post").key("a"),
        ask("post").key("a"),
        ask("post").key("a").params(json!({"path": "other"})),
        ask("post").key("b"),
        ask("post").key("c").turn("loop"),
        ask("post").key("d").turn("loop"),
        ask("post").key("e").turn("loop"),
    ];
    calls.extend((0..7).map(|number| ask("post").key(&format!("f{number}"))));
    for (number, call) in calls.iter_mut().enumerate() {
        call.0.request_id = format!("call-{number}");
        if call.0.target.turn_id.as_deref() != Some("loop") {
            call.0.target.turn_id = Some(format!("own-{number}"));
        }
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn shadow_mode_changes_nothing_and_tells_everything() {
    let (bare, _, expected) = traffic(json!({"mode": "off"})).await;
    assert_eq!(bare.executions(), 14);
    for settings in [
        json!({"mode": "shadow"}),
        json!({"classes": {"mutating": {"mode": "shadow"}}}),
        json!({"mode": "off", "tools": {"post": {"mode": "shadow"}}}),
        json!({"classes": {"mutating": {"mode": "enforce"}}, "tools": {"post": {"mode": "shadow"}}}),
    ] {
        let (tool, harness, results) = traffic(settings.clone()).await;
        assert_eq!(results, expected, "{settings}");
        assert_eq!((tool.executions(), tool.seen()), (14, bare.seen()));

        // The duplicate that would have been answered.
        let hits = harness.log.of("tool_call_dedupe");
        assert_eq!(hits.len(), 1, "{hits:?}");
        assert!(hits[0]["shadow"] == true && hits[0]["fromCache"] == false);
        // The conflict, the loop and the two calls that would have been refused.
        let blocked: Vec<Value> = harness
            .log
            .of("tool_call_blocked")
            .into_iter()
            .inspect(|line| assert_eq!(line["shadow"], true))
            .map(|line| line["errorCode"].clone())
            .collect();
        let codes = ["idempotency_key_conflict", "loop_detected", "circuit_open"];
        assert_eq!(blocked[..3], codes.map(|code| json!(code)), "{blocked:?}");
        // Retries that would have been made; nothing is counted as a real one.
        assert!(
            harness
                .log
                .of("tool_call_retry")
                .iter()
                .all(|line| line["shadow"] == true)
        );
        assert!(harness.log.of("tool_call_retry").len() >= 7);
        let text = harness.metrics.encode();
        assert!(
            text.contains(
                r#"openclaw_tool_calls_total{tool="post",status="success",scope="shadow"} 3"#
            ),
            "{text}"
        );
        assert!(!text.contains("retry_attempts_total{"), "{text}");
        for (key, _) in harness.circuits().await {
            assert!(key.starts_with("shadow@"), "{key}");
        }
        // An unknown outcome is watched as one, although nobody is told so.
        let states: Vec<_> = harness.records().await;
        let unknown = states
            .iter()
            .filter(|record| record.state.as_str() == "unknown");
        assert_eq!(unknown.count(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_watched_is_not_found_when_it_counts() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Succeed]));
    let other = Arc::new(ScriptedTool::mutating("other", [Reaction::Succeed]));
    let settings = json!({"tools": {"post": {"mode": "shadow"}}});
    let watched = Build::new(&tool).and(&other).reliability(settings).stack();
    let call = ask("post").key("k");
    watched.call(&call).await;
    assert_eq!(watched.records().await.len(), 1);
    // The same store behind a stack that acts.
    let stores = holdfast_reliability::idempotency::DedupeStores::single(watched.dedupe.clone());
    let acting = Build::new(&tool)
        .with(|build| build.dedupe = Some(stores))
        .stack();
    assert!(!acting.call(&call.again()).await.from_cache);
    assert!(acting.call(&call.again()).await.from_cache);
    assert_eq!((tool.executions(), watched.records().await.len()), (2, 2));
    // A tool beside it acts in the same stack.
    let beside = ask("other").key("k");
    assert!(!watched.call(&beside).await.from_cache);
    assert!(watched.call(&beside.again()).await.from_cache);
}

#[tokio::test(start_paused = true)]
async fn a_watched_breaker_recovers_like_a_real_one() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Fail(http(503))]));
    let settings = json!({"mode": "shadow"});
    let harness = Build::new(&tool).reliability(settings).stack();
    for _ in 0..6 {
        harness.call(&ask("post")).await;
    }
    let state = async || harness.circuits().await[0].1;
    assert_eq!(state().await, CircuitBreakerState::Open);
    tool.then([Reaction::Succeed]);
    pass(15_000).await;
    for _ in 0..2 {
        assert!(harness.call(&ask("post")).await.is_success());
    }
    assert_eq!(state().await, CircuitBreakerState::Closed);
}
