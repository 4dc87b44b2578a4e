//! Codex rollouts: Responses items in envelopes, with the tokens beside them.

use serde_json::Value;

use super::Usage;
use super::builder::Builder;
use super::fields::{number, text, time_ms};
use super::openai_responses::read_at;

/// Takes one line.
pub(super) fn read(entry: &Value, builder: &mut Builder) {
    let at_ms = time_ms(entry.get("timestamp"));
    let payload = entry.get("payload").unwrap_or(entry);
    match text(entry, "type") {
        Some("response_item") => read_at(payload, at_ms, builder),
        Some("turn_context" | "session_meta") => {
            if let Some(model) = text(payload, "model") {
                builder.model(model);
            }
        }
        Some("event_msg") if text(payload, "type") == Some("token_count") => {
            if let Some(last) = payload.pointer("/info/last_token_usage") {
                builder.usage(usage(last));
            }
        }
        // Older rollouts have no envelopes.
        Some(_) if entry.get("payload").is_none() => read_at(entry, at_ms, builder),
        _ => {}
    }
}

fn usage(usage: &Value) -> Usage {
    let cached = number(usage, "cached_input_tokens");
    Usage::recorded(
        number(usage, "input_tokens").saturating_sub(cached),
        number(usage, "output_tokens"),
        cached,
        0,
    )
}
