//! A run's end as a completion or an error.

use axum::response::Response;
use holdfast_agent::chat::NativeCall;
use holdfast_agent::run::{Ending, RunState};
use holdfast_agent::runs::Lost;
use http::StatusCode;
use serde_json::json;

use super::error::ChatError;
use crate::executor::context_usage_percent;
use crate::respond::json_response;
use crate::shape::model::{
    CallLeftOut, CallShown, Choice, ChoiceMessage, Clamped, Completion, FunctionShown, Metadata,
    NotDoneShown, UsageShown,
};

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
    let (content, tool_calls, finish_reason) = match ended(state, notes)? {
        Said::Answer { content, reason } => (Some(content), None, reason),
        Said::Calls { content, calls } => (content, Some(calls_shown(calls)), "tool_calls"),
    };
    let body = Completion {
        id: id(state),
        object: "chat.completion",
        created: created_s(state),
        model: &state.model,
        choices: [Choice {
            index: 0,
            message: ChoiceMessage {
                role: "assistant",
                content,
                reasoning: &state.reasoning,
                refusal: None,
                tool_calls,
            },
            finish_reason,
            logprobs: None,
        }],
        usage: usage(state),
        executor_metadata: metadata(state, notes),
    };
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
        Some(ending @ Ending::Answered { content, .. }) => Ok(Said::Answer {
            content,
            reason: ending.finish_reason(),
        }),
        Some(Ending::Calls { content, calls, .. }) => Ok(Said::Calls {
            content: Some(content.as_str()).filter(|text| !text.is_empty()),
            calls,
        }),
        Some(Ending::Failed(error)) => {
            let told = Metadata {
                content: Some(&state.content),
                ..metadata(state, notes)
            };
            Err(ChatError::failed(error, state.effects).with(json!(told)))
        }
        Some(Ending::Cancelled) => Err(ChatError::cancelled().with(json!(metadata(state, notes)))),
        None => Err(ChatError::lost(&state.id, &Lost::Fault)),
    }
}

/// Calls as clients know them.
pub(crate) fn calls_shown(calls: &[NativeCall]) -> Vec<CallShown> {
    let shown = |call: &NativeCall| CallShown {
        id: call.id.clone(),
        kind: "function",
        function: FunctionShown {
            name: call.name.clone(),
            arguments: json!(call.arguments).to_string(),
        },
    };
    calls.iter().map(shown).collect()
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
pub(super) fn usage(state: &RunState) -> UsageShown {
    let last = state.tokens.last().copied().unwrap_or_default();
    UsageShown {
        prompt_tokens: last.prompt,
        completion_tokens: last.completion,
        total_tokens: state.tokens_total(),
    }
}

pub(super) fn metadata<'a>(state: &'a RunState, notes: &Notes) -> Metadata<'a> {
    Metadata {
        run_id: &state.id,
        iterations: state.iteration,
        tools_called: &state.tools_called,
        total_tool_execution_time_ms: state.tools_ms,
        context_usage_percent: context_usage_percent(state),
        max_tokens_clamped: notes.max_tokens_asked.map(|asked| Clamped {
            asked,
            used: notes.max_tokens,
        }),
        content: None,
        not_done: not_done(state),
        calls_left_out: left_out(state),
    }
}

/// What the model wanted at the end and nothing came of.
fn not_done(state: &RunState) -> Vec<NotDoneShown<'_>> {
    state
        .not_done
        .iter()
        .map(|wish| NotDoneShown {
            tool: &wish.tool,
            arguments: &wish.arguments,
            why: &wish.why,
        })
        .collect()
}

/// The calls that are not given to the client because they stayed wrong.
pub(crate) fn left_out(state: &RunState) -> Vec<CallLeftOut<'_>> {
    let Some(Ending::Calls { left_out, .. }) = state.ending() else {
        return Vec::new();
    };
    let shown = left_out.iter().map(|call| CallLeftOut {
        name: &call.name,
        reason: &call.reason,
    });
    shown.collect()
}
