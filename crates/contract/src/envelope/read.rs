//! From foreign bytes to a checked envelope.
//!
//! Written by hand rather than derived, because the answer to a bad envelope has to name the
//! field, also for one that is missing, and because `null` arguments have to read as none.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::near;
use super::whole::{Whole, whole_number};
use super::{
    ATTEMPTS_MAX, BreakerHint, CONTRACT_VERSION, CallHints, Control, DedupeMode,
    ENVELOPE_BYTES_MAX, EnvelopeError, IDEMPOTENCY_KEY_BYTES_MAX, NAME_BYTES_MAX, PAYLOAD_VERSION,
    Payload, REQUEST_TAGS_MAX, RetryBudget, Target, ToolCallEnvelope, ToolStep, Trace, Transport,
};

/// As much of a name that nobody knows is told.
const TOLD_CHARS_MAX: usize = 64;

/// What is wrong, before it is known whose envelope it is.
struct Problem {
    field: String,
    reason: String,
}

type Read<T> = Result<T, Problem>;

fn problem<T>(field: impl Into<String>, reason: impl Into<String>) -> Read<T> {
    Err(Problem {
        field: field.into(),
        reason: reason.into(),
    })
}

pub(super) fn parse(bytes: &[u8]) -> Result<ToolCallEnvelope, EnvelopeError> {
    let whole = |reason: String| EnvelopeError {
        field: "envelope".to_owned(),
        reason,
        request_id: None,
        tool_name: None,
    };
    if bytes.len() > ENVELOPE_BYTES_MAX {
        return Err(whole(format!("is larger than {ENVELOPE_BYTES_MAX} bytes")));
    }
    let value = serde_json::from_slice(bytes)
        .map_err(|error| whole(format!("is not valid JSON: {error}")))?;
    if let Some(name) = crate::twice::repeated_member(bytes, &value) {
        return Err(whole(format!("has `{name}` twice in one object")));
    }
    from_value(value)
}

pub(super) fn from_value(value: Value) -> Result<ToolCallEnvelope, EnvelopeError> {
    let name = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    let (request_id, tool_name) = (name("requestId"), name("toolName"));
    read_envelope(value)
        .and_then(|envelope| check_values(&envelope).map(|()| envelope))
        .map_err(|Problem { field, reason }| EnvelopeError {
            field,
            reason,
            request_id,
            tool_name,
        })
}

pub(super) fn check(envelope: &ToolCallEnvelope) -> Result<(), EnvelopeError> {
    check_values(envelope).map_err(|Problem { field, reason }| EnvelopeError {
        field,
        reason,
        request_id: Some(envelope.request_id.clone()),
        tool_name: Some(envelope.tool_name.clone()),
    })
}

/// An object being read, and where it stands in the envelope.
struct Object {
    path: &'static str,
    /// The names of its fields.
    known: &'static [&'static str],
    fields: Map<String, Value>,
}

impl Object {
    fn new(path: &'static str, known: &'static [&'static str], value: Value) -> Read<Self> {
        match value {
            Value::Object(fields) => Ok(Self {
                path,
                known,
                fields,
            }),
            other => problem(
                if path.is_empty() { "envelope" } else { path },
                format!("has to be an object, not {}", kind_of(&other)),
            ),
        }
    }

    /// What is left is not ours, and may be: an envelope can be extended. A field that is nearly one
    /// of ours was meant to be it, and would be passed over in silence.
    fn finish(&self) -> Read<()> {
        let left = self.fields.iter().filter(|(_, value)| !value.is_null());
        for (name, _) in left {
            if let Some(meant) = near::meant(name, self.known) {
                let reason = format!("is not a field of the envelope; did you mean `{meant}`?");
                let name: String = name.chars().take(TOLD_CHARS_MAX).collect();
                return problem(self.path_of(&name), reason);
            }
        }
        Ok(())
    }

    fn path_of(&self, field: &str) -> String {
        if self.path.is_empty() {
            field.to_owned()
        } else {
            format!("{}.{field}", self.path)
        }
    }

    /// Absent and `null` are the same to a JSON writer, so they are the same here.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.fields.remove(field).filter(|value| !value.is_null())
    }

    fn required(&mut self, field: &str) -> Read<Value> {
        match self.take(field) {
            Some(value) => Ok(value),
            None => problem(self.path_of(field), "is required"),
        }
    }

    fn wrong<T>(&self, field: &str, wanted: &str, got: &Value) -> Read<T> {
        problem(
            self.path_of(field),
            format!("has to be {wanted}, not {}", kind_of(got)),
        )
    }

    fn object(&mut self, field: &'static str, known: &'static [&'static str]) -> Read<Self> {
        Self::new(field, known, self.required(field)?)
    }

    fn text(&mut self, field: &str) -> Read<String> {
        match self.required(field)? {
            Value::String(text) => Ok(text),
            other => self.wrong(field, "a string", &other),
        }
    }

    fn optional_text(&mut self, field: &str) -> Read<Option<String>> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => self.wrong(field, "a string", &other),
        }
    }

    fn optional_flag(&mut self, field: &str) -> Read<Option<bool>> {
        match self.take(field) {
            None => Ok(None),
            Some(Value::Bool(flag)) => Ok(Some(flag)),
            Some(other) => self.wrong(field, "true or false", &other),
        }
    }

    /// A number that counts: two that differ stay different.
    fn number(&mut self, field: &str) -> Read<u64> {
        let value = self.required(field)?;
        match whole_number(&value) {
            Some(Whole::Held(number)) => Ok(number),
            Some(Whole::Beyond) => problem(
                self.path_of(field),
                format!("has to be at most {}", u64::MAX),
            ),
            None => self.wrong(field, "a whole number that is not negative", &value),
        }
    }

    /// A bound, such as a deadline. One beyond all that is held never takes hold, and is read as the last one.
    fn bound(&mut self, field: &str) -> Read<u64> {
        let value = self.required(field)?;
        self.as_bound(field, &value)
    }

    fn optional_bound(&mut self, field: &str) -> Read<Option<u64>> {
        match self.take(field) {
            None => Ok(None),
            Some(value) => self.as_bound(field, &value).map(Some),
        }
    }

    fn as_bound(&self, field: &str, value: &Value) -> Read<u64> {
        match whole_number(value) {
            Some(Whole::Held(number)) => Ok(number),
            Some(Whole::Beyond) => Ok(u64::MAX),
            None => self.wrong(field, "a whole number that is not negative", value),
        }
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "this number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn read_envelope(value: Value) -> Read<ToolCallEnvelope> {
    let mut top = Object::new("", &near::TOP, value)?;
    // The version first: with another version, every other complaint would be about nothing.
    let contract_version = top.text("contractVersion")?;
    if contract_version != CONTRACT_VERSION {
        return problem(
            "contractVersion",
            format!("has to be \"{CONTRACT_VERSION}\", not {contract_version:?}"),
        );
    }
    let envelope = ToolCallEnvelope {
        contract_version,
        request_id: top.text("requestId")?,
        tool_call_id: top.optional_text("toolCallId")?,
        tool_name: top.text("toolName")?,
        tool_namespace: top.text("toolNamespace")?,
        target: read_target(top.object("target", &near::TARGET)?)?,
        payload: read_payload(top.object("payload", &near::PAYLOAD)?)?,
        transport: read_transport(top.object("transport", &near::TRANSPORT)?)?,
        control: match top.take("control") {
            Some(value) => read_control(Object::new("control", &near::CONTROL, value)?)?,
            None => Control::default(),
        },
        trace: match top.take("trace") {
            Some(value) => read_trace(Object::new("trace", &near::TRACE, value)?)?,
            None => Trace::default(),
        },
    };
    top.finish()?;
    Ok(envelope)
}

fn read_target(mut object: Object) -> Read<Target> {
    let target = Target {
        agent_id: object.optional_text("agentId")?,
        session_key: object.text("sessionKey")?,
        actor_id: object.text("actorId")?,
        workspace_id: object.optional_text("workspaceId")?,
        correlation_id: object.optional_text("correlationId")?,
        tenant_id: object.optional_text("tenantId")?,
        run_id: object.optional_text("runId")?,
        turn_id: object.optional_text("turnId")?,
        model_id: object.optional_text("modelId")?,
    };
    object.finish()?;
    Ok(target)
}

fn read_payload(mut object: Object) -> Read<Payload> {
    let version = object.text("version")?;
    if version != PAYLOAD_VERSION {
        return problem(
            "payload.version",
            format!("has to be \"{PAYLOAD_VERSION}\", not {version:?}"),
        );
    }
    // A model that means "no arguments" sends {}, null or nothing; all three have to reach the
    // loop guard as the same call.
    let params = match object.fields.remove("params") {
        None => return problem("payload.params", "is required"),
        Some(Value::Null) => Value::Object(Map::new()),
        Some(params @ Value::Object(_)) => params,
        Some(other) => return object.wrong("params", "an object", &other),
    };
    let payload = Payload {
        version,
        params,
        idempotency_key: object.optional_text("idempotencyKey")?,
        call_hints: match object.take("callHints") {
            Some(value) => {
                let hints = Object::new("payload.callHints", &near::CALL_HINTS, value)?;
                Some(read_hints(hints)?)
            }
            None => None,
        },
        tool_step: match object.take("toolStep") {
            Some(value) => {
                let mut step = Object::new("payload.toolStep", &near::TOOL_STEP, value)?;
                let (iteration, index) = (step.number("iteration")?, step.number("index")?);
                step.finish()?;
                Some(ToolStep { iteration, index })
            }
            None => None,
        },
    };
    object.finish()?;
    Ok(payload)
}

fn read_hints(mut object: Object) -> Read<CallHints> {
    let hints = CallHints {
        safety_critical: object.optional_flag("safetyCritical")?,
        expected_retry_safe: object.optional_flag("expectedRetrySafe")?,
        timeout_ms: object.optional_bound("timeoutMs")?,
    };
    object.finish()?;
    Ok(hints)
}

fn read_transport(mut object: Object) -> Read<Transport> {
    let dedupe_mode = match object.text("dedupeMode")?.as_str() {
        // "enabled" is what the acceptance matrix of the first specification wrote.
        "enforced" | "enabled" => DedupeMode::Enforced,
        "bestEffort" => DedupeMode::BestEffort,
        "disabled" => DedupeMode::Disabled,
        other => {
            return problem(
                "transport.dedupeMode",
                format!("has to be enforced, bestEffort or disabled, not {other:?}"),
            );
        }
    };
    let circuit_breaker_hint = match object.optional_text("circuitBreakerHint")?.as_deref() {
        None => None,
        Some("tool") => Some(BreakerHint::Tool),
        Some("dependency") => Some(BreakerHint::Dependency),
        Some("global") => Some(BreakerHint::Global),
        Some(other) => {
            return problem(
                "transport.circuitBreakerHint",
                format!("has to be tool, dependency or global, not {other:?}"),
            );
        }
    };
    let budget = object.required("retryBudget")?;
    let mut budget = Object::new("transport.retryBudget", &near::RETRY_BUDGET, budget)?;
    let max_attempts = budget.bound("maxAttempts")?;
    let max_elapsed_ms = budget.bound("maxElapsedMs")?;
    budget.finish()?;
    object.finish()?;
    Ok(Transport {
        dedupe_mode,
        retry_budget: RetryBudget {
            max_attempts: u32::try_from(max_attempts).unwrap_or(u32::MAX),
            max_elapsed_ms,
        },
        circuit_breaker_hint,
    })
}

fn read_control(mut object: Object) -> Read<Control> {
    let mut request_tags = Vec::new();
    match object.take("requestTags") {
        None => {}
        Some(Value::Array(tags)) => {
            for tag in tags {
                match tag {
                    Value::String(text) => request_tags.push(text),
                    other => return object.wrong("requestTags", "a list of strings", &other),
                }
            }
        }
        Some(other) => return object.wrong("requestTags", "a list of strings", &other),
    }
    let control = Control {
        deadline_at_ms: object.optional_bound("deadlineAtMs")?,
        request_tags,
        from_hook: object.optional_text("fromHook")?,
    };
    object.finish()?;
    Ok(control)
}

fn read_trace(mut object: Object) -> Read<Trace> {
    let baggage = match object.take("baggage") {
        None => None,
        Some(Value::Object(entries)) => {
            let mut baggage = BTreeMap::new();
            for (name, value) in entries {
                match value {
                    Value::String(text) => baggage.insert(name, text),
                    other => return object.wrong("baggage", "an object of strings", &other),
                };
            }
            Some(baggage)
        }
        Some(other) => return object.wrong("baggage", "an object of strings", &other),
    };
    let trace = Trace {
        traceparent: object.optional_text("traceparent")?,
        baggage,
    };
    object.finish()?;
    Ok(trace)
}

fn check_values(envelope: &ToolCallEnvelope) -> Read<()> {
    if envelope.contract_version != CONTRACT_VERSION {
        return problem(
            "contractVersion",
            format!("has to be \"{CONTRACT_VERSION}\""),
        );
    }
    let target = &envelope.target;
    for (field, text) in [
        ("requestId", &envelope.request_id),
        ("toolNamespace", &envelope.tool_namespace),
        ("toolName", &envelope.tool_name),
        ("target.sessionKey", &target.session_key),
        ("target.actorId", &target.actor_id),
    ] {
        if text.trim().is_empty() {
            return problem(field, "must not be empty");
        }
        check_length(field, text, NAME_BYTES_MAX)?;
    }
    for (field, text) in [
        ("toolCallId", &envelope.tool_call_id),
        ("target.agentId", &target.agent_id),
        ("target.workspaceId", &target.workspace_id),
        ("target.correlationId", &target.correlation_id),
        ("target.tenantId", &target.tenant_id),
        ("target.runId", &target.run_id),
        ("target.turnId", &target.turn_id),
        ("target.modelId", &target.model_id),
        ("control.fromHook", &envelope.control.from_hook),
        ("trace.traceparent", &envelope.trace.traceparent),
    ] {
        check_length(field, text.as_deref().unwrap_or_default(), NAME_BYTES_MAX)?;
    }
    if !envelope.payload.params.is_object() {
        return problem("payload.params", "has to be an object");
    }
    if let Some(key) = &envelope.payload.idempotency_key {
        if key.trim().is_empty() {
            return problem("payload.idempotencyKey", "must not be empty");
        }
        check_length("payload.idempotencyKey", key, IDEMPOTENCY_KEY_BYTES_MAX)?;
    }
    if !(1..=ATTEMPTS_MAX).contains(&envelope.transport.retry_budget.max_attempts) {
        return problem(
            "transport.retryBudget.maxAttempts",
            format!("has to be between 1 and {ATTEMPTS_MAX}"),
        );
    }
    if envelope.hints().timeout_ms == Some(0) {
        return problem("payload.callHints.timeoutMs", "has to be at least 1");
    }
    if envelope.control.request_tags.len() > REQUEST_TAGS_MAX {
        return problem(
            "control.requestTags",
            format!("has more than {REQUEST_TAGS_MAX} entries"),
        );
    }
    for tag in &envelope.control.request_tags {
        check_length("control.requestTags", tag, NAME_BYTES_MAX)?;
    }
    Ok(())
}

fn check_length(field: &str, text: &str, bytes_max: usize) -> Read<()> {
    if text.len() > bytes_max {
        return problem(field, format!("is longer than {bytes_max} bytes"));
    }
    if text.contains('\0') {
        return problem(field, "must not contain a NUL character");
    }
    Ok(())
}

#[cfg(test)]
mod tests;
