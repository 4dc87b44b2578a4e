//! A server's stream as it came over the wire: events (`data: {…}`) of `OpenAI`'s and Anthropic's
//! kind, and Ollama's lines of JSON. The pieces are put together to the reply that the server would
//! have returned whole.

use serde_json::{Value, json};

use crate::json;

/// What a text is that looks like a stream.
#[derive(Debug)]
pub(crate) enum Wire {
    /// The whole reply, and whether a member of an object stood there twice.
    Reply { reply: Value, doubled: bool },
    /// A stream of a kind that nobody here can read.
    Unreadable,
}

/// Reads a text that is a raw stream; `None` when it is none.
pub(crate) fn read(text: &str) -> Option<Wire> {
    let text = text.trim().trim_start_matches('\u{feff}');
    let events = ["data:", "event:", ":"]
        .iter()
        .any(|start| text.starts_with(start));
    if !events && !text.starts_with('{') {
        return None;
    }
    let mut pieces = Pieces::default();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        crate::steps::visit(2 * line.len());
        let payload = if events { event_data(line)? } else { line };
        if payload.is_empty() {
            continue;
        }
        if payload == "[DONE]" {
            pieces.ended = true;
            continue;
        }
        let value = serde_json::from_str::<Value>(payload).ok();
        match value {
            Some(value) if events || is_ollama(&value) => {
                pieces.lines += 1;
                pieces.doubled |=
                    json::read_at(payload, 0, payload.len()).is_some_and(|read| read.ambiguous);
                pieces.add(&value);
            }
            // The last line may have been cut off.
            None if payload.starts_with('{') && text.ends_with(payload) => pieces.ended = false,
            _ => return None,
        }
    }
    if pieces.known {
        let doubled = pieces.doubled;
        let reply = pieces.whole();
        return Some(Wire::Reply { reply, doubled });
    }
    let cut_at_once = events && pieces.lines == 0 && text.contains("data: {");
    (events && pieces.lines > 0 || cut_at_once).then_some(Wire::Unreadable)
}

/// The data of an event's line, nothing in its other lines, `None` for a line of no event.
fn event_data(line: &str) -> Option<&str> {
    if let Some(data) = line.strip_prefix("data:") {
        return Some(data.trim_start());
    }
    ["event:", "id:", "retry:", ":"]
        .iter()
        .any(|start| line.starts_with(start))
        .then_some("")
}

/// Whether this is a line of Ollama's `/api/chat` or `/api/generate`.
fn is_ollama(value: &Value) -> bool {
    let named = value.get("model").is_some_and(Value::is_string);
    let says_end = value.get("done").is_some_and(Value::is_boolean);
    let message = value.get("message").is_some_and(Value::is_object);
    let text = value.get("response").is_some_and(Value::is_string);
    says_end && (message || text) && named || is_error(value)
}

fn is_error(value: &Value) -> bool {
    value.get("error").is_some_and(|error| {
        error.get("message").is_some()
            || error.is_string() && value.as_object().is_some_and(|map| map.len() == 1)
    })
}

/// One call, as far as it came.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    /// Arguments that came as an object, all at once.
    object: Option<Value>,
}

/// A reply that comes in pieces, as far as it was put together.
#[derive(Debug, Default)]
pub struct Pieces {
    lines: usize,
    content: String,
    reasoning: String,
    refusal: String,
    calls: Vec<Slot>,
    finish: Option<String>,
    error: Option<Value>,
    /// The server said that this was all.
    ended: bool,
    /// At least one line is of a known kind.
    known: bool,
    doubled: bool,
}

impl Pieces {
    /// What was said so far.
    pub fn content(&self) -> &str {
        &self.content
    }

    /// What was thought so far.
    pub fn reasoning(&self) -> &str {
        &self.reasoning
    }

    /// Whether a call is among it.
    pub fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether the server has said that this was all.
    pub fn is_over(&self) -> bool {
        self.ended
    }

    /// The server says that this was all.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Takes one more piece.
    pub fn add(&mut self, value: &Value) {
        if is_error(value) {
            self.known = true;
            self.error = Some(value.clone());
        } else if let Some(choices) = value.get("choices").and_then(Value::as_array) {
            self.known = true;
            let first = |choice: &&Value| choice.get("index").is_none_or(|index| index == 0);
            for choice in choices.iter().filter(first) {
                self.add_choice(choice);
            }
        } else if is_ollama(value) {
            self.known = true;
            push(&mut self.content, value.get("response"));
            push(&mut self.reasoning, value.get("thinking"));
            self.add_delta(value.get("message").unwrap_or(&Value::Null));
            self.ended |= value["done"] == Value::Bool(true);
            self.say_finish(value.get("done_reason"));
        } else {
            self.add_block(value);
        }
    }

    fn add_choice(&mut self, choice: &Value) {
        push(&mut self.content, choice.get("text"));
        for key in ["delta", "message"] {
            self.add_delta(choice.get(key).unwrap_or(&Value::Null));
        }
        self.say_finish(choice.get("finish_reason"));
    }

    fn say_finish(&mut self, reason: Option<&Value>) {
        if let Some(reason) = reason.and_then(Value::as_str) {
            self.ended = true;
            self.finish = Some(reason.to_owned());
        }
    }

    fn add_delta(&mut self, delta: &Value) {
        push(&mut self.content, delta.get("content"));
        push(&mut self.refusal, delta.get("refusal"));
        for key in ["reasoning_content", "reasoning", "thinking"] {
            if let Some(text) = delta.get(key).filter(|text| text.is_string()) {
                push(&mut self.reasoning, Some(text));
                break;
            }
        }
        for call in delta
            .get("tool_calls")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let function = call.get("function").unwrap_or(call);
            let index = call.get("index").and_then(Value::as_u64);
            self.add_call(index, call.get("id"), function);
        }
        if let Some(function) = delta.get("function_call").filter(|call| call.is_object()) {
            self.add_call(Some(0), None, function);
        }
    }

    fn add_call(&mut self, index: Option<u64>, id: Option<&Value>, function: &Value) {
        let id = id.and_then(Value::as_str).unwrap_or_default();
        let name = function.get("name").and_then(Value::as_str);
        let name = name.unwrap_or_default();
        // A piece goes on with the call of its index, unless it says that it is another one.
        let goes_on = |slot: &Slot| match index {
            Some(_) => {
                slot.index == index && (id.is_empty() || slot.id.is_empty() || slot.id == id)
            }
            None => name.is_empty() && (id.is_empty() || slot.id == id),
        };
        let place = self.calls.iter().rposition(goes_on).unwrap_or_else(|| {
            self.calls.push(Slot {
                index,
                ..Slot::default()
            });
            self.calls.len() - 1
        });
        let slot = &mut self.calls[place];
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        if slot.name != name {
            slot.name.push_str(name);
        }
        match function.get("arguments") {
            Some(object @ Value::Object(_)) => slot.object = Some(object.clone()),
            text => push(&mut slot.arguments, text),
        }
    }

    /// Anthropic's events.
    fn add_block(&mut self, value: &Value) {
        let index = value.get("index").and_then(Value::as_u64);
        let delta = value.get("delta").unwrap_or(&Value::Null);
        match value.get("type").and_then(Value::as_str) {
            Some("message_start" | "content_block_stop" | "ping") => {}
            Some("message_stop") => self.ended = true,
            Some("message_delta") => self.say_finish(delta.get("stop_reason")),
            Some("content_block_start") => {
                let block = value.get("content_block").unwrap_or(&Value::Null);
                push(&mut self.content, block.get("text"));
                if block.get("type").is_some_and(|kind| kind == "tool_use") {
                    self.add_call(index, block.get("id"), block);
                }
            }
            Some("content_block_delta") => {
                push(&mut self.content, delta.get("text"));
                push(&mut self.reasoning, delta.get("thinking"));
                if let Some(part) = delta.get("partial_json") {
                    self.add_call(index, None, &json!({"arguments": part}));
                }
            }
            _ => return,
        }
        self.known = true;
    }

    /// The reply as a completion. A stream that nobody ended was cut off.
    pub fn whole(self) -> Value {
        if let Some(error) = self.error {
            return error;
        }
        let calls: Vec<Value> = self
            .calls
            .into_iter()
            .map(|slot| {
                let arguments = slot.object.unwrap_or(Value::String(slot.arguments));
                json!({"id": slot.id, "function": {"name": slot.name, "arguments": arguments}})
            })
            .collect();
        let cut = (!self.ended).then(|| "length".to_owned());
        let refusal = Some(self.refusal).filter(|refusal| !refusal.is_empty());
        json!({"choices": [{
            "message": {
                "role": "assistant",
                "content": self.content,
                "reasoning_content": self.reasoning,
                "refusal": refusal,
                "tool_calls": calls,
            },
            "finish_reason": cut.or(self.finish),
        }]})
    }
}

fn push(text: &mut String, piece: Option<&Value>) {
    text.push_str(piece.and_then(Value::as_str).unwrap_or_default());
}
