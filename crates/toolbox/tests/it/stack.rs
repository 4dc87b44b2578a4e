//! What the acceptance tests of the whole stack share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    CallHints, Clock, DedupeMode, Effect, PermissionTier, Reconciled, RetryBudget, SessionContext,
    Status, Tool, ToolCallEnvelope, ToolContext, ToolError, ToolResult, ToolResultEnvelope,
    ToolStep,
};
use holdfast_reliability::breaker::{BreakerStore, CircuitBreakerState};
use holdfast_reliability::config::ReliabilityConfig;
use holdfast_reliability::guard::GuardConfig;
use holdfast_reliability::guard::attribution_log::AttributionLog;
use holdfast_reliability::hooks::Hooks;
use holdfast_reliability::idempotency::DedupeStores;
use holdfast_reliability::idempotency::record::{RecordState, SharedRecord};
use holdfast_reliability::observe::log::{JsonLog, LineSink};
use holdfast_reliability::observe::metrics::Metrics;
use holdfast_reliability::observe::{Observer, Observers};
use holdfast_reliability::runtime::Runtime;
use holdfast_reliability::store::memory::{
    MemoryBreakerStore, MemoryDedupeStore, MemoryGuardStore, MemoryLimits,
};
use holdfast_reliability::store::{DedupeStore, RecordFilter};
use holdfast_testkit::{SeededEntropy, TokioClock};
use holdfast_toolbox::permit::PermissionConfig;
use holdfast_toolbox::stack::{Parts, Stores, ToolStack};
use serde_json::{Map, Value, json};

pub(crate) const MINUTE_MS: u64 = 60_000;
pub(crate) const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

/// Log lines, kept.
#[derive(Default)]
pub(crate) struct Lines(Mutex<String>);

impl Lines {
    pub(crate) fn text(&self) -> String {
        self.0.lock().unwrap().clone()
    }

    /// The lines of one event.
    pub(crate) fn of(&self, event: &str) -> Vec<Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("every line is JSON"))
            .filter(|line| line["event"] == event)
            .collect()
    }
}

impl LineSink for Lines {
    fn line(&self, line: &[u8]) {
        let text = std::str::from_utf8(line).expect("a line is text");
        self.0.lock().unwrap().push_str(text);
    }
}

/// A stack to be built: every layer, everything in memory, time and randomness of the test.
pub(crate) struct Build {
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) reliability: ReliabilityConfig,
    pub(crate) guard: GuardConfig,
    pub(crate) permissions: PermissionConfig,
    pub(crate) hooks: Hooks,
    pub(crate) attribution: Option<Arc<AttributionLog>>,
    pub(crate) limits: MemoryLimits,
    /// Stores to be used in the place of the harness's own.
    pub(crate) dedupe: Option<DedupeStores>,
    pub(crate) seed: u64,
}

impl Build {
    pub(crate) fn new<T: Tool + 'static>(tool: &Arc<T>) -> Self {
        Self {
            tools: vec![tool.clone()],
            reliability: ReliabilityConfig::default(),
            guard: GuardConfig::default(),
            permissions: PermissionConfig::default(),
            hooks: Hooks::default(),
            attribution: None,
            limits: MemoryLimits::default(),
            dedupe: None,
            seed: 7,
        }
    }

    pub(crate) fn and<T: Tool + 'static>(mut self, tool: &Arc<T>) -> Self {
        self.tools.push(tool.clone());
        self
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    /// `reliability:` as it is written in a configuration file.
    pub(crate) fn reliability(self, written: Value) -> Self {
        let reliability = serde_json::from_value(written).expect("the settings can be read");
        self.with(|build| build.reliability = reliability)
    }

    pub(crate) fn stack(self) -> Harness {
        let clock = Arc::new(TokioClock::new());
        let (lines, metrics) = (Arc::new(Lines::default()), Metrics::new());
        let log = JsonLog::new(lines.clone(), clock.clone(), Redactor::default());
        let observers = Observers::new()
            .with(Arc::new(log))
            .with(metrics.clone() as Arc<dyn Observer>);
        let entropy = Arc::new(SeededEntropy::new(self.seed));
        let runtime = Arc::new(Runtime::new(clock.clone(), entropy, observers));
        let dedupe = Arc::new(MemoryDedupeStore::new(clock.clone(), self.limits));
        let breakers = Arc::new(MemoryBreakerStore::new(clock.clone()));
        let stores = Stores {
            dedupe: self
                .dedupe
                .unwrap_or_else(|| DedupeStores::single(dedupe.clone())),
            breakers: breakers.clone(),
            turns: Arc::new(MemoryGuardStore::new(clock.clone())),
        };
        let session = Arc::new(SessionContext::main("session", "agent", "/nowhere".into()));
        let names: Vec<String> = self.tools.iter().map(|tool| tool.name().into()).collect();
        let stack = ToolStack::new(Parts {
            runtime,
            stores,
            tools: self.tools,
            reliability: self.reliability,
            guard: self.guard,
            permissions: Arc::new(self.permissions.into()),
            hooks: self.hooks,
            attribution: self.attribution,
            sessions: Arc::new(move |_| session.clone()),
            output: holdfast_toolbox::limit_output::OutputConfig::default(),
            approvals: None,
            trust: None,
            tree: None,
            undo: None,
            git: None,
        })
        .expect("the stack can be built");
        for name in names {
            metrics.know(&stack.policies().get(&name));
        }
        Harness {
            stack,
            clock,
            dedupe,
            breakers,
            metrics,
            log: lines,
        }
    }
}

/// A stack under test, with what it writes in reach.
pub(crate) struct Harness {
    pub(crate) stack: ToolStack,
    pub(crate) clock: Arc<TokioClock>,
    pub(crate) dedupe: Arc<MemoryDedupeStore>,
    pub(crate) breakers: Arc<MemoryBreakerStore>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) log: Arc<Lines>,
}

impl Harness {
    pub(crate) async fn call(&self, ask: &Ask) -> ToolResultEnvelope {
        let mut envelope = ask.0.clone();
        if let Some(in_ms) = ask.1 {
            envelope.control.deadline_at_ms = Some(self.clock.now_ms() + in_ms);
        }
        self.stack.call(envelope).await
    }

    /// All records, newest first.
    pub(crate) async fn records(&self) -> Vec<SharedRecord> {
        self.dedupe.list(&RecordFilter::default()).await.unwrap()
    }

    /// State and time to live of the only record; `None` when there is none.
    pub(crate) async fn record(&self) -> Option<(RecordState, u64)> {
        let records = self.records().await;
        assert!(records.len() <= 1, "{records:#?}");
        let record = records.first()?;
        assert_eq!(record.expires_at_ms, record.updated_at_ms + record.ttl_ms);
        Some((record.state, record.ttl_ms))
    }

    /// The state of every breaker, by key.
    pub(crate) async fn circuits(&self) -> Vec<(String, CircuitBreakerState)> {
        let breakers = self.breakers.breakers().await.unwrap();
        breakers
            .iter()
            .map(|(key, state)| (key.to_string(), state.circuit()))
            .collect()
    }
}

/// A call to be made. Every new one has a request and a turn of its own.
#[derive(Clone)]
pub(crate) struct Ask(pub(crate) ToolCallEnvelope, Option<u64>);

pub(crate) fn ask(tool: &str) -> Ask {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let request = format!("request-{number}");
    let mut envelope = ToolCallEnvelope::new(request, tool, Map::new(), "session", "actor");
    envelope.target.turn_id = Some(format!("turn-{number}"));
    Ask(envelope, None)
}

impl Ask {
    pub(crate) fn with(mut self, change: impl FnOnce(&mut ToolCallEnvelope)) -> Self {
        change(&mut self.0);
        self
    }

    /// The same call asked again, in another turn: a new request, everything else alike.
    pub(crate) fn again(&self) -> Self {
        let fresh = ask("").0;
        self.clone().with(|envelope| {
            envelope.request_id = fresh.request_id;
            envelope.target.turn_id = fresh.target.turn_id;
        })
    }

    pub(crate) fn params(self, params: Value) -> Self {
        self.with(|envelope| envelope.payload.params = params)
    }

    pub(crate) fn key(self, key: &str) -> Self {
        self.with(|envelope| envelope.payload.idempotency_key = Some(key.into()))
    }

    pub(crate) fn turn(self, turn: &str) -> Self {
        self.with(|envelope| envelope.target.turn_id = Some(turn.into()))
    }

    /// Neither turn nor run: only the request identifies the call.
    pub(crate) fn no_turn(self) -> Self {
        self.with(|envelope| envelope.target.turn_id = None)
    }

    pub(crate) fn step(self, run: &str, iteration: u64, index: u64) -> Self {
        self.with(|envelope| {
            envelope.target.run_id = Some(run.into());
            envelope.payload.tool_step = Some(ToolStep { iteration, index });
        })
    }

    pub(crate) fn call_id(self, id: &str) -> Self {
        self.with(|envelope| envelope.tool_call_id = Some(id.into()))
    }

    pub(crate) fn mode(self, mode: DedupeMode) -> Self {
        self.with(|envelope| envelope.transport.dedupe_mode = mode)
    }

    pub(crate) fn attempts(self, max_attempts: u32) -> Self {
        self.with(|envelope| {
            envelope.transport.retry_budget = RetryBudget {
                max_attempts,
                ..RetryBudget::default()
            };
        })
    }

    pub(crate) fn hints(self, hints: CallHints) -> Self {
        self.with(|envelope| envelope.payload.call_hints = Some(hints))
    }

    /// The caller stops waiting this long after it has asked.
    pub(crate) fn deadline_in(mut self, in_ms: u64) -> Self {
        self.1 = Some(in_ms);
        self
    }
}

/// Code, status, terminal and retriable of a failed call.
pub(crate) fn error_of(result: &ToolResultEnvelope) -> (&str, Status, bool, bool) {
    let error = result.error.as_ref().expect("the call failed");
    assert!(result.output.is_none());
    (&error.code, result.status, error.terminal, error.retriable)
}

pub(crate) fn message_of(result: &ToolResultEnvelope) -> &str {
    &result.error.as_ref().expect("the call failed").message
}

/// How often the tool's effect had happened when this call was answered.
pub(crate) fn effect_of(result: &ToolResultEnvelope) -> u64 {
    let output = result
        .output
        .as_ref()
        .unwrap_or_else(|| panic!("{result:?}"));
    output.content["effect"].as_u64().expect("a count")
}

pub(crate) fn http(status: u16) -> ToolError {
    ToolError::http(status, None, format!("the server said {status}"))
}

pub(crate) async fn pass(ms: u64) {
    tokio::time::advance(Duration::from_millis(ms)).await;
}

type Run = dyn Fn(&Value, &ToolContext) -> Result<ToolResult, ToolError> + Send + Sync;

/// A tool made for one test.
pub(crate) struct Custom {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    pub(crate) tier: PermissionTier,
    pub(crate) schema: Value,
    pub(crate) run: Box<Run>,
    pub(crate) forwards_key: bool,
    /// Set, it succeeds instead of running.
    pub(crate) works: AtomicBool,
    pub(crate) reconciled: Mutex<Reconciled>,
    /// The keys under which it was asked to reconcile.
    pub(crate) asked: Mutex<Vec<Option<String>>>,
    pub(crate) executions: AtomicU64,
}

impl Custom {
    pub(crate) fn new(
        name: &'static str,
        effect: Effect,
        run: impl Fn(&Value, &ToolContext) -> Result<ToolResult, ToolError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            effect,
            tier: PermissionTier::ReadOnly,
            schema: json!({"type": "object"}),
            run: Box::new(run),
            forwards_key: false,
            works: AtomicBool::new(false),
            reconciled: Mutex::new(Reconciled::CanNotTell),
            asked: Mutex::default(),
            executions: AtomicU64::new(0),
        }
    }

    pub(crate) fn executions(&self) -> u64 {
        self.executions.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Tool for Custom {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Made for one test."
    }

    fn parameters_schema(&self) -> Value {
        self.schema.clone()
    }

    fn permission_tier(&self) -> PermissionTier {
        self.tier
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn forwards_idempotency_key(&self) -> bool {
        self.forwards_key
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        self.executions.fetch_add(1, Ordering::SeqCst);
        if self.works.load(Ordering::SeqCst) {
            return Ok(ToolResult::new(json!("works"), ""));
        }
        (self.run)(params, ctx)
    }

    async fn reconcile(&self, _params: &Value, ctx: &ToolContext) -> Reconciled {
        let key = ctx.call.idempotency_key.clone();
        self.asked.lock().unwrap().push(key);
        let answer = self.reconciled.lock().unwrap().clone();
        // Whoever asks waits a moment, so that others can come in between.
        tokio::time::sleep(Duration::from_millis(1)).await;
        answer
    }
}
