//! A call written as a JSON object, in all the ways that hosts name its parts.

use serde_json::{Map, Value};

use super::sure;
use crate::json::{self, Ending, Repaired};
use crate::limits::NAME_BYTES_MAX;
use crate::model::Strategy;
use crate::raw::{Args, RawCall, Shape, Unknown, args_of_value};
use crate::tools::ToolSet;

const NAME_KEYS: &[&str] = &[
    "name",
    "tool_name",
    "function_name",
    "tool",
    "function",
    "action",
    "recipient_name",
    "toolName",
    "functionName",
    "api_name",
    "func",
];
const ARGUMENT_KEYS: &[&str] = &[
    "arguments",
    "parameters",
    "args",
    "params",
    "action_input",
    "input",
    "tool_input",
    "kwargs",
    "tool_args",
    "actionInput",
    "function_arguments",
    "toolInput",
    "tool_parameters",
];
/// Those of agents that write `ReAct` as JSON, where a bare text is an input like any other.
const INPUT_KEYS: &[&str] = &["action_input", "actionInput", "tool_input", "toolInput"];
/// Keys that lie beside a call without being arguments.
const SIDE_KEYS: &[&str] = &[
    "id",
    "type",
    "index",
    "call_id",
    "tool_call_id",
    "thought",
    "reasoning",
    "sessionKey",
];
/// Keys of records about calls: what happened, not what is wanted. And of tools' descriptions.
const RECORD_KEYS: &[&str] = &[
    "result",
    "output",
    "response",
    "observation",
    "description",
    "returns",
    "error",
];
const LIST_KEYS: &[&str] = &[
    "tool_calls",
    "toolCalls",
    "function_calls",
    "calls",
    "actions",
    "tool_uses",
];

/// Calls of one JSON value.
#[derive(Debug, Default)]
pub(crate) struct CallsRead {
    pub(crate) calls: Vec<RawCall>,
    /// `done: true` was there.
    pub(crate) done: bool,
    /// The text that guided decoding puts beside the calls.
    pub(crate) reasoning: Option<String>,
    /// Whether the value has the shape of guided decoding's reply, calls or not.
    pub(crate) guided: bool,
    /// Whether the text was cut off in something behind the calls.
    pub(crate) cut: bool,
}

/// How an object is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading<'a> {
    pub(crate) text: &'a str,
    pub(crate) tools: &'a ToolSet,
    pub(crate) span: [usize; 2],
    /// Whether the format's own tags stand around, so that an unknown name is a call too.
    pub(crate) tagged: bool,
    pub(crate) strategy: Strategy,
}

/// Reads the calls of a value. Empty when it is data, not a call.
pub(crate) fn calls_of(read: Repaired, reading: Reading<'_>) -> CallsRead {
    if read.ending != Ending::Whole
        && let Some(found) = calls_of_cut_list(reading)
    {
        return found;
    }
    let mut found = CallsRead::default();
    collect(read.value, reading, &mut found, 0);
    // An answer that nobody closed may lack its end.
    found.cut |= found.done && found.calls.is_empty() && read.ending >= Ending::OpenValue;
    let many = found.calls.len();
    for (place, call) in found.calls.iter_mut().enumerate() {
        call.repaired |= read.repaired;
        call.elided |= read.elided;
        call.ambiguous |= read.ambiguous;
        call.lost |= read.lost;
        // Only the last call can have been cut off.
        if place + 1 == many {
            call.ending = call.ending.max(read.ending);
        } else if read.ending >= Ending::OpenValue {
            call.repaired = false;
        }
    }
    found
}

/// The calls of a list that lacks its end. Those that are well-formed on their own are whole, only
/// what follows them was cut off. `None` when there is no such list, or not one whole item in it.
fn calls_of_cut_list(reading: Reading<'_>) -> Option<CallsRead> {
    let [start, end] = reading.span;
    let (list, tagged) = match reading.text.as_bytes().get(start)? {
        b'[' => (start, reading.tagged),
        _ => (list_in(&reading.text[start..end])? + start, true),
    };
    let mut found = CallsRead {
        guided: list != start,
        ..CallsRead::default()
    };
    let mut at = list + 1;
    while let Some(item) = next_item(reading.text, at, end)
        && let Some(item_end) = json::skim(reading.text, item)
    {
        let span = [item, item_end];
        let read = json::read_at(reading.text, item, item_end)?;
        let before = found.calls.len();
        let inner = Reading {
            span,
            tagged,
            ..reading
        };
        collect(read.value, inner, &mut found, 1);
        for call in &mut found.calls[before..] {
            call.ambiguous |= read.ambiguous;
            call.lost |= read.lost;
        }
        if found.calls.len() == before && !tagged {
            return None;
        }
        at = item_end;
    }
    if found.calls.is_empty() {
        return None;
    }
    if let Some(item) = next_item(reading.text, at, end) {
        let read = json::read_at(reading.text, item, end);
        let before = found.calls.len();
        if let Some(read) = read {
            // More behind it: the list is damaged, and only all of it together tells how.
            if next_item(reading.text, read.end, end).is_some() {
                return None;
            }
            let span = [item, end];
            let inner = Reading {
                span,
                tagged,
                ..reading
            };
            collect(read.value, inner, &mut found, 1);
            for call in &mut found.calls[before..] {
                call.repaired = true;
                call.ambiguous |= read.ambiguous;
                call.lost |= read.lost;
                call.ending = call.ending.max(read.ending);
            }
        }
        found.cut = found.calls.len() == before;
    }
    Some(found)
}

/// Where the next object of a list starts.
fn next_item(text: &str, at: usize, end: usize) -> Option<usize> {
    let rest = text.get(at..end)?;
    let item = rest.trim_start_matches(|letter: char| letter.is_whitespace() || letter == ',');
    item.starts_with('{').then_some(end - item.len())
}

/// Where the list of calls starts in an object that is not whole.
fn list_in(text: &str) -> Option<usize> {
    LIST_KEYS.iter().find_map(|key| {
        let (_, rest) = text.split_once(&format!("\"{key}\""))?;
        let rest = rest.trim_start().strip_prefix(':')?.trim_start();
        rest.starts_with('[').then(|| text.len() - rest.len())
    })
}

fn collect(value: Value, reading: Reading<'_>, found: &mut CallsRead, depth: usize) {
    match value {
        Value::Array(items) if depth < 3 => {
            // A list is a list of calls only if everything in it is one.
            let before = found.calls.len();
            let many = items.len();
            for item in items {
                if item.is_object() {
                    collect(item, reading, found, depth + 1);
                }
            }
            if found.calls.len() - before < many && !reading.tagged {
                found.calls.truncate(before);
            }
        }
        Value::Object(map) => object(map, reading, found, depth),
        _ => {}
    }
}

/// The parts' names in the spelling that the tables have: `Name` is `name`.
fn with_plain_keys(map: Map<String, Value>) -> Map<String, Value> {
    let tables = [NAME_KEYS, ARGUMENT_KEYS, LIST_KEYS, SIDE_KEYS, RECORD_KEYS];
    let known = |key: &str| tables.iter().any(|table| table.contains(&key));
    if !map
        .keys()
        .any(|key| key.starts_with(|letter: char| letter.is_ascii_uppercase()))
    {
        return map;
    }
    map.into_iter()
        .map(|(key, value)| {
            let lower = key.to_ascii_lowercase();
            (
                if !known(&key) && known(&lower) {
                    lower
                } else {
                    key
                },
                value,
            )
        })
        .collect()
}

fn object(map: Map<String, Value>, reading: Reading<'_>, found: &mut CallsRead, depth: usize) {
    let mut map = with_plain_keys(map);
    if let Some(key) = LIST_KEYS
        .iter()
        .find(|key| map.get(**key).is_some_and(Value::is_array))
    {
        found.guided = *key == "tool_calls";
        found.done |= map.get("done").and_then(Value::as_bool).unwrap_or(false);
        for key in [
            "final_answer",
            "answer",
            "final",
            "response",
            "content",
            "reasoning",
        ] {
            if let Some(text) = map.get(key).and_then(Value::as_str) {
                found.reasoning = Some(text.to_owned());
                break;
            }
        }
        let list = map.remove(*key).unwrap_or_default();
        let inner = Reading {
            tagged: true,
            ..reading
        };
        if depth < 3 {
            collect(list, inner, found, depth + 1);
        }
        return;
    }
    if map.get("done").is_some_and(Value::is_boolean) && map.contains_key("reasoning") {
        found.guided = true;
        found.done |= map["done"] == Value::Bool(true);
        found.reasoning = map["reasoning"].as_str().map(str::to_owned);
        return;
    }
    for key in [
        "function",
        "function_call",
        "tool_call",
        "functionCall",
        "toolUse",
    ] {
        if map
            .get(key)
            .is_some_and(|inner| inner.get("name").is_some())
        {
            let inner = map.remove(key).unwrap_or_default();
            let before = found.calls.len();
            if let (Value::Object(inner), true) = (inner, depth < 4) {
                object(inner, reading, found, depth + 1);
            }
            let id = call_id(&map);
            for call in found.calls.iter_mut().skip(before) {
                call.call_id = call.call_id.take().or_else(|| id.clone());
            }
            return;
        }
    }
    if depth == 0
        && let Some(answer) = super::final_answer::of_object(&map, reading.tools)
    {
        found.guided = true;
        found.done = true;
        found.reasoning = Some(answer);
        return;
    }
    found.calls.extend(single(map, reading));
}

/// The name that a server or a model gave to one call.
fn call_id(map: &Map<String, Value>) -> Option<String> {
    ["call_id", "id", "tool_call_id"]
        .iter()
        .find_map(|key| map.get(*key)?.as_str())
        .filter(|id| !id.is_empty() && id.len() <= NAME_BYTES_MAX)
        .map(str::to_owned)
}

/// Whether an object with these two keys, and a name that no tool has, can only be a call: an
/// answer in JSON can have a name and parameters too.
fn is_clearly_call(name: &str, [name_key, argument_key]: [&str; 2]) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
    let identifier = name.len() <= NAME_BYTES_MAX
        && name.starts_with(|letter: char| letter.is_ascii_lowercase())
        && name.bytes().all(plain);
    let compound = name
        .bytes()
        .any(|byte| !byte.is_ascii_lowercase() && !byte.is_ascii_digit());
    let data = matches!(name_key, "name" | "function" | "action" | "func")
        && !matches!(argument_key, "arguments" | "action_input" | "tool_input");
    identifier && (compound || !data)
}

fn single(mut map: Map<String, Value>, reading: Reading<'_>) -> Option<RawCall> {
    let id = call_id(&map);
    let make = |name: &str, args, sure| {
        let mut call = RawCall::new(name, args, reading.span, reading.strategy).confidence(sure);
        if !reading.tagged {
            call.unknown = Unknown::Nothing;
        }
        call.call_id.clone_from(&id);
        call
    };
    let name_key = NAME_KEYS
        .iter()
        .find(|key| map.get(**key).is_some_and(Value::is_string));
    let Some(name_key) = name_key else {
        return keyed_by_tool(map, reading).map(|(name, args)| make(&name, args, sure::FLAT_JSON));
    };
    let name = map.remove(*name_key)?.as_str()?.to_owned();
    let known = reading.tools.find_close(&name).map(|(tool, _)| tool);
    let argument_key = ARGUMENT_KEYS
        .iter()
        .find(|key| map.contains_key(**key) && !is_own(known, key, &map));
    if map.contains_key("role")
        || RECORD_KEYS
            .iter()
            .any(|key| map.contains_key(*key) && argument_key != Some(key))
            && !reading.tagged
    {
        return None;
    }
    if let Some(argument_key) = argument_key {
        let value = map.remove(*argument_key)?;
        if is_schema(&value) {
            return None;
        }
        let mut read = args_of_value(value);
        // The gateway's own form has an action beside the arguments.
        if let (Some(Value::String(action)), Some(tool)) = (map.remove("action"), known)
            && tool.property("action").is_some()
            && !read.args.named.iter().any(|(key, _)| key == "action")
        {
            read.args.named.push((
                "action".to_owned(),
                crate::raw::Given::Json(Value::String(action)),
            ));
        }
        let sure = if reading.tagged {
            sure::TOKENS
        } else {
            sure::JSON
        };
        // Arguments under a second name are arguments given twice.
        let doubled = ARGUMENT_KEYS.iter().any(|key| {
            let second = map.get(*key).filter(|second| second.is_object());
            second.is_some_and(|second| args_of_value(second.clone()).args != read.args)
        });
        let mut call = make(&name, Args::default(), sure)
            .with_args(read)
            .ambiguous(doubled);
        if INPUT_KEYS.contains(argument_key) {
            call = call.may_be_bare();
        }
        map.retain(|key, _| !SIDE_KEYS.contains(&key.as_str()));
        if !reading.tagged
            && map.is_empty()
            && call.shape == Shape::Named
            && is_clearly_call(&name, [*name_key, *argument_key])
        {
            call.unknown = Unknown::Mistake;
        }
        return Some(call);
    }
    map.retain(|key, _| !SIDE_KEYS.contains(&key.as_str()));
    let tool = known?;
    let fits = map
        .keys()
        .any(|key| tool.property(key).is_some() || has_alias(tool, key));
    let nothing_needed = map.is_empty() && tool.required().next().is_none();
    (fits || nothing_needed || reading.tagged).then(|| {
        make(
            &name,
            Args::from_map(map),
            if reading.tagged {
                sure::TOKENS
            } else {
                sure::FLAT_JSON
            },
        )
    })
}

/// Whether this key is an argument of the tool itself (`input` of a search), lying flat.
fn is_own(tool: Option<&crate::ToolSpec>, key: &str, map: &Map<String, Value>) -> bool {
    tool.is_some_and(|tool| tool.property(key).is_some()) && !map[key].is_object()
}

fn has_alias(tool: &crate::ToolSpec, key: &str) -> bool {
    ["path", "content", "command", "query", "url"]
        .iter()
        .any(|own| tool.property(own).is_some() && crate::guide::same_argument(own, key))
}

/// `{"web_search": {"query": "x"}}`.
fn keyed_by_tool(map: Map<String, Value>, reading: Reading<'_>) -> Option<(String, Args)> {
    if map.len() != 1 {
        return None;
    }
    let (name, value) = map.into_iter().next()?;
    let tool = reading.tools.find(&name)?;
    let Value::Object(args) = value else {
        return None;
    };
    let all_known = !args.is_empty()
        && args
            .keys()
            .all(|key| tool.property(key).is_some() || has_alias(tool, key));
    (all_known || reading.tagged).then(|| (name, Args::from_map(args)))
}

/// A JSON Schema, as in a tool's definition.
fn is_schema(value: &Value) -> bool {
    value.get("properties").is_some_and(Value::is_object)
        && value.get("type").is_some_and(Value::is_string)
}
