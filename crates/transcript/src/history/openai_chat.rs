//! `OpenAI` chat messages: calls on the assistant's message, results as messages of their own.

use serde_json::Value;

use super::Outcome;
use super::Usage;
use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, content_text, number, text, time_ms};

/// Takes one message.
pub(super) fn read(message: &Value, builder: &mut Builder) {
    let at_ms = time_ms(message.get("timestamp"));
    let said = content_text(message.get("content"));
    match text(message, "role") {
        Some("user") => builder.turn(at_ms, said.len() as u64),
        Some("assistant") => read_answer(message, at_ms, &said, builder),
        Some("tool" | "function") => {
            // Without an id, the tool's name has to do.
            let names = ["tool_call_id", "name", "tool_name"];
            let id = names.iter().find_map(|name| text(message, name));
            builder.result(
                id.unwrap_or_default(),
                Outcome {
                    at_ms,
                    // The format has no mark for errors; hosts begin the text with the word.
                    failed: says_error(&said),
                    exit_code: None,
                    text: said,
                },
            );
        }
        _ => builder.passed(at_ms, said.len() as u64),
    }
}

fn read_answer(message: &Value, at_ms: Option<u64>, said: &str, builder: &mut Builder) {
    let asked = message
        .get("tool_calls")
        .map_or(0, |calls| calls.to_string().len());
    builder.answer(&Answer {
        joins: Joins::Nothing,
        at_ms,
        model: text(message, "model"),
        usage: message.get("usage").map(usage),
        bytes: (said.len() + asked) as u64,
    });
    for call in message
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let function = call.get("function").unwrap_or(call);
        builder.call(
            text(call, "id").unwrap_or_default(),
            text(function, "name").unwrap_or_default(),
            arguments(function.get("arguments")),
        );
    }
    if let Some(function) = message.get("function_call").filter(|call| call.is_object()) {
        let name = text(function, "name").unwrap_or_default();
        builder.call(name, name, arguments(function.get("arguments")));
    }
}

pub(super) fn usage(usage: &Value) -> Usage {
    let cached = usage
        .pointer("/prompt_tokens_details/cached_tokens")
        .or_else(|| usage.pointer("/input_tokens_details/cached_tokens"))
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let input = number(usage, "prompt_tokens").max(number(usage, "input_tokens"));
    let output = number(usage, "completion_tokens").max(number(usage, "output_tokens"));
    Usage::recorded(input.saturating_sub(cached), output, cached, 0)
}

/// Only the foreign text is there to tell.
pub(super) fn says_error(text: &str) -> bool {
    let begin = text.trim_start();
    [
        "error",
        "Error",
        "ERROR",
        "{\"error\"",
        "Traceback (most recent call last)",
    ]
    .iter()
    .any(|word| begin.starts_with(word))
}
