//! What became of each call and why, for `holdfast explain`.

use std::sync::Arc;

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, RetryNote};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::observe::{Event, Observer};
use crate::store::StoreFuture;

/// Calls kept at most; the oldest go first.
pub const JOURNAL_CALLS_MAX: u64 = 10_000;
/// Arguments longer than this are cut in the journal.
pub const JOURNAL_ARGS_BYTES_MAX: usize = 4 * 1024;
/// A message longer than this is cut in the journal.
pub const JOURNAL_MESSAGE_BYTES_MAX: usize = 4 * 1024;

/// One call, redacted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct JournalEntry {
    /// The request.
    pub request_id: String,
    /// When it was answered.
    pub at_ms: u64,
    /// The tool.
    pub tool: String,
    /// The session.
    pub session_key: String,
    /// The actor.
    pub actor_id: String,
    /// The turn or run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<String>,
    /// The model's id of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_id: Option<String>,
    /// The arguments.
    pub args: Value,
    /// What became of it.
    pub status: String,
    /// Whether another call's record answered.
    pub from_cache: bool,
    /// Attempts.
    pub attempts: u32,
    /// How long it took.
    pub duration_ms: u64,
    /// The record's key, as far as it may be shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_fingerprint: Option<String>,
    /// The error's code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<String>,
    /// The error's message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    /// What to do next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// The retries on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub retries: Vec<RetryNote>,
    /// Why it was answered as it was, in the order in which it was found out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub why: Vec<String>,
}

/// Keeps entries.
pub trait Journal: Send + Sync {
    /// Adds an entry, without waiting for it to be stored.
    fn append(&self, entry: JournalEntry);

    /// The newest entry of each request id that begins so, the newest first; without a beginning
    /// simply the newest entries. One request can have several: it may be delivered again.
    fn find<'a>(
        &'a self,
        request_prefix: &'a str,
        limit: usize,
    ) -> StoreFuture<'a, Vec<JournalEntry>>;
}

/// Writes an entry for every call that is answered.
pub struct JournalObserver {
    journal: Arc<dyn Journal>,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
}

impl JournalObserver {
    /// Writes to `journal`.
    pub fn new(journal: Arc<dyn Journal>, clock: Arc<dyn Clock>, redactor: Redactor) -> Self {
        Self {
            journal,
            clock,
            redactor,
        }
    }

    fn text(&self, text: &str) -> String {
        cut(&self.redactor.redact_text(text), JOURNAL_MESSAGE_BYTES_MAX)
    }

    fn args(&self, params: &Value) -> Value {
        let clean = self.redactor.redact_value(params);
        let text = clean.to_string();
        if text.len() <= JOURNAL_ARGS_BYTES_MAX {
            clean
        } else {
            Value::String(cut(&text, JOURNAL_ARGS_BYTES_MAX))
        }
    }
}

/// The beginning of a text, and that there was more.
fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max)
        .rev()
        .find(|end| text.is_char_boundary(*end))
        .unwrap_or(0);
    format!("{}… ({} bytes in all)", &text[..end], text.len())
}

impl Observer for JournalObserver {
    fn observe(&self, event: &Event<'_>) {
        let Event::End { call, result } = *event else {
            return;
        };
        let (envelope, target) = (&call.envelope, &call.envelope.target);
        let error = result.error.as_ref();
        let text = |given: Option<&String>| given.map(|given| self.text(given));
        self.journal.append(JournalEntry {
            request_id: envelope.request_id.clone(),
            at_ms: self.clock.now_ms(),
            // All of these come from outside. The request's id stays: it is what one asks by.
            tool: self.text(&envelope.tool_name),
            session_key: self.text(&target.session_key),
            actor_id: self.text(&target.actor_id),
            turn: text(target.turn_id.as_ref().or(target.run_id.as_ref())),
            tool_call_id: text(envelope.tool_call_id.as_ref()),
            model_id: text(target.model_id.as_ref()),
            args: self.args(&envelope.payload.params),
            status: result.status.as_str().to_owned(),
            from_cache: result.from_cache,
            attempts: result.attempts,
            duration_ms: result.duration_ms,
            key_fingerprint: call.stored_key.map(|key| key.fingerprint().to_string()),
            error_code: error.map(|error| error.code.clone()),
            error_message: error.map(|error| self.text(&error.message)),
            hint: error.and_then(|error| error.hint.clone()),
            retries: result.retried_by.clone(),
            why: call.why.iter().map(|why| self.text(why)).collect(),
        });
    }
}
