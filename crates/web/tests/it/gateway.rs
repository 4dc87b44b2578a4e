//! The gateway's tools, searches and channels against real sockets.

use std::sync::Arc;

use crate::common::{Double, answer, clock, context};
use holdfast_contract::{
    ApprovalPrompt, Cause, Channel, ChannelLevel, Clock, Effect, Gate, PermissionTier, Prompter,
    Reason, SessionKind, Shown, SystemClock, Tool, ToolError,
};
use holdfast_web::config::{GatewayToolConfig, SearchConfig};
use holdfast_web::search::provider;
use holdfast_web::{GatewayClient, GatewayConfig, GatewayTool, HttpChannel, WebSearchTool};
use serde_json::{Value, json};

/// The gateway as it answered when it was measured.
async fn gateway() -> (Double, GatewayConfig) {
    let ok = |result: Value| {
        answer(
            "200 OK",
            "content-type: application/json\r\n",
            &json!({"ok": true, "result": result}).to_string(),
        )
    };
    let double = Double::start(vec![(
        "/tools/invoke",
        ok(json!({
            "content": [{"type": "text", "text": "done"}],
            "details": {"results": [{"title": "T", "url": "https://example.com", "snippet": "s"}]},
        })),
    )])
    .await;
    let config = GatewayConfig {
        url: double.url("/").trim_end_matches('/').to_owned(),
        token_env: "OPENCLAW_GATEWAY_TOKEN".to_owned(),
        session_key: None,
        agent_id: None,
        tools: [
            ("message".to_owned(), GatewayToolConfig::default()),
            ("unheard_of".to_owned(), GatewayToolConfig::default()),
        ]
        .into(),
    };
    (double, config)
}

/// Settings for a double, with no tools.
fn bare(double: &Double) -> GatewayConfig {
    GatewayConfig {
        url: double.url(""),
        token_env: "X".to_owned(),
        session_key: None,
        agent_id: None,
        tools: [].into(),
    }
}

#[tokio::test]
async fn a_gateways_tool_is_called_with_token_key_and_action() {
    let (double, config) = gateway().await;
    let client =
        Arc::new(GatewayClient::new(&config, Some("secret-token"), clock()).expect("is made"));
    let tools = GatewayTool::all(&client, &config);
    let names: Vec<(&str, String)> = tools
        .iter()
        .map(|tool| {
            (
                tool.name(),
                format!("{:?} {:?}", tool.permission_tier(), tool.effect()),
            )
        })
        .collect();
    assert_eq!(
        names,
        [
            ("gateway_message", "System External".to_owned()),
            ("gateway_unheard_of", "System External".to_owned())
        ]
    );
    let params = json!({"action": "send", "args": {"to": "ann", "text": "hello"}});
    let got = tools[0]
        .execute(&params, &context(SessionKind::Main, Some("key-1")))
        .await
        .expect("works");
    assert_eq!(
        (
            got.output["content"][0]["text"].as_str(),
            got.display.as_str()
        ),
        (Some("done"), "done")
    );
    let asked = &double.asked()[0];
    assert!(asked.head.contains("authorization: bearer secret-token"));
    let body: Value = serde_json::from_str(&asked.body).expect("JSON");
    assert_eq!(
        body,
        json!({"tool": "message", "action": "send", "args": {"to": "ann", "text": "hello"}, "idempotencyKey": "key-1"})
    );
    // The seed's tools have their own names, and flat arguments as the gateway's schemas have them.
    let browser = GatewayTool::new(client.clone(), "browser", &GatewayToolConfig::default());
    assert_eq!(
        (browser.name(), browser.aliases()),
        ("browser", &["gateway_browser"][..])
    );
    let flat = json!({"action": "open", "url": "https://a.example"});
    browser
        .execute(&flat, &context(SessionKind::Main, None))
        .await
        .expect("works");
    let body: Value = serde_json::from_str(&double.asked()[1].body).expect("JSON");
    assert_eq!(body, json!({"tool": "browser", "args": flat}));
    let upload = json!({"action": "upload", "paths": ["/etc/passwd"]});
    let session = context(SessionKind::Main, None).session;
    let verdict = browser.tier_for(&upload, &session);
    assert_eq!(verdict.tier, PermissionTier::Elevated);
    // A worker has nothing to send with.
    let refused = tools[0]
        .execute(&params, &context(SessionKind::Worker, None))
        .await;
    assert!(matches!(refused, Err(ToolError::PermissionDenied { .. })));
    assert_eq!(double.asked().len(), 2);
}

/// What the real gateway answers (`integrations/openclaw/test/gateway.test.mjs` compares it), and what
/// it has not answered yet, though others of its kind do.
fn refusals() -> Vec<(String, &'static str, String, String)> {
    let recorded: Vec<Value> =
        serde_json::from_str(include_str!("data/gateway.json")).expect("a list");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let mut all: Vec<_> = recorded
        .iter()
        .map(|case| {
            let answer = &case["answer"];
            let body = match answer["text"].as_str() {
                Some(plain) => plain.to_owned(),
                None => answer["body"].to_string(),
            };
            (text(&answer["status"]), "", body, text(&case["means"]))
        })
        .collect();
    let busy = r#"{"error":{"message":"slow down","type":"rate_limited"}}"#;
    for (status, headers, body, means) in [
        (
            "429 Too Many Requests",
            "retry-after: 3\r\n",
            busy,
            "Http { status: 429, retry_after_ms: Some(3000) }",
        ),
        (
            "429 Too Many Requests",
            "retry-after: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            busy,
            "Http { status: 429, retry_after_ms: Some(7000) }",
        ),
        (
            "503 Service Unavailable",
            "",
            "",
            "Http { status: 503, retry_after_ms: None }",
        ),
        ("200 OK", "", "no JSON", "LostTrack"),
    ] {
        all.push((
            status.to_owned(),
            headers,
            body.to_owned(),
            means.to_owned(),
        ));
    }
    all
}

#[tokio::test]
async fn what_the_gateway_refuses_is_told_apart() {
    for (status, headers, body, expected) in refusals() {
        let double = Double::start(vec![("/tools/invoke", answer(&status, headers, &body))]).await;
        let config = bare(&double);
        let client = GatewayClient::new(&config, None, clock()).expect("is made");
        let got = match client
            .invoke(("read", Effect::None), None, &json!({}), None)
            .await
            .expect_err("refused")
        {
            ToolError::ExecutionError { cause, .. } => format!("{cause:?}"),
            ToolError::PermissionDenied { .. } => "denied".to_owned(),
            ToolError::ValidationError { .. } => "invalid".to_owned(),
            other @ ToolError::Timeout { .. } => format!("{other:?}"),
        };
        assert_eq!(got, expected, "{status} {body}");
    }
    // Older versions answer with a string.
    let old = answer("200 OK", "", r#"{"ok":true,"result":"plain"}"#);
    let double = Double::start(vec![("/tools/invoke", old)]).await;
    let config = bare(&double);
    let client = GatewayClient::new(&config, None, clock()).expect("is made");
    let got = client
        .invoke(("x", Effect::External), None, &json!({}), None)
        .await
        .expect("works");
    assert_eq!(got["content"][0]["text"], "plain");
}

/// What the gateway's tools and channel make of one answer of it.
async fn means(answer: String) -> [(&'static str, String); 3] {
    let double = Double::start(vec![("/tools/invoke", answer)]).await;
    let config = bare(&double);
    let client = Arc::new(GatewayClient::new(&config, None, clock()).expect("is made"));
    let tool = |name| GatewayTool::new(client.clone(), name, &GatewayToolConfig::default());
    let ctx = context(SessionKind::Main, Some("k"));
    let cause = |error| match error {
        ToolError::ExecutionError { cause, .. } => format!("{cause:?}"),
        other => format!("{other:?}"),
    };
    let (posts, reads) = (tool("message"), tool("read"));
    let posted = posts.execute(&json!({}), &ctx).await.expect_err("fails");
    let read = reads.execute(&json!({}), &ctx).await.expect_err("fails");
    let to = serde_json::Map::new();
    let channel = HttpChannel::gateway(client.clone(), to, ChannelLevel::Standard);
    let sent = channel.send("hello", Some("k")).await.expect_err("fails");
    assert_eq!(double.asked().len(), 3);
    [
        ("posted", cause(posted)),
        ("sent", cause(sent)),
        ("read", cause(read)),
    ]
}

#[tokio::test]
async fn what_worked_and_can_not_be_taken_may_have_happened() {
    let huge = "x".repeat(8 * 1024 * 1024 + 1);
    let whole = json!({"ok": true, "result": huge}).to_string();
    let too_large = "Coded { code: \"too_large\" }".to_owned();
    assert_eq!(
        means(answer("200 OK", "", &whole)).await,
        [
            ("posted", "LostTrack".to_owned()),
            ("sent", "LostTrack".to_owned()),
            ("read", too_large),
        ]
    );
    // A refusal is one, however much is said about it.
    for status in [500, 503] {
        let said = means(answer(&format!("{status} No"), "", &huge)).await;
        let http = format!("Http {{ status: {status}, retry_after_ms: None }}");
        for (who, cause) in said {
            assert_eq!(cause, http, "{who}");
        }
    }
}

struct Late;

impl Clock for Late {
    fn now_ms(&self) -> u64 {
        static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        NOW.fetch_add(61_000, std::sync::atomic::Ordering::Relaxed)
    }
}

#[tokio::test]
async fn searches_are_answered_by_whoever_is_configured_and_kept_for_a_minute() {
    let json = |body: &Value| {
        answer(
            "200 OK",
            "content-type: application/json\r\n",
            &body.to_string(),
        )
    };
    let found = json!([{"title": "T", "url": "https://example.com", "content": "c", "description": "c"}, {"title": "no address"}]);
    let double = Double::start(vec![
        ("/search", json(&json!({"results": found}))),
        (
            "/res/v1/web/search",
            json(&json!({"web": {"results": found}})),
        ),
    ])
    .await;
    let (gateway_double, gateway_config) = gateway().await;
    let gateway = Arc::new(GatewayClient::new(&gateway_config, None, clock()).expect("is made"));
    let searxng = SearchConfig::Searxng {
        url: double.url(""),
    };
    let brave = SearchConfig::Brave {
        api_key_env: "K".to_owned(),
        url: double.url("/"),
    };
    let ctx = context(SessionKind::Worker, None);
    for (config, key, name) in [
        (&searxng, None, "searxng"),
        (&brave, Some("brave-key"), "brave"),
        (&SearchConfig::Gateway {}, None, "gateway"),
    ] {
        let tool = WebSearchTool::new(
            Some(provider(config, key, Some(&gateway), &clock()).expect("is made")),
            Arc::new(SystemClock),
        );
        for query in ["a  b", " a b "] {
            let got = tool
                .execute(&json!({"query": query}), &ctx)
                .await
                .expect("found")
                .output;
            assert_eq!(got["provider"], name);
            assert_eq!(
                (
                    got["results"].as_array().expect("a list").len(),
                    &got["results"][0]["url"]
                ),
                (1, &json!("https://example.com"))
            );
        }
    }
    // Each was asked once: the second was the same question.
    assert_eq!((double.asked().len(), gateway_double.asked().len()), (2, 1));
    assert!(
        double.asked()[0].path.contains("q=a+b") && double.asked()[0].path.contains("format=json")
    );
    assert!(
        double.asked()[1]
            .head
            .contains("x-subscription-token: brave-key")
    );
    let late = WebSearchTool::new(
        Some(provider(&searxng, None, None, &clock()).expect("is made")),
        Arc::new(Late),
    );
    for _ in 0..2 {
        late.execute(&json!({"query": "q"}), &ctx)
            .await
            .expect("found");
    }
    assert_eq!(double.asked().len(), 4);
    let unset = [
        WebSearchTool::new(None, Arc::new(SystemClock)),
        WebSearchTool::new(
            Some(provider(&brave, None, None, &clock()).expect("is made")),
            Arc::new(SystemClock),
        ),
    ];
    for tool in unset {
        let refused = tool.execute(&json!({"query": "q"}), &ctx).await;
        assert!(
            matches!(&refused, Err(ToolError::ExecutionError { cause: Cause::Coded { code }, .. }) if code == "not_configured"),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn messages_go_to_a_webhook_or_through_the_gateway_with_their_key() {
    let hook = Double::start(vec![
        ("/hook", answer("204 No Content", "", "")),
        (
            "/busy",
            answer("429 Too Many Requests", "retry-after: 2\r\n", ""),
        ),
    ])
    .await;
    let channel =
        HttpChannel::webhook(&hook.url("/hook"), ChannelLevel::Standard, clock()).expect("is made");
    assert_eq!(
        (channel.name(), channel.level()),
        ("webhook", ChannelLevel::Standard)
    );
    channel.send("hello", Some("k/0")).await.expect("sent");
    let asked = &hook.asked()[0];
    assert_eq!(asked.body, json!({"text": "hello"}).to_string());
    assert!(asked.head.contains("idempotency-key: k/0"));
    let busy =
        HttpChannel::webhook(&hook.url("/busy"), ChannelLevel::Standard, clock()).expect("is made");
    let refused = busy.send("hello", None).await;
    let expected = Cause::Http {
        status: 429,
        retry_after_ms: Some(2000),
    };
    assert!(
        matches!(&refused, Err(ToolError::ExecutionError { cause, .. }) if *cause == expected),
        "{refused:?}"
    );
    let (double, config) = gateway().await;
    let client = Arc::new(GatewayClient::new(&config, None, clock()).expect("is made"));
    let to = json!({"channel": "telegram", "target": "ann"})
        .as_object()
        .expect("an object")
        .clone();
    let channel = HttpChannel::gateway(client, to, ChannelLevel::Elevated);
    channel.send("hello", Some("k/1")).await.expect("sent");
    let body: Value = serde_json::from_str(&double.asked()[0].body).expect("JSON");
    assert_eq!(
        body,
        json!({"tool": "message", "action": "send", "idempotencyKey": "k/1",
        "args": {"channel": "telegram", "target": "ann", "message": "hello"}})
    );
}

fn prompt(arguments: &str, shown: Shown) -> ApprovalPrompt {
    ApprovalPrompt {
        id: "abc".to_owned(),
        tool: "exec".to_owned(),
        tier: PermissionTier::Elevated,
        gate: Gate::Required,
        arguments: arguments.to_owned(),
        shown,
        reasons: vec![Reason::new("r", "s", "it reaches outside")],
        origin_session: "main".to_owned(),
        actor: "actor".to_owned(),
        workspace: "/w".to_owned(),
        expires_at_ms: 1,
        code: Some("12ff".to_owned()),
    }
}

#[tokio::test]
async fn a_chat_is_asked_only_about_what_it_shows_whole() {
    let hook = Double::start(vec![("/hook", answer("204 No Content", "", ""))]).await;
    let channel =
        HttpChannel::webhook(&hook.url("/hook"), ChannelLevel::Elevated, clock()).expect("is made");
    let markup = r#"{"command":"cat <http://a|http://b> ``` && x &lt; y"}"#;
    let long = format!(r#"{{"command":"true #{}; rm -rf x"}}"#, " ".repeat(3_000));
    let mut texts = Vec::new();
    for prompt in [
        prompt(markup, Shown::Whole),
        prompt(&long, Shown::Whole),
        prompt("{}", Shown::Partly),
    ] {
        channel.prompt(&prompt).await.expect("sent");
        let body: Value =
            serde_json::from_str(&hook.asked().pop().expect("one").body).expect("JSON");
        texts.push(body["text"].as_str().expect("a text").to_owned());
    }
    // Nothing in it is a link, an entity or the end of the block, and it reads back the same.
    let inside = texts[0].split("```\n").nth(1).expect("a block").trim_end();
    assert!(
        !inside.contains(['<', '`']) && !inside.contains("&lt;"),
        "{inside}"
    );
    let read: Value = serde_json::from_str(inside).expect("JSON");
    assert_eq!(read, serde_json::from_str::<Value>(markup).expect("JSON"));
    assert!(texts[0].contains("reply: approve abc-12ff"), "{}", texts[0]);
    for where_from in ["\nworkspace: /w\n", "\nsession: "] {
        assert!(texts[0].contains(where_from), "{where_from}: {}", texts[0]);
    }
    for text in &texts[1..] {
        assert!(!text.contains("12ff"), "{text}");
        assert!(text.contains("can not be answered here"), "{text}");
        assert!(text.contains("holdfast approvals show abc"), "{text}");
        assert!(text.chars().count() <= 2_000, "{text}");
    }
}

/// However long its parts are, a prompt is one message, and tells where it comes from by their ends.
#[tokio::test]
async fn a_prompt_says_where_the_call_would_run_in_one_message() {
    let hook = Double::start(vec![("/hook", answer("204 No Content", "", ""))]).await;
    let channel =
        HttpChannel::webhook(&hook.url("/hook"), ChannelLevel::Elevated, clock()).expect("is made");
    let mut asked = prompt(&format!("{:?}", "x".repeat(5_000)), Shown::Whole);
    asked.workspace = format!("/{}/project-17", "deep".repeat(100));
    asked.origin_session = format!("{}-session-9", "s".repeat(300));
    asked.actor = format!("{}-ann", "a".repeat(300));
    asked.tool = "t".repeat(64);
    channel.prompt(&asked).await.expect("sent");
    let body: Value = serde_json::from_str(&hook.asked().pop().expect("one").body).expect("JSON");
    let text = body["text"].as_str().expect("a text");
    assert!(text.chars().count() <= 2_000, "{}", text.chars().count());
    for end in ["/project-17\n", "-session-9 of ", "-ann\n"] {
        assert!(text.contains(end), "{end}: {text}");
    }
}
