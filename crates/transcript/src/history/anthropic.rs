//! Anthropic messages: calls and results are blocks of messages.

use serde_json::Value;

use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, blocks, content_text, number, text, time_ms};
use super::{Outcome, Usage};

/// Takes one message.
pub(super) fn read(message: &Value, builder: &mut Builder) {
    let at_ms = time_ms(message.get("timestamp"));
    let size = message.get("content").map_or(0, |c| c.to_string().len()) as u64;
    match text(message, "role") {
        Some("assistant") => {
            builder.answer(&Answer {
                joins: Joins::Nothing,
                at_ms,
                model: text(message, "model"),
                usage: message.get("usage").map(usage),
                bytes: size,
            });
            calls_of(message, builder);
        }
        Some("user") => {
            let results = results_of(message, at_ms, None, builder);
            if results == 0 {
                builder.turn(at_ms, size);
            }
        }
        _ => builder.passed(at_ms, size),
    }
}

pub(super) fn calls_of(message: &Value, builder: &mut Builder) {
    for block in blocks(message) {
        if matches!(text(block, "type"), Some("tool_use" | "server_tool_use")) {
            builder.call(
                text(block, "id").unwrap_or_default(),
                text(block, "name").unwrap_or_default(),
                arguments(block.get("input")),
            );
        }
    }
}

/// Says how many there were.
pub(super) fn results_of(
    message: &Value,
    at_ms: Option<u64>,
    exit_code: Option<i32>,
    builder: &mut Builder,
) -> usize {
    let mut found = 0;
    for block in blocks(message) {
        if text(block, "type") != Some("tool_result") {
            continue;
        }
        found += 1;
        builder.result(
            text(block, "tool_use_id").unwrap_or_default(),
            Outcome {
                at_ms,
                failed: block.get("is_error").and_then(Value::as_bool) == Some(true),
                exit_code,
                text: content_text(block.get("content")),
            },
        );
    }
    found
}

pub(super) fn usage(usage: &Value) -> Usage {
    Usage::recorded(
        number(usage, "input_tokens"),
        number(usage, "output_tokens"),
        number(usage, "cache_read_input_tokens"),
        number(usage, "cache_creation_input_tokens"),
    )
}
