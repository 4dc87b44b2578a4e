//! `LangChain`'s messages: calls on the model's message, results as messages of their own.

use serde_json::Value;

use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, content_text, number, text};
use super::{Outcome, Usage};

/// Takes one message, in any of the ways in which they are written down.
pub(super) fn read(entry: &Value, builder: &mut Builder) {
    let class = entry.get("id").and_then(Value::as_array);
    let class = class.and_then(|path| path.last()?.as_str());
    let kind = class.or_else(|| text(entry, "type")).unwrap_or_default();
    let inner = entry.get("data").or_else(|| entry.get("kwargs"));
    let message = inner.unwrap_or(entry);
    let said = content_text(message.get("content"));
    match kind {
        "human" | "HumanMessage" | "HumanMessageChunk" => builder.turn(None, said.len() as u64),
        "ai" | "AIMessage" | "AIMessageChunk" => read_answer(message, &said, builder),
        "tool" | "ToolMessage" | "ToolMessageChunk" => builder.result(
            text(message, "tool_call_id").unwrap_or_default(),
            Outcome {
                at_ms: None,
                failed: text(message, "status") == Some("error"),
                exit_code: None,
                text: said,
            },
        ),
        _ => builder.passed(None, said.len() as u64),
    }
}

fn read_answer(message: &Value, said: &str, builder: &mut Builder) {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let asked: usize = calls
        .into_iter()
        .flatten()
        .map(|it| it.to_string().len())
        .sum();
    builder.answer(&Answer {
        joins: Joins::Nothing,
        at_ms: None,
        model: message
            .pointer("/response_metadata/model_name")
            .and_then(Value::as_str),
        usage: message
            .get("usage_metadata")
            .filter(|it| it.is_object())
            .map(usage),
        bytes: (said.len() + asked) as u64,
    });
    for call in calls.into_iter().flatten() {
        builder.call(
            text(call, "id").unwrap_or_default(),
            text(call, "name").unwrap_or_default(),
            arguments(call.get("args")),
        );
    }
}

fn usage(usage: &Value) -> Usage {
    let cached = usage
        .pointer("/input_token_details/cache_read")
        .and_then(Value::as_u64)
        .unwrap_or_default();
    let input = number(usage, "input_tokens").saturating_sub(cached);
    Usage::recorded(input, number(usage, "output_tokens"), cached, 0)
}
