//! The answer as it leaves: `ToolResultEnvelope`.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What became of the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The tool ran, now or earlier, and worked.
    Success,
    /// It failed for good.
    Error,
    /// It failed in a way that a later attempt may survive, and was not retried here.
    RetriableError,
    /// It failed on every attempt that the budget allowed.
    RetryExhausted,
    /// A circuit breaker refused it; nothing ran.
    CircuitOpen,
    /// Time ran out and the effect is known not to matter.
    Timeout,
}

impl Status {
    /// The word used in envelopes, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Error => "error",
            Self::RetriableError => "retriable_error",
            Self::RetryExhausted => "retry_exhausted",
            Self::CircuitOpen => "circuit_open",
            Self::Timeout => "timeout",
        }
    }
}

/// Where a circuit breaker stands.
///
/// ```
/// use holdfast_contract::CircuitBreakerState;
///
/// let state = CircuitBreakerState::HalfOpen;
/// assert_eq!(serde_json::to_string(&state)?, r#""HALF_OPEN""#);
/// assert_eq!(state.to_string(), "HALF_OPEN");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum CircuitBreakerState {
    /// Calls pass.
    Closed,
    /// Calls are refused until the cooldown ends.
    Open,
    /// Single probes find out whether the dependency is back.
    HalfOpen,
    /// An operator holds it open until a reset.
    ForcedOpen,
}

impl CircuitBreakerState {
    /// All states, for metrics that report one gauge per state.
    pub const ALL: [Self; 4] = [Self::Closed, Self::Open, Self::HalfOpen, Self::ForcedOpen];

    /// The word used in envelopes, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "CLOSED",
            Self::Open => "OPEN",
            Self::HalfOpen => "HALF_OPEN",
            Self::ForcedOpen => "FORCED_OPEN",
        }
    }
}

impl std::fmt::Display for CircuitBreakerState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an answered duplicate joined a running call or found a finished one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum CacheMatch {
    /// The first call was still running and this one waited for it.
    Inflight,
    /// The first call had finished.
    Completed,
}

/// How a duplicate was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CacheHit {
    /// What was found.
    pub matched_on: CacheMatch,
    /// The age of the record, in milliseconds.
    pub age_ms: u64,
    /// The first characters of the stored key's hash; safe to log.
    pub key_fingerprint: String,
}

/// The tool's output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResultOutput {
    /// For the model.
    #[serde(with = "shared_value")]
    #[schemars(with = "Value")]
    pub content: Arc<Value>,
    /// `display` for a person, `artifacts`, `exitCode`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

mod shared_value {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use serde_json::Value;

    pub(super) fn serialize<S: Serializer>(value: &Arc<Value>, out: S) -> Result<S::Ok, S::Error> {
        value.as_ref().serialize(out)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(input: D) -> Result<Arc<Value>, D::Error> {
        Value::deserialize(input).map(Arc::new)
    }
}

/// Why there is no output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResultError {
    /// A stable code; see the error reference.
    pub code: String,
    /// For the model and for people; redacted.
    pub message: String,
    /// Whether a later call with the same intent may succeed.
    pub retriable: bool,
    /// Whether repeating this call is pointless or dangerous.
    pub terminal: bool,
    /// The breaker's state, when a breaker had a say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breaker_state: Option<CircuitBreakerState>,
    /// What to do next, when there is something to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// How long to wait before asking again, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Present when this is no longer the model's to correct: it goes to the parent session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub escalation: Option<Escalation>,
    /// What the tool had until it failed, where it says: what a command had printed. Redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// Whether tools still run in this turn.
    #[serde(default, skip_serializing_if = "TurnStand::goes_on")]
    pub turn: TurnStand,
}

/// Whether tools still run in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnStand {
    /// They do.
    #[default]
    GoesOn,
    /// The loop guard has ended it: no tool runs until the next turn.
    Ended,
}

impl TurnStand {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
    fn goes_on(&self) -> bool {
        *self == Self::GoesOn
    }
}

/// A tool that was called wrongly too often in a row. The session that called it is not to try
/// again: whoever runs it hands this to its parent session, or to a person where it has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Escalation {
    /// The tool, as it was called.
    pub tool: String,
    /// The argument that was wrong the last time, as a JSON pointer, when there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// What was wrong with it the last time; redacted.
    pub reason: String,
    /// How many times in a row it was called wrongly.
    pub attempts: u32,
}

impl std::fmt::Display for Escalation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "`{}` was called wrongly {} times",
            self.tool, self.attempts
        )?;
        if let Some(field) = &self.field {
            write!(f, ", the last time in {field}")?;
        }
        write!(f, ": {}", self.reason)
    }
}

/// One retry that happened on the way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryNote {
    /// The attempt that failed, from 1.
    pub attempt: u32,
    /// How long was waited after it.
    pub delay_ms: u64,
    /// Why it failed.
    pub reason_code: String,
    /// How long it took.
    pub latency_ms: u64,
}

/// The answer to a [`crate::ToolCallEnvelope`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultEnvelope {
    /// The call's request id.
    pub request_id: String,
    /// What became of it.
    pub status: Status,
    /// Whether the answer comes from an earlier or concurrent call with the same key.
    pub from_cache: bool,
    /// How the duplicate was answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheHit>,
    /// The tool.
    pub tool_name: String,
    /// Time from admission to answer.
    pub duration_ms: u64,
    /// Attempts made by this call; 0 when nothing ran.
    pub attempts: u32,
    /// The output on success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<ResultOutput>,
    /// The error otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ResultError>,
    /// The retries on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retried_by: Vec<RetryNote>,
}

impl ToolResultEnvelope {
    /// Whether the tool worked.
    pub fn is_success(&self) -> bool {
        self.status == Status::Success
    }

    /// The error code, when there is an error.
    pub fn error_code(&self) -> Option<&str> {
        self.error.as_ref().map(|error| error.code.as_str())
    }
}
