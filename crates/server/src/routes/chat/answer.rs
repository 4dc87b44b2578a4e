//! A run's end as a completion or an error.

use axum::response::Response;
use holdfast_agent::chat::NativeCall;
use holdfast_agent::run::{Ending, RunState};
use http::StatusCode;
use serde_json::{Value, json};

use super::error::ChatError;
use crate::executor::context_usage_percent;
use crate::respond::json_response;

/// What a client is told about its request beside the answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Notes {
    /// What it asked for, where that was too much.
    pub(super) max_tokens_asked: Option<u64>,
    /// What it got.
    pub(super) max_tokens: u32,
}

/// A run's end, in one piece.
pub(super) fn respond(state: &RunState, notes: &Notes) -> Result<Response, ChatError> {
    let (content, reason) = match ended(state, notes)? {
        Said::Answer { content, reason } => (json!({"content": content}), reason),
        Said::Calls { content, calls } => (
            json!({"content": content, "tool_calls": calls_on_wire(calls)}),
            "tool_calls",
        ),
    };
    let mut message = json!({"role": "assistant", "reasoning": state.reasoning, "refusal": null});
    if let (Value::Object(message), Value::Object(more)) = (&mut message, content) {
        message.extend(more);
    }
    let body = json!({
        "id": id(state),
        "object": "chat.completion",
        "created": created_s(state),
        "model": state.model,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": null}],
        "usage": usage(state),
        "executor_metadata": metadata(state, notes),
    });
    Ok(json_response(StatusCode::OK, &body))
}

/// What the client gets to hear.
pub(super) enum Said<'a> {
    Answer {
        content: &'a str,
        reason: &'static str,
    },
    Calls {
        content: Option<&'a str>,
        calls: &'a [NativeCall],
    },
}

/// What the client gets to hear, or why nothing.
pub(super) fn ended<'a>(state: &'a RunState, notes: &Notes) -> Result<Said<'a>, ChatError> {
    match state.ending() {
        Some(Ending::Answered { content, cut_off }) => Ok(Said::Answer {
            content,
            reason: if *cut_off { "length" } else { "stop" },
        }),
        Some(Ending::Calls { content, calls }) => Ok(Said::Calls {
            content: Some(content.as_str()).filter(|text| !text.is_empty()),
            calls,
        }),
        Some(Ending::Failed(error)) => {
            let mut told = metadata(state, notes);
            told["content"] = json!(state.content);
            Err(ChatError::failed(error.code, &error.message, state.effects).with(told))
        }
        Some(Ending::Cancelled) => Err(ChatError::cancelled().with(metadata(state, notes))),
        None => Err(ChatError::lost(&state.id, "it has not ended")),
    }
}

/// Calls as clients know them.
pub(crate) fn calls_on_wire(calls: &[NativeCall]) -> Vec<Value> {
    let wire = |call: &NativeCall| {
        let arguments = Value::Object(call.arguments.clone()).to_string();
        json!({"id": call.id, "type": "function",
               "function": {"name": call.name, "arguments": arguments}})
    };
    calls.iter().map(wire).collect()
}

/// How far a run is, in a word.
pub(crate) fn status_word(state: &RunState) -> &'static str {
    match state.ending() {
        None => "unfinished",
        Some(Ending::Answered { .. }) => "answered",
        Some(Ending::Calls { .. }) => "calls",
        Some(Ending::Failed(_)) => "failed",
        Some(Ending::Cancelled) => "cancelled",
    }
}

pub(super) fn id(state: &RunState) -> String {
    let name = state.id.strip_prefix("run-").unwrap_or(&state.id);
    format!("chatcmpl-{name}")
}

pub(super) fn created_s(state: &RunState) -> u64 {
    state.begun_at_ms / 1000
}

/// What the last answer took, and what all of them took.
pub(super) fn usage(state: &RunState) -> Value {
    let last = state.tokens.last().copied().unwrap_or_default();
    json!({
        "prompt_tokens": last.prompt,
        "completion_tokens": last.completion,
        "total_tokens": state.tokens_total(),
    })
}

pub(super) fn metadata(state: &RunState, notes: &Notes) -> Value {
    let mut told = json!({
        "run_id": state.id,
        "iterations": state.iteration,
        "tools_called": state.tools_called,
        "total_tool_execution_time_ms": state.tools_ms,
        "context_usage_percent": context_usage_percent(state),
    });
    if let Some(asked) = notes.max_tokens_asked {
        told["max_tokens_clamped"] = json!({"asked": asked, "used": notes.max_tokens});
    }
    told
}
