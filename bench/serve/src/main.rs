//! The servers that `bench/serve/run` loads, one a process: `bare`, `memory` or `sqlite`.
//!
//! Prints its port and the token, and serves until its standard input ends.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    Clock, Effect, PermissionTier, SessionContext, SystemClock, SystemEntropy, Tool, ToolContext,
    ToolError, ToolResult,
};
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::journal::JournalObserver;
use holdfast_reliability::observe::Observers;
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryDocumentStore, MemoryLimits};
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_server::health::TroubleWatch;
use holdfast_server::token::TOKEN_FILE;
use holdfast_server::{Parts, Server, ServerConfig, Token, Tokens, serve};
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::audit::AuditLog;
use holdfast_toolbox::stack::{self, Stores, ToolStack};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

/// The allocator of the binary, for both servers.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failed = Box<dyn Error + Send + Sync>;

/// Does nothing, so that what is measured is everything else. It polls: a load generator repeats
/// itself on purpose.
struct NoOp;

#[async_trait]
impl Tool for NoOp {
    fn name(&self) -> &str {
        "noop"
    }
    fn description(&self) -> &str {
        "Does nothing."
    }
    fn parameters_schema(&self) -> Value {
        json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]})
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
    fn polls(&self) -> bool {
        true
    }
    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Ok(ToolResult::new(json!({"done": true}), ""))
    }
}

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let kind = std::env::args().nth(1).unwrap_or_default();
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let dir = tempfile::tempdir()?;
    // The run script holds our standard input open for as long as it needs us.
    let end = async {
        let mut rest = Vec::new();
        let _ = tokio::io::stdin().read_to_end(&mut rest).await;
    };
    match kind.as_str() {
        "bare" => {
            println!("{port} -");
            let echo = Router::new().route("/v1/tools/call", post(|body: Bytes| async { body }));
            axum::serve(listener, echo)
                .with_graceful_shutdown(end)
                .await?;
        }
        "memory" | "sqlite" => {
            let server = holdfast(dir.path(), &kind)?;
            let token = std::fs::read_to_string(dir.path().join(TOKEN_FILE))?;
            println!("{port} {}", token.trim());
            serve(server, listener, end, std::future::pending()).await;
        }
        other => return Err(format!("there is no server {other:?}").into()),
    }
    Ok(())
}

/// A server as `holdfast serve` puts it together, with the no-op tool. `memory` keeps everything in
/// the process and writes no journal.
fn holdfast(dir: &Path, kind: &str) -> Result<Arc<Server>, Failed> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let metrics = Metrics::new();
    let trouble = Arc::new(TroubleWatch::new(clock.clone(), Redactor::default()));
    let mut observers = Observers::new().with(metrics.clone()).with(trouble.clone());
    let state = match kind {
        "sqlite" => Some(SqliteState::open(
            dir,
            clock.clone(),
            SqliteOptions::default(),
        )?),
        _ => None,
    };
    if let Some(state) = &state {
        observers = observers.with(Arc::new(JournalObserver::new(
            state.clone(),
            clock.clone(),
            Redactor::default(),
        )));
    }
    let runtime = Arc::new(Runtime::new(
        clock.clone(),
        Arc::new(SystemEntropy),
        observers,
    ));
    let stores = match state {
        Some(state) => Stores {
            dedupe: DedupeStores {
                durable: state.clone(),
                memory: Arc::new(MemoryDedupeStore::new(clock, MemoryLimits::default())),
            },
            breakers: state.clone(),
            turns: state,
        },
        None => Stores::memory(&runtime, MemoryLimits::default()),
    };
    let session = Arc::new(SessionContext::main("bench", "bench", dir.to_owned()));
    let documents: Arc<dyn DocumentStore> =
        Arc::new(MemoryDocumentStore::new(runtime.clock.clone()));
    let audit = Arc::new(AuditLog::new(
        dir,
        documents.clone(),
        runtime.clock.clone(),
        Redactor::default(),
    ));
    let approvals = Arc::new(Approvals::new(
        documents,
        Some(audit.clone()),
        runtime.clone(),
        Arc::default(),
    ));
    let parts = stack::Parts::new(runtime, stores.clone(), Arc::new(move |_| session.clone()));
    let tool: Arc<dyn Tool> = Arc::new(NoOp);
    let stack = ToolStack::new(parts.with_tools([tool]))?;
    metrics.know(&stack.policies().get("noop"));
    let settings = ServerConfig::default()
        .settings()
        .map_err(|problems| format!("{problems:?}"))?;
    Ok(Server::new(Parts {
        stack: Arc::new(stack),
        stores,
        store_name: kind.to_owned(),
        metrics,
        settings,
        tokens: Tokens {
            caller: Token::read_or_make(&dir.join(TOKEN_FILE))?,
            admin: Token::generate()?,
            approver: Token::generate()?,
            clients: Vec::new(),
        },
        audit,
        approvals,
        trouble,
        workspace_id: None,
        workspace: dir.to_owned(),
        undo: None,
        executor: None,
    }))
}
