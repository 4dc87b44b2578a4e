//! Arguments that say what the schema wants in another type: `"1"` for a number, `null` for an argument
//! that is not given.
//!
//! Only what the schema refuses as it stands is changed, and only where nothing is lost. What is left
//! over is for the layer that validates.

use std::str::FromStr;

use holdfast_contract::twice::repeated_member;
use serde_json::{Map, Number, Value};

/// What becomes of an argument.
#[derive(Debug, PartialEq)]
enum Fitted {
    /// This stands in its place.
    To(Value),
    /// It is not given.
    LeftOut,
}

/// The arguments with the types of the schema; nothing where they stay as they are.
pub(crate) fn fitted(arguments: &Value, schema: &Value) -> Option<Value> {
    match within(arguments, schema)? {
        Fitted::To(better) => Some(better),
        Fitted::LeftOut => None,
    }
}

fn within(value: &Value, schema: &Value) -> Option<Fitted> {
    match value {
        Value::Object(members) => members_fitted(members, schema).map(Fitted::To),
        Value::Array(items) => items_fitted(items, schema).map(Fitted::To),
        // Most arguments are texts that want to be texts.
        Value::String(_) if schema["type"] == "string" => None,
        Value::String(text) => of_text(text, &types_of(schema)?).map(Fitted::To),
        Value::Null => {
            let types = types_of(schema)?;
            (!types.contains(&"null")).then_some(Fitted::LeftOut)
        }
        Value::Bool(_) | Value::Number(_) => None,
    }
}

fn members_fitted(members: &Map<String, Value>, schema: &Value) -> Option<Value> {
    let properties = schema.get("properties")?.as_object()?;
    let is_required = |name: &str| {
        let required = schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|it| it == name))
    };
    let mut better: Option<Map<String, Value>> = None;
    for (name, member) in members {
        let found = properties.get(name).and_then(|own| within(member, own));
        match found {
            None => {}
            // That it is missing is the tool's to say, in the words for what was sent.
            Some(Fitted::LeftOut) if is_required(name) => {}
            Some(Fitted::LeftOut) => {
                better.get_or_insert_with(|| members.clone()).remove(name);
            }
            Some(Fitted::To(value)) => {
                let better = better.get_or_insert_with(|| members.clone());
                better.insert(name.clone(), value);
            }
        }
    }
    better.map(Value::Object)
}

fn items_fitted(items: &[Value], schema: &Value) -> Option<Value> {
    let own = schema.get("items")?;
    let mut better: Option<Vec<Value>> = None;
    for (place, item) in items.iter().enumerate() {
        // An item that is left out would move the others.
        if let Some(Fitted::To(value)) = within(item, own) {
            better.get_or_insert_with(|| items.to_vec())[place] = value;
        }
    }
    better.map(Value::Array)
}

/// A text that is exactly one value of a type that is wanted.
fn of_text(text: &str, types: &[&str]) -> Option<Value> {
    if types.contains(&"string") {
        return None;
    }
    let text = text.trim();
    types.iter().find_map(|kind| match *kind {
        "integer" if is_whole(text) => Number::from_str(text).ok().map(Value::Number),
        "number" => Number::from_str(text).ok().map(Value::Number),
        "boolean" => bool::from_str(text).ok().map(Value::Bool),
        "null" => (text == "null").then_some(Value::Null),
        "array" | "object" => {
            let value: Value = serde_json::from_str(text).ok()?;
            let fits =
                value.is_array() && *kind == "array" || value.is_object() && *kind == "object";
            (fits && repeated_member(text.as_bytes(), &value).is_none()).then_some(value)
        }
        _ => None,
    })
}

fn is_whole(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// The types that a schema allows; nothing where it does not say, so that any may be right.
fn types_of(schema: &Value) -> Option<Vec<&str>> {
    match schema.get("type") {
        Some(Value::String(one)) => return Some(vec![one]),
        Some(Value::Array(several)) => return several.iter().map(Value::as_str).collect(),
        _ => {}
    }
    let options = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(key));
    let mut types = Vec::new();
    for option in options?.as_array()? {
        types.extend(types_of(option)?);
    }
    Some(types)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "required": ["path"], "properties": {
            "path": {"type": "string"},
            "limit": {"type": "integer"},
            "share": {"type": ["number", "null"]},
            "all": {"type": "boolean"},
            "depth": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "any": {},
            "either": {"anyOf": [{"type": "integer"}, {"enum": ["x"]}]},
            "list": {"type": "array", "items": {"type": "integer"}},
            "in": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }})
    }

    #[test]
    fn what_loses_nothing_is_read_as_the_schema_wants_it() {
        for (given, expected) in [
            (json!({"limit": "12"}), json!({"limit": 12})),
            (json!({"limit": " -3 "}), json!({"limit": -3})),
            (json!({"limit": null, "path": "a"}), json!({"path": "a"})),
            (json!({"share": "0.5"}), json!({"share": 0.5})),
            (json!({"share": "null"}), json!({"share": null})),
            (json!({"all": "true"}), json!({"all": true})),
            (json!({"depth": "2"}), json!({"depth": 2})),
            (json!({"list": "[1, 2]"}), json!({"list": [1, 2]})),
            (json!({"list": ["1", 2]}), json!({"list": [1, 2]})),
            (json!({"in": {"n": "1"}}), json!({"in": {"n": 1}})),
            (json!({"in": {"n": null}}), json!({"in": {}})),
        ] {
            assert_eq!(fitted(&given, &schema()), Some(expected), "{given}");
        }
        // Digits that no double holds.
        let large = fitted(&json!({"limit": "9007199254740993"}), &schema()).unwrap();
        assert_eq!(large["limit"].to_string(), "9007199254740993");
    }

    #[test]
    fn what_fits_or_would_lose_something_stays() {
        for given in [
            json!({"path": "12", "limit": 12, "share": null, "all": false, "depth": null}),
            json!({"any": "12", "either": "12", "unknown": "12"}),
            json!({"path": 5}),
            json!({"path": null}),
            json!({"limit": "1.5", "all": "yes", "list": "1"}),
            json!({"limit": "012x", "in": "{\"n\": 1, \"n\": 2}"}),
            json!({"limit": true, "all": 1}),
            json!([null]),
        ] {
            assert_eq!(fitted(&given, &schema()), None, "{given}");
        }
    }
}
