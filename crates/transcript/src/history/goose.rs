//! Goose: messages whose calls and results are blocks.

use serde_json::Value;

use super::Outcome;
use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, blocks, content_text, text};

/// Takes one message; the header says nothing that is counted.
pub(super) fn read(message: &Value, builder: &mut Builder) {
    let seconds = message.get("created").and_then(Value::as_u64);
    let at_ms = seconds.map(|seconds| seconds.saturating_mul(1000));
    let size = message.get("content").map_or(0, |it| it.to_string().len()) as u64;
    match text(message, "role") {
        Some("assistant") => {
            builder.answer(&Answer {
                joins: Joins::Before,
                at_ms,
                bytes: size,
                ..Answer::default()
            });
            for block in blocks(message) {
                if text(block, "type") == Some("toolRequest") {
                    let call = block.get("toolCall").unwrap_or(&Value::Null);
                    let call = call.get("value").unwrap_or(call);
                    builder.call(
                        text(block, "id").unwrap_or_default(),
                        text(call, "name").unwrap_or_default(),
                        arguments(call.get("arguments")),
                    );
                }
            }
        }
        Some("user") => {
            let results = blocks(message).iter();
            let mut results = results
                .filter(|block| text(block, "type") == Some("toolResponse"))
                .peekable();
            if results.peek().is_none() {
                return builder.turn(at_ms, size);
            }
            for block in results {
                let id = text(block, "id").unwrap_or_default();
                builder.result(id, outcome(block, at_ms));
            }
        }
        _ => {}
    }
}

fn outcome(block: &Value, at_ms: Option<u64>) -> Outcome {
    let result = block.get("toolResult").unwrap_or(&Value::Null);
    let value = result.get("value").unwrap_or(result);
    let content = value.get("content").unwrap_or(value);
    let is_error = value.get("isError").and_then(Value::as_bool) == Some(true);
    Outcome {
        at_ms,
        failed: is_error || text(result, "status") == Some("error"),
        exit_code: None,
        text: text(result, "error").map_or_else(|| content_text(Some(content)), str::to_owned),
    }
}
