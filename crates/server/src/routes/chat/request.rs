//! Reads what clients send, and names what is wrong with it.
//!
//! A field that is null is a field that is not there, and fields that nobody here knows are ignored:
//! clients send what their libraries know.

use holdfast_agent::chat::Message;
use holdfast_agent::context::words;
use holdfast_agent::run::{CallsAtOnce, ClientTools, Mode, ToolChoice};
use holdfast_agent::settings::RunSettings;
use serde_json::{Map, Value, json};

use super::answer::Notes;
use super::error::ChatError;
use crate::limits::{MESSAGES_MAX, RUN_TIMEOUT_S_MAX, STOPS_MAX};

/// The models there are, and what their calls become.
pub(crate) const MODELS: [(&str, Calls); 3] = [
    ("gpt-oss", Calls::Run),
    ("executor", Calls::Run),
    ("gpt-oss-tools", Calls::Returned),
];

/// What becomes of a model's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Calls {
    /// They run here, with our tools.
    Run,
    /// They go back to the client.
    Returned,
}

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
    pub(super) fn read(body: &[u8], defaults: &RunSettings) -> Result<Self, ChatError> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| ChatError::invalid("The body is not valid JSON"))?;
        let Value::Object(mut fields) = value else {
            return Err(ChatError::invalid("The body has to be a JSON object"));
        };
        fields.retain(|_, value| !value.is_null());
        let (model, calls) = model(&fields)?;
        let (settings, notes) = settings(&fields, defaults)?;
        let (strategy, _) = settings.strategies();
        let messages = words::told(messages(&fields)?, strategy);
        if field(&fields, "n").is_some_and(|n| n.as_u64() != Some(1)) {
            return Err(ChatError::invalid("n: only one choice can be had"));
        }
        let delivery = delivery(&fields)?;
        let passed_on = passed_on(&fields)?;
        let mode = match mode(&fields, calls)? {
            Calls::Run => Mode::Loop,
            Calls::Returned => Mode::Return(client_tools(&fields)?),
        };
        for only_how in ["stream", "stream_options"] {
            fields.remove(only_how);
        }
        Ok(Self {
            model,
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

fn model(fields: &Map<String, Value>) -> Result<(String, Calls), ChatError> {
    let Some(name) = field(fields, "model").and_then(Value::as_str) else {
        return Err(ChatError::invalid("model: missing"));
    };
    if let Some((known, calls)) = MODELS.iter().find(|(known, _)| *known == name) {
        return Ok(((*known).to_owned(), *calls));
    }
    Err(ChatError::no_such_model(&names()))
}

/// The names of the models that this server answers to.
pub fn model_names() -> impl Iterator<Item = &'static str> {
    MODELS.iter().map(|(name, _)| *name)
}

/// The models, for people.
pub(crate) fn names() -> String {
    MODELS.map(|(name, _)| name).join(", ")
}

/// A request can say itself what is to become of the calls.
fn mode(fields: &Map<String, Value>, calls: Calls) -> Result<Calls, ChatError> {
    let Some(executor) = field(fields, "executor") else {
        return Ok(calls);
    };
    match executor.get("mode").map(|mode| mode.as_str()) {
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
    list.iter().enumerate().map(read).collect()
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
    let tokens = match whole(fields, "max_tokens")? {
        Some(found) => Some(found),
        None => whole(fields, "max_completion_tokens")?,
    };
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
    match value.as_u64().filter(|found| *found > 0) {
        Some(found) => Ok(Some(found)),
        None => Err(ChatError::invalid(format!(
            "{name}: has to be a whole number above zero"
        ))),
    }
}

fn delivery(fields: &Map<String, Value>) -> Result<Delivery, ChatError> {
    match field(fields, "stream") {
        None | Some(Value::Bool(false)) => Ok(Delivery::Whole),
        Some(Value::Bool(true)) => {
            let options = field(fields, "stream_options");
            let shown = options.is_some_and(|options| options["include_usage"] == json!(true));
            Ok(Delivery::Stream(if shown {
                Usage::Shown
            } else {
                Usage::Hidden
            }))
        }
        Some(_) => Err(ChatError::invalid("stream: has to be true or false")),
    }
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
    pass("seed", |it| it.is_i64() || it.is_u64(), "a whole number")?;
    pass("frequency_penalty", Value::is_number, "a number")?;
    pass("presence_penalty", Value::is_number, "a number")?;
    pass(
        "response_format",
        |it| {
            matches!(
                it["type"].as_str(),
                Some("text" | "json_object" | "json_schema")
            )
        },
        "of type text, json_object or json_schema",
    )?;
    if passed_on
        .get("response_format")
        .is_some_and(|it| it["type"] == "text")
    {
        passed_on.remove("response_format");
    }
    Ok(passed_on)
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
        Some(Value::Array(list)) => list.clone(),
        Some(_) => return Err(ChatError::invalid("tools: has to be a list of functions")),
    };
    let at_once = match field(fields, "parallel_tool_calls") {
        Some(Value::Bool(false)) => CallsAtOnce::One,
        _ => CallsAtOnce::Many,
    };
    let client = ClientTools {
        tools,
        choice: choice(fields)?,
        at_once,
    };
    // Compiled here only to say what is wrong with them before anything begins.
    client
        .registry()
        .map_err(|error| ChatError::invalid(error.to_string()))?;
    Ok(client)
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
