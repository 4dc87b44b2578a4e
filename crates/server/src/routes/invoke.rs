//! `POST /tools/invoke`: the `OpenClaw` gateway's request and answers, so that its HTTP clients can
//! be pointed at Holdfast.
//!
//! Statuses, shapes and texts are the gateway's. `code`, `reason` and `hint` of an error are ours,
//! beside them.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use holdfast_contract::clock::new_request_id;
use holdfast_contract::envelope::meant;
use holdfast_contract::twice::repeated_member;
use holdfast_contract::{
    ErrorCode, ResultError, ResultOutput, ToolCallEnvelope, ToolResultEnvelope,
};
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue, RETRY_AFTER};
use serde_json::{Map, Value};

use super::call::{http_status, is_throttled, own_code, retry_after_s};
use crate::limits::INVOKE_BODY_BYTES_MAX;
use crate::respond::{Refusal, json_response};
use crate::server::Server;
use crate::shape::tools::{InvokeAnswer, InvokeError, InvokeResult, TextPart};

/// The session of calls that name none, as in the gateway.
const MAIN_SESSION: &str = "main";
/// The actor of calls that name no account.
const ACTOR: &str = "http";
/// Names the account behind a call.
const ACCOUNT_HEADER: &str = "x-openclaw-account-id";
/// A key for clients that can not put one into the body.
const KEY_HEADER: &str = "idempotency-key";

/// The fields that identify a call.
const IDS: [&str; 6] = [
    "idempotencyKey",
    "sessionKey",
    "agentId",
    "runId",
    "turnId",
    "modelId",
];

pub(super) async fn handle(server: Arc<Server>, request: Request) -> Response {
    let _slot = match server.begin_call() {
        Ok(slot) => slot,
        Err(refusal) => return server.refuse(refusal),
    };
    let (account, key) = {
        let headers = request.headers();
        (
            text_header(headers, ACCOUNT_HEADER),
            text_header(headers, KEY_HEADER),
        )
    };
    let bytes = match server.read_json(request, INVOKE_BODY_BYTES_MAX).await {
        Ok(bytes) => bytes,
        Err(refusal) => return server.refuse(refusal),
    };
    let Ok(body) = serde_json::from_slice::<Value>(&bytes) else {
        return server.refuse(Refusal::invalid("The body is not valid JSON"));
    };
    if let Some(name) = repeated_member(&bytes, &body) {
        let twice = format!("tools.invoke: `{name}` stands twice in one object");
        return error_response(StatusCode::BAD_REQUEST, "invalid_request", &twice, None);
    }
    // A call may wait for a person, and what it was read from need not.
    drop(bytes);
    if let Some(wrong) = wrong_field(&body, key.as_deref()) {
        return error_response(StatusCode::BAD_REQUEST, "invalid_request", &wrong, None);
    }
    match envelope(&server, body, account, key) {
        Some(envelope) => answer(&server.call(envelope).await.result),
        None => error_response(
            StatusCode::BAD_REQUEST,
            "invalid_request",
            "tools.invoke requires body.tool",
            None,
        ),
    }
}

fn text_header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What identifies a call is never guessed: a key that was passed over would let the effect happen
/// twice.
fn wrong_field(body: &Value, header_key: Option<&str>) -> Option<String> {
    for name in body.as_object().into_iter().flat_map(Map::keys) {
        let meant = meant(name, &IDS).filter(|_| !IDS.contains(&name.as_str()));
        if let Some(field) = meant.and_then(|path| path.rsplit('.').next()) {
            return Some(format!(
                "tools.invoke: a field is nearly body.{field}; is that what is meant?"
            ));
        }
    }
    for name in IDS {
        match body.get(name) {
            None | Some(Value::Null | Value::String(_)) => {}
            Some(_) => return Some(format!("tools.invoke: body.{name} has to be a string")),
        }
    }
    let key = body.get("idempotencyKey")?.as_str()?.trim();
    if key.is_empty() {
        return Some("tools.invoke: body.idempotencyKey is empty".to_owned());
    }
    let differs = header_key.is_some_and(|header| header != key);
    differs.then(|| {
        "tools.invoke: the Idempotency-Key header and body.idempotencyKey differ".to_owned()
    })
}

/// The call that the body asks for; nothing when it names no tool.
fn envelope(
    server: &Server,
    body: Value,
    account: Option<String>,
    key: Option<String>,
) -> Option<ToolCallEnvelope> {
    let Value::Object(mut body) = body else {
        return None;
    };
    let mut text = |name: &str| match body.remove(name) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        _ => None,
    };
    let (tool, name) = (text("tool"), text("name"));
    let tool = tool.or(name)?;
    let (session, agent) = (text("sessionKey"), text("agentId"));
    let (body_key, action) = (text("idempotencyKey"), text("action"));
    let (run, turn, model) = (text("runId"), text("turnId"), text("modelId"));
    let args = match body.remove("args") {
        Some(Value::Object(args)) => args,
        _ => Map::new(),
    };
    let args = with_action(server, &tool, args, action);
    let runtime = server.stack.runtime();
    let says_who_it_is = session.is_some() || account.is_some();
    let mut envelope = ToolCallEnvelope::new(
        new_request_id(&*runtime.clock, &*runtime.entropy),
        tool,
        args,
        session.unwrap_or_else(|| MAIN_SESSION.to_owned()),
        account.unwrap_or_else(|| ACTOR.to_owned()),
    );
    envelope.payload.idempotency_key = body_key.or(key);
    envelope.target.agent_id = agent;
    // Clients that do not say who they are must not be locked out by each other's failures: each of
    // their calls is a turn of its own. One that names its session or its account is counted by them.
    let is_anonymous = !says_who_it_is && run.is_none();
    envelope.target.turn_id = turn.or_else(|| is_anonymous.then(|| envelope.request_id.clone()));
    envelope.target.run_id = run;
    envelope.target.model_id = model;
    Some(envelope)
}

/// `action` is an argument for tools that have one by that name.
fn with_action(
    server: &Server,
    tool: &str,
    mut args: Map<String, Value>,
    action: Option<String>,
) -> Map<String, Value> {
    let Some(action) = action else {
        return args;
    };
    let takes_it = server.stack.registry().resolve(tool).is_some_and(|found| {
        let properties = found.schema.get("properties");
        properties.is_some_and(|properties| properties.get("action").is_some())
    });
    if takes_it {
        args.entry("action").or_insert(Value::String(action));
    }
    args
}

fn answer(result: &ToolResultEnvelope) -> Response {
    match (&result.error, &result.output) {
        (None, Some(output)) => done(Some(gateway_result(output))),
        (Some(error), _) => failed(result, error),
        // A success without an output can not be, and is not worth a panic.
        (None, None) => done(None),
    }
}

fn done(result: Option<InvokeResult<'_>>) -> Response {
    json_response(StatusCode::OK, &InvokeAnswer::Done { ok: true, result })
}

/// Texts for the model, and the whole for programs.
fn gateway_result(output: &ResultOutput) -> InvokeResult<'_> {
    let content = &*output.content;
    let text = match content {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        other => Cow::Owned(other.to_string()),
    };
    InvokeResult {
        content: [TextPart { kind: "text", text }],
        details: content,
    }
}

fn failed(result: &ToolResultEnvelope, error: &ResultError) -> Response {
    let code = own_code(&error.code);
    let status = match code.map(http_status) {
        None if is_throttled(result) => StatusCode::TOO_MANY_REQUESTS,
        // A tool that was tried and failed throws, in the gateway's words.
        None | Some(StatusCode::OK) => StatusCode::INTERNAL_SERVER_ERROR,
        Some(other) => other,
    };
    let (kind, message) = match (status, code) {
        (StatusCode::NOT_FOUND, _) => (
            "not_found",
            format!("Tool not available: {}", result.tool_name),
        ),
        (StatusCode::BAD_REQUEST, Some(ErrorCode::InvalidEnvelope)) => {
            ("invalid_request", error.message.clone())
        }
        (StatusCode::FORBIDDEN, _) => ("forbidden", error.message.clone()),
        (StatusCode::INTERNAL_SERVER_ERROR, _) => {
            ("tool_error", "tool execution failed".to_owned())
        }
        _ => ("tool_error", error.message.clone()),
    };
    let mut response = error_response(status, kind, &message, Some(error));
    if let Some(seconds) = retry_after_s(status, result) {
        let value = HeaderValue::from(seconds);
        response.headers_mut().insert(RETRY_AFTER, value);
    }
    response
}

fn error_response(
    status: StatusCode,
    kind: &str,
    message: &str,
    ours: Option<&ResultError>,
) -> Response {
    let error = InvokeError::new(kind, message, ours);
    json_response(status, &InvokeAnswer::Failed { ok: false, error })
}
