//! Types by the schema, only where nothing is lost.

use std::str::FromStr;

use serde_json::{Number, Value};

use crate::json;
use crate::raw::Given;

pub(crate) enum Coerced {
    Fits(Value),
    WrongType {
        value: Value,
        expected: String,
    },
    /// The type fits, but the schema lists its values and this is none of them.
    WrongValue {
        value: Value,
        allowed: Vec<String>,
    },
}

/// Gives a value the type that the schema wants.
pub(crate) fn to_schema(given: Given, schema: Option<&Value>) -> Coerced {
    let types = schema.map(types_of).unwrap_or_default();
    let coerced = match given {
        Given::Json(value) => of_json(value, &types, schema),
        Given::Text(text) => of_text(text, &types, schema),
    };
    match (coerced, schema.and_then(|schema| schema.get("enum"))) {
        (Coerced::Fits(value), Some(Value::Array(options))) => of_enum(value, options),
        (coerced, _) => coerced,
    }
}

/// One of the values that the schema lists. Another spelling of exactly one of them is that one.
fn of_enum(value: Value, options: &[Value]) -> Coerced {
    if value.is_null() || options.is_empty() || options.contains(&value) {
        return Coerced::Fits(value);
    }
    let same = |option: &&Value| match (option, &value) {
        (Value::String(option), Value::String(text)) => {
            option.trim().eq_ignore_ascii_case(text.trim())
        }
        (Value::Number(option), Value::Number(number)) => option.as_f64() == number.as_f64(),
        _ => false,
    };
    let mut alike = options.iter().filter(same);
    if let (Some(option), None) = (alike.next(), alike.next()) {
        return Coerced::Fits(option.clone());
    }
    let shown = |option: &Value| {
        option
            .as_str()
            .map_or_else(|| option.to_string(), str::to_owned)
    };
    Coerced::WrongValue {
        value,
        allowed: options.iter().map(shown).collect(),
    }
}

/// Whether `null` stands in the place of an argument that wants something else: it is not given.
pub(crate) fn is_null_for(given: &Given, schema: Option<&Value>) -> bool {
    let Some(schema) = schema.filter(|schema| !defaults_to_null(schema)) else {
        return false;
    };
    let types = types_of(schema);
    let takes = |kind: &str| types.iter().any(|known| *known == kind || *known == "any");
    let null_word = |text: &str| matches!(text.trim(), "null" | "None");
    let null = match given {
        Given::Json(Value::Null) => true,
        Given::Json(Value::String(text)) | Given::Text(text) => null_word(text) && !takes("string"),
        Given::Json(_) => false,
    };
    null && !types.is_empty() && !takes("null")
}

/// Whether an empty element stands for an argument that is not given: it can only be the value of
/// a string.
pub(crate) fn is_left_out(given: &Given, schema: Option<&Value>) -> bool {
    let Given::Text(text) = given else {
        return false;
    };
    let types = schema.map(types_of).unwrap_or_default();
    text.trim().is_empty()
        && !types.is_empty()
        && !types.iter().any(|kind| matches!(*kind, "string" | "any"))
}

/// The JSON types that a schema allows; empty when it does not say. Other names of types come
/// from tool lists written for Python (`dict`, `float`, `tuple`).
pub(crate) fn types_of(schema: &Value) -> Vec<&str> {
    let plain = |name: &'_ str| match name {
        "dict" | "object" | "HashMap" => "object",
        "float" | "double" | "number" => "number",
        "int" | "long" | "integer" => "integer",
        "bool" | "boolean" | "Boolean" => "boolean",
        "list" | "tuple" | "array" | "Array" | "ArrayList" => "array",
        "str" | "string" | "String" => "string",
        "null" => "null",
        _ => "any",
    };
    match schema.get("type") {
        Some(Value::String(name)) => return vec![plain(name)],
        Some(Value::Array(names)) => {
            return names.iter().filter_map(Value::as_str).map(plain).collect();
        }
        _ => {}
    }
    for key in ["anyOf", "oneOf"] {
        if let Some(options) = schema.get(key).and_then(Value::as_array) {
            return options.iter().flat_map(types_of).collect();
        }
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array)
        && options.iter().all(Value::is_string)
    {
        return vec!["string"];
    }
    Vec::new()
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_number().is_some_and(is_integer),
        _ => true,
    }
}

fn is_integer(number: &Number) -> bool {
    let text = number.to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    !whole.is_empty() && !text.contains(['e', 'E']) && fraction.bytes().all(|byte| byte == b'0')
}

fn of_json(value: Value, types: &[&str], schema: Option<&Value>) -> Coerced {
    if types.is_empty() || types.iter().any(|kind| fits(&value, kind)) {
        return Coerced::Fits(whole_number(within(value, schema), types));
    }
    for kind in types {
        if let Some(better) = convert(&value, kind) {
            return Coerced::Fits(within(better, schema));
        }
    }
    Coerced::WrongType {
        value,
        expected: types.join(" or "),
    }
}

/// `5.0` is 5 where an integer is wanted. The digits stay as they are: as a fraction, a number above
/// 2^53 would become its neighbour with the first reader that has only doubles.
fn whole_number(value: Value, types: &[&str]) -> Value {
    if types.contains(&"integer")
        && !types.contains(&"number")
        && let Value::Number(number) = &value
        && let Some((whole, _)) = number.to_string().split_once('.')
        && let Ok(number) = Number::from_str(whole)
    {
        return Value::Number(number);
    }
    value
}

/// Members and items by their own schemas. The depth is bounded by the reader's.
fn within(value: Value, schema: Option<&Value>) -> Value {
    let Some(schema) = schema else { return value };
    let settled = |given, schema: Option<&Value>| match to_schema(Given::Json(given), schema) {
        Coerced::Fits(value)
        | Coerced::WrongType { value, .. }
        | Coerced::WrongValue { value, .. } => value,
    };
    match value {
        Value::Array(items) if schema.get("items").is_some() => Value::Array(
            items
                .into_iter()
                .map(|item| settled(item, schema.get("items")))
                .collect(),
        ),
        Value::Object(members) => {
            let properties = schema.get("properties");
            Value::Object(
                members
                    .into_iter()
                    .map(|(key, member)| {
                        let schema = properties.and_then(|known| known.get(&key));
                        let member = settled(member, schema);
                        (key, member)
                    })
                    .collect(),
            )
        }
        other => other,
    }
}

fn convert(value: &Value, kind: &str) -> Option<Value> {
    match (kind, value) {
        ("integer" | "number", Value::String(text)) => {
            let text = text.trim();
            let number = json::number_from(text)?;
            let value = Value::Number(number);
            fits(&value, kind).then(|| whole_number(value, &[kind]))
        }
        ("boolean", Value::String(text)) => match text.trim() {
            "true" | "True" | "TRUE" => Some(Value::Bool(true)),
            "false" | "False" | "FALSE" => Some(Value::Bool(false)),
            _ => None,
        },
        ("string", Value::Number(number)) => Some(Value::String(number.to_string())),
        ("null", Value::String(text)) if matches!(text.trim(), "null" | "None") => {
            Some(Value::Null)
        }
        ("object" | "array", Value::String(text)) => {
            let text = text.trim();
            let read = json::read_at(text, 0, text.len())?;
            (read.ending == json::Ending::Whole
                && read.end == text.len()
                && !read.ambiguous
                && fits(&read.value, kind))
            .then_some(read.value)
        }
        _ => None,
    }
}

fn of_text(text: String, types: &[&str], schema: Option<&Value>) -> Coerced {
    let null = matches!(text.trim(), "null" | "None");
    if null && schema.is_some_and(defaults_to_null) {
        return Coerced::Fits(Value::Null);
    }
    if types.contains(&"string") {
        return Coerced::Fits(Value::String(text));
    }
    if types.is_empty() || types.contains(&"any") {
        return Coerced::Fits(literal(&text).unwrap_or(Value::String(text)));
    }
    if null {
        return Coerced::Fits(Value::Null);
    }
    let written = Value::String(text);
    for kind in types {
        if let Some(better) = convert(&written, kind) {
            return Coerced::Fits(within(better, schema));
        }
    }
    Coerced::WrongType {
        value: written,
        expected: types.join(" or "),
    }
}

/// Whether the schema says that nothing is the usual value.
fn defaults_to_null(schema: &Value) -> bool {
    schema.get("default").is_some_and(|default| {
        default.is_null() || matches!(default.as_str(), Some("null" | "None"))
    })
}

/// Bare text that can only be meant as JSON.
fn literal(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    match trimmed {
        "true" | "True" => return Some(Value::Bool(true)),
        "false" | "False" => return Some(Value::Bool(false)),
        "null" | "None" => return Some(Value::Null),
        _ => {}
    }
    if trimmed.starts_with(['{', '[', '"']) {
        return serde_json::from_str(trimmed).ok();
    }
    Number::from_str(trimmed).ok().map(Value::Number)
}
