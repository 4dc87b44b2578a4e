//! The seed's log events, one JSON object a line.
//!
//! Written by hand into a buffer rather than through a general logger: two lines a call have to
//! cost less than the call. Values that come from outside are redacted here and nowhere else.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{Clock, ErrorCode};
use parking_lot::Mutex;

use super::{CircuitCause, Event, Observer};
use crate::breaker::{BreakerKey, Transition};
use crate::call::Call;
use crate::policy::Mode;
use holdfast_contract::time::push_rfc3339;

/// Where lines go. A line is complete when it is handed over.
pub trait LineSink: Send + Sync {
    /// Takes one line with its line end. Must not block.
    fn line(&self, line: &[u8]);
}

/// Lines go to any writer, one write a line.
pub struct WriterSink<W> {
    writer: Mutex<W>,
    dropped: AtomicU64,
}

impl<W: Write + Send> WriterSink<W> {
    /// Writes to `writer`.
    pub fn new(writer: W) -> Self {
        Self {
            writer: Mutex::new(writer),
            dropped: AtomicU64::new(0),
        }
    }

    /// Lines that could not be written.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

impl<W: Write + Send> LineSink for WriterSink<W> {
    fn line(&self, line: &[u8]) {
        if self.writer.lock().write_all(line).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Writes the events as JSON lines.
pub struct JsonLog {
    sink: Arc<dyn LineSink>,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    /// For each [`Repeated`] the last text that could go out as it is. A call's second line says
    /// the same as its first, and most calls name the session of the one before: looking for
    /// secrets in it again would be most of the cost of a line.
    plain: Mutex<[String; 3]>,
}

/// Texts of a call that every one of its lines repeats. Their length is bounded by the envelope's
/// check.
#[derive(Clone, Copy)]
enum Repeated {
    RequestId,
    ToolName,
    SessionKey,
}

impl JsonLog {
    /// Logs to `sink`.
    pub fn new(sink: Arc<dyn LineSink>, clock: Arc<dyn Clock>, redactor: Redactor) -> Self {
        Self {
            sink,
            clock,
            redactor,
            plain: Mutex::default(),
        }
    }

    /// Writes about something that is no part of a call: an event of its own, why it happened,
    /// and how much was lost by it.
    pub fn trouble(&self, event: &'static str, reason: &str, lost: u64) {
        self.line(event, "warn")
            .foreign("reason", reason)
            .number("lost", lost)
            .finish(&*self.sink);
    }

    fn line(&self, event: &'static str, level: &'static str) -> Line<'_> {
        let mut text = String::with_capacity(384);
        text.push_str("{\"timestamp\":\"");
        push_rfc3339(&mut text, self.clock.now_ms());
        text.push_str("\",\"level\":\"");
        text.push_str(level);
        text.push_str("\",\"event\":\"");
        text.push_str(event);
        text.push('"');
        Line { text, log: self }
    }

    fn circuit(
        &self,
        key: &BreakerKey,
        part: Option<&str>,
        transition: Transition,
        cause: CircuitCause<'_>,
    ) -> Line<'_> {
        let line = self.line("tool_call_circuit_state", "warn");
        let line = match cause {
            CircuitCause::Call(call) => line
                .call(call)
                .number("attempt", u64::from(call.attempt_count()))
                .number("elapsedMs", call.elapsed_ms()),
            CircuitCause::CutOff(gone) => line
                .foreign("requestId", &gone.request_id)
                .foreign("toolName", &gone.tool)
                .foreign("sessionKey", &gone.session_key)
                .optional("correlationId", gone.correlation_id.as_deref()),
            CircuitCause::Operator => line.optional("toolName", key.tool_name()),
        };
        line.foreign("breaker", &key.to_string())
            .optional("part", part)
            .word("fromState", transition.from.as_str())
            .word("breakerState", transition.to.as_str())
            .word("reason", transition.reason.as_str())
    }

    /// Whether the text was the last of its kind and needed neither redaction nor escapes.
    fn is_known_plain(&self, what: Repeated, text: &str) -> bool {
        // Somebody else holds it: then the work is done again, which costs time and nothing else.
        self.plain
            .try_lock()
            .is_some_and(|plain| plain[what as usize] == text)
    }

    fn remember_plain(&self, what: Repeated, text: &str) {
        if let Some(mut plain) = self.plain.try_lock() {
            text.clone_into(&mut plain[what as usize]);
        }
    }
}

/// A line being written.
struct Line<'a> {
    text: String,
    log: &'a JsonLog,
}

impl Line<'_> {
    fn name(&mut self, name: &str) {
        self.text.push_str(",\"");
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    /// A text that comes from outside.
    fn foreign(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        let clean = self.log.redactor.redact_text(value);
        push_json_string(&mut self.text, &clean);
        self
    }

    /// The same for a text that will come again.
    fn repeated(mut self, name: &str, what: Repeated, value: &str) -> Self {
        if self.log.is_known_plain(what, value) {
            return self.word(name, value);
        }
        self.name(name);
        let clean = self.log.redactor.redact_text(value);
        push_json_string(&mut self.text, &clean);
        if matches!(clean, Cow::Borrowed(_)) && is_plain(value) {
            self.log.remember_plain(what, value);
        }
        self
    }

    fn optional(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.foreign(name, value),
            None => self,
        }
    }

    /// A word of our own, which needs neither escaping nor redaction.
    fn word(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        self.text.push('"');
        self.text.push_str(value);
        self.text.push('"');
        self
    }

    fn number(mut self, name: &str, value: u64) -> Self {
        self.name(name);
        // Writing to a string can not fail.
        let _ = write!(self.text, "{value}");
        self
    }

    fn flag(mut self, name: &str, value: bool) -> Self {
        self.name(name);
        self.text.push_str(if value { "true" } else { "false" });
        self
    }

    fn call(self, call: &Call) -> Self {
        let envelope = &call.envelope;
        let session_key = &envelope.target.session_key;
        let mut line = self
            .repeated("requestId", Repeated::RequestId, &envelope.request_id)
            .repeated("toolName", Repeated::ToolName, &envelope.tool_name)
            .repeated("sessionKey", Repeated::SessionKey, session_key)
            .optional("correlationId", envelope.target.correlation_id.as_deref());
        if let Some(key) = call.stored_key {
            line.name("idempotencyKeyHash");
            // Writing to a string can not fail.
            let _ = write!(line.text, "\"{}\"", key.fingerprint());
        }
        line
    }

    fn mode(self, mode: Mode) -> Self {
        if mode == Mode::Shadow {
            self.flag("shadow", true)
        } else {
            self
        }
    }

    fn finish(mut self, sink: &dyn LineSink) {
        self.text.push_str("}\n");
        sink.line(self.text.as_bytes());
    }
}

/// Whether a text stands in a JSON string as it is.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte >= 0x20 && byte != b'"' && byte != b'\\')
}

/// Appends a JSON string.
fn push_json_string(out: &mut String, text: &str) {
    if is_plain(text) {
        out.push('"');
        out.push_str(text);
        out.push('"');
        return;
    }
    // Serialising a string can not fail.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

impl Observer for JsonLog {
    fn observe(&self, event: &Event<'_>) {
        let line = match *event {
            Event::Start { call } => self
                .line("tool_call_start", "info")
                .call(call)
                .foreign("actorId", &call.envelope.target.actor_id)
                .word("state", "started"),
            Event::End { call, result } => {
                let level = if result.is_success() { "info" } else { "warn" };
                let line = self
                    .line("tool_call_end", level)
                    .call(call)
                    .word("state", result.status.as_str())
                    .number("attempt", u64::from(result.attempts))
                    .number("elapsedMs", result.duration_ms)
                    .flag("fromCache", result.from_cache);
                let line = match &result.error {
                    Some(error) => line
                        .foreign("errorCode", &error.code)
                        .flag("retriable", error.retriable)
                        .foreign("error", &error.message),
                    None => line,
                };
                match call.breaker_state {
                    Some(state) => line.word("breakerState", state.as_str()),
                    None => line,
                }
            }
            Event::Blocked {
                call,
                code,
                why,
                mode,
            } => self
                .line("tool_call_blocked", "warn")
                .call(call)
                .word("state", "blocked")
                .foreign("errorCode", code)
                .foreign("reason", why)
                .number("elapsedMs", call.elapsed_ms())
                .mode(mode),
            Event::Signals { call, summary } => self
                .line("tool_result_signals", "warn")
                .call(call)
                .word("state", "signalled")
                .foreign("reason", summary),
            Event::Retry {
                call,
                attempt,
                delay_ms,
                reason_code,
                mode,
            } => self
                .line("tool_call_retry", "warn")
                .call(call)
                .word("state", "retrying")
                .number("attempt", u64::from(attempt))
                .number("delayMs", delay_ms)
                .number("elapsedMs", call.elapsed_ms())
                .foreign("errorCode", reason_code)
                .flag("retriable", true)
                .mode(mode),
            Event::DedupeHit { call, state, mode } => self
                .line("tool_call_dedupe", "info")
                .call(call)
                .word("state", state.as_str())
                .flag("fromCache", mode == Mode::Enforce)
                .mode(mode),
            // A wait's end says that it was answered from a record, and how long that took; runs have a
            // log of their own.
            Event::Claimed { .. } | Event::Waits { .. } | Event::Run(_) => return,
            Event::Undelivered {
                approval,
                tool,
                channel,
                error,
            } => self
                .line("approval_prompt_undelivered", "error")
                .foreign("approval", approval)
                .foreign("toolName", tool)
                .foreign("channel", channel)
                .foreign("reason", error),
            Event::Circuit {
                key,
                part,
                transition,
                cause,
            } => self.circuit(key, part, *transition, cause),
            Event::Degraded { degraded: None } => self.line("store_recovered", "info"),
            Event::Degraded {
                degraded: Some(degraded),
            } => self
                .line("store_degraded", "error")
                .foreign("reason", &degraded.why),
            Event::StoreTrouble { what, error } => self
                .line("tool_store_trouble", "error")
                .word("operation", what)
                .word("errorCode", ErrorCode::StoreUnavailable.as_str())
                .foreign("reason", &error.to_string()),
        };
        line.finish(&*self.sink);
    }
}
