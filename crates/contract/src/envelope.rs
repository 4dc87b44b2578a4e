//! The call as it arrives: `ToolCallEnvelope` 1.1.
//!
//! [`ToolCallEnvelope::parse`] reads foreign bytes. It names the field that is wrong, because the
//! sender is usually a program whose author sees nothing but our answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

mod near;
mod read;
mod whole;

pub use near::meant;

/// Size of one envelope.
pub const ENVELOPE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Length of a name or id.
pub const NAME_BYTES_MAX: usize = 512;
/// Length of a caller's idempotency key.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 1024;
/// Attempts an envelope may ask for.
pub const ATTEMPTS_MAX: u32 = 100;
/// Tags on one call.
pub const REQUEST_TAGS_MAX: usize = 64;

/// What a name or id may be, as a regular expression: not blank, and without NUL.
pub const NAME_PATTERN: &str = r"^[^\x00]*[^\s\x00][^\x00]*$";
/// What may be blank as well.
pub const TEXT_PATTERN: &str = r"^[^\x00]*$";

/// The only contract version there is.
pub const CONTRACT_VERSION: &str = "1.1";
/// The only payload version there is.
pub const PAYLOAD_VERSION: &str = "1.0";

/// One tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCallEnvelope {
    /// Always `"1.1"`.
    #[schemars(extend("const" = CONTRACT_VERSION))]
    pub contract_version: String,
    /// A `UUIDv7` or ULID, new for every call.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub request_id: String,
    /// The id the model gave the call. Kept for people; not an identity, since servers reuse it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub tool_call_id: Option<String>,
    /// The tool.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub tool_name: String,
    /// Where the tool comes from, for example `agents.tools.messaging`.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub tool_namespace: String,
    /// On whose behalf.
    pub target: Target,
    /// What to do.
    pub payload: Payload,
    /// How to deliver it.
    pub transport: Transport,
    /// Bounds set by the caller.
    #[serde(default)]
    pub control: Control,
    /// Distributed tracing.
    #[serde(default)]
    pub trace: Trace,
}

/// On whose behalf a call is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub agent_id: Option<String>,
    /// The session; keys of different sessions never collide.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub session_key: String,
    /// The user or account.
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub actor_id: String,
    /// The workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub workspace_id: Option<String>,
    /// Ties calls of one piece of work together in logs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub correlation_id: Option<String>,
    /// The tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub tenant_id: Option<String>,
    /// The agent run this call belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub run_id: Option<String>,
    /// The assistant turn this call belongs to; the loop guard counts per turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub turn_id: Option<String>,
    /// The model that asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub model_id: Option<String>,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    /// Always `"1.0"`.
    #[schemars(extend("const" = PAYLOAD_VERSION))]
    pub version: String,
    /// The arguments: always an object.
    #[schemars(with = "Map<String, Value>")]
    pub params: Value,
    /// The caller's own key: one key, one effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = NAME_PATTERN))]
    pub idempotency_key: Option<String>,
    /// What the caller knows about the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_hints: Option<CallHints>,
    /// Where in its run this call stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_step: Option<ToolStep>,
}

/// What the caller knows about the call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallHints {
    /// Do not run without a durable record, whatever the tool's own settings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub safety_critical: Option<bool>,
    /// The caller vouches that repeating the call is harmless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected_retry_safe: Option<bool>,
    /// Time limit of one attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
}

/// Where in its run a call stands. Repeated by a resumed run, so it identifies the intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStep {
    /// The loop's iteration.
    #[schemars(extend("maximum" = u64::MAX))]
    pub iteration: u64,
    /// The call's place within it.
    #[schemars(extend("maximum" = u64::MAX))]
    pub index: u64,
}

/// How to treat duplicates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum DedupeMode {
    /// A duplicate waits for the first call and gets its answer.
    #[default]
    #[serde(alias = "enabled")]
    Enforced,
    /// A duplicate of a running call is told so at once; a retriable failure may run again.
    BestEffort,
    /// No deduplication.
    Disabled,
}

/// How much retrying the caller wants at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryBudget {
    /// Attempts including the first.
    #[schemars(range(min = 1, max = 100))]
    pub max_attempts: u32,
    /// No attempt starts later than this after the first.
    pub max_elapsed_ms: u64,
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            max_elapsed_ms: 30_000,
        }
    }
}

/// Which breaker judges the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum BreakerHint {
    /// The tool's own.
    Tool,
    /// The one of the dependency behind the tool.
    Dependency,
    /// The one for everything.
    Global,
}

/// How to deliver a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Transport {
    /// How to treat duplicates.
    pub dedupe_mode: DedupeMode,
    /// How much retrying is wanted.
    pub retry_budget: RetryBudget,
    /// Which breaker judges the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuit_breaker_hint: Option<BreakerHint>,
}

/// Bounds set by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Control {
    /// The caller stops waiting at this wall time; it wins over every other clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_at_ms: Option<u64>,
    /// Free words for logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = REQUEST_TAGS_MAX), inner(regex(pattern = TEXT_PATTERN)))]
    pub request_tags: Vec<String>,
    /// The hook that caused this call, when one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub from_hook: Option<String>,
}

/// Distributed tracing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// W3C trace context.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = TEXT_PATTERN))]
    pub traceparent: Option<String>,
    /// W3C baggage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baggage: Option<BTreeMap<String, String>>,
}

/// An envelope that can not be used: which field, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct EnvelopeError {
    /// The field as a dotted path, `envelope` for the whole.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
    /// The request id, when that much could be read.
    pub request_id: Option<String>,
    /// The tool's name, when that much could be read.
    pub tool_name: Option<String>,
}

impl ToolCallEnvelope {
    /// Reads an envelope from JSON text.
    ///
    /// ```
    /// use holdfast_contract::ToolCallEnvelope;
    /// let error = ToolCallEnvelope::parse(br#"{"contractVersion": "1.0"}"#).unwrap_err();
    /// assert_eq!(error.field, "contractVersion");
    /// ```
    pub fn parse(bytes: &[u8]) -> Result<Self, EnvelopeError> {
        read::parse(bytes)
    }

    /// Reads an envelope from a JSON value.
    pub fn from_value(value: Value) -> Result<Self, EnvelopeError> {
        read::from_value(value)
    }

    /// Checks an envelope that was built in memory by the same rules as one that was read.
    pub fn check(&self) -> Result<(), EnvelopeError> {
        read::check(self)
    }

    /// An envelope with defaults for everything but the call itself.
    pub fn new(
        request_id: impl Into<String>,
        tool: impl Into<String>,
        params: Map<String, Value>,
        session: impl Into<String>,
        actor: impl Into<String>,
    ) -> Self {
        Self {
            contract_version: CONTRACT_VERSION.to_owned(),
            request_id: request_id.into(),
            tool_call_id: None,
            tool_name: tool.into(),
            tool_namespace: "holdfast.tools".to_owned(),
            target: Target {
                session_key: session.into(),
                actor_id: actor.into(),
                ..Target::default()
            },
            payload: Payload {
                version: PAYLOAD_VERSION.to_owned(),
                params: Value::Object(params),
                idempotency_key: None,
                call_hints: None,
                tool_step: None,
            },
            transport: Transport::default(),
            control: Control::default(),
            trace: Trace::default(),
        }
    }

    /// The caller's hints, all absent when there are none.
    pub fn hints(&self) -> CallHints {
        self.payload.call_hints.unwrap_or_default()
    }
}
