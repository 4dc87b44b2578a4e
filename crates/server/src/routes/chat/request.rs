//! Reads what clients send, and names what is wrong with it.
//!
//! A field that is null is a field that is not there, and fields that nobody here knows are ignored:
//! clients send what their libraries know.

use holdfast_agent::chat::Message;
use holdfast_agent::context::words;
use holdfast_agent::run::{CallsAtOnce, ClientTools, Mode, ToolChoice};
use holdfast_agent::settings::RunSettings;
use serde_json::{Map, Value};

use super::answer::Notes;
use super::error::ChatError;
use crate::executor::{Calls, Served};
use crate::limits::{
    CLIENT_TOOLS_MAX, HISTORY_CALLS_MAX, MESSAGES_MAX, RUN_TIMEOUT_S_MAX, STOPS_MAX,
};

/// How an answer is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivery {
    /// In one piece.
    Whole,
    /// As it comes.
    Stream(Usage),
}

/// Whether a stream ends with what it took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Usage {
    Shown,
    Hidden,
}

/// A request, understood.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) model: String,
    pub(super) mode: Mode,
    pub(super) messages: Vec<Message>,
    pub(super) settings: RunSettings,
    pub(super) passed_on: Map<String, Value>,
    pub(super) delivery: Delivery,
    pub(super) notes: Notes,
    /// The request without how it is to be answered: what makes two requests the same.
    pub(super) digest: Value,
}

impl Asked {
    pub(super) fn read(body: &[u8], models: &[Served]) -> Result<Self, ChatError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| ChatError::invalid("The body is not valid JSON"))?;
        let Value::Object(mut fields) = value else {
            return Err(ChatError::invalid("The body has to be a JSON object"));
        };
        fields.retain(|_, value| !value.is_null());
        let model = model(&fields, models)?;
        let (settings, notes) = settings(&fields, &model.settings)?;
        let (strategy, _) = settings.strategies();
        let messages = words::told(words::matched(messages(&fields)?), strategy);
        if whole(&fields, "n")?.is_some_and(|count| count != 1) {
            return Err(ChatError::invalid("n: only one choice can be had"));
        }
        let delivery = delivery(&fields)?;
        let passed_on = passed_on(&fields)?;
        // Read in every mode, so that what is wrong with them does not depend on the model's name.
        let tools = client_tools(&fields)?;
        let mode = match mode(&fields, model.calls)? {
            Calls::Run => Mode::Loop,
            Calls::Returned => {
                // Compiled here only to say what is wrong with them before anything begins.
                tools
                    .registry()
                    .map_err(|error| ChatError::invalid(error.to_string()))?;
                Mode::Return(tools)
            }
        };
        for only_how in ["stream", "stream_options"] {
            fields.remove(only_how);
        }
        Ok(Self {
            model: model.name.clone(),
            mode,
            messages,
            settings,
            passed_on,
            delivery,
            notes,
            digest: Value::Object(fields),
        })
    }
}

fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name)
}

fn model<'a>(fields: &Map<String, Value>, models: &'a [Served]) -> Result<&'a Served, ChatError> {
    let Some(name) = field(fields, "model").and_then(Value::as_str) else {
        return Err(ChatError::invalid("model: missing"));
    };
    let found = models.iter().find(|known| known.name == name);
    found.ok_or_else(|| ChatError::no_such_model(models))
}

/// A request can say itself what is to become of the calls.
fn mode(fields: &Map<String, Value>, calls: Calls) -> Result<Calls, ChatError> {
    let Some(executor) = field(fields, "executor") else {
        return Ok(calls);
    };
    if !executor.is_object() {
        return Err(ChatError::invalid("executor: has to be an object"));
    }
    match executor
        .get("mode")
        .filter(|it| !it.is_null())
        .map(Value::as_str)
    {
        None => Ok(calls),
        Some(Some("loop")) => Ok(Calls::Run),
        Some(Some("return")) => Ok(Calls::Returned),
        Some(_) => Err(ChatError::invalid(
            "executor.mode: has to be loop or return",
        )),
    }
}

fn messages(fields: &Map<String, Value>) -> Result<Vec<Message>, ChatError> {
    let Some(list) = field(fields, "messages").and_then(Value::as_array) else {
        return Err(ChatError::invalid("messages: has to be a list of messages"));
    };
    if list.is_empty() || list.len() > MESSAGES_MAX {
        return Err(ChatError::invalid(format!(
            "messages: between 1 and {MESSAGES_MAX} of them"
        )));
    }
    let read = |(place, wire): (usize, &Value)| {
        let wrong = |why: String| ChatError::invalid(format!("messages[{place}].{why}"));
        Message::from_wire(wire).map_err(wrong)
    };
    let messages: Vec<Message> = list
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, ChatError>>()?;
    let calls: usize = messages.iter().map(|message| message.calls.len()).sum();
    if calls > HISTORY_CALLS_MAX {
        return Err(ChatError::invalid(format!(
            "messages: at most {HISTORY_CALLS_MAX} calls in all of them"
        )));
    }
    Ok(messages)
}

fn settings(
    fields: &Map<String, Value>,
    defaults: &RunSettings,
) -> Result<(RunSettings, Notes), ChatError> {
    let mut settings = defaults.clone();
    let mut notes = Notes::default();
    if let Some(found) = number(fields, "temperature", 0.0, 2.0)? {
        settings.temperature = found;
    }
    if let Some(found) = number(fields, "top_p", 0.0, 1.0)? {
        settings.top_p = Some(found);
    }
    let tokens = [
        whole(fields, "max_tokens")?,
        whole(fields, "max_completion_tokens")?,
    ];
    let tokens = tokens.into_iter().flatten().next();
    if let Some(asked) = tokens {
        let most = u64::from(defaults.max_tokens);
        notes.max_tokens_asked = (asked > most).then_some(asked);
        settings.max_tokens = u32::try_from(asked.min(most)).unwrap_or(defaults.max_tokens);
        notes.max_tokens = settings.max_tokens;
    }
    if let Some(seconds) = whole(fields, "timeout")? {
        if seconds > RUN_TIMEOUT_S_MAX {
            let message = format!("timeout: at most {RUN_TIMEOUT_S_MAX} seconds");
            return Err(ChatError::invalid(message));
        }
        settings.run_timeout_ms = seconds * 1000;
    }
    Ok((settings, notes))
}

fn number(
    fields: &Map<String, Value>,
    name: &str,
    least: f64,
    most: f64,
) -> Result<Option<f64>, ChatError> {
    let Some(value) = field(fields, name) else {
        return Ok(None);
    };
    match value
        .as_f64()
        .filter(|found| (least..=most).contains(found))
    {
        Some(found) => Ok(Some(found)),
        None => Err(ChatError::invalid(format!(
            "{name}: has to be a number between {least} and {most}"
        ))),
    }
}

fn whole(fields: &Map<String, Value>, name: &str) -> Result<Option<u64>, ChatError> {
    let Some(value) = field(fields, name) else {
        return Ok(None);
    };
    match integer(value).filter(|found| *found > 0) {
        Some(found) => Ok(Some(found)),
        None => Err(ChatError::invalid(format!(
            "{name}: has to be a whole number above zero"
        ))),
    }
}

/// A whole number; for JSON, `1.0` is one as well.
fn integer(value: &Value) -> Option<u64> {
    let text = value.is_number().then(|| value.to_string());
    let whole = |text: &str| text.strip_suffix(".0").and_then(|it| it.parse().ok());
    value.as_u64().or_else(|| whole(&text?))
}

/// A field that is an object, if it is there.
fn object<'a>(
    fields: &'a Map<String, Value>,
    name: &str,
) -> Result<Option<&'a Map<String, Value>>, ChatError> {
    match field(fields, name) {
        None => Ok(None),
        Some(Value::Object(found)) => Ok(Some(found)),
        Some(_) => Err(ChatError::invalid(format!("{name}: has to be an object"))),
    }
}

/// A yes or no inside a field; null is as good as absent.
fn flag(fields: &Map<String, Value>, name: &str, inside: &str) -> Result<bool, ChatError> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(found)) => Ok(*found),
        Some(_) => Err(ChatError::invalid(format!(
            "{inside}{name}: has to be true or false"
        ))),
    }
}

fn delivery(fields: &Map<String, Value>) -> Result<Delivery, ChatError> {
    let shown = match object(fields, "stream_options")? {
        Some(options) => flag(options, "include_usage", "stream_options.")?,
        None => false,
    };
    Ok(match (flag(fields, "stream", "")?, shown) {
        (false, _) => Delivery::Whole,
        (true, true) => Delivery::Stream(Usage::Shown),
        (true, false) => Delivery::Stream(Usage::Hidden),
    })
}

/// What goes to the model's server as it is, once its type is right.
fn passed_on(fields: &Map<String, Value>) -> Result<Map<String, Value>, ChatError> {
    let mut passed_on = Map::new();
    let mut pass = |name: &str, fits: fn(&Value) -> bool, what: &str| {
        if let Some(value) = field(fields, name) {
            if !fits(value) {
                return Err(ChatError::invalid(format!("{name}: has to be {what}")));
            }
            passed_on.insert(name.to_owned(), value.clone());
        }
        Ok(())
    };
    pass("stop", is_stop, "a text, or up to four of them")?;
    pass("seed", is_integer, "a whole number")?;
    pass("frequency_penalty", Value::is_number, "a number")?;
    pass("presence_penalty", Value::is_number, "a number")?;
    pass("reasoning_effort", Value::is_string, "a text")?;
    pass(
        "response_format",
        is_format,
        "of type text, json_object or json_schema",
    )?;
    if passed_on
        .get("response_format")
        .is_some_and(|it| it["type"] == "text")
    {
        passed_on.remove("response_format");
    }
    if let Some(asked) = passed_on.remove("reasoning_effort") {
        let known = asked.as_str().and_then(effort);
        passed_on.extend(known.map(|effort| ("reasoning_effort".to_owned(), effort.into())));
    }
    Ok(passed_on)
}

/// How much gpt-oss thinks, in the words that its servers know: they refuse those of other models, and
/// a client that says one of them still wants its answer.
fn effort(asked: &str) -> Option<&'static str> {
    match asked {
        "none" | "minimal" | "low" => Some("low"),
        "medium" => Some("medium"),
        "high" | "xhigh" | "max" => Some("high"),
        _ => None,
    }
}

fn is_integer(value: &Value) -> bool {
    let fits = |whole: u64| i64::try_from(whole).is_ok();
    value.is_i64() || integer(value).is_some_and(fits)
}

fn is_format(value: &Value) -> bool {
    let kind = value["type"].as_str();
    let schema = &value["json_schema"];
    matches!(kind, Some("text" | "json_object" | "json_schema"))
        && (schema.is_null() || schema.is_object())
}

fn is_stop(value: &Value) -> bool {
    match value {
        Value::String(_) => true,
        Value::Array(list) => list.len() <= STOPS_MAX && list.iter().all(Value::is_string),
        _ => false,
    }
}

fn client_tools(fields: &Map<String, Value>) -> Result<ClientTools, ChatError> {
    let tools = match field(fields, "tools") {
        None => Vec::new(),
        Some(Value::Array(list)) if list.len() <= CLIENT_TOOLS_MAX => list.clone(),
        Some(_) => {
            return Err(ChatError::invalid(format!(
                "tools: has to be a list of at most {CLIENT_TOOLS_MAX} functions"
            )));
        }
    };
    if let Some(place) = tools.iter().position(|tool| !is_function(tool)) {
        return Err(ChatError::invalid(format!(
            "tools[{place}]: has to be a function with a name, and perhaps a description and parameters"
        )));
    }
    let many =
        field(fields, "parallel_tool_calls").is_none() || flag(fields, "parallel_tool_calls", "")?;
    Ok(ClientTools {
        tools,
        choice: choice(fields)?,
        at_once: if many {
            CallsAtOnce::Many
        } else {
            CallsAtOnce::One
        },
    })
}

fn is_function(tool: &Value) -> bool {
    let function = &tool["function"];
    tool["type"] == "function"
        && function["name"].as_str().is_some_and(|it| !it.is_empty())
        && (function["description"].is_null() || function["description"].is_string())
        && (function["parameters"].is_null() || function["parameters"].is_object())
}

fn choice(fields: &Map<String, Value>) -> Result<ToolChoice, ChatError> {
    let wrong = "tool_choice: has to be auto, none, required, or a function by its name";
    match field(fields, "tool_choice") {
        None => Ok(ToolChoice::Auto),
        Some(Value::String(word)) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            _ => Err(ChatError::invalid(wrong)),
        },
        Some(named) => match named["function"]["name"].as_str() {
            Some(name) => Ok(ToolChoice::Named(name.to_owned())),
            None => Err(ChatError::invalid(wrong)),
        },
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
