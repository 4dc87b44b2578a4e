//! `OpenAI` Responses items: calls and their outputs are items of their own.

use serde_json::Value;

use super::Outcome;
use super::builder::{Answer, Builder, Joins};
use super::fields::{arguments, content_text, text, time_ms};
use super::openai_chat::says_error;

/// Takes one item.
pub(super) fn read(item: &Value, builder: &mut Builder) {
    read_at(item, time_ms(item.get("timestamp")), builder);
}

pub(super) fn read_at(item: &Value, at_ms: Option<u64>, builder: &mut Builder) {
    let bytes = item.to_string().len() as u64;
    match (text(item, "type"), text(item, "role")) {
        (Some("message") | None, Some("user")) => builder.turn(at_ms, bytes),
        (Some("message") | None, Some("assistant")) | (Some("reasoning"), _) => {
            answer(at_ms, bytes, builder);
        }
        (Some("function_call" | "custom_tool_call" | "local_shell_call"), _) => {
            answer(at_ms, bytes, builder);
            let tool = text(item, "name").unwrap_or("local_shell");
            let given = ["arguments", "input", "action"]
                .iter()
                .find_map(|key| item.get(*key));
            builder.call(
                text(item, "call_id").unwrap_or_default(),
                tool,
                arguments(given),
            );
        }
        (
            Some("function_call_output" | "custom_tool_call_output" | "local_shell_call_output"),
            _,
        ) => {
            let (said, exit_code) = output(item.get("output"));
            builder.result(
                text(item, "call_id").unwrap_or_default(),
                Outcome {
                    at_ms,
                    failed: exit_code.is_none() && says_error(&said),
                    exit_code,
                    text: said,
                },
            );
        }
        _ => builder.passed(at_ms, bytes),
    }
}

fn answer(at_ms: Option<u64>, bytes: u64, builder: &mut Builder) {
    builder.answer(&Answer {
        // All items of one answer follow each other.
        joins: Joins::Before,
        at_ms,
        bytes,
        ..Answer::default()
    });
}

/// The text, and the exit code of a command where the host wrote one down.
fn output(output: Option<&Value>) -> (String, Option<i32>) {
    let parsed = arguments(output);
    let exit_code = parsed
        .pointer("/metadata/exit_code")
        .and_then(Value::as_i64)
        .and_then(|code| i32::try_from(code).ok());
    let said = match &parsed {
        Value::Object(fields) => match fields.get("output").or_else(|| fields.get("content")) {
            Some(inner) => content_text(Some(inner)),
            None => parsed.to_string(),
        },
        _ => content_text(output),
    };
    (said, exit_code)
}
