//! An answer in the place of a call: `{"action": "Final Answer", "action_input": "Paris"}`.

use serde_json::{Map, Value};

use crate::tools::ToolSet;

/// Names that say that there is nothing to call any more.
const NAMES: &[&str] = &["finalanswer", "finish"];
const NAME_KEYS: &[&str] = &["action", "name", "tool", "tool_name", "function"];
const INPUT_KEYS: &[&str] = &["action_input", "arguments", "input", "tool_input", "args"];
/// Keys of an answer that lies beside the model's thoughts, and of an answer in an object.
const OWN_KEYS: &[&str] = &["final_answer", "finalAnswer", "Final Answer"];
const ANSWER_KEYS: &[&str] = &[
    "answer",
    "final_answer",
    "finalAnswer",
    "output",
    "response",
    "text",
    "content",
    "result",
    "message",
];
const THOUGHT_KEYS: &[&str] = &[
    "thought",
    "thoughts",
    "reasoning",
    "reflection",
    "done",
    "action",
];

/// The answer of an object that can only be one.
pub(super) fn of_object(map: &Map<String, Value>, tools: &ToolSet) -> Option<String> {
    let is_end = |name: &str| NAMES.contains(&plain(name).as_str()) && tools.find(name).is_none();
    let named = NAME_KEYS
        .iter()
        .find_map(|key| map.get(*key)?.as_str())
        .is_some_and(is_end);
    if named {
        return INPUT_KEYS.iter().find_map(|key| of_value(map.get(*key)?));
    }
    let own = OWN_KEYS.iter().find(|key| map.contains_key(**key))?;
    let alone = map.iter().all(|(key, value)| {
        key == own || THOUGHT_KEYS.contains(&key.as_str()) && (key != "action" || value.is_null())
    });
    alone.then(|| of_value(&map[*own])).flatten()
}

/// The text of an answer: itself, or what an object calls its answer.
pub(super) fn of_value(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()).filter(|text| !text.trim().is_empty()),
        Value::Object(map) if map.is_empty() => None,
        Value::Object(map) => ANSWER_KEYS
            .iter()
            .find_map(|key| map.get(*key)?.as_str())
            .map_or_else(|| Some(value.to_string()), |text| Some(text.to_owned())),
        other => Some(other.to_string()),
    }
}

fn plain(name: &str) -> String {
    name.chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect()
}
