//! `POST /tools/invoke`: the gateway's shapes, to the letter.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
use holdfast_testkit::{Reaction, ScriptedTool};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::http::harness::{CALLER, Harness, post};

/// Answers with its arguments; has an `action`.
struct Echo;

#[async_trait]
impl Tool for Echo {
    fn name(&self) -> &str {
        "echo"
    }
    fn description(&self) -> &str {
        "Answers with its arguments."
    }
    fn parameters_schema(&self) -> Value {
        json!({"type": "object", "properties": {"action": {"type": "string"}}})
    }
    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }
    fn effect(&self) -> Effect {
        Effect::None
    }
    fn is_idempotent(&self) -> bool {
        true
    }
    async fn execute(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let content = match params.get("text") {
            Some(text) => text.clone(),
            None => params.clone(),
        };
        Ok(ToolResult::new(content, ""))
    }
}

fn harness() -> (Harness, Arc<ScriptedTool>) {
    let send = Arc::new(ScriptedTool::mutating("send", [Reaction::Succeed]));
    let error = ToolError::http(400, None, "no route to the moon");
    let broken = Arc::new(ScriptedTool::mutating("broken", [Reaction::Fail(error)]));
    let tools: Vec<Arc<dyn Tool>> = vec![Arc::new(Echo), send.clone(), broken];
    (Harness::new(tools), send)
}

#[tokio::test(start_paused = true)]
async fn a_result_has_texts_for_the_model_and_details() {
    let (harness, _) = harness();
    for body in [
        json!({"tool": "echo", "args": {"text": "hi"}}),
        json!({"name": "echo", "args": {"text": "hi"}}),
        json!({"tool": " echo ", "name": "other", "args": {"text": "hi"}, "sessionKey": "s", "agentId": "a", "dryRun": false}),
    ] {
        let answer = harness.invoke(&body).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("content-type"),
            Some("application/json; charset=utf-8")
        );
        assert_eq!(
            answer.json(),
            json!({"ok": true, "result": {"content": [{"type": "text", "text": "hi"}], "details": "hi"}})
        );
    }
    let answer = harness
        .invoke(&json!({"tool": "echo", "args": {"n": 1}}))
        .await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], r#"{"n":1}"#);
    assert_eq!(answer.json()["result"]["details"], json!({"n": 1}));
}

#[tokio::test(start_paused = true)]
async fn an_action_is_an_argument_where_there_is_one_by_that_name() {
    let (harness, send) = harness();
    let asked = |body: Value| {
        let harness = &harness;
        async move { harness.invoke(&body).await.json()["result"]["details"].clone() }
    };
    assert_eq!(
        asked(json!({"tool": "echo", "action": "list"})).await,
        json!({"action": "list"})
    );
    assert_eq!(
        asked(json!({"tool": "echo", "action": "list", "args": {"action": "own"}})).await,
        json!({"action": "own"})
    );
    // Arguments that are none are none, as in the gateway.
    assert_eq!(asked(json!({"tool": "echo", "args": [1]})).await, json!({}));
    asked(json!({"tool": "send", "action": "list"})).await;
    assert_eq!(send.seen(), [json!({})]);
}

#[tokio::test(start_paused = true)]
async fn one_key_is_one_effect() {
    let (harness, send) = harness();
    let body = json!({"tool": "send", "idempotencyKey": "k", "args": {"path": "a"}});
    assert_eq!(
        harness.invoke(&body).await.json(),
        harness.invoke(&body).await.json()
    );
    assert_eq!(send.effects(), 1);
    // The same in a header, for clients that can not reach the body.
    let body = json!({"tool": "send", "args": {"path": "b"}}).to_string();
    for _ in 0..2 {
        let mut request = post("/tools/invoke", CALLER, body.clone());
        let key = "k2".parse().expect("a value");
        request.headers_mut().insert("idempotency-key", key);
        assert_eq!(harness.send(request).await.status, 200);
    }
    assert_eq!(send.effects(), 2);
    // Another session, account or call is another intent.
    let other = json!({"tool": "send", "idempotencyKey": "k", "args": {"path": "a"}, "sessionKey": "other"});
    assert_eq!(harness.invoke(&other).await.status, 200);
    assert_eq!(send.effects(), 3);
}

#[tokio::test(start_paused = true)]
async fn clients_that_do_not_say_who_they_are_do_not_lock_each_other_out() {
    let (harness, _) = harness();
    let code = async |body: Value| {
        let answer = harness.invoke(&body).await.json();
        answer["error"]["code"].as_str().map(str::to_owned)
    };
    // The same failing call, again and again: each is a turn of its own, and runs.
    for _ in 0..8 {
        let broken = json!({"tool": "broken", "args": {"path": "a"}});
        assert_eq!(code(broken).await.as_deref(), Some("http_400"));
    }
    assert_eq!(code(json!({"tool": "echo"})).await, None);
    // One that names its session is cut off, and only it.
    let mut last = None;
    for _ in 0..8 {
        let broken = json!({"tool": "broken", "args": {"path": "a"}, "sessionKey": "looping"});
        last = code(broken).await;
    }
    assert_eq!(last.as_deref(), Some("tool_error_limit"));
    assert_eq!(code(json!({"tool": "echo"})).await, None);
    let other = json!({"tool": "echo", "sessionKey": "other"});
    assert_eq!(code(other).await, None);
}

#[tokio::test(start_paused = true)]
async fn errors_have_the_gateways_shapes() {
    let (harness, _) = harness();
    let error = |answer: crate::http::harness::Answer| {
        let json = answer.json();
        (
            answer.status,
            json["ok"].clone(),
            json["error"]["type"].clone(),
            json["error"]["message"].clone(),
        )
    };
    for (body, status, kind, message) in [
        (
            json!({"tool": "moon"}),
            404,
            "not_found",
            "Tool not available: moon",
        ),
        (
            json!({}),
            400,
            "invalid_request",
            "tools.invoke requires body.tool",
        ),
        (
            json!({"tool": "  "}),
            400,
            "invalid_request",
            "tools.invoke requires body.tool",
        ),
        (
            json!(null),
            400,
            "invalid_request",
            "tools.invoke requires body.tool",
        ),
        (
            json!({"tool": "broken"}),
            500,
            "tool_error",
            "tool execution failed",
        ),
    ] {
        let found = error(harness.invoke(&body).await);
        assert_eq!(
            found,
            (status, json!(false), json!(kind), json!(message)),
            "{body}"
        );
    }
    let bad = error(
        harness
            .invoke(&json!({"tool": "echo", "args": {"action": 1}}))
            .await,
    );
    assert_eq!((bad.0, bad.2), (400, json!("tool_error")));
    // Ours, beside theirs.
    let broken = harness.invoke(&json!({"tool": "broken"})).await.json();
    assert_eq!(broken["error"]["code"], "http_400");
    assert!(
        broken["error"]["reason"]
            .as_str()
            .is_some_and(|text| text.contains("moon"))
    );

    // These three have another shape there.
    let bad_json = harness.post("/tools/invoke", CALLER, "{").await;
    assert_eq!(
        (bad_json.status, bad_json.json()["ok"].is_null()),
        (400, true)
    );
    assert_eq!(bad_json.json()["error"]["type"], "invalid_request_error");
    let large = " ".repeat(2 * 1024 * 1024 + 1);
    let large = harness.post("/tools/invoke", CALLER, large).await;
    assert_eq!(
        (large.status, large.json()),
        (
            413,
            json!({"error": {"message": "Payload too large", "type": "invalid_request_error"}})
        )
    );
    let unknown = harness.post("/tools/invoke", "wrong", "{}").await;
    assert_eq!(
        (unknown.status, unknown.json()),
        (
            401,
            json!({"error": {"message": "Unauthorized", "type": "unauthorized"}})
        )
    );
    let got = harness.get("/tools/invoke", CALLER).await;
    assert_eq!((got.status, got.text.as_str()), (405, "Method Not Allowed"));
    assert_eq!(got.header("allow"), Some("POST"));
}

#[tokio::test(start_paused = true)]
async fn our_own_routes_say_what_they_take() {
    let (harness, _) = harness();
    for (path, method, says) in [
        ("/v1/tools/call", "POST", "takes POST"),
        ("/debug/tool-reliability/breakers", "GET,HEAD", "takes GET"),
        ("/health", "GET,HEAD", "takes GET"),
    ] {
        let mut request = post(path, CALLER, "{}");
        *request.method_mut() = http::Method::PUT;
        let got = harness.send(request).await;
        assert_eq!((got.status, got.header("allow")), (405, Some(method)));
        let error = &got.json()["error"];
        assert_eq!(error["type"], "method_not_allowed");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains(says)),
            "{error}"
        );
    }
}

/// Any JSON, now and then with the fields that mean something.
fn any_body() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
        Just(json!("echo")),
    ];
    let any = leaf.prop_recursive(3, 24, 6, |inner| {
        let name = prop_oneof![
            ".{0,8}",
            prop::sample::select(vec![
                "tool",
                "name",
                "args",
                "sessionKey",
                "agentId",
                "idempotencyKey",
                "action",
                "turnId",
            ])
            .prop_map(str::to_owned),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..8)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    });
    any.boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_body_gets_an_answer_in_a_known_shape(body in any_body(), noise in prop::collection::vec(any::<u8>(), 0..64)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        runtime.block_on(async {
            let (harness, send) = harness();
            for bytes in [body.to_string().into_bytes(), noise] {
                let answer = harness.post("/tools/invoke", CALLER, bytes).await;
                let json = answer.json();
                match answer.status {
                    200 => {
                        assert_eq!(json["ok"], true);
                        assert!(json["result"]["content"][0]["text"].is_string());
                    }
                    400 | 404 => {
                        assert!(json["error"]["type"].is_string(), "{}", answer.text);
                        assert!(json["error"]["message"].is_string(), "{}", answer.text);
                    }
                    other => panic!("{other}: {}", answer.text),
                }
            }
            // Nothing in there named the tool with an effect.
            assert_eq!(send.executions(), 0);
        });
    }
}
