//! `POST /v1/tools/call`: which status an outcome has, and who gets in at all.

use std::sync::Arc;

use axum::body::Body;
use holdfast_contract::code::CODES;
use holdfast_contract::{Cause, ErrorCode, ToolError};
use holdfast_reliability::store::StoreError;
use holdfast_server::ServerConfig;
use holdfast_server::routes::call::http_status;
use holdfast_testkit::{Reaction, ScriptedTool};
use serde_json::json;

use crate::http::harness::{ADMIN, CALLER, Harness, envelope, post};

fn failing(name: &'static str, error: ToolError) -> Arc<ScriptedTool> {
    Arc::new(ScriptedTool::mutating(name, [Reaction::Fail(error)]))
}

fn http_error(status: u16) -> ToolError {
    ToolError::http(status, None, "as the test says")
}

#[tokio::test(start_paused = true)]
async fn the_status_says_whether_we_did_our_part() {
    let good = Arc::new(ScriptedTool::mutating("good", [Reaction::Succeed]));
    let hanging = Arc::new(ScriptedTool::mutating(
        "hanging",
        [Reaction::EffectThenHang],
    ));
    let panicking = Arc::new(ScriptedTool::read_only("panicking", [Reaction::Panic]));
    let harness = Harness::new(vec![
        good.clone(),
        failing("refused", http_error(400)),
        failing("busy", http_error(503)),
        hanging,
        panicking,
    ]);
    let path = json!({"path": "a"});
    let mut keyed = envelope("r1", "good", &path);
    keyed["payload"]["idempotencyKey"] = json!("one");
    let mut other = envelope("r2", "good", &json!({"path": "b"}));
    other["payload"]["idempotencyKey"] = json!("one");
    for (call, status, word, code) in [
        (keyed.clone(), 200, "success", None),
        (keyed, 200, "success", None),
        (other, 422, "error", Some("idempotency_key_conflict")),
        (
            envelope("r3", "nope", &path),
            404,
            "error",
            Some("tool_not_found"),
        ),
        (
            envelope("r4", "good", &json!({"path": 7})),
            400,
            "error",
            Some("invalid_arguments"),
        ),
        (
            envelope("r5", "refused", &path),
            200,
            "error",
            Some("http_400"),
        ),
        (
            envelope("r6", "busy", &path),
            200,
            "retry_exhausted",
            Some("http_503"),
        ),
        (
            envelope("r7", "hanging", &path),
            200,
            "error",
            Some("outcome_unknown"),
        ),
        (
            envelope("r8", "panicking", &path),
            200,
            "error",
            Some("tool_panicked"),
        ),
        (
            json!({"requestId": "r9"}),
            400,
            "error",
            Some("invalid_envelope"),
        ),
        (json!([1]), 400, "error", Some("invalid_envelope")),
    ] {
        let answer = harness.call(&call).await;
        let result = answer.json();
        assert_eq!(
            (answer.status, &result["status"]),
            (status, &json!(word)),
            "{call}"
        );
        assert_eq!(result["error"]["code"], json!(code), "{call}");
    }
    assert_eq!(good.effects(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_may_work_later_says_when() {
    let tool = Arc::new(ScriptedTool::mutating("good", [Reaction::Succeed]));
    let harness = Harness::new(vec![tool.clone()]);
    let forced = json!({"action": "force-open", "breaker": "good"});
    assert_eq!(harness.act(&forced).await.status, 200);
    let answer = harness.call(&envelope("r1", "good", &json!({}))).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("30")),
        "not at once: a person has to close it"
    );
    assert_eq!(answer.json()["error"]["breakerState"], "FORCED_OPEN");

    let away = StoreError::Unavailable("pulled".to_owned());
    let harness = Harness::with(vec![tool.clone()], &ServerConfig::default(), Some(away));
    let answer = harness.call(&envelope("r1", "good", &json!({}))).await;
    assert_eq!(answer.status, 503);
    assert_eq!(answer.json()["error"]["code"], "store_unavailable");
    assert!(answer.header("retry-after").is_some());
    for path in ["/health", "/ready"] {
        let answer = harness.get(path, "").await;
        assert_eq!(
            (answer.status, &answer.json()["status"]),
            (503, &json!("degraded"))
        );
        assert!(
            !answer.text.contains("pulled"),
            "the cause is for operators"
        );
    }
    assert_eq!(tool.executions(), 0);
}

/// Too many messages at once are nobody's failure: waiting helps, and it is said how long.
#[tokio::test(start_paused = true)]
async fn what_is_asked_too_often_gets_429_and_when_to_come_again() {
    let busy = || {
        failing(
            "busy",
            ToolError::ExecutionError {
                message: "too many messages at once".to_owned(),
                cause: Cause::Throttled {
                    retry_after_ms: Some(7_000),
                },
            },
        )
    };
    let mut call = envelope("r1", "busy", &json!({}));
    call["transport"]["retryBudget"] = json!({"maxAttempts": 1, "maxElapsedMs": 1000});
    let answer = Harness::new(vec![busy()]).call(&call).await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7")),
        "{}",
        answer.text
    );
    assert_eq!(answer.json()["error"]["code"], "throttled");
    let answer = Harness::new(vec![busy()])
        .invoke(&json!({"tool": "busy"}))
        .await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (429, Some("7")),
        "{}",
        answer.text
    );
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_in_flight_gets_409_under_best_effort() {
    let slow = Reaction::SucceedAfter(std::time::Duration::from_secs(5));
    let tool = Arc::new(ScriptedTool::mutating("slow", [slow]));
    let harness = Harness::new(vec![tool.clone()]);
    let mut first = envelope("r1", "slow", &json!({}));
    first["payload"]["idempotencyKey"] = json!("one");
    let mut second = first.clone();
    second["transport"]["dedupeMode"] = json!("bestEffort");
    let (first, second) = tokio::join!(harness.call(&first), async {
        tokio::task::yield_now().await;
        harness.call(&second).await
    });
    assert_eq!((first.status, second.status), (200, 409));
    assert_eq!(second.json()["error"]["code"], "duplicate_in_flight");
    assert!(second.header("retry-after").is_some());
    assert_eq!(tool.effects(), 1);
}

#[test]
fn every_code_has_a_status_and_only_retriable_ones_invite_a_retry() {
    for row in CODES {
        let status = http_status(row.code).as_u16();
        let invites = matches!(status, 409 | 429 | 503);
        let timeout = row.code == ErrorCode::Timeout;
        assert_eq!(
            invites,
            row.code.is_retriable() && !timeout,
            "{}",
            row.code.as_str()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn only_the_right_requests_get_in() {
    let tool = Arc::new(ScriptedTool::mutating("good", [Reaction::Succeed]));
    let config = ServerConfig {
        allowed_hosts: vec!["tools.example.org".to_owned()],
        allowed_origins: vec!["https://console.example.org".to_owned()],
        ..ServerConfig::default()
    };
    let harness = Harness::with(vec![tool.clone()], &config, None);
    let body = envelope("r1", "good", &json!({})).to_string();
    let changed = |name: &'static str, value: Option<&str>| {
        let mut request = post("/v1/tools/call", CALLER, body.clone());
        match value {
            Some(value) => {
                let value = value.parse().expect("a value");
                request.headers_mut().insert(name, value);
            }
            None => {
                request.headers_mut().remove(name);
            }
        }
        request
    };
    let admin = format!("Bearer {ADMIN}");
    for (name, value, status, kind) in [
        ("host", None, 400, "invalid_request_error"),
        ("host", Some("evil.example"), 403, "forbidden_host"),
        (
            "origin",
            Some("https://evil.example"),
            403,
            "forbidden_origin",
        ),
        ("origin", Some("null"), 403, "forbidden_origin"),
        ("authorization", None, 401, "unauthorized"),
        (
            "authorization",
            Some("Bearer nonsense"),
            401,
            "unauthorized",
        ),
        ("authorization", Some(admin.as_str()), 401, "unauthorized"),
        ("content-type", None, 415, "invalid_request_error"),
        (
            "content-type",
            Some("text/plain"),
            415,
            "invalid_request_error",
        ),
    ] {
        let answer = harness.send(changed(name, value)).await;
        assert_eq!(answer.status, status, "{name}: {value:?}");
        assert_eq!(
            answer.json()["error"]["type"],
            json!(kind),
            "{name}: {value:?}"
        );
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    }
    assert_eq!((tool.executions(), harness.records().await), (0, 0));
    for (name, value) in [
        ("host", "tools.example.org"),
        ("host", "[::1]:8001"),
        ("origin", "https://console.example.org"),
        ("content-type", "Application/JSON; charset=utf-8"),
    ] {
        let answer = harness.send(changed(name, Some(value))).await;
        assert_eq!(answer.status, 200, "{name}: {value}: {}", answer.text);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, (name == "origin").then_some(value));
    }
}

#[tokio::test(start_paused = true)]
async fn an_allowed_page_may_ask_first() {
    let config = ServerConfig {
        allowed_origins: vec!["https://console.example.org".to_owned()],
        ..ServerConfig::default()
    };
    let harness = Harness::with(Vec::new(), &config, None);
    for (origin, status) in [
        ("https://console.example.org", 204),
        ("https://evil.example", 403),
    ] {
        let request = axum::extract::Request::builder()
            .method("OPTIONS")
            .uri("/tools/invoke")
            .header("host", "localhost")
            .header("origin", origin)
            .header("access-control-request-method", "POST")
            .body(Body::empty());
        let answer = harness.send(request.expect("a request")).await;
        assert_eq!(answer.status, status);
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, (status == 204).then_some(origin));
    }
}

#[tokio::test(start_paused = true)]
async fn bodies_have_a_size() {
    let config = ServerConfig {
        body_bytes_max: 1000,
        ..ServerConfig::default()
    };
    let harness = Harness::with(Vec::new(), &config, None);
    for path in ["/v1/tools/call", "/tools/invoke"] {
        let answer = harness.post(path, CALLER, " ".repeat(1001)).await;
        assert_eq!(answer.status, 413);
        assert_eq!(
            answer.json(),
            json!({"error": {"message": "Payload too large", "type": "invalid_request_error"}})
        );
        // One that does not say how long it is.
        let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(" ".repeat(100)));
        let answer = harness.post(path, CALLER, Body::from_stream(chunks)).await;
        assert_eq!(answer.status, 413);
    }
}
