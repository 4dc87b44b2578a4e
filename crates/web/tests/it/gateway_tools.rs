//! What the gateway's tools are, and what its search says, against a double.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Double, answer, clock, context};
use holdfast_contract::{Cause, Effect, PermissionTier, SessionKind, Tool, ToolError};
use holdfast_web::config::{GatewayToolConfig, SearchConfig};
use holdfast_web::search::provider;
use holdfast_web::{GatewayClient, GatewayConfig, GatewayTool, WebSearchTool};
use serde_json::{Value, json};

/// A gateway that answers every call with this.
async fn gateway(body: &Value) -> (Double, GatewayConfig) {
    let json = "content-type: application/json\r\n";
    let answers = vec![("/tools/invoke", answer("200 OK", json, &body.to_string()))];
    let double = Double::start(answers).await;
    let config = GatewayConfig {
        url: double.url(""),
        token_env: "X".to_owned(),
        session_key: None,
        agent_id: None,
        tools: [].into(),
    };
    (double, config)
}

fn client(config: &GatewayConfig) -> Arc<GatewayClient> {
    Arc::new(GatewayClient::new(config, None, clock()).expect("is made"))
}

/// The table: whatever only looks is `ReadOnly`, and what nobody declared is `System`.
const DECLARED: &str = "
agents_list ReadOnly None
browser System External
canvas System External
cron System External
edit System External
exec System External
gateway Elevated External
memory_get ReadOnly None
memory_search ReadOnly None
message System External
nodes System External
read ReadOnly None
session_status ReadOnly None
sessions_history ReadOnly None
sessions_list ReadOnly None
sessions_send System External
sessions_spawn System External
subagents System External
tts System External
web_fetch ReadOnly None
web_search ReadOnly None
write System External
";

#[tokio::test]
async fn every_known_tool_has_its_tier_and_its_effect() {
    let (_double, mut config) = gateway(&json!({})).await;
    let tool = |name: &str| (name.to_owned(), GatewayToolConfig::default());
    config.tools = GatewayTool::known().map(tool).collect();
    let tools = GatewayTool::all(&client(&config), &config);
    let found: Vec<String> = tools
        .iter()
        .map(|tool| {
            let name = tool.known_as();
            format!("{name} {:?} {:?}", tool.permission_tier(), tool.effect())
        })
        .collect();
    let expected: Vec<&str> = DECLARED.trim().lines().collect();
    assert_eq!(found, expected);
    // What only looks is free to repeat, and what acts is not.
    for tool in &tools {
        let looks = tool.permission_tier() == PermissionTier::ReadOnly;
        assert_eq!(looks, tool.is_idempotent(), "{}", tool.name());
        let worker = context(SessionKind::Worker, None);
        assert_eq!(looks, tool.is_available(&worker.session), "{}", tool.name());
    }
    config.tools = [tool("unheard_of")].into();
    let unheard = GatewayTool::all(&client(&config), &config);
    let is = (unheard[0].permission_tier(), unheard[0].is_idempotent());
    assert_eq!(is, (PermissionTier::System, false));
}

#[tokio::test]
async fn a_path_outside_the_workspace_makes_a_call_elevated() {
    let (double, mut config) = gateway(&json!({})).await;
    let tool = |name: &str| (name.to_owned(), GatewayToolConfig::default());
    config.tools = ["edit", "read", "write"].into_iter().map(tool).collect();
    let session = context(SessionKind::Main, None).session;
    for tool in GatewayTool::all(&client(&config), &config) {
        let verdict = |path: &str| {
            let params = json!({"args": {"path": path}});
            tool.tier_for(&params, &session)
        };
        let out = verdict("/etc/passwd");
        assert_eq!(out.tier, PermissionTier::Elevated, "{}", tool.name());
        let reason = &out.exact[0];
        assert_eq!(
            (reason.code.as_str(), reason.subject.as_str()),
            ("outside_workspace", "/etc/passwd")
        );
        assert!(reason.text.contains("outside the workspace"), "{reason:?}");
        let inside = verdict("notes/a.txt");
        assert_eq!(inside.tier, tool.permission_tier(), "{}", tool.name());
    }
    assert!(double.asked().is_empty());
}

#[tokio::test]
async fn calls_belong_to_the_session_and_the_agent_that_are_set() {
    let (double, mut config) = gateway(&json!({"ok": true, "result": "done"})).await;
    config.session_key = Some("agent:main:holdfast".to_owned());
    config.agent_id = Some("main".to_owned());
    let tool = GatewayTool::new(client(&config), "tts", &GatewayToolConfig::default());
    let ctx = context(SessionKind::Main, Some("k"));
    let params = json!({"args": {"text": "hello"}});
    tool.execute(&params, &ctx).await.expect("works");
    let body: Value = serde_json::from_str(&double.asked()[0].body).expect("JSON");
    assert_eq!(
        body,
        json!({"tool": "tts", "args": {"text": "hello"}, "idempotencyKey": "k",
               "sessionKey": "agent:main:holdfast", "agentId": "main"})
    );
    assert_eq!(config.problems(), []);
    config.agent_id = Some(" ".to_owned());
    assert_eq!(config.problems()[0].0, "agentId");
}

/// What `web_search` makes of an answer of the gateway's own.
async fn searched(result: Value) -> Result<Value, String> {
    let (_double, config) = gateway(&json!({"ok": true, "result": result})).await;
    let asks = provider(
        &SearchConfig::Gateway {},
        None,
        Some(&client(&config)),
        &clock(),
    );
    let tool = WebSearchTool::new(Some(asks.expect("is made")), clock());
    let ctx = context(SessionKind::Worker, None);
    let found = tool.execute(&json!({"query": "q", "count": 2}), &ctx).await;
    match found {
        Ok(found) => Ok(found.output),
        Err(ToolError::ExecutionError {
            cause: Cause::Coded { code },
            ..
        }) => Err(code.into_owned()),
        Err(other) => Err(other.to_string()),
    }
}

#[tokio::test]
async fn the_gateways_search_is_read_in_every_shape_it_has() {
    let page = json!({"title": "T", "url": "https://example.com", "description": "d"});
    let list = json!({"query": "q", "results": [page]});
    let said = |value: &Value| json!({"content": [{"type": "text", "text": value.to_string()}]});
    let with_details = |value: &Value| {
        let mut said = said(value);
        said["details"] = value.clone();
        said
    };
    // As it is today, as text alone, and as a list alone.
    let brave = json!({"web": {"results": [page]}});
    for shape in [
        with_details(&list),
        said(&list),
        said(&json!([page])),
        said(&brave),
        json!({"content": [{"type": "text", "text": list.to_string()}], "details": {"cached": true}}),
        json!(list.to_string()),
    ] {
        let found = searched(shape.clone()).await.expect("found");
        let first = &found["results"][0];
        let is = (&first["url"], &first["snippet"]);
        assert_eq!(is, (&json!("https://example.com"), &json!("d")), "{shape}");
    }
    // Providers that answer in words, with what they cite.
    let words = json!({"content": "It is green.", "citations": ["https://a.example", {"url": "https://b.example"}, "https://c.example"]});
    for shape in [with_details(&words), said(&words)] {
        let found = searched(shape).await.expect("found");
        assert_eq!(found["answer"], "It is green.");
        let urls: Vec<&Value> = found["results"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|found| &found["url"])
            .collect();
        assert_eq!(urls, ["https://a.example", "https://b.example"]);
    }
    let plain = json!({"content": [{"type": "text", "text": "1. T https://example.com"}]});
    let found = searched(plain).await.expect("found");
    assert_eq!(found["answer"], "1. T https://example.com");
    let long = json!({"content": [{"type": "text", "text": "x".repeat(20_007)}]});
    let found = searched(long).await.expect("found");
    let answer = found["answer"].as_str().expect("a text");
    assert!(answer.ends_with("[… 7 characters cut …]"));
}

#[tokio::test]
async fn nothing_found_is_said_when_nothing_was_found() {
    let none = json!({"details": {"results": []}, "content": []});
    let found = searched(none).await.expect("found");
    assert_eq!(found["results"], json!([]));
    assert!(found.get("answer").is_none());
    for (result, code) in [
        (json!({"content": []}), "bad_answer"),
        (json!({}), "bad_answer"),
        (json!({"details": {"count": 3}}), "bad_answer"),
        (
            json!({"content": [{"type": "text", "text": "{\"count\": 3}"}]}),
            "bad_answer",
        ),
        (
            json!({"details": {"error": "missing_api_key", "message": "set one"}}),
            "search_failed",
        ),
        (
            json!({"content": [{"type": "text", "text": "{\"error\": \"missing_api_key\"}"}]}),
            "search_failed",
        ),
    ] {
        assert_eq!(
            searched(result.clone()).await,
            Err(code.to_owned()),
            "{result}"
        );
    }
}

/// A server of one's own that answers with something else has not found nothing either.
#[tokio::test]
async fn a_server_that_does_not_answer_the_search_is_told_apart() {
    let table: [(&str, Value, Option<&str>); 5] = [
        ("searxng", json!({"results": []}), None),
        ("searxng", json!({"error": "busy"}), Some("bad_answer")),
        ("brave", json!({"type": "search", "query": {}}), None),
        (
            "brave",
            json!({"type": "ErrorResponse"}),
            Some("bad_answer"),
        ),
        ("brave", json!({"web": {}}), Some("bad_answer")),
    ];
    let mut found = BTreeMap::new();
    for (at, (name, body, expected)) in table.into_iter().enumerate() {
        let body = answer("200 OK", "", &body.to_string());
        let paths = ["/search", "/res/v1/web/search"];
        let double = Double::start(paths.map(|path| (path, body.clone())).to_vec()).await;
        let config = match name {
            "brave" => SearchConfig::Brave {
                api_key_env: "K".to_owned(),
                url: double.url(""),
            },
            _ => SearchConfig::Searxng {
                url: double.url(""),
            },
        };
        let asks = provider(&config, Some("key"), None, &clock()).expect("is made");
        let code = match asks.search("q", 1).await {
            Ok(answer) => {
                assert!(answer.results.is_empty() && answer.text.is_none());
                None
            }
            Err(ToolError::ExecutionError {
                cause: Cause::Coded { code },
                ..
            }) => Some(code.into_owned()),
            Err(other) => Some(other.to_string()),
        };
        found.insert(at, code.as_deref() == expected);
    }
    assert!(found.values().all(|fits| *fits), "{found:?}");
}

#[tokio::test]
async fn what_is_offered_for_looking_changes_nothing() {
    let (double, mut config) =
        gateway(&json!({"ok": true, "result": {"content": [{"type": "text", "text": "done"}]}}))
            .await;
    config.tools = [("session_status".to_owned(), GatewayToolConfig::default())].into();
    let client = Arc::new(GatewayClient::new(&config, None, clock()).expect("is made"));
    let offered = GatewayTool::all(&client, &config);
    let changes = json!({"args": {"sessionKey": "main", "model": "dear"}});
    let looks = json!({"args": {"sessionKey": "main"}});
    let worker = context(SessionKind::Worker, None);
    let refused = offered[0].execute(&changes, &worker).await;
    assert!(
        matches!(&refused, Err(ToolError::PermissionDenied { reason, .. }) if reason.contains("model")),
        "{refused:?}"
    );
    assert!(double.asked().is_empty());
    let verdict = offered[0].tier_for(&changes, &worker.session);
    assert!(verdict.forbidden.is_some());
    assert_eq!(offered[0].tier_for(&looks, &worker.session).forbidden, None);
    offered[0].execute(&looks, &worker).await.expect("looks");
    assert_eq!(double.asked().len(), 1);
    // Whoever offers all of it offers it as what it is.
    config.tools = [(
        "session_status".to_owned(),
        GatewayToolConfig {
            tier: Some(PermissionTier::System),
            ..GatewayToolConfig::default()
        },
    )]
    .into();
    let offered = GatewayTool::all(&client, &config);
    assert_eq!(offered[0].effect(), Effect::External);
    let refused = offered[0].execute(&changes, &worker).await;
    assert!(matches!(refused, Err(ToolError::PermissionDenied { .. })));
    let main = context(SessionKind::Main, None);
    assert_eq!(offered[0].tier_for(&changes, &main.session).forbidden, None);
    offered[0].execute(&changes, &main).await.expect("works");
    assert_eq!(double.asked().len(), 2);
}
