//! A call's arguments, put together from what crosses from JavaScript.
//!
//! Inside JSON a long text is escaped on one side and read character by character on the other. So long ones
//! cross by themselves, and in the JSON a NUL and a number stand for each.

use serde_json::Value;

/// What begins a text that stands for another one. A text of the arguments that begins so crosses by itself.
const APART: char = '\0';

/// Arguments that crossed as one JSON text; what is no JSON counts as a string.
pub(crate) fn whole(json: &str) -> Value {
    serde_json::from_str(json).unwrap_or_else(|_| Value::String(json.to_owned()))
}

/// Arguments of which some texts crossed by themselves.
pub(crate) fn with_texts(json: &str, texts: Vec<String>) -> Value {
    if texts.is_empty() {
        return whole(json);
    }
    match serde_json::from_str(json) {
        Ok(mut value) => {
            put_back(&mut value, texts);
            value
        }
        // What can not be read still differs wherever one of its texts does.
        Err(_) => std::iter::once(json.to_owned()).chain(texts).collect(),
    }
}

/// Puts every text into its place. `serde_json` reads no value that is too deep for this.
fn put_back(value: &mut Value, mut texts: Vec<String>) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => {
                let place = text.strip_prefix(APART).and_then(|at| at.parse().ok());
                if let Some(apart) = place.and_then(|at: usize| texts.get_mut(at)) {
                    *text = std::mem::take(apart);
                }
            }
            Value::Array(items) => open.extend(items),
            Value::Object(members) => open.extend(members.values_mut()),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}
