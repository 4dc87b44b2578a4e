//! TR-13 and TR-15: what is told, how much of it, and what is never told.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Effect, ToolError, ToolResult};
use holdfast_reliability::guard::attribution_log::AttributionLog;
use holdfast_reliability::store::DedupeStore;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::{Value, json};

use crate::stack::{Build, Custom, Harness, ask, error_of, http, message_of, pass};

fn labels(text: &str, label: &str) -> BTreeSet<String> {
    let start = format!("{label}=\"");
    text.split(&start)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .map(str::to_owned)
        .collect()
}

/// Success, duplicate, retry, exhaustion, opening, refusal and recovery.
async fn mixed_traffic(tool: &ScriptedTool, harness: &Harness) {
    let call = ask("post").key("k");
    harness.call(&call).await;
    harness.call(&call.again()).await;
    tool.then([Reaction::Fail(http(503))]);
    harness.call(&ask("post")).await;
    harness.call(&ask("post")).await;
    assert_eq!(
        error_of(&harness.call(&ask("post")).await).0,
        "circuit_open"
    );
    tool.then([Reaction::Succeed]);
    pass(15_000).await;
    for _ in 0..2 {
        assert!(harness.call(&ask("post")).await.is_success());
    }
    let size = harness.dedupe.size().await.unwrap();
    harness.metrics.set_cache_size("memory", size.records);
}

#[tokio::test(start_paused = true)]
async fn tr_13_every_metric_and_transition_is_told() {
    let tool = Arc::new(ScriptedTool::mutating("post", [Reaction::Succeed]));
    let harness = Build::new(&tool).stack();
    mixed_traffic(&tool, &harness).await;
    let text = harness.metrics.encode();
    for line in [
        r#"openclaw_tool_calls_total{tool="post",status="success",scope="live"} 4"#,
        r#"openclaw_tool_calls_total{tool="post",status="retry_exhausted",scope="live"} 2"#,
        r#"openclaw_tool_calls_total{tool="post",status="circuit_open",scope="live"} 1"#,
        r#"openclaw_tool_call_duration_ms_bucket{le="1.0",tool="post",status="success"} 4"#,
        r#"openclaw_tool_retry_attempts_total{tool="post",reason="http_503"} 3"#,
        r#"openclaw_tool_idempotency_hits_total{tool="post",state="done"} 1"#,
        r#"openclaw_tool_dedupe_cache_size{tool="all",scope="memory"} 5"#,
        r#"openclaw_tool_dedupe_ttl_seconds{tool="post",state="done"} 86400"#,
        r#"openclaw_tool_dedupe_ttl_seconds{tool="post",state="failed"} 300"#,
        r#"openclaw_tool_dedupe_ttl_seconds{tool="post",state="inflight"} 120"#,
        r#"openclaw_tool_circuit_breaker_state{tool="post",state="CLOSED"} 1"#,
        r#"openclaw_tool_circuit_breaker_state{tool="post",state="OPEN"} 0"#,
        r#"openclaw_tool_circuit_breaker_transitions_total{tool="post",from_state="CLOSED",to_state="OPEN"} 1"#,
        r#"openclaw_tool_circuit_breaker_transitions_total{tool="post",from_state="OPEN",to_state="HALF_OPEN"} 1"#,
        r#"openclaw_tool_circuit_breaker_transitions_total{tool="post",from_state="HALF_OPEN",to_state="CLOSED"} 1"#,
        r#"holdfast_tool_calls_blocked_total{tool="post",code="circuit_open",mode="live"} 1"#,
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }

    let moves: Vec<(Value, Value)> = harness
        .log
        .of("tool_call_circuit_state")
        .into_iter()
        .map(|line| (line["fromState"].clone(), line["breakerState"].clone()))
        .collect();
    let expected = [
        ("CLOSED", "OPEN"),
        ("OPEN", "HALF_OPEN"),
        ("HALF_OPEN", "CLOSED"),
    ];
    assert_eq!(moves, expected.map(|(from, to)| (json!(from), json!(to))));
    for line in harness.log.of("tool_call_circuit_state") {
        assert_eq!(line["toolName"], "post", "{line}");
        assert_eq!(line["sessionKey"], "session", "{line}");
        assert!(
            line["requestId"].is_string() && line["attempt"].is_u64(),
            "{line}"
        );
    }
    assert_eq!(harness.log.of("tool_call_start").len(), 7);
    assert_eq!(harness.log.of("tool_call_retry").len(), 3);
    assert_eq!(harness.log.of("tool_call_blocked").len(), 1);
    let ends = harness.log.of("tool_call_end");
    assert_eq!(ends.len(), 7);
    for line in &ends {
        for field in [
            "requestId",
            "toolName",
            "sessionKey",
            "state",
            "attempt",
            "elapsedMs",
        ] {
            assert!(!line[field].is_null(), "{field} in {line}");
        }
        assert!(line["idempotencyKeyHash"].is_string() && line["fromCache"].is_boolean());
    }
}

#[tokio::test(start_paused = true)]
async fn repeats_are_counted_by_whether_they_met_their_record() {
    let post = Arc::new(ScriptedTool::mutating("post", [Reaction::Succeed]));
    let look = Arc::new(ScriptedTool::read_only("look", [Reaction::Succeed]));
    let harness = Build::new(&post).and(&look).stack();
    let to = |to: &str| ask("post").params(json!({"to": to}));
    for call in [
        to("ann").key("1"),
        // The same under its key, and twice under keys of their own.
        to("ann").key("1"),
        to("ann").key("2"),
        to("ann").key("3"),
        to("bob").key("4"),
        ask("look").key("1"),
        ask("look").key("2"),
    ] {
        assert!(harness.call(&call).await.is_success());
    }
    // Long after is no repeat.
    pass(11 * 60_000).await;
    assert!(harness.call(&to("ann").key("5")).await.is_success());
    let text = harness.metrics.encode();
    for line in [
        r#"holdfast_tool_repeats_total{tool="post",met="record"} 1"#,
        r#"holdfast_tool_repeats_total{tool="post",met="nothing"} 2"#,
    ] {
        assert!(text.contains(line), "{line}\nis not in\n{text}");
    }
    assert!(!text.contains(r#"repeats_total{tool="look""#), "{text}");
}

#[tokio::test(start_paused = true)]
async fn tr_13_invented_names_and_codes_do_not_grow_the_metrics() {
    // A tool that makes up a new code every time.
    let coded = Custom::new("coded", Effect::None, |params, _| {
        let code = format!("E{}", params["n"]);
        Err(ToolError::transport(code, "as made up"))
    });
    let coded = Arc::new(coded);
    let settings = json!({"tools": {"coded": {"retry": {"maxAttempts": 1}}}});
    let harness = Build::new(&coded)
        .reliability(settings)
        .with(|build| build.guard.max_failures_per_turn = 10)
        .stack();
    for number in 0..10_000 {
        harness.call(&ask(&format!("invented_{number}"))).await;
    }
    for number in 0..300 {
        harness
            .call(&ask("coded").params(json!({"n": number})))
            .await;
    }
    let text = harness.metrics.encode();
    let tools = labels(&text, "tool");
    assert_eq!(tools, BTreeSet::from(["coded".into(), "unknown".into()]));
    assert!(labels(&text, "reason").len() + labels(&text, "code").len() <= 64 + 2);
    assert!(text.lines().count() < 400, "{}", text.lines().count());
}

/// Secrets by their looks, by their names, and a person's address.
const SECRETS: [&str; 5] = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "hunter2-but-longer",
    "sk-ant-api03-Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4",
    "ann.lee@example.com",
    "AKIAIOSFODNN7EXAMPLE",
];

fn telling() -> String {
    format!(
        "server refused token {} with password={} for {} (key {}, Authorization: Bearer {})",
        SECRETS[0], SECRETS[1], SECRETS[3], SECRETS[4], SECRETS[2]
    )
}

fn assert_clean(what: &str, text: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret} in {what}:\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn tr_15_secrets_are_never_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("tool-guard.log");
    let log = AttributionLog::start(path.clone(), Redactor::default()).unwrap();
    let failing = Custom::new("failing", Effect::External, |_, _| {
        Err(ToolError::failed(telling()))
    });
    let busy = Custom::new("busy", Effect::External, |_, _| {
        Err(ToolError::http(503, None, telling()))
    });
    let lost = Custom::new("lost", Effect::External, |_, _| {
        Err(ToolError::transport(SECRETS[0], telling()))
    });
    let reading = Custom::new("reading", Effect::External, |params, _| {
        Ok(ToolResult::new(params.clone(), telling()))
    });
    let mut strict = Custom::new("strict", Effect::None, |_, _| {
        Ok(ToolResult::new(json!(1), ""))
    });
    strict.schema = json!({"type": "object", "properties": {"apiKey": {"enum": ["a"]}}});
    let (failing, busy, lost) = (Arc::new(failing), Arc::new(busy), Arc::new(lost));
    let (reading, strict) = (Arc::new(reading), Arc::new(strict));
    let harness = Build::new(&failing)
        .and(&busy)
        .and(&lost)
        .and(&reading)
        .and(&strict)
        .with(|build| build.attribution = Some(Arc::new(log)))
        .stack();
    let params = json!({
        "apiKey": SECRETS[2], "password": SECRETS[1], "to": SECRETS[3],
        "note": format!("use {} and {}", SECRETS[0], SECRETS[4]),
    });

    for (tool, code) in [
        ("failing", "execution_failed"),
        ("busy", "http_503"),
        ("lost", "outcome_unknown"),
        ("strict", "invalid_arguments"),
        ("no_such", "tool_not_found"),
    ] {
        let call = ask(tool).key(tool).params(params.clone());
        for call in [call.again(), call] {
            let result = harness.call(&call).await;
            assert_eq!(error_of(&result).0, code);
            let text = serde_json::to_string(&result).unwrap();
            assert_clean(tool, &text);
        }
    }
    // The words around a secret stay.
    let result = harness.call(&ask("failing").params(params.clone())).await;
    assert!(message_of(&result).starts_with("server refused token [redacted]"));

    // A malformed envelope is quoted without its secrets as well.
    let mut malformed = serde_json::to_value(&ask("reading").0).unwrap();
    malformed["transport"]["dedupeMode"] = json!(SECRETS[0]);
    let result = harness
        .stack
        .call_bytes(&serde_json::to_vec(&malformed).unwrap())
        .await;
    assert_clean("malformed", &serde_json::to_string(&result).unwrap());

    // What the caller asked for comes back whole, and so does a record's payload.
    let call = ask("reading").key("k").params(params.clone());
    let first = harness.call(&call).await;
    assert_eq!(*first.output.as_ref().unwrap().content, params);
    assert_eq!(harness.call(&call.again()).await.output, first.output);
    let records = harness.records().await;
    let kept = serde_json::to_string(&records).unwrap();
    assert!(SECRETS.iter().all(|secret| kept.contains(secret)));

    assert_clean("the log", &harness.log.text());
    assert_clean("the metrics", &harness.metrics.encode());
    // Dropping the stack writes what is queued.
    drop(harness);
    let attribution = std::fs::read_to_string(&path).unwrap();
    assert!(attribution.lines().count() >= 10, "{attribution}");
    assert_clean("the attribution log", &attribution);
}
