//! Strict JSON and nothing else: the whole reply is one call, a list of calls, or `tool_calls`.

use serde_json::{Map, Value};

use crate::score::Said;

pub fn parse(text: &str) -> Vec<Said> {
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value) => calls(&value),
        Err(_) => Vec::new(),
    }
}

fn calls(value: &Value) -> Vec<Said> {
    match value {
        Value::Array(items) => items.iter().flat_map(calls).collect(),
        Value::Object(map) => {
            if let Some(list) = map.get("tool_calls") {
                return calls(list);
            }
            let inner = map.get("function").filter(|inner| inner.is_object());
            let call = inner.and_then(Value::as_object).unwrap_or(map);
            single(call).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

fn single(map: &Map<String, Value>) -> Option<Said> {
    let name = map.get("name")?.as_str()?.to_owned();
    let arguments = map.get("arguments").or_else(|| map.get("parameters"))?;
    let arguments = match arguments {
        Value::Object(arguments) => arguments.clone(),
        Value::String(text) => serde_json::from_str(text).ok()?,
        _ => return None,
    };
    Some(Said { name, arguments })
}
