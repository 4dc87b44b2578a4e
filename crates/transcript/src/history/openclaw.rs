//! `OpenClaw`: one event an entry, messages inside.

use serde_json::Value;

use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, blocks, content_text, number, text, time_ms};
use super::{Outcome, Usage};

/// Takes one event.
pub(super) fn read(entry: &Value, builder: &mut Builder) {
    let at_ms = time_ms(entry.get("timestamp"));
    match text(entry, "type") {
        Some("model_change") => {
            if let Some(model) = text(entry, "modelId") {
                builder.model(model);
            }
        }
        Some("message") => {
            if let Some(message) = entry.get("message") {
                read_message(message, at_ms, builder);
            }
        }
        Some("compaction") => builder.passed(at_ms, text(entry, "summary").map_or(0, len)),
        _ => {}
    }
}

fn read_message(message: &Value, at_ms: Option<u64>, builder: &mut Builder) {
    let at_ms = at_ms.or_else(|| time_ms(message.get("timestamp")));
    match text(message, "role") {
        Some("user") => builder.turn(at_ms, len(&content_text(message.get("content")))),
        Some("assistant") => read_answer(message, at_ms, builder),
        Some("toolResult") => builder.result(
            text(message, "toolCallId").unwrap_or_default(),
            Outcome {
                at_ms,
                failed: message.get("isError").and_then(Value::as_bool) == Some(true),
                exit_code: exit_code(message.get("details")),
                text: content_text(message.get("content")),
            },
        ),
        _ => builder.passed(at_ms, len(&content_text(message.get("content")))),
    }
}

fn read_answer(message: &Value, at_ms: Option<u64>, builder: &mut Builder) {
    builder.answer(&Answer {
        joins: Joins::Nothing,
        at_ms,
        model: text(message, "model"),
        usage: message.get("usage").map(usage),
        bytes: message
            .get("content")
            .map_or(0, |content| len(&content.to_string())),
    });
    for block in blocks(message) {
        if matches!(
            text(block, "type"),
            Some("toolCall" | "toolUse" | "functionCall")
        ) {
            builder.call(
                text(block, "id").unwrap_or_default(),
                text(block, "name").unwrap_or_default(),
                arguments(block.get("arguments").or_else(|| block.get("input"))),
            );
        }
    }
}

fn usage(usage: &Value) -> Usage {
    let cost = usage.pointer("/cost/total").and_then(Value::as_f64);
    Usage {
        // A host without a price list writes 0, which is not a price.
        cost_usd: cost.filter(|cost| *cost > 0.0),
        ..Usage::recorded(
            number(usage, "input"),
            number(usage, "output"),
            number(usage, "cacheRead"),
            number(usage, "cacheWrite"),
        )
    }
}

fn exit_code(details: Option<&Value>) -> Option<i32> {
    i32::try_from(details?.get("exitCode")?.as_i64()?).ok()
}

fn len(text: &str) -> u64 {
    text.len() as u64
}
