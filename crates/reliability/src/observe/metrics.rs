//! The seed's metrics, in Prometheus' text format.
//!
//! The `tool` label only ever holds names of registered tools; a model can invent names faster
//! than a metrics store can keep them, so everything else is `unknown`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use holdfast_contract::redact::Redactor;
use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

pub use super::metric_table::{METRICS, MetricDoc};
use super::repeats::{self, Repeats};
use super::runs::RunMetrics;
use super::shut::ShutBreakers;
use super::{Event, Observer};
use crate::breaker::{BreakerKey, BreakerTarget, CircuitBreakerState, Transition};
use crate::call::Call;
use crate::policy::Mode;

/// Distinct values of the `tool` label at most; further tools are counted as `other`.
pub const METRIC_TOOLS_MAX: usize = 256;
/// Distinct values of the `reason` label at most; further codes are counted as `other`.
pub const METRIC_REASONS_MAX: usize = 64;
/// Length of a value of the `reason` label at most; longer codes are counted as `other`.
pub const METRIC_REASON_BYTES_MAX: usize = 64;

/// What became of a trace span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanOutcome {
    /// It was handed over to be sent.
    Built,
    /// The collector took it.
    Exported,
    /// The collector did not take it.
    Failed,
}

impl SpanOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Built => "built",
            Self::Exported => "exported",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CallLabels {
    tool: String,
    status: &'static str,
    scope: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StatusLabels {
    tool: String,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ReasonLabels {
    tool: String,
    reason: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    tool: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ScopeLabels {
    tool: String,
    scope: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct TransitionLabels {
    tool: String,
    from_state: &'static str,
    to_state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct BlockedLabels {
    tool: String,
    code: String,
    mode: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct MetLabels {
    tool: String,
    met: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OperationLabels {
    operation: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

type DurationFamily = Family<StatusLabels, Histogram, fn() -> Histogram>;

/// The metrics of one process.
pub struct Metrics {
    registry: Registry,
    tools: RwLock<HashSet<String>>,
    reasons: RwLock<HashSet<String>>,
    calls: Family<CallLabels, Counter>,
    durations: DurationFamily,
    retries: Family<ReasonLabels, Counter>,
    hits: Family<StateLabels, Counter>,
    cache_size: Family<ScopeLabels, Gauge>,
    ttl_seconds: Family<StateLabels, Gauge<f64, AtomicU64>>,
    breaker_state: Family<StateLabels, Gauge>,
    shut_breakers: ShutBreakers,
    transitions: Family<TransitionLabels, Counter>,
    blocked: Family<BlockedLabels, Counter>,
    repeats: Family<MetLabels, Counter>,
    last_contents: Repeats,
    store_errors: Family<OperationLabels, Counter>,
    store_degraded: Gauge,
    spans: Family<OutcomeLabels, Counter>,
    runs: RunMetrics,
}

pub(super) fn duration_histogram() -> Histogram {
    Histogram::new([
        1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0, 10_000.0,
        30_000.0, 60_000.0,
    ])
}

impl Metrics {
    /// No counts yet.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::default();
        let mut metrics = Self {
            runs: RunMetrics::new(&mut registry),
            registry,
            tools: RwLock::default(),
            reasons: RwLock::default(),
            calls: Family::default(),
            durations: DurationFamily::new_with_constructor(duration_histogram),
            retries: Family::default(),
            hits: Family::default(),
            cache_size: Family::default(),
            ttl_seconds: Family::default(),
            breaker_state: Family::default(),
            shut_breakers: ShutBreakers::default(),
            transitions: Family::default(),
            blocked: Family::default(),
            repeats: Family::default(),
            last_contents: Repeats::default(),
            store_errors: Family::default(),
            store_degraded: Gauge::default(),
            spans: Family::default(),
        };
        metrics.register();
        Arc::new(metrics)
    }

    fn register(&mut self) {
        // The text format adds `_total` to counters by itself.
        let meaning = |name: &str| {
            METRICS
                .iter()
                .find(|row| row.name == name)
                .map_or("", |row| row.meaning)
        };
        let registry = &mut self.registry;
        macro_rules! register {
            ($name:literal, $metric:expr) => {
                registry.register(
                    $name.trim_end_matches("_total"),
                    // The text format ends it with a full stop of its own.
                    meaning($name).trim_end_matches('.'),
                    $metric.clone(),
                )
            };
        }
        register!("openclaw_tool_calls_total", self.calls);
        register!("openclaw_tool_call_duration_ms", self.durations);
        register!("openclaw_tool_retry_attempts_total", self.retries);
        register!("openclaw_tool_idempotency_hits_total", self.hits);
        register!("openclaw_tool_dedupe_cache_size", self.cache_size);
        register!("openclaw_tool_dedupe_ttl_seconds", self.ttl_seconds);
        register!("openclaw_tool_circuit_breaker_state", self.breaker_state);
        register!(
            "openclaw_tool_circuit_breaker_transitions_total",
            self.transitions
        );
        register!("holdfast_tool_calls_blocked_total", self.blocked);
        register!("holdfast_tool_repeats_total", self.repeats);
        register!("holdfast_store_errors_total", self.store_errors);
        register!("holdfast_store_degraded", self.store_degraded);
        register!("holdfast_trace_spans_total", self.spans);
    }

    /// Makes a tool's name a label of its own, and reports its times to live.
    pub fn know(&self, policy: &crate::policy::ToolPolicy) {
        let mut tools = self.tools.write();
        if tools.len() >= METRIC_TOOLS_MAX && !tools.contains(&*policy.tool) {
            return;
        }
        tools.insert(policy.tool.to_string());
        drop(tools);
        let lifetimes = &policy.lifetimes;
        for (state, ttl_ms) in [
            ("done", lifetimes.done_ms),
            ("failed", lifetimes.failed_ms),
            ("cancelled", lifetimes.cancelled_ms),
            ("unknown", lifetimes.unknown_ms),
            ("inflight", lifetimes.lease_ms),
        ] {
            #[expect(
                clippy::cast_precision_loss,
                reason = "times to live are far below 2^52 ms"
            )]
            let seconds = ttl_ms as f64 / 1000.0;
            self.ttl_seconds
                .get_or_create(&StateLabels {
                    tool: policy.tool.to_string(),
                    state,
                })
                .set(seconds);
        }
    }

    /// Reports how many records a store holds.
    pub fn set_cache_size(&self, store: &'static str, records: u64) {
        self.cache_size
            .get_or_create(&ScopeLabels {
                tool: "all".to_owned(),
                scope: store,
            })
            .set(i64::try_from(records).unwrap_or(i64::MAX));
    }

    /// Counts trace spans.
    pub fn count_spans(&self, outcome: SpanOutcome, spans: u64) {
        let outcome = outcome.as_str();
        self.spans
            .get_or_create(&OutcomeLabels { outcome })
            .inc_by(spans);
    }

    /// All metrics as text.
    pub fn encode(&self) -> String {
        let mut text = String::new();
        // Writing to a string can not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }

    fn tool(&self, name: &str) -> String {
        let name = name.trim();
        let tools = self.tools.read();
        if tools.contains(name) {
            name.to_owned()
        } else if tools.len() >= METRIC_TOOLS_MAX {
            "other".to_owned()
        } else {
            "unknown".to_owned()
        }
    }

    fn breaker_changed(&self, key: &BreakerKey, transition: Transition) {
        let Some(tool) = self.breaker_label(key) else {
            return;
        };
        self.shut_breakers.set(key, transition.to);
        self.show_worst(&tool);
        let labels = TransitionLabels {
            tool,
            from_state: transition.from.as_str(),
            to_state: transition.to.as_str(),
        };
        self.transitions.get_or_create(&labels).inc();
    }

    /// Reports the breakers as their store has them: other processes change them too, and what was
    /// open before this process started is open still.
    pub fn set_breakers(&self, all: impl IntoIterator<Item = (BreakerKey, CircuitBreakerState)>) {
        let all: BTreeMap<_, _> = all.into_iter().collect();
        let known: Vec<BreakerKey> = all.keys().cloned().collect();
        let before = self.shut_breakers.replace(all);
        let keys = known.iter().chain(&before);
        let tools: BTreeSet<String> = keys.filter_map(|key| self.breaker_label(key)).collect();
        for tool in &tools {
            self.show_worst(tool);
        }
    }

    /// The gauge of a tool is the worst of its own breaker and of those of its parts: calls are refused
    /// as long as one of them is open.
    fn show_worst(&self, tool: &str) {
        let is_of_tool = |key: &BreakerKey| self.breaker_label(key).as_deref() == Some(tool);
        let worst = self.shut_breakers.worst(is_of_tool);
        for state in CircuitBreakerState::ALL {
            let labels = StateLabels {
                tool: tool.to_owned(),
                state: state.as_str(),
            };
            self.breaker_state
                .get_or_create(&labels)
                .set(i64::from(state == worst));
        }
    }

    /// The `tool` label of a breaker. Watching breakers have a context; only real ones are reported.
    fn breaker_label(&self, key: &BreakerKey) -> Option<String> {
        if !key.context().is_empty() {
            return None;
        }
        Some(match key.target() {
            BreakerTarget::Tool { name, .. } | BreakerTarget::Part { tool: name, .. } => {
                self.tool(name)
            }
            BreakerTarget::Dependency { name } => self.bounded(&format!("dependency:{name}")),
            BreakerTarget::Global => "global".to_owned(),
        })
    }

    fn count_repeat(&self, call: &Call, met: &'static str) {
        let tool = self.tool_of(call);
        self.repeats.get_or_create(&MetLabels { tool, met }).inc();
    }

    fn tool_of(&self, call: &Call) -> String {
        self.tool(&call.envelope.tool_name)
    }

    /// A reason is a code: our own, an HTTP status, a transport code, or a tool's.
    fn reason(&self, code: &str) -> String {
        if self.reasons.read().contains(code) {
            return code.to_owned();
        }
        if is_code(code) {
            self.bounded(code)
        } else {
            "other".to_owned()
        }
    }

    /// The value itself, as long as there are not too many of them.
    fn bounded(&self, value: &str) -> String {
        let mut reasons = self.reasons.write();
        if reasons.len() >= METRIC_REASONS_MAX && !reasons.contains(value) {
            return "other".to_owned();
        }
        reasons.insert(value.to_owned());
        value.to_owned()
    }
}

/// Whether a tool's code is a code, and not a sentence or a secret in its place.
fn is_code(code: &str) -> bool {
    code.len() <= METRIC_REASON_BYTES_MAX
        && code
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.:/".contains(&byte))
        && matches!(Redactor::default().redact_text(code), Cow::Borrowed(_))
}

fn mode_word(mode: Mode) -> &'static str {
    if mode == Mode::Shadow {
        "shadow"
    } else {
        "live"
    }
}

impl Observer for Metrics {
    fn observe(&self, event: &Event<'_>) {
        match *event {
            Event::End { call, result } => {
                let (tool, status) = (self.tool_of(call), result.status.as_str());
                let scope = mode_word(call.modes.idempotency);
                #[expect(
                    clippy::cast_precision_loss,
                    reason = "durations are far below 2^52 ms"
                )]
                let duration_ms = result.duration_ms as f64;
                self.durations
                    .get_or_create(&StatusLabels {
                        tool: tool.clone(),
                        status,
                    })
                    .observe(duration_ms);
                self.calls
                    .get_or_create(&CallLabels {
                        tool,
                        status,
                        scope,
                    })
                    .inc();
            }
            Event::Blocked {
                call, code, mode, ..
            } => {
                let labels = BlockedLabels {
                    tool: self.tool_of(call),
                    code: self.reason(code),
                    mode: mode_word(mode),
                };
                self.blocked.get_or_create(&labels).inc();
            }
            Event::Retry {
                call,
                reason_code,
                mode: Mode::Enforce,
                ..
            } => {
                let labels = ReasonLabels {
                    tool: self.tool_of(call),
                    reason: self.reason(reason_code),
                };
                self.retries.get_or_create(&labels).inc();
            }
            Event::DedupeHit {
                call,
                state,
                mode: Mode::Enforce,
            } => {
                let labels = StateLabels {
                    tool: self.tool_of(call),
                    state: state.as_str(),
                };
                self.hits.get_or_create(&labels).inc();
                if repeats::counts(call) {
                    self.count_repeat(call, "record");
                }
            }
            Event::Claimed { call, params } => {
                if repeats::counts(call) && self.last_contents.is_repeat(call, params) {
                    self.count_repeat(call, "nothing");
                }
            }
            Event::Run(event) => self.runs.observe(&event),
            Event::Start { .. }
            | Event::Retry { .. }
            | Event::DedupeHit { .. }
            | Event::Signals { .. }
            | Event::Undelivered { .. }
            | Event::Waits { .. } => {}
            Event::Circuit {
                key, transition, ..
            } => self.breaker_changed(key, *transition),
            Event::Degraded { degraded } => {
                self.store_degraded.set(i64::from(degraded.is_some()));
            }
            Event::StoreTrouble { what, .. } => {
                self.store_errors
                    .get_or_create(&OperationLabels { operation: what })
                    .inc();
            }
        }
    }
}
