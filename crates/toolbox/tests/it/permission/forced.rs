//! A Worker with every tool there is, and what each tool declares.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use holdfast_contract::{
    Answer, ChannelLevel, Clock, Effect, PermissionTier, Scope, SessionKind, SystemClock, Tool,
};
use holdfast_toolbox::session::Spawn;
use holdfast_toolbox::tools::base_tools;
use holdfast_web::config::{GatewayToolConfig, SearchConfig};
use holdfast_web::search::provider;
use holdfast_web::{
    GatewayClient, GatewayConfig, GatewayTool, WebConfig, WebFetchTool, WebSearchTool,
};
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::permission::availability::{files, open};
use crate::permission::bench::{Build, Recorded, ask, word};

/// A server for the web and the gateway that notes what it was asked for: the tools of the gateway
/// by their names, pages by their paths.
struct Double {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Double {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A connection that breaks off was none.
                let _ = serve(stream, &seen);
            }
        });
        Self { address, asked }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

fn serve(mut stream: std::net::TcpStream, seen: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut chunk = [0; 4096];
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.to_ascii_lowercase();
        let length = length.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break (head.to_owned(), body.to_owned());
        }
    };
    let invoked: Value = serde_json::from_str(&body).unwrap_or_default();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let what = invoked["tool"].as_str().unwrap_or(path);
    seen.lock().push(what.to_owned());
    let answer = json!({"ok": true, "result": {"content": []}, "results": []}).to_string();
    let length = answer.len();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{answer}"
    )
}

/// Every tool of this and of the web's crate, as they are used.
fn every_tool(double: &Double) -> Vec<Arc<dyn Tool>> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let mut tools = base_tools();
    let searxng = SearchConfig::Searxng { url: double.url() };
    let asks = provider(&searxng, None, None, &clock).unwrap();
    tools.push(Arc::new(WebSearchTool::new(Some(asks), clock.clone())));
    let config = WebConfig {
        allowed_hosts: vec![double.address.to_string()],
        ..WebConfig::default()
    };
    tools.push(Arc::new(WebFetchTool::new(&config, clock.clone()).unwrap()));
    let names = GatewayTool::known().chain(["unheard_of"]);
    let config = GatewayConfig {
        url: double.url(),
        token_env: "X".to_owned(),
        session_key: None,
        agent_id: None,
        tools: names
            .map(|name| (name.to_owned(), GatewayToolConfig::default()))
            .collect(),
    };
    let client = Arc::new(GatewayClient::new(&config, None, clock).unwrap());
    tools.extend(GatewayTool::all(&client, &config));
    tools
}

/// How a tool could be used to change something, or to look where that is all it does.
fn attempts(url: &str) -> Vec<(&'static str, Value)> {
    let args = |args: Value| json!({ "args": args });
    vec![
        ("read", json!({"path": "a.txt"})),
        ("write", json!({"path": "a.txt", "content": "gone"})),
        ("write", json!({"path": "b/c/d.txt", "content": "new"})),
        (
            "edit",
            json!({"path": "a.txt", "old_string": "one", "new_string": "two"}),
        ),
        ("exec", json!({"command": "rm a.txt"})),
        ("exec", json!({"command": "touch b", "working_dir": "."})),
        ("message", json!({"text": "help"})),
        ("memory_search", json!({"query": "tea"})),
        (
            "memory_store",
            json!({"memory_type": "fact", "content": "x"}),
        ),
        ("web_search", json!({"query": "tea"})),
        ("web_fetch", json!({ "url": url })),
        ("gateway_agents_list", args(json!({}))),
        ("browser", json!({"action": "snapshot"})),
        (
            "browser",
            json!({"action": "navigate", "args": {"url": url}}),
        ),
        ("canvas", json!({"action": "present", "args": {}})),
        ("gateway_cron", json!({"action": "list"})),
        ("gateway_cron", json!({"action": "add", "args": {}})),
        ("gateway_edit", args(json!({"path": "a.txt"}))),
        ("gateway_exec", args(json!({"command": "true"}))),
        ("gateway_gateway", json!({"action": "restart"})),
        ("gateway_memory_get", args(json!({"path": "MEMORY.md"}))),
        ("gateway_memory_search", args(json!({"query": "x"}))),
        (
            "gateway_message",
            json!({"action": "send", "args": {"to": "ann", "message": "x"}}),
        ),
        ("gateway_message", json!({"action": "search", "args": {}})),
        ("nodes", json!({"action": "status"})),
        ("gateway_read", args(json!({"path": "a.txt"}))),
        (
            "gateway_session_status",
            args(json!({"sessionKey": "main"})),
        ),
        (
            "gateway_session_status",
            args(json!({"sessionKey": "main", "model": "other"})),
        ),
        (
            "gateway_sessions_history",
            args(json!({"sessionKey": "main"})),
        ),
        ("gateway_sessions_list", args(json!({}))),
        ("gateway_sessions_list", json!({"action": "clear"})),
        (
            "gateway_sessions_send",
            args(json!({"sessionKey": "main", "message": "x"})),
        ),
        ("gateway_sessions_spawn", args(json!({"task": "x"}))),
        ("gateway_subagents", json!({"action": "list"})),
        ("gateway_tts", args(json!({"text": "x"}))),
        ("gateway_unheard_of", args(json!({}))),
        ("gateway_web_fetch", args(json!({ "url": url }))),
        ("gateway_web_search", args(json!({"query": "x"}))),
        (
            "gateway_write",
            args(json!({"path": "a.txt", "content": "x"})),
        ),
    ]
}

/// What a Worker may ask the gateway for: tools that only look, with what they look with.
const LOOKS: &[&str] = &[
    "agents_list",
    "memory_get",
    "memory_search",
    "read",
    "session_status",
    "sessions_history",
    "sessions_list",
    "web_fetch",
    "web_search",
];

#[tokio::test]
async fn a_worker_with_every_tool_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\n").unwrap();
    // Whatever a person is asked about is approved: not even that is of use.
    let yes = Answer::Approve { scope: Scope::Once };
    let channel = Recorded::new(ChannelLevel::Elevated, Some(yes));
    let double = Double::start();
    let bench = Build::default().bench(every_tool(&double));
    let remembered = open(&bench, dir.path(), &channel).await;
    let spawn = |kind| Spawn {
        kind,
        context_summary: String::new(),
        token_budget: None,
    };
    let branch = spawn(SessionKind::Branch);
    let branch = bench.tree.spawn("main", branch).await.unwrap();
    let worker = spawn(SessionKind::Worker);
    let worker = bench.tree.spawn(&branch.id, worker).await.unwrap();
    let context = bench.tree.context(&worker.id).expect("it lives");
    assert!(context.write.is_none() && context.exec.is_none() && context.channel.is_none());
    assert!(context.memory_write.is_none() && context.memory_read.is_some());
    let before = files(dir.path());
    let attempts = attempts(&format!("{}/page", double.url()));
    // A tool that is new here needs an attempt of its own.
    let registered: BTreeSet<&str> = bench
        .stack
        .registry()
        .iter()
        .map(|it| it.tool.name())
        .collect();
    let tried: BTreeSet<&str> = attempts.iter().map(|(tool, _)| *tool).collect();
    assert_eq!(tried, registered);
    for (tool, params) in attempts {
        let effect = bench.stack.registry().get(tool).unwrap().tool.effect();
        let result = bench
            .stack
            .call(ask(tool, &worker.id, params.clone()))
            .await;
        let beyond = params.get("action").is_some() || params["args"].get("model").is_some();
        let expected = if effect == Effect::None && !beyond {
            "ran"
        } else {
            "permission_denied"
        };
        assert_eq!(word(&result), expected, "{tool} {params}: {result:?}");
    }
    assert_eq!(files(dir.path()), before);
    assert_eq!(remembered.count().await, 0);
    assert!(channel.sent.lock().is_empty());
    assert!(!channel.prompts.lock().is_empty());
    // What went out only looked.
    let mut asked = double.asked.lock().clone();
    asked.sort_unstable();
    let mut expected = LOOKS.to_vec();
    expected.extend(["/page", "/search"]);
    expected.sort_unstable();
    assert_eq!(asked, expected);
}

#[test]
fn every_tool_declares_its_tier_and_its_effect() {
    let declared = "
edit Workspace Workspace false
exec System External false
memory_search ReadOnly None true
memory_store Workspace Workspace true
message System External false
read ReadOnly None true
web_fetch ReadOnly None true
web_search ReadOnly None true
write Workspace Workspace true";
    let tools = every_tool(&Double::start());
    let own = tools
        .iter()
        .filter(|it| it.namespace() != "openclaw.gateway");
    let mut found: Vec<String> = own
        .map(|tool| {
            let (name, tier) = (tool.name(), tool.permission_tier());
            format!(
                "{name} {tier:?} {:?} {}",
                tool.effect(),
                tool.is_idempotent()
            )
        })
        .collect();
    found.sort_unstable();
    let expected: Vec<&str> = declared.trim().lines().collect();
    assert_eq!(found, expected);
    // A tool that only looks is for everybody, and one that acts never is.
    for tool in &tools {
        let looks = tool.permission_tier() == PermissionTier::ReadOnly;
        assert_eq!(looks, tool.effect() == Effect::None, "{}", tool.name());
    }
}
