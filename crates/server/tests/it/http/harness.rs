//! A server with tools that do what the test says.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, SessionContext, Tool};
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::observe::Observers;
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::{MemoryDocumentStore, MemoryLimits};
use holdfast_reliability::store::unavailable::UnavailableStore;
use holdfast_reliability::store::{RecordFilter, StoreError};
use holdfast_server::health::TroubleWatch;
use holdfast_server::server::Entrance;
use holdfast_server::{Parts, Server, ServerConfig, Token, Tokens};
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::audit::AuditLog;
use holdfast_toolbox::stack::{self, Stores, ToolStack};
use http_body_util::BodyExt;
use serde_json::{Value, json};

pub(crate) const CALLER: &str = "caller-token-caller-token-caller-token";
pub(crate) const ADMIN: &str = "admin-token-admin-token-admin-token-!";
pub(crate) const APPROVER: &str = "approver-token-approver-token-approver";

/// A server, and what it keeps.
pub(crate) struct Harness {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) server: Arc<Server>,
    pub(crate) stores: Stores,
    entrance: Entrance,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: http::HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }
}

impl Harness {
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        Self::with(tools, &ServerConfig::default(), None)
    }

    /// With settings, and with stores that are away for a reason.
    pub(crate) fn with(
        tools: Vec<Arc<dyn Tool>>,
        config: &ServerConfig,
        away: Option<StoreError>,
    ) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        Self::in_dir(dir, tools, config, away)
    }

    /// With a state directory that is there already.
    pub(crate) fn in_dir(
        dir: tempfile::TempDir,
        tools: Vec<Arc<dyn Tool>>,
        config: &ServerConfig,
        away: Option<StoreError>,
    ) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::new());
        let trouble = Arc::new(TroubleWatch::new(clock.clone(), Redactor::default()));
        let metrics = Metrics::new();
        let observers = Observers::new().with(metrics.clone()).with(trouble.clone());
        let runtime = Arc::new(Runtime::new(
            clock,
            Arc::new(SeededEntropy::new(7)),
            observers,
        ));
        let stores = match away {
            None => Stores::memory(&runtime, MemoryLimits::default()),
            Some(error) => {
                let gone = Arc::new(UnavailableStore::new(error));
                Stores {
                    dedupe: DedupeStores::single(gone.clone()),
                    breakers: gone.clone(),
                    turns: gone,
                }
            }
        };
        let session = Arc::new(SessionContext::main("main", "test", dir.path().to_owned()));
        let documents: Arc<dyn DocumentStore> =
            Arc::new(MemoryDocumentStore::new(runtime.clock.clone()));
        let audit = Arc::new(AuditLog::new(
            dir.path(),
            documents.clone(),
            runtime.clock.clone(),
            Redactor::default(),
        ));
        let permissions = Arc::default();
        let approvals = Arc::new(Approvals::new(
            documents,
            Some(audit.clone()),
            runtime.clone(),
            permissions,
        ));
        let parts = stack::Parts::new(runtime, stores.clone(), Arc::new(move |_| session.clone()));
        let stack = Arc::new(ToolStack::new(parts.with_tools(tools)).expect("fits together"));
        let server = Server::new(Parts {
            stack,
            stores: stores.clone(),
            store_name: "memory".to_owned(),
            metrics,
            settings: config.settings().expect("no problem"),
            tokens: Tokens {
                caller: Token::chosen(CALLER).expect("fits"),
                admin: Token::chosen(ADMIN).expect("fits"),
                approver: Token::chosen(APPROVER).expect("fits"),
                clients: Vec::new(),
            },
            audit,
            approvals,
            trouble,
            workspace_id: Some("here".to_owned()),
            workspace: dir.path().to_owned(),
            undo: None,
            executor: None,
        });
        Self {
            entrance: Entrance::new(&server),
            dir,
            server,
            stores,
        }
    }

    /// Sends a request as it is.
    pub(crate) async fn send(&self, request: Request) -> Answer {
        let peer: SocketAddr = "127.0.0.1:4711".parse().expect("an address");
        let response = self.entrance.clone().respond(request, peer).await;
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("UTF-8");
        Answer {
            status,
            headers,
            text,
        }
    }

    pub(crate) async fn post(&self, path: &str, token: &str, body: impl Into<Body>) -> Answer {
        self.send(post(path, token, body)).await
    }

    pub(crate) async fn get(&self, path: &str, token: &str) -> Answer {
        let request = Request::builder()
            .uri(path)
            .header("host", "localhost")
            .header("authorization", format!("Bearer {token}"))
            .body(Body::empty());
        self.send(request.expect("a request")).await
    }

    pub(crate) async fn call(&self, envelope: &Value) -> Answer {
        self.post("/v1/tools/call", CALLER, envelope.to_string())
            .await
    }

    pub(crate) async fn invoke(&self, body: &Value) -> Answer {
        self.post("/tools/invoke", CALLER, body.to_string()).await
    }

    pub(crate) async fn act(&self, action: &Value) -> Answer {
        let path = "/debug/tool-reliability";
        self.post(path, ADMIN, action.to_string()).await
    }

    /// How many records there are.
    pub(crate) async fn records(&self) -> usize {
        let all = RecordFilter::default();
        let found = self.stores.dedupe.durable.list(&all).await;
        found.expect("lists").len()
    }
}

pub(crate) fn post(path: &str, token: &str, body: impl Into<Body>) -> Request {
    Request::builder()
        .method("POST")
        .uri(path)
        .header("host", "127.0.0.1:8001")
        .header("authorization", format!("Bearer {token}"))
        .header("content-type", "application/json")
        .body(body.into())
        .expect("a request")
}

/// An envelope; every call has a turn of its own.
pub(crate) fn envelope(request: &str, tool: &str, params: &Value) -> Value {
    json!({
        "contractVersion": "1.1",
        "requestId": request,
        "toolName": tool,
        "toolNamespace": "test.tools",
        "target": {"sessionKey": "main", "actorId": "ann", "turnId": request},
        "payload": {"version": "1.0", "params": params},
        "transport": {
            "dedupeMode": "enforced",
            "retryBudget": {"maxAttempts": 2, "maxElapsedMs": 1000},
        },
    })
}
