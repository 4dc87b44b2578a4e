//! Claude Code: one block of an answer an entry, joined by the answer's id.

use serde_json::Value;

use super::anthropic::{calls_of, results_of, usage};
use super::builder::{Answer, Builder, Joins};
use super::fields::{blocks, content_text, text, time_ms};

/// Takes one line.
pub(super) fn read(entry: &Value, builder: &mut Builder) {
    let Some(message) = entry.get("message") else {
        return;
    };
    let at_ms = time_ms(entry.get("timestamp"));
    let size = message.get("content").map_or(0, |c| c.to_string().len()) as u64;
    match text(entry, "type") {
        Some("assistant") => {
            builder.answer(&Answer {
                joins: text(message, "id").map_or(Joins::Nothing, Joins::Id),
                at_ms,
                model: text(message, "model").filter(|model| !model.starts_with('<')),
                usage: message.get("usage").map(usage),
                bytes: size,
            });
            calls_of(message, builder);
        }
        Some("user") if has_results(message) => {
            let exit_code = entry
                .pointer("/toolUseResult/exitCode")
                .or_else(|| entry.pointer("/toolUseResult/exit_code"))
                .and_then(Value::as_i64)
                .and_then(|code| i32::try_from(code).ok());
            results_of(message, at_ms, exit_code, builder);
        }
        Some("user") if is_a_persons(entry) => {
            builder.turn(at_ms, content_text(message.get("content")).len() as u64);
        }
        _ => builder.passed(at_ms, size),
    }
}

/// What the host adds by itself, and what it tells a subagent, begins no turn.
fn is_a_persons(entry: &Value) -> bool {
    let is = |key: &str| entry.get(key).and_then(Value::as_bool) == Some(true);
    !is("isMeta") && !is("isSidechain")
}

fn has_results(message: &Value) -> bool {
    blocks(message)
        .iter()
        .any(|block| text(block, "type") == Some("tool_result"))
}
