//! What is remembered about one intent.

use std::borrow::Cow;
use std::sync::Arc;

use holdfast_contract::{ResultOutput, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use smallvec::SmallVec;

use super::key::StoredKey;
use crate::canonical::Digest;

/// Where an intent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum RecordState {
    /// Someone is executing it, or died doing so and nobody has noticed yet.
    Inflight,
    /// It worked; `payload` holds the output.
    Done,
    /// It failed and certainly left no effect that matters.
    Failed,
    /// The caller went away before anything ran.
    Cancelled,
    /// It was started and nobody knows how it ended.
    Unknown,
}

impl RecordState {
    /// The word used in records, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inflight => "inflight",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

/// Who asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordRequest {
    /// The session.
    pub session_key: Arc<str>,
    /// Where it works: one key in two workspaces is two records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_id: Option<Arc<str>>,
    /// The user or account.
    pub actor_id: Arc<str>,
    /// The request that made the claim.
    pub request_id: String,
    /// The model's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// SHA-256 over the exact arguments; another digest under the same key is a conflict.
    #[schemars(with = "String")]
    pub params_digest: Digest,
    /// Whether the call was only watched: the record answers for nobody.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shadow: bool,
}

/// Whether an attempt worked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AttemptStatus {
    /// It did.
    Success,
    /// It did not.
    Error,
}

/// One attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AttemptNote {
    /// When it began.
    pub started_at_ms: u64,
    /// When it ended.
    pub finished_at_ms: u64,
    /// Whether it worked.
    pub status: AttemptStatus,
    /// Whether its failure was worth a retry.
    pub retriable: bool,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<Cow<'static, str>>,
}

/// All attempts of one call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Execution {
    /// How many there were.
    pub attempt_count: u32,
    /// What became of each.
    #[schemars(with = "Vec<AttemptNote>")]
    pub attempts: Attempts,
}

/// What became of each attempt. Nearly every call has one, which needs no allocation of its own.
pub type Attempts = SmallVec<[AttemptNote; 1]>;

/// The error a duplicate gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecordError {
    /// The code.
    pub code: String,
    /// The message.
    pub message: String,
    /// Whether repeating is pointless or dangerous.
    pub terminal: bool,
    /// Whether a new run may be allowed under `bestEffort`.
    pub should_retriable: bool,
    /// The status of the first answer, so that a duplicate's is the same.
    pub status: Status,
}

/// What is remembered about one intent. Field names are those of the specification; `owner`,
/// `contentKey`, `repeatSafe`, `held` and the request's `workspaceId` are added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DedupeRecord {
    /// The stored key: a hash over scope and key.
    #[schemars(with = "String")]
    pub key: StoredKey,
    /// The tool.
    pub tool: Arc<str>,
    /// The key as given by the caller or a hook, or `computed`.
    pub idempotency_key: Cow<'static, str>,
    /// Where it stands.
    pub state: RecordState,
    /// When it was claimed.
    pub created_at_ms: u64,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// When it may be forgotten. Never because of a lease: a record that vanished would let the
    /// effect run again.
    pub expires_at_ms: u64,
    /// The time to live behind `expiresAtMs`.
    pub ttl_ms: u64,
    /// Who asked; shared with the claim it came from.
    pub request: Arc<RecordRequest>,
    /// The attempts, once it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// The output, once it worked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<ResultOutput>,
    /// The error, once it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RecordError>,
    /// The end of the holder's lease while in flight.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_until_ms: Option<u64>,
    /// Goes up with every change.
    pub version: u64,
    /// Names the claim, so that only its holder can finish it.
    pub owner: Arc<str>,
    /// The content's own key, for tools whose repeated content within a window is an echo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub content_key: Option<StoredKey>,
    /// Whether the call may simply run again when its holder is lost.
    pub repeat_safe: bool,
    /// Whether the call still waits for leave to start, so that nothing has run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held: bool,
}

impl DedupeRecord {
    /// Whether the record no longer answers for its intent.
    ///
    /// One that is in flight always does: its holder may have slept for days together with the
    /// machine, and goes on the moment it wakes.
    pub fn is_expired(&self, now_ms: u64) -> bool {
        self.state != RecordState::Inflight && self.expires_at_ms <= now_ms
    }

    /// Whether a sweep may forget the record. One in flight that nobody has renewed or asked for
    /// is kept for as long again as an unknown outcome would be.
    pub fn is_forgettable(&self, now_ms: u64) -> bool {
        self.is_expired(now_ms)
            || (self.lease_has_ended(now_ms)
                && self.expires_at_ms.saturating_add(self.ttl_ms) <= now_ms)
    }

    /// Whether a holder that is still there must be assumed to have stalled.
    pub fn lease_has_ended(&self, now_ms: u64) -> bool {
        self.lock_until_ms.is_none_or(|until| until <= now_ms)
    }

    /// A rough count of the bytes the record keeps in memory.
    pub fn approximate_bytes(&self) -> usize {
        let payload = self.payload.as_ref().map_or(0, output_bytes);
        let text = self.tool.len()
            + self.idempotency_key.len()
            + self.request.session_key.len()
            + self.request.actor_id.len()
            + self.request.workspace_id.as_ref().map_or(0, |it| it.len())
            + self.request.request_id.len()
            + self
                .error
                .as_ref()
                .map_or(0, |error| error.code.len() + error.message.len());
        size_of::<Self>() + text + payload
    }
}

/// A rough count of the bytes of an output.
pub fn output_bytes(output: &ResultOutput) -> usize {
    let metadata = output.metadata.as_ref().map_or(0, |map| {
        map.iter()
            .map(|(name, value)| name.len() + value_bytes(value))
            .sum()
    });
    value_bytes(&output.content) + metadata
}

fn value_bytes(value: &serde_json::Value) -> usize {
    use serde_json::Value;
    size_of::<Value>()
        + match value {
            Value::Null | Value::Bool(_) => 0,
            Value::Number(number) => number.as_str().len(),
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_bytes).sum(),
            Value::Object(map) => map
                .iter()
                .map(|(name, value)| name.len() + 24 + value_bytes(value))
                .sum(),
        }
}

/// A record that several readers share.
pub type SharedRecord = Arc<DedupeRecord>;
