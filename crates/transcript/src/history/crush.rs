//! Crush: messages whose calls and results are parts with data.

use serde_json::Value;

use super::Outcome;
use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, text};

/// Times below this are seconds.
const SECONDS_MAX: u64 = 100_000_000_000;

/// Takes one message.
pub(super) fn read(message: &Value, builder: &mut Builder) {
    let at = message.get("created_at").and_then(Value::as_u64);
    let at_ms = at.map(|at| if at < SECONDS_MAX { at * 1000 } else { at });
    let parts = message.get("parts");
    let size = parts.map_or(0, |it| it.to_string().len()) as u64;
    let parts = parts.and_then(Value::as_array).into_iter().flatten();
    let of = |kind: &'static str| {
        let parts = parts.clone();
        let parts = parts.filter(move |part| text(part, "type") == Some(kind));
        parts.filter_map(|part| part.get("data"))
    };
    match text(message, "role") {
        Some("assistant") => {
            builder.answer(&Answer {
                joins: Joins::Nothing,
                at_ms,
                model: text(message, "model").filter(|model| !model.is_empty()),
                usage: None,
                bytes: size,
            });
            for call in of("tool_call") {
                builder.call(
                    text(call, "id").unwrap_or_default(),
                    text(call, "name").unwrap_or_default(),
                    arguments(call.get("input")),
                );
            }
        }
        Some("tool") => {
            for result in of("tool_result") {
                builder.result(
                    text(result, "tool_call_id").unwrap_or_default(),
                    Outcome {
                        at_ms,
                        failed: result.get("is_error").and_then(Value::as_bool) == Some(true),
                        exit_code: None,
                        text: text(result, "content").unwrap_or_default().to_owned(),
                    },
                );
            }
        }
        Some("user") => builder.turn(at_ms, size),
        _ => builder.passed(at_ms, size),
    }
}
