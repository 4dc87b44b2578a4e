//! What the gateway's tools are, and what its search says, against a double.

#![expect(
    clippy::expect_used,
    reason = "a helper that fails is a test that fails"
)]
#![expect(
    dead_code,
    reason = "the helpers are shared with the other test binaries"
)]

mod common;

use std::sync::Arc;

use common::{Double, answer, clock, context};
use holdfast_contract::{PermissionTier, SessionKind, Tool};
use holdfast_web::config::GatewayToolConfig;
use holdfast_web::{GatewayClient, GatewayConfig, GatewayTool};
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
