//! Reading envelopes.

use serde_json::json;

use super::*;

fn valid() -> Value {
    json!({
        "contractVersion": "1.1", "requestId": "r1", "toolName": "read",
        "toolNamespace": "holdfast.tools",
        "target": {"sessionKey": "s", "actorId": "a"},
        "payload": {"version": "1.0", "params": {"path": "x"}},
        "transport": {"dedupeMode": "enforced",
                      "retryBudget": {"maxAttempts": 4, "maxElapsedMs": 30000}},
        "control": {}, "trace": {}
    })
}

fn set(pointer: &str, new: Value) -> Value {
    let mut value = valid();
    let (parent, field) = pointer.rsplit_once('/').unwrap();
    let object = value.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    object.insert(field.to_owned(), new);
    value
}

#[test]
fn a_valid_envelope_survives_a_round_trip() {
    let envelope = ToolCallEnvelope::from_value(valid()).unwrap();
    let again = ToolCallEnvelope::from_value(serde_json::to_value(&envelope).unwrap()).unwrap();
    assert_eq!(envelope, again);
}

#[test]
fn every_required_field_is_named_when_it_is_missing() {
    for pointer in [
        "/contractVersion",
        "/requestId",
        "/toolName",
        "/toolNamespace",
        "/target",
        "/target/sessionKey",
        "/target/actorId",
        "/payload",
        "/payload/version",
        "/payload/params",
        "/transport",
        "/transport/dedupeMode",
        "/transport/retryBudget",
        "/transport/retryBudget/maxAttempts",
        "/transport/retryBudget/maxElapsedMs",
    ] {
        let mut value = valid();
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        value
            .pointer_mut(parent)
            .unwrap()
            .as_object_mut()
            .unwrap()
            .remove(field);
        let error = ToolCallEnvelope::from_value(value).unwrap_err();
        assert_eq!(error.field, pointer[1..].replace('/', "."), "{error}");
        assert_eq!(error.reason, "is required");
    }
}

#[test]
fn every_wrong_value_is_named() {
    for (pointer, value, field) in [
        ("/contractVersion", json!("1.0"), "contractVersion"),
        ("/contractVersion", json!(1.1), "contractVersion"),
        ("/toolName", json!(7), "toolName"),
        ("/toolName", json!("  "), "toolName"),
        ("/toolName", json!("x".repeat(513)), "toolName"),
        ("/requestId", json!("a\u{0}b"), "requestId"),
        ("/target", json!([]), "target"),
        ("/payload/version", json!("2.0"), "payload.version"),
        ("/payload/params", json!([1]), "payload.params"),
        ("/payload/params", json!("{}"), "payload.params"),
        (
            "/payload/idempotencyKey",
            json!(""),
            "payload.idempotencyKey",
        ),
        (
            "/payload/callHints",
            json!({"timeoutMs": -1}),
            "payload.callHints.timeoutMs",
        ),
        (
            "/payload/callHints",
            json!({"timeoutMs": 0}),
            "payload.callHints.timeoutMs",
        ),
        (
            "/payload/callHints",
            json!({"safetyCritical": 1}),
            "payload.callHints.safetyCritical",
        ),
        (
            "/payload/toolStep",
            json!({"iteration": 1}),
            "payload.toolStep.index",
        ),
        ("/transport/dedupeMode", json!("on"), "transport.dedupeMode"),
        (
            "/transport/circuitBreakerHint",
            json!("x"),
            "transport.circuitBreakerHint",
        ),
        (
            "/transport/retryBudget/maxAttempts",
            json!(0),
            "transport.retryBudget.maxAttempts",
        ),
        (
            "/transport/retryBudget/maxAttempts",
            json!(1.5),
            "transport.retryBudget.maxAttempts",
        ),
        ("/control/requestTags", json!([1]), "control.requestTags"),
        (
            "/control/deadlineAtMs",
            json!("soon"),
            "control.deadlineAtMs",
        ),
        ("/trace/baggage", json!({"a": 1}), "trace.baggage"),
    ] {
        let error = ToolCallEnvelope::from_value(set(pointer, value.clone())).unwrap_err();
        assert_eq!(error.field, field, "{value}: {error}");
    }
}

#[test]
fn nearly_a_field_is_named_and_another_field_is_an_extension() {
    for (pointer, field, meant) in [
        (
            "/idempotencyKey",
            "idempotencyKey",
            "payload.idempotencyKey",
        ),
        (
            "/payload/idempotency_key",
            "payload.idempotency_key",
            "payload.idempotencyKey",
        ),
        ("/request_id", "request_id", "requestId"),
        ("/target/sesionKey", "target.sesionKey", "sessionKey"),
        (
            "/transport/dedupe-mode",
            "transport.dedupe-mode",
            "dedupeMode",
        ),
        (
            "/transport/retryBudget/maxAttempt",
            "transport.retryBudget.maxAttempt",
            "maxAttempts",
        ),
        (
            "/control/deadlineAt_ms",
            "control.deadlineAt_ms",
            "deadlineAtMs",
        ),
        ("/trace/traceParent", "trace.traceParent", "traceparent"),
    ] {
        let error = ToolCallEnvelope::from_value(set(pointer, json!("x"))).unwrap_err();
        assert_eq!(error.field, field);
        assert!(error.reason.ends_with(&format!("`{meant}`?")), "{error}");
    }
    for pointer in [
        "/region",
        "/target/account",
        "/payload/params/idempotency_key",
    ] {
        assert!(ToolCallEnvelope::from_value(set(pointer, json!("x"))).is_ok());
    }
    // Absent and null are the same.
    assert!(ToolCallEnvelope::from_value(set("/request_id", json!(null))).is_ok());
}

#[test]
fn a_member_that_stands_twice_is_refused() {
    let text = valid().to_string();
    assert!(ToolCallEnvelope::parse(text.as_bytes()).is_ok());
    let twice = text.replace(r#""path":"x""#, r#""path":"x","path":"y""#);
    let error = ToolCallEnvelope::parse(twice.as_bytes()).unwrap_err();
    assert_eq!(
        (error.field.as_str(), error.reason.as_str()),
        ("envelope", "has `path` twice in one object")
    );
}

#[test]
fn a_bound_beyond_all_that_is_held_never_takes_hold() {
    for large in [
        "18446744073709551616",
        "1667762723102304105862128467968",
        "1e19",
        "1e300",
        "1e999",
    ] {
        let large: Value = serde_json::from_str(large).unwrap();
        let read = |pointer| ToolCallEnvelope::from_value(set(pointer, large.clone())).unwrap();
        let budget = read("/transport/retryBudget/maxElapsedMs")
            .transport
            .retry_budget;
        assert!(budget.max_elapsed_ms >= 10_u64.pow(19), "{large}");
        let control = read("/control/deadlineAtMs").control;
        assert!(control.deadline_at_ms >= Some(10_u64.pow(19)), "{large}");
    }
    for wrong in [
        "-1",
        "-1e999",
        "-1e-400",
        "0.5",
        "1e-1",
        "0.99999999999999999999",
        "1e-99999999999",
    ] {
        let wrong: Value = serde_json::from_str(wrong).unwrap();
        let error = ToolCallEnvelope::from_value(set("/control/deadlineAtMs", wrong)).unwrap_err();
        assert_eq!(error.field, "control.deadlineAtMs");
    }
}

#[test]
fn steps_that_differ_stay_different() {
    let step = |iteration: &str| {
        let iteration: Value = serde_json::from_str(iteration).unwrap();
        ToolCallEnvelope::from_value(set(
            "/payload/toolStep",
            json!({"iteration": iteration, "index": 0}),
        ))
    };
    for (written, held) in [
        ("18446744073709551615", u64::MAX),
        ("3.0", 3),
        ("1e16", 10_u64.pow(16)),
        ("12.50e1", 125),
        ("-0.0", 0),
        ("0e-99999999999", 0),
        ("9007199254740992.0", 9_007_199_254_740_992),
        ("9007199254740993.0", 9_007_199_254_740_993),
    ] {
        assert_eq!(
            step(written).unwrap().payload.tool_step.unwrap().iteration,
            held
        );
    }
    for beyond in ["18446744073709551616", "1e30", "1e999", "1e99999999999"] {
        let error = step(beyond).unwrap_err();
        assert_eq!(error.field, "payload.toolStep.iteration");
        assert_eq!(error.reason, "has to be at most 18446744073709551615");
    }
}

#[test]
fn null_arguments_are_no_arguments() {
    let envelope = ToolCallEnvelope::from_value(set("/payload/params", Value::Null)).unwrap();
    assert_eq!(envelope.payload.params, json!({}));
}

#[test]
fn enabled_is_read_as_enforced() {
    let envelope =
        ToolCallEnvelope::from_value(set("/transport/dedupeMode", json!("enabled"))).unwrap();
    assert_eq!(envelope.transport.dedupe_mode, DedupeMode::Enforced);
}

#[test]
fn unknown_fields_are_ignored() {
    assert!(ToolCallEnvelope::from_value(set("/future", json!({"x": 1}))).is_ok());
}

#[test]
fn what_could_be_read_is_kept_for_the_answer() {
    let error = ToolCallEnvelope::from_value(set("/target", json!(1))).unwrap_err();
    assert_eq!(error.request_id.as_deref(), Some("r1"));
    assert_eq!(error.tool_name.as_deref(), Some("read"));
}
