//! What a chat server returned: its `tool_calls` are intents too, and they break in the same ways.
//!
//! Servers differ in where they put things. `OpenAI`'s chat completions and its older
//! `function_call`, the Responses API, Anthropic's and Gemini's messages and Ollama's replies are
//! all read, whole or only the inner part of them.

use serde_json::Value;

use crate::json::Ending;
use crate::model::FinishReason;
use crate::model::Strategy;
use crate::raw::{Args, RawCall, Shape, args_of_value};

/// The server said that these are calls; nothing has to be guessed.
const SURE: f64 = 1.0;

/// A server's reply, taken apart.
#[derive(Debug, Default)]
pub(crate) struct NativeReply {
    pub(crate) calls: Vec<RawCall>,
    /// What the model wrote for the user.
    pub(crate) content: String,
    /// What it wrote for itself.
    pub(crate) reasoning: String,
    /// Why it refused, when it did.
    pub(crate) refusal: Option<String>,
    pub(crate) finish: FinishReason,
    /// A call without a name was there.
    pub(crate) failed: bool,
    /// The server's error in the place of a reply.
    pub(crate) error: Option<String>,
}

/// What an error says: `OpenAI`'s, Anthropic's, vLLM's, Ollama's and Gemini's. A lone `error` with
/// a text is one too, for no answer looks like that.
fn error_of(value: &Value) -> Option<String> {
    let map = value.as_object()?;
    let text = |value: &Value| value.as_str().map(str::to_owned);
    match map.get("error") {
        Some(error @ Value::Object(_)) => {
            let message = error.get("message").or_else(|| error.get("type"))?;
            (!map.contains_key("choices") && !map.contains_key("name")).then(|| text(message))?
        }
        Some(error @ Value::String(_)) if map.len() == 1 => text(error),
        _ if map.get("object").is_some_and(|kind| kind == "error") => {
            text(map.get("message").unwrap_or(&Value::from("")))
        }
        _ => None,
    }
}

/// Whether these are the items of a Responses output, with or without the response around them.
fn is_output(items: &Value) -> bool {
    let kind = |item: &Value| item.get("type").and_then(Value::as_str).map(str::to_owned);
    items.as_array().is_some_and(|items| {
        items.iter().all(|item| kind(item).is_some())
            && items.iter().any(|item| {
                matches!(kind(item).as_deref(), Some("function_call" | "message"))
                    && (item.get("call_id").is_some()
                        || item.get("role").is_some_and(|role| role == "assistant"))
            })
    })
}

/// Whether a value can only be what a chat server returned.
pub(crate) fn is_completion(value: &Value) -> bool {
    let choices = value.get("choices").and_then(Value::as_array);
    let has = |key: &str, kind: fn(&Value) -> bool| value.get(key).is_some_and(kind);
    choices.is_some_and(|choices| choices.iter().all(is_choice))
        || is_choice(value)
        || value.get("role").is_some_and(|role| role == "assistant")
            && ["content", "tool_calls", "function_call"]
                .iter()
                .any(|key| value.get(*key).is_some())
        || has("candidates", Value::is_array) && !has("name", Value::is_string)
        || has("output", Value::is_array)
            && value.get("object").is_some_and(|kind| kind == "response")
        || value.get("output").is_some_and(is_output)
        || is_output(value)
        || error_of(value).is_some()
}

fn is_choice(value: &Value) -> bool {
    value.get("message").is_some_and(Value::is_object)
        || value.get("delta").is_some_and(Value::is_object)
}

/// Whether a value can be read as a server's reply when it is known to be one.
pub(crate) fn is_reply(value: &Value) -> bool {
    let call = |value: &Value| {
        value.get("function").is_some()
            || value.get("name").is_some()
            || value.get("functionCall").is_some()
    };
    is_completion(value)
        || [
            "tool_calls",
            "function_call",
            "content",
            "choices",
            "output",
        ]
        .iter()
        .any(|key| value.get(*key).is_some())
        || value.as_array().is_some_and(|list| list.iter().all(call))
        || value.is_object() && call(value)
}

/// Takes a reply apart: a completion, a choice, a message, a list of calls or one call.
pub(crate) fn read(value: &Value) -> NativeReply {
    let mut reply = NativeReply {
        error: error_of(value),
        ..NativeReply::default()
    };
    let mut message = value;
    for key in ["choices", "candidates"] {
        if let Some(choices) = value.get(key).and_then(Value::as_array) {
            let Some(first) = choices.first() else {
                return reply;
            };
            message = first;
        }
    }
    reply.finish = finish_of(message)
        .or_else(|| finish_of(value))
        .unwrap_or_default();
    for key in ["message", "delta"] {
        message = message
            .get(key)
            .filter(|inner| inner.is_object())
            .unwrap_or(message);
    }
    if let Value::Array(calls) = message {
        for call in calls {
            let call_type = call.get("type").and_then(Value::as_str);
            if matches!(
                call_type,
                Some("message" | "reasoning" | "text" | "thinking")
            ) {
                add_part(call, &mut reply);
            } else {
                add_call(call, &mut reply);
            }
        }
    } else {
        read_message(message, &mut reply);
    }
    reply
}

/// The last call of a reply that was cut off. With nothing in it, its arguments may have been about
/// to come; an object was closed by the server, not by the model, and may lack its end.
pub(crate) fn mark_cut(calls: &mut [RawCall]) {
    if let Some(last) = calls.last_mut()
        && last.ending == Ending::Whole
        && (last.args == Args::default() || last.closed_by_server)
    {
        last.ending = Ending::OpenValue;
    }
}

fn finish_of(value: &Value) -> Option<FinishReason> {
    if let Some(details) = value
        .get("incomplete_details")
        .and_then(|d| d.get("reason"))
    {
        return details.as_str().map(FinishReason::from_wire);
    }
    [
        "finish_reason",
        "stop_reason",
        "done_reason",
        "finishReason",
    ]
    .iter()
    .find_map(|key| value.get(*key)?.as_str())
    .map(FinishReason::from_wire)
}

fn read_message(message: &Value, reply: &mut NativeReply) {
    for key in ["content", "output", "text"] {
        if let Some(content) = message.get(key) {
            add_content(content, reply);
        }
    }
    for key in ["reasoning_content", "reasoning", "thinking"] {
        if let Some(text) = message.get(key).and_then(Value::as_str) {
            reply.reasoning.push_str(text);
            break;
        }
    }
    reply.refusal = message
        .get("refusal")
        .and_then(Value::as_str)
        .map(str::to_owned);
    match message.get("tool_calls") {
        Some(Value::Array(calls)) => calls.iter().for_each(|call| add_call(call, reply)),
        Some(call @ Value::Object(_)) => add_call(call, reply),
        _ => {}
    }
    if let Some(call) = message.get("function_call").filter(|call| call.is_object()) {
        add_call(call, reply);
    }
    let alone = message.get("content").is_none() && message.get("tool_calls").is_none();
    if alone && (message.get("function").is_some() || message.get("name").is_some()) {
        add_call(message, reply);
    }
}

/// Text, or a list of parts, some of which are calls.
fn add_content(content: &Value, reply: &mut NativeReply) {
    match content {
        Value::String(text) => reply.content.push_str(text),
        Value::Array(parts) => parts.iter().for_each(|part| add_part(part, reply)),
        // Gemini: the parts are one level further down.
        Value::Object(_) => {
            if let Some(parts) = content.get("parts") {
                add_content(parts, reply);
            }
        }
        _ => {}
    }
}

fn add_part(part: &Value, reply: &mut NativeReply) {
    if let Some(call) = part.get("functionCall") {
        return add_call(call, reply);
    }
    let text = part.as_str().or_else(|| part.get("text")?.as_str());
    match part.get("type").and_then(Value::as_str) {
        Some("tool_use" | "function_call" | "tool_call" | "function") => add_call(part, reply),
        Some("thinking" | "reasoning") => {
            let thought = part.get("thinking").and_then(Value::as_str).or(text);
            reply.reasoning.push_str(thought.unwrap_or_default());
        }
        // The Responses API puts messages beside calls.
        Some("message") => part
            .get("content")
            .into_iter()
            .for_each(|inner| add_content(inner, reply)),
        _ => reply.content.push_str(text.unwrap_or_default()),
    }
}

fn add_call(call: &Value, reply: &mut NativeReply) {
    let function = call.get("function").filter(|inner| inner.is_object());
    let inner = function
        .or_else(|| call.get("functionCall"))
        .unwrap_or(call);
    let name = ["name", "tool_name", "function"]
        .iter()
        .find_map(|key| inner.get(*key)?.as_str())
        .filter(|name| !name.trim().is_empty());
    let Some(name) = name else {
        reply.failed = true;
        return;
    };
    let given = ["arguments", "input", "args", "parameters"]
        .iter()
        .find_map(|key| inner.get(*key))
        .cloned()
        .unwrap_or(Value::Null);
    let text = given.as_str().map(str::to_owned);
    let closed_by_server = given.is_object();
    let read = args_of_value(given);
    // Arguments that are no object, or more than one of them, were mended.
    let rest = text.as_deref().and_then(|text| text.get(read.end..));
    let more = rest.is_some_and(|rest| !rest.trim().is_empty());
    let mended = read.shape != Shape::Named || more;
    let mut made = RawCall::new(name, Args::default(), [0, 0], Strategy::Native)
        .confidence(SURE)
        .with_args(read)
        .repaired(mended);
    made.closed_by_server = closed_by_server;
    // A Responses item has an id of its own beside the call's, and its result needs the call's.
    made.call_id = ["call_id", "id", "tool_call_id"]
        .iter()
        .find_map(|key| call.get(*key)?.as_str())
        .filter(|id| !id.is_empty())
        .map(str::to_owned);
    reply.calls.push(made);
}
