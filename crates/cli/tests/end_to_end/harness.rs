//! A running `holdfast serve`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use holdfast_testkit::http::{Answer, Connection};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::common::{House, eventually};

/// A server on a port of its own; killed when a test is done with it.
pub(crate) struct Serving {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    pub(crate) started: Value,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    pub(crate) admin_token: String,
    pub(crate) approver_token: String,
}

impl House {
    /// Starts a server on this house's state and workspace.
    pub(crate) fn serve(&self, more: &[&str]) -> Serving {
        self.serve_with(more, |_| {})
    }

    pub(crate) fn serve_with(&self, more: &[&str], change: impl Fn(&mut Command)) -> Serving {
        let fixed = ["serve", "--json", "--listen", "127.0.0.1:0"];
        // Quiet, unless a test wants to read it.
        let log: &[&str] = if more.contains(&"--log") {
            &[]
        } else {
            &["--log", "off"]
        };
        let mut command = self.command(&[&fixed, log, more].concat());
        command.stderr(Stdio::inherit());
        change(&mut command);
        let mut child = command.spawn().expect("starts");
        let mut said = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        said.read_line(&mut line).expect("says that it started");
        let started: Value = serde_json::from_str(&line).expect("a line of JSON");
        let url = started["url"].as_str().expect("an address");
        let address = url
            .trim_start_matches("http://")
            .parse()
            .expect("an address");
        // A test may have given it a state of its own, as another machine has.
        let state = command
            .get_envs()
            .find(|(name, _)| *name == "HOLDFAST_STATE");
        let state = state.and_then(|(_, dir)| dir).expect("a state directory");
        let token = |name: &str| {
            let text = fs::read_to_string(Path::new(state).join(name)).unwrap_or_default();
            text.trim().to_owned()
        };
        Serving {
            child,
            said,
            address,
            token: token("server-token"),
            admin_token: token("admin-token"),
            approver_token: token("approver-token"),
            started,
        }
    }
}

impl Serving {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn connect(&self) -> Connection {
        Connection::open(self.address).expect("connects")
    }

    pub(crate) fn get(&self, path: &str, token: Option<&str>) -> Answer {
        let bearer = token.map(|token| format!("Bearer {token}"));
        let headers: Vec<(&str, &str)> = bearer
            .iter()
            .map(|value| ("authorization", value.as_str()))
            .collect();
        let asked = self.connect().request("GET", path, &headers, b"");
        asked.expect("an answer")
    }

    pub(crate) fn post(&self, path: &str, token: &str, body: &Value) -> Answer {
        post_on(&mut self.connect(), path, token, body)
    }

    /// A call in the gateway's words.
    pub(crate) fn invoke(&self, body: &Value) -> Answer {
        self.post("/tools/invoke", &self.token, body)
    }

    /// A call as an envelope.
    pub(crate) fn call(&self, envelope: &Value) -> Answer {
        self.post("/v1/tools/call", &self.token, envelope)
    }

    /// An admin action.
    pub(crate) fn act(&self, action: &Value) -> Answer {
        self.post("/debug/tool-reliability", &self.admin_token, action)
    }

    pub(crate) fn metric(&self, line: &str) -> Option<f64> {
        let page = self.get("/metrics", None).text();
        let found = page.lines().find_map(|row| row.strip_prefix(line));
        found.and_then(|value| value.trim().parse().ok())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).expect("signals");
    }

    /// The next line that it says.
    pub(crate) fn says(&mut self) -> Value {
        let mut line = String::new();
        self.said.read_line(&mut line).expect("says something");
        serde_json::from_str(&line).expect("a line of JSON")
    }

    /// Waits for its end; its exit code and the last line it said.
    pub(crate) fn ended(mut self) -> (Option<i32>, Value) {
        let code = eventually("the server ends", || self.child.try_wait().expect("looks"));
        let mut line = String::new();
        let _ = self.said.read_line(&mut line);
        (code.code(), serde_json::from_str(&line).unwrap_or_default())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Posts on a connection that is there already.
pub(crate) fn post_on(
    connection: &mut Connection,
    path: &str,
    token: &str,
    body: &Value,
) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let asked = connection.request("POST", path, &headers, body.to_string().as_bytes());
    asked.expect("an answer")
}

/// An envelope for a tool.
pub(crate) fn envelope(request: &str, tool: &str, params: &Value, key: Option<&str>) -> Value {
    let mut payload = json!({"version": "1.0", "params": params});
    if let Some(key) = key {
        payload["idempotencyKey"] = json!(key);
    }
    json!({
        "contractVersion": "1.1",
        "requestId": request,
        "toolName": tool,
        "toolNamespace": "holdfast.tools",
        "target": {"sessionKey": "cli", "actorId": "local", "turnId": request},
        "payload": payload,
        "transport": {
            "dedupeMode": "enforced",
            "retryBudget": {"maxAttempts": 4, "maxElapsedMs": 30000},
        },
    })
}
