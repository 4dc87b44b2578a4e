//! Answers of the other routes: tools, messages, approvals, admin and probes.

use std::borrow::Cow;
use std::collections::BTreeMap;

use holdfast_contract::{NAME_PATTERN, ResultError, TEXT_PATTERN};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

/// How the server is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HealthShown<'a> {
    /// `ok` or `degraded`.
    pub status: &'a str,
    /// Of the server.
    pub version: &'a str,
    /// What the reliability layers may do at most.
    pub mode: Value,
    /// The kind of store.
    pub store: &'a str,
    /// Now.
    pub timestamp: String,
    /// `connected` or `unreachable`, where a model was configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpt_oss: Option<&'a str>,
    /// Whether tools of a gateway are offered, where a model was configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gateway: Option<&'a str>,
    /// Why it is degraded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
}

/// Whether to send requests here.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReadyShown<'a> {
    /// `ready`, `degraded` or `draining`.
    pub status: &'a str,
}

/// A body of `POST /tools/invoke`, as in the `OpenClaw` gateway.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InvokeRequest {
    /// The tool.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub tool: String,
    /// For tools that have an argument of this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// The session; `main` when absent.
    #[schemars(regex(pattern = TEXT_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Its agent.
    #[schemars(regex(pattern = TEXT_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// One key, one effect.
    #[schemars(regex(pattern = NAME_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
    /// The run that it belongs to.
    #[schemars(regex(pattern = TEXT_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
    /// The turn that it belongs to.
    #[schemars(regex(pattern = TEXT_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    /// The model that asked for it.
    #[schemars(regex(pattern = TEXT_PATTERN))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
}

/// An answer of `POST /tools/invoke`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum InvokeAnswer<'a> {
    /// The tool ran.
    Done {
        /// True.
        ok: bool,
        /// What it gave.
        result: Option<InvokeResult<'a>>,
    },
    /// It did not, or it failed.
    Failed {
        /// False.
        ok: bool,
        /// Why.
        error: InvokeError<'a>,
    },
}

/// What a tool gave.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InvokeResult<'a> {
    /// For the model.
    pub content: [TextPart<'a>; 1],
    /// The same for programs.
    pub details: &'a Value,
}

/// A text for the model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TextPart<'a> {
    /// `text`
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The text.
    pub text: Cow<'a, str>,
}

/// Why a call has no result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct InvokeError<'a> {
    /// The gateway's word.
    #[serde(rename = "type")]
    pub kind: &'a str,
    /// For people.
    pub message: &'a str,
    /// Our code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<&'a str>,
    /// Our reason, where the gateway's message hides it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'a str>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<&'a str>,
}

impl<'a> InvokeError<'a> {
    /// In the gateway's words, with ours beside them.
    pub(crate) fn new(kind: &'a str, message: &'a str, ours: Option<&'a ResultError>) -> Self {
        Self {
            kind,
            message,
            code: ours.map(|ours| ours.code.as_str()),
            reason: ours
                .map(|ours| ours.message.as_str())
                .filter(|reason| *reason != message),
            hint: ours.and_then(|ours| ours.hint.as_deref()),
        }
    }
}

/// What became of a message.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct MessageTaken {
    /// Whether it answered an approval prompt.
    pub answered: bool,
    /// The approval that it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval: Option<Value>,
    /// Where the session's words come from, now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Value>,
    /// What speaks against the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signals: Option<Value>,
    /// Whether calls of the session are held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<bool>,
}

/// What waits for a person.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ApprovalList {
    /// The requests, newest first, without secrets.
    pub approvals: Vec<Value>,
    /// Whether there are more than a page holds.
    pub more: bool,
}

/// The breakers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BreakerList {
    /// Each.
    pub breakers: Vec<Value>,
}

/// A page of records.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordList {
    /// The records, newest first, without their outputs.
    pub records: Vec<Value>,
    /// `offset` of the next page; null on the last.
    pub next_offset: Option<usize>,
}

/// Who did what.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditList {
    /// The entries, newest first.
    pub entries: Vec<Value>,
}

/// The reliability layer at a glance.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Overview<'a> {
    /// Of the server.
    pub version: &'a str,
    /// Its process.
    pub pid: u32,
    /// When it began.
    pub started_at_ms: u64,
    /// What is switched how.
    pub modes: Value,
    /// Why it is degraded; null when it is not.
    pub degraded: Value,
    /// What went wrong last.
    pub last_trouble: Value,
    /// The stores.
    pub store: StoreShown<'a>,
    /// How many breakers are in which state; null while their store is away.
    pub breakers: Option<BTreeMap<&'a str, usize>>,
    /// Tool calls over HTTP.
    pub calls: InFlight,
    /// Connections.
    pub connections: OpenNow,
    /// Now.
    pub timestamp: String,
}

/// The stores.
#[derive(Debug, Serialize, JsonSchema)]
pub struct StoreShown<'a> {
    /// The kind.
    pub kind: &'a str,
    /// What the durable one says.
    pub durable: Value,
    /// What the one in memory says.
    pub memory: Value,
}

/// Calls now.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InFlight {
    /// Being answered.
    pub in_flight: usize,
    /// At most.
    pub max: usize,
}

/// Connections now.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
pub struct OpenNow {
    /// Open.
    pub open: i64,
    /// At most.
    pub max: usize,
}

/// What an admin action did: `ok`, `auditId` and what depends on the action.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Done {
    /// True.
    pub ok: bool,
    /// Its entry in the audit log.
    pub audit_id: Value,
    /// What was done.
    #[serde(flatten)]
    pub what: Map<String, Value>,
}
