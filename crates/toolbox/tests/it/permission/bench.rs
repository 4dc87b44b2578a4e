//! A stack with approvals and sessions, and a channel that answers on command.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    Answer, ApprovalPrompt, Channel, ChannelLevel, Clock, Prompted, Prompter, Shows, Surface, Tool,
    ToolCallEnvelope, ToolContext, ToolError, ToolResult, ToolResultEnvelope,
};
use holdfast_reliability::hooks::Hooks;
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::observe::Observers;
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::conformance::interposed_documents::{
    DocumentStep, InterposedDocuments,
};
use holdfast_reliability::store::documents::DocumentStore;
use holdfast_reliability::store::memory::{MemoryDocumentStore, MemoryLimits};
use holdfast_reliability::store::{DedupeStore, StoreError, StoreResult};
use holdfast_testkit::{Does, MadeTool, SeededEntropy, TokioClock};
use holdfast_toolbox::approval::Approvals;
use holdfast_toolbox::audit::AuditLog;
use holdfast_toolbox::permit::PermissionConfig;
use holdfast_toolbox::session::{SessionLimits, SessionTree};
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use holdfast_toolbox::token::Token;
use holdfast_toolbox::trust::TrustBook;
use holdfast_trust::TrustConfig;
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What a store does not do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refuses {
    Nothing,
    NewOnes,
    Changes,
    All,
}

/// Documents that refuse what the test says.
pub(crate) struct Flaky {
    inner: MemoryDocumentStore,
    refuses: Mutex<Refuses>,
}

impl Flaky {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryDocumentStore::new(Arc::new(TokioClock::new())),
            refuses: Mutex::new(Refuses::Nothing),
        })
    }

    pub(crate) fn refuse(&self, what: Refuses) {
        *self.refuses.lock() = what;
    }

    pub(crate) fn away(&self, is_away: bool) {
        self.refuse(if is_away {
            Refuses::All
        } else {
            Refuses::Nothing
        });
    }
}

impl InterposedDocuments for Flaky {
    fn behind(&self) -> &dyn DocumentStore {
        &self.inner
    }

    fn before(&self, step: DocumentStep<'_>) -> StoreResult<()> {
        let refused = match *self.refuses.lock() {
            Refuses::Nothing => false,
            Refuses::NewOnes => matches!(step, DocumentStep::Create(_)),
            Refuses::Changes => matches!(step, DocumentStep::Replace | DocumentStep::Remove),
            Refuses::All => true,
        };
        if refused {
            return Err(StoreError::Unavailable("gone".to_owned()));
        }
        Ok(())
    }
}

/// A channel whose people say what the test says.
pub(crate) struct Recorded {
    pub(crate) level: ChannelLevel,
    pub(crate) says: Option<Answer>,
    pub(crate) prompts: Mutex<Vec<ApprovalPrompt>>,
    pub(crate) told: Mutex<Vec<ApprovalPrompt>>,
    pub(crate) sent: Mutex<Vec<String>>,
    /// Why it takes no prompts, if it does not.
    pub(crate) down: Mutex<Option<String>>,
}

impl Recorded {
    pub(crate) fn new(level: ChannelLevel, says: Option<Answer>) -> Arc<Self> {
        Arc::new(Self {
            level,
            says,
            prompts: Mutex::default(),
            told: Mutex::default(),
            sent: Mutex::default(),
            down: Mutex::default(),
        })
    }

    pub(crate) fn silent() -> Arc<Self> {
        Self::new(ChannelLevel::Elevated, None)
    }
}

#[async_trait]
impl Prompter for Recorded {
    async fn prompt(&self, prompt: &ApprovalPrompt) -> Result<Prompted, ToolError> {
        self.prompts.lock().push(prompt.clone());
        if let Some(why) = self.down.lock().clone() {
            return Err(ToolError::http(503, None, why));
        }
        Ok(match &self.says {
            None => Prompted::Shown,
            Some(answer) => Prompted::Answered {
                by: "person".to_owned(),
                answer: answer.clone(),
            },
        })
    }

    async fn tell(&self, prompt: &ApprovalPrompt) -> Result<(), ToolError> {
        self.told.lock().push(prompt.clone());
        Ok(())
    }
}

#[async_trait]
impl Channel for Recorded {
    fn name(&self) -> &str {
        "recorded"
    }

    fn level(&self) -> ChannelLevel {
        self.level
    }

    fn surface(&self) -> Surface {
        Surface {
            tables: Shows::No,
            headings: Shows::No,
            message_chars_max: 1000,
        }
    }

    async fn send(&self, text: &str, _key: Option<&str>) -> Result<(), ToolError> {
        self.sent.lock().push(text.to_owned());
        Ok(())
    }
}

/// A tool of any tier that needs no handle.
pub(crate) type Probe = MadeTool<Counting>;

/// Counts, and keeps the arguments.
#[derive(Default)]
pub(crate) struct Counting {
    runs: AtomicU64,
    pub(crate) seen: Mutex<Vec<Value>>,
}

impl Counting {
    pub(crate) fn runs(&self) -> u64 {
        self.runs.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Does for Counting {
    async fn run(&self, params: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().push(params.clone());
        Ok(ToolResult::new(json!("ran"), ""))
    }
}

pub(crate) struct Bench {
    pub(crate) stack: Arc<ToolStack>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) tree: Arc<SessionTree>,
    pub(crate) documents: Arc<dyn DocumentStore>,
    pub(crate) records: Arc<dyn DedupeStore>,
    pub(crate) trust: Option<Arc<TrustBook>>,
}

#[derive(Default)]
pub(crate) struct Build {
    pub(crate) permissions: PermissionConfig,
    pub(crate) hooks: Hooks,
    pub(crate) documents: Option<Arc<dyn DocumentStore>>,
    pub(crate) trust: Option<TrustConfig>,
    pub(crate) secrets: Vec<String>,
    /// Where an audit log is written, if one is.
    pub(crate) audit: Option<PathBuf>,
    /// Who is told what happens.
    pub(crate) observers: Observers,
    /// Where records are kept, if not in a memory of its own.
    pub(crate) records: Option<Arc<dyn DedupeStore>>,
    /// The clock of this machine, if it is not right, and what its randomness begins with.
    pub(crate) machine: Option<(Arc<dyn Clock>, u64)>,
}

impl Build {
    pub(crate) fn bench(self, tools: Vec<Arc<dyn Tool>>) -> Bench {
        self.made(tools, None)
    }

    /// The same, with what sessions have read in a store of its own.
    pub(crate) fn bench_with_trust_in(
        self,
        tools: Vec<Arc<dyn Tool>>,
        store: Arc<dyn DocumentStore>,
    ) -> Bench {
        self.made(tools, Some(store))
    }

    fn made(self, tools: Vec<Arc<dyn Tool>>, trusted: Option<Arc<dyn DocumentStore>>) -> Bench {
        let (clock, seed) = self
            .machine
            .unwrap_or_else(|| (Arc::new(TokioClock::new()), 3));
        let entropy = Arc::new(SeededEntropy::new(seed));
        let mut runtime = Runtime::new(clock.clone(), entropy, self.observers);
        runtime.redactor = Redactor::default().knowing(self.secrets);
        let runtime = Arc::new(runtime);
        let documents = self
            .documents
            .unwrap_or_else(|| Arc::new(MemoryDocumentStore::new(clock.clone())));
        let audit = self.audit.map(|dir| {
            let log = AuditLog::new(&dir, documents.clone(), clock, Redactor::default());
            Arc::new(log)
        });
        let permissions = Arc::new(self.permissions.into());
        let approvals = Approvals::new(
            documents.clone(),
            audit,
            runtime.clone(),
            Arc::clone(&permissions),
        );
        let token = Token::chosen(
            "a token of this test, and of no other"
                .replace(' ', "-")
                .as_str(),
        );
        let approvals = Arc::new(approvals.with_codes(token.expect("long enough")));
        let trust = self.trust.map(|config| {
            let store = trusted.unwrap_or_else(|| documents.clone());
            let book = TrustBook::new(config, store, runtime.clone());
            Arc::new(book)
        });
        let tree = SessionTree::new(
            documents.clone(),
            runtime.clone(),
            SessionLimits::default(),
            vec![],
        );
        let tree = Arc::new(match &trust {
            Some(book) => tree.with_trust(book.clone()),
            None => tree,
        });
        let mut stores = Stores::memory(&runtime, MemoryLimits::default());
        if let Some(records) = self.records {
            stores.dedupe = DedupeStores::single(records);
        }
        let records = stores.dedupe.durable.clone();
        let mut parts = Parts::new(runtime, stores, tree.sessions()).with_tools(tools);
        parts.permissions = permissions;
        parts.hooks = self.hooks;
        parts.approvals = Some(approvals.clone());
        parts.trust.clone_from(&trust);
        parts.tree = Some(tree.clone());
        Bench {
            stack: Arc::new(ToolStack::new(parts).expect("the stack can be built")),
            approvals,
            tree,
            documents,
            records,
            trust,
        }
    }
}

impl Bench {
    pub(crate) async fn main(&self, root: PathBuf, channel: Option<Arc<Recorded>>) {
        let channel = channel.map(|channel| channel as Arc<dyn Channel>);
        self.tree
            .open_main("main", "agent", root, channel)
            .await
            .expect("opened");
    }
}

/// A call with a request and a turn of its own.
#[expect(
    clippy::needless_pass_by_value,
    reason = "callers write the arguments in place"
)]
pub(crate) fn ask(tool: &str, session: &str, params: Value) -> ToolCallEnvelope {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let params = params.as_object().expect("an object").clone();
    let request = format!("request-{number}");
    let mut envelope = ToolCallEnvelope::new(request, tool, params, session, "actor");
    envelope.target.turn_id = Some(format!("turn-{number}"));
    envelope
}

/// The code of a failed call, or `ran`.
pub(crate) fn word(result: &ToolResultEnvelope) -> &str {
    match &result.error {
        None => "ran",
        Some(error) => &error.code,
    }
}

pub(crate) fn message(result: &ToolResultEnvelope) -> &str {
    &result.error.as_ref().expect("it failed").message
}
