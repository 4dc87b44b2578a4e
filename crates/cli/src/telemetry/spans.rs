//! From what a call recorded to its spans.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{ErrorCode, RetryNote, ToolResultEnvelope};
use holdfast_reliability::call::Call;
use holdfast_reliability::idempotency::record::{AttemptNote, AttemptStatus};
use holdfast_reliability::observe::metrics::{Metrics, SpanOutcome};
use holdfast_reliability::observe::{Event, Observer};
use opentelemetry::trace::{Span as _, SpanBuilder, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::SdkTracer;

use super::{TRACE_MESSAGE_CHARS_MAX, traceparent};

/// Builds the spans of every call that ends.
pub(super) struct SpanObserver {
    tracer: SdkTracer,
    redactor: Redactor,
    metrics: Arc<Metrics>,
}

impl SpanObserver {
    pub(super) fn new(tracer: SdkTracer, redactor: Redactor, metrics: Arc<Metrics>) -> Self {
        Self {
            tracer,
            redactor,
            metrics,
        }
    }
}

impl Observer for SpanObserver {
    fn observe(&self, event: &Event<'_>) {
        let Event::End { call, result } = *event else {
            return;
        };
        let ended = Ended {
            call,
            result,
            tracer: &self.tracer,
            redactor: &self.redactor,
        };
        let built = ended.tell();
        self.metrics.count_spans(SpanOutcome::Built, built);
    }
}

/// A stretch of wall time.
#[derive(Clone, Copy)]
struct Stretch {
    begun_ms: u64,
    ended_ms: u64,
}

impl Stretch {
    /// The part of it that lies within another. Wall time can jump while a call runs, and two
    /// roundings can differ by a millisecond; a child never reaches out of its parent.
    fn within(self, outer: Self) -> Self {
        let begun_ms = self.begun_ms.clamp(outer.begun_ms, outer.ended_ms);
        Self {
            begun_ms,
            ended_ms: self.ended_ms.clamp(begun_ms, outer.ended_ms),
        }
    }
}

/// A call that has ended.
struct Ended<'a> {
    call: &'a Call,
    result: &'a ToolResultEnvelope,
    tracer: &'a SdkTracer,
    redactor: &'a Redactor,
}

impl Ended<'_> {
    /// Hands the call's spans over and says how many there were.
    fn tell(&self) -> u64 {
        let begun_ms = self.call.admitted_at_ms;
        let whole = Stretch {
            begun_ms,
            ended_ms: begun_ms.saturating_add(self.result.duration_ms),
        };
        let parent = self.parent();
        let status = match &self.result.error {
            Some(error) => self.failed(&error.message),
            None => Status::Unset,
        };
        let mut span = self.tracer.build_with_context(
            self.builder("tool_execution", whole, self.attributes()),
            &parent,
        );
        if !span.is_recording() {
            return 0;
        }
        span.set_status(status);
        let context = parent.with_remote_span_context(span.span_context().clone());
        let mut built = 1;
        for (index, note) in self.call.attempts.iter().enumerate() {
            self.attempt(&context, index, note, whole);
            built += 1;
        }
        for note in &self.result.retried_by {
            self.delay(&context, note, whole);
            built += 1;
        }
        span.end_with_timestamp(at(whole.ended_ms));
        built
    }

    /// The caller's span, when it named one.
    fn parent(&self) -> Context {
        let named = self.call.envelope.trace.traceparent.as_deref();
        match named.and_then(traceparent::parse) {
            Some(remote) => Context::new().with_remote_span_context(remote),
            None => Context::new(),
        }
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let (call, result) = (self.call, self.result);
        let envelope = &call.envelope;
        let mut attributes = vec![
            self.foreign("tool.name", &envelope.tool_name),
            self.foreign("request.id", &envelope.request_id),
            self.foreign("session.key", &envelope.target.session_key),
            KeyValue::new("tool.status", result.status.as_str()),
            KeyValue::new("retry.attempt", i64::from(result.attempts)),
            KeyValue::new("from_cache", result.from_cache),
        ];
        if let Some(id) = &envelope.target.correlation_id {
            attributes.push(self.foreign("correlation.id", id));
        }
        if let Some(key) = call.stored_key {
            // Whoever has a key can claim its record, so only the fingerprint leaves.
            let fingerprint = key.fingerprint().to_string();
            attributes.push(KeyValue::new("idempotency.key", fingerprint));
        }
        let in_error = result.error.as_ref().and_then(|error| error.breaker_state);
        if let Some(state) = call.breaker_state.or(in_error) {
            attributes.push(KeyValue::new("breaker.state", state.as_str()));
        }
        if let Some(error) = &result.error {
            attributes.push(self.foreign("error.code", &error.code));
        }
        attributes
    }

    fn attempt(&self, parent: &Context, index: usize, note: &AttemptNote, whole: Stretch) {
        let number = index + 1;
        let stretch = self.stretch_of(number, note, whole);
        let mut attributes = vec![
            self.foreign("tool.name", &self.call.envelope.tool_name),
            KeyValue::new("retry.attempt", number_value(number as u64)),
        ];
        let mut status = Status::Unset;
        if note.status == AttemptStatus::Error {
            let code = note.error_code.as_deref().unwrap_or_default();
            attributes.push(self.foreign("error.code", code));
            attributes.push(KeyValue::new("error.retriable", note.retriable));
            status = self.failed(code);
        }
        self.child(parent, "tool_attempt", stretch, attributes, status);
    }

    fn delay(&self, parent: &Context, note: &RetryNote, whole: Stretch) {
        let number = note.attempt as usize;
        let before = number
            .checked_sub(1)
            .and_then(|index| self.call.attempts.get(index));
        let begun_ms = before.map_or(whole.begun_ms, |attempt| {
            self.stretch_of(number, attempt, whole).ended_ms
        });
        let stretch = Stretch {
            begun_ms,
            ended_ms: begun_ms.saturating_add(note.delay_ms),
        };
        let attributes = vec![
            KeyValue::new("retry.attempt", i64::from(note.attempt)),
            KeyValue::new("retry.delay_ms", number_value(note.delay_ms)),
            self.foreign("retry.reason", &note.reason_code),
        ];
        let stretch = stretch.within(whole);
        self.child(parent, "retry_delay", stretch, attributes, Status::Unset);
    }

    /// When an attempt ran. One that was cut off could not note its end: it lasted until the
    /// retry after it was decided, or until the call was answered.
    fn stretch_of(&self, number: usize, note: &AttemptNote, whole: Stretch) -> Stretch {
        let was_cut_off = note.finished_at_ms == note.started_at_ms
            && note.error_code.as_deref() == Some(ErrorCode::OutcomeUnknown.as_str());
        let ended_ms = if was_cut_off {
            let mut retries = self.result.retried_by.iter();
            let after = retries.find(|retry| retry.attempt as usize == number);
            after.map_or(whole.ended_ms, |retry| {
                note.started_at_ms.saturating_add(retry.latency_ms)
            })
        } else {
            note.finished_at_ms
        };
        let stretch = Stretch {
            begun_ms: note.started_at_ms,
            ended_ms,
        };
        stretch.within(whole)
    }

    fn child(
        &self,
        parent: &Context,
        name: &'static str,
        stretch: Stretch,
        attributes: Vec<KeyValue>,
        status: Status,
    ) {
        let builder = self.builder(name, stretch, attributes);
        let mut span = self.tracer.build_with_context(builder, parent);
        span.set_status(status);
        span.end_with_timestamp(at(stretch.ended_ms));
    }

    fn builder(
        &self,
        name: &'static str,
        stretch: Stretch,
        attributes: Vec<KeyValue>,
    ) -> SpanBuilder {
        self.tracer
            .span_builder(name)
            .with_start_time(at(stretch.begun_ms))
            .with_attributes(attributes)
    }

    /// A text that comes from outside.
    fn foreign(&self, name: &'static str, value: &str) -> KeyValue {
        KeyValue::new(name, self.redactor.redact_text(value).into_owned())
    }

    fn failed(&self, message: &str) -> Status {
        // Redacted as a whole: half a secret would no longer look like one.
        let clean = self.redactor.redact_text(message);
        Status::error(
            clean
                .chars()
                .take(TRACE_MESSAGE_CHARS_MAX)
                .collect::<String>(),
        )
    }
}

/// `OpenTelemetry` counts with a sign.
fn number_value(number: u64) -> Value {
    Value::I64(i64::try_from(number).unwrap_or(i64::MAX))
}

fn at(unix_ms: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(unix_ms)
}

#[cfg(test)]
#[path = "spans_tests.rs"]
mod tests;
