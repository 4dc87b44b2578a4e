//! A model that follows a script, tools that count, and the real way of every call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use holdfast_agent::chat::{Message, Role};
use holdfast_agent::model::{Model, ModelError, ModelReply, ModelRequest, read_reply};
use holdfast_agent::run::RunState;
use holdfast_agent::settings::RunSettings;
use holdfast_contract::{Effect, SessionContext, Tool, ToolContext, ToolError, ToolResult};
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::{MemoryDocumentStore, MemoryLimits};
use holdfast_testkit::{Does, MadeTool, SeededEntropy, TokioClock};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::trust::TrustBook;
use holdfast_trust::TrustConfig;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// Says one thing after the other, and remembers what it was asked.
pub(crate) struct Script {
    says: Mutex<Vec<Result<Value, ModelError>>>,
    asked: Mutex<Vec<Value>>,
}

impl Script {
    pub(crate) fn new(says: Vec<Result<Value, ModelError>>) -> Arc<Self> {
        Arc::new(Self {
            says: Mutex::new(says),
            asked: Mutex::default(),
        })
    }

    pub(crate) fn thinks(reasoning: &[&str]) -> Arc<Self> {
        let say = |text: &&str| {
            Ok(
                json!({"choices": [{"message": {"content": "", "reasoning_content": text},
                                   "finish_reason": "stop"}],
                      "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
            )
        };
        Self::new(reasoning.iter().map(say).collect())
    }

    pub(crate) fn asked(&self) -> Vec<Value> {
        self.asked.lock().clone()
    }
}

#[async_trait]
impl Model for Script {
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.asked.lock().push(request.body.clone());
        let mut says = self.says.lock();
        if says.is_empty() {
            return Err(ModelError::Unavailable("nothing left to say".to_owned()));
        }
        says.remove(0)
            .and_then(|body| read_reply(body.to_string().as_bytes()))
    }
}

/// Answers once for every permit.
pub(crate) struct Held(pub(crate) Semaphore);

#[async_trait]
impl Model for Held {
    async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        self.0.acquire().await.expect("open").forget();
        Ok(ModelReply {
            content: "Hello.".to_owned(),
            ..ModelReply::default()
        })
    }
}

/// A tool that counts.
pub(crate) type Counted = MadeTool<Counting>;

#[derive(Default)]
pub(crate) struct Counting {
    runs: AtomicU64,
}

impl Counting {
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Does for Counting {
    async fn run(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        let count = self.runs.fetch_add(1, Ordering::SeqCst) + 1;
        let text = params["text"].as_str().unwrap_or_default();
        Ok(ToolResult::new(json!(format!("{text} ({count})")), ""))
    }
}

pub(crate) fn counted(name: &'static str, effect: Effect) -> Arc<Counted> {
    Arc::new(Counted::of_text(name, effect, Counting::default()))
}

pub(crate) fn stack(tools: Vec<Arc<dyn Tool>>) -> Arc<ToolStack> {
    let entropy = Arc::new(SeededEntropy::new(7));
    let clock = Arc::new(TokioClock::new());
    let runtime = Arc::new(Runtime::new(clock, entropy, Observers::new()));
    let stores = Stores::memory(&runtime, MemoryLimits::default());
    let session = Arc::new(SessionContext::main("run:r", "main", "/nonexistent".into()));
    let documents = Arc::new(MemoryDocumentStore::new(runtime.clock.clone()));
    let book = TrustBook::new(TrustConfig::default(), documents, runtime.clone());
    let mut parts = Parts::new(runtime, stores, Arc::new(move |_| session.clone()));
    parts.trust = Some(Arc::new(book));
    Arc::new(ToolStack::new(parts.with_tools(tools)).expect("a stack"))
}

pub(crate) fn task(stack: &ToolStack) -> RunState {
    let now_ms = stack.runtime().clock.now_ms();
    let messages = vec![Message::text(Role::User, "Note it.")];
    RunState::new("r", "gpt-oss", messages, RunSettings::default(), now_ms)
}

pub(crate) fn call(tool: &str, text: &str) -> String {
    format!(
        "Thought: next\nAction: {tool}\nAction Input: {}",
        json!({ "text": text })
    )
}
