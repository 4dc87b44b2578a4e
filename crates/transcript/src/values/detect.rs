//! Which format messages in memory are in.

use serde_json::Value;

use crate::format::{Format, Hint, hint};
use crate::json::Strings;
use crate::limits::SNIFF_ENTRIES_MAX;

/// Which format some messages are in.
pub fn detect(messages: &[Value]) -> Format {
    let mut maybe = None;
    let mut strings = Strings::default();
    for message in messages.iter().take(SNIFF_ENTRIES_MAX) {
        let top = top(message).to_string();
        let hinted = strings
            .index(top.as_bytes())
            .and_then(|()| hint(top.as_bytes(), &strings));
        match hinted {
            Ok(Hint::Sure(format)) => return format,
            Ok(Hint::Maybe(format)) => maybe = maybe.or(Some(format)),
            _ => {}
        }
    }
    maybe.unwrap_or(Format::OpenAiChat)
}

/// What an item of a list gives away.
fn shallow_item(item: &Value) -> Value {
    let kind = item.get("type");
    match item.get("data") {
        Some(_) => serde_json::json!({"type": kind, "data": null}),
        None => serde_json::json!({"type": kind}),
    }
}

/// A message without what is deep inside it: enough to tell the format, and quick to look at.
fn top(message: &Value) -> Value {
    let Value::Object(members) = message else {
        return Value::Null;
    };
    let shallow = |value: &Value| match value {
        Value::Object(_) => Value::Object(serde_json::Map::new()),
        Value::Array(items) => items.iter().map(shallow_item).collect(),
        // No type and no role is longer.
        Value::String(text) if text.len() > 64 => Value::Null,
        other => other.clone(),
    };
    let members = members.iter();
    Value::Object(
        members
            .map(|(key, value)| (key.clone(), shallow(value)))
            .collect(),
    )
}
