//! What elements that can nest give as values, by the tool's schema.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::xml::without_cdata;
use crate::coerce;
use crate::raw::Given;

/// The schema of a member or of a list's items.
pub(super) fn child_schema<'s>(parent: &'s Value, key: &str) -> Option<&'s Value> {
    let options = [parent.get("anyOf"), parent.get("oneOf")];
    let mut options = options
        .into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten();
    let own = parent.get("properties").and_then(|known| known.get(key));
    own.or_else(|| parent.get("items").filter(|_| key == "item"))
        .or_else(|| options.find_map(|option| child_schema(option, key)))
        .or_else(|| {
            let others = parent.get("additionalProperties");
            others.filter(|others| others.is_object())
        })
}

/// What an element without elements in it gives.
pub(super) fn given(text: &str, kind: Option<&str>, schema: Option<&Value>) -> Given {
    let types = schema.map(coerce::types_of).unwrap_or_default();
    let takes = |kind: &str| types.contains(&kind);
    match kind {
        Some("string") => return Given::Json(Value::String(text.to_owned())),
        Some(_) => {
            if let Ok(value) = serde_json::from_str(text) {
                return Given::Json(value);
            }
        }
        None => {}
    }
    // What these vendors write for nothing, and for yes and no, where the schema has a place for it.
    if takes("null") && matches!(text, "" | "null" | "Null" | "NULL") {
        return Given::Json(Value::Null);
    }
    if types == ["boolean"] {
        match text.trim().to_ascii_lowercase().as_str() {
            "yes" | "on" | "1" => return Given::Json(Value::Bool(true)),
            "no" | "off" | "0" => return Given::Json(Value::Bool(false)),
            _ => {}
        }
    }
    if text.trim().is_empty() && !takes("string") {
        if takes("array") {
            return Given::Json(Value::Array(Vec::new()));
        }
        if takes("object") {
            return Given::Json(Value::Object(Map::new()));
        }
    }
    Given::Text(without_cdata(text).unwrap_or(text).to_owned())
}

/// The value of an element with elements in it: a list of its items, or an object, in which
/// repetitions of a name are a list.
pub(super) fn built(children: Vec<(String, Value)>, schema: Option<&Value>) -> Value {
    let types = schema.map(coerce::types_of).unwrap_or_default();
    let are_items = children.iter().all(|(key, _)| key == "item");
    let is_list = match (types.contains(&"array"), types.contains(&"object")) {
        (true, false) => true,
        (false, true) => false,
        _ => are_items,
    };
    if is_list {
        return Value::Array(children.into_iter().map(|(_, value)| value).collect());
    }
    let mut members: Map<String, Value> = Map::new();
    let mut lists: HashSet<String> = HashSet::new();
    for (key, value) in children {
        match members.get_mut(&key) {
            None => {
                members.insert(key, value);
            }
            Some(Value::Array(items)) if lists.contains(&key) => items.push(value),
            Some(known) => {
                *known = Value::Array(vec![known.take(), value]);
                lists.insert(key);
            }
        }
    }
    Value::Object(members)
}

/// Makes what an element has given a list, and adds what another one of its name gives.
pub(super) fn add(before: &mut Given, given: Given) {
    let items = |given: Given| match given {
        Given::Json(Value::Array(items)) => items,
        Given::Json(value) => vec![value],
        Given::Text(text) => vec![Value::String(text)],
    };
    if let Given::Json(Value::Array(all)) = before {
        all.extend(items(given));
        return;
    }
    let mut all = items(std::mem::replace(before, Given::Json(Value::Null)));
    all.extend(items(given));
    *before = Given::Json(Value::Array(all));
}

/// A text without the escapes of XML, when it is well-formed XML.
pub(super) fn without_entities(text: &str) -> Option<String> {
    const ENTITIES: &[(&str, &str)] = &[
        ("amp;", "&"),
        ("lt;", "<"),
        ("gt;", ">"),
        ("quot;", "\""),
        ("apos;", "'"),
    ];
    if text.contains('<') {
        return None;
    }
    let mut parts = text.split('&');
    let mut out = parts.next()?.to_owned();
    for part in parts {
        let (name, sign) = ENTITIES.iter().find(|(name, _)| part.starts_with(name))?;
        out.push_str(sign);
        out.push_str(&part[name.len()..]);
    }
    Some(out)
}
