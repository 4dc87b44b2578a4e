//! What a provider would accept, written from the documented rules of its API and from nothing else:
//! no code is shared with the checker, and everything is parsed with `serde_json`.
//!
//! Anthropic: consecutive messages of a role are one turn; every `tool_use` of a turn needs one
//! `tool_result` in the next turn, which has to be the user's; every `tool_result` needs its
//! `tool_use` in the turn before; ids are unique. Chat completions: an assistant message with
//! `tool_calls`, whose ids differ, is followed by one `tool` message for each, before anything else.
//! Responses: every
//! output comes behind its call, every call has one output. `LangChain` sends chat messages; Goose puts
//! neighbours together and gives calls and results to each other in their order. In Anthropic's turns, results come before
//! everything else. Calls of the last reply may still run, also when others of them are answered.

use std::collections::{HashMap, HashSet};

use holdfast_transcript::Format;
use serde_json::{Value, json};

/// Whether a provider would take the conversation in these lines; why not, if not.
pub(crate) fn accepts(format: Format, text: &str) -> Result<(), String> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        entries
            .push(serde_json::from_str::<Value>(line).map_err(|error| format!("{error}: {line}"))?);
    }
    match format {
        Format::OpenAiChat => chat(&entries),
        Format::LangChain => chat(&entries.iter().map(from_langchain).collect::<Vec<_>>()),
        Format::Crush => chat(&entries.iter().flat_map(from_crush).collect::<Vec<_>>()),
        Format::Goose => {
            let mut messages = from_goose(&entries);
            rename(&mut messages);
            anthropic(&messages.iter().collect::<Vec<_>>())
        }
        Format::OpenAiResponses => responses(&entries.iter().collect::<Vec<_>>()),
        Format::Codex => {
            let mut items: Vec<&Value> = Vec::new();
            for entry in &entries {
                match entry["type"].as_str() {
                    Some("response_item") => items.push(&entry["payload"]),
                    // What it brings along is sent instead of everything before it.
                    Some("compacted") => {
                        let instead = entry["payload"]["replacement_history"].as_array();
                        items = instead.into_iter().flatten().collect();
                    }
                    _ => {}
                }
            }
            responses(&items)
        }
        Format::Anthropic => anthropic(&entries.iter().collect::<Vec<_>>()),
        Format::OpenClaw => branches(&entries, "id", "parentId"),
        Format::ClaudeCode => branches(&entries, "uuid", "parentUuid"),
    }
}

/// The chat message that `LangChain` makes of one of its own.
fn from_langchain(entry: &Value) -> Value {
    let class = entry["id"].as_array().and_then(|path| path.last());
    let kind = class.unwrap_or(&entry["type"]).as_str().unwrap_or_default();
    let inner = ["kwargs", "data"]
        .into_iter()
        .find(|key| entry[key].is_object());
    let message = inner.map_or(entry, |key| &entry[key]);
    match kind {
        "ai" | "AIMessage" => {
            let calls = message["tool_calls"].as_array();
            let calls: Vec<Value> = calls.into_iter().flatten().cloned().collect();
            if calls.is_empty() {
                return json!({"role": "assistant"});
            }
            json!({"role": "assistant", "tool_calls": calls})
        }
        "tool" | "ToolMessage" => json!({"role": "tool", "tool_call_id": message["tool_call_id"]}),
        _ => json!({"role": "user"}),
    }
}

/// The chat messages that Crush makes of one of its own: one for each result.
fn from_crush(entry: &Value) -> Vec<Value> {
    let parts = |kind: &'static str| {
        let parts = entry["parts"].as_array().into_iter().flatten();
        let parts = parts.filter(move |part| part["type"] == kind);
        parts.map(|part| &part["data"])
    };
    match entry["role"].as_str() {
        Some("assistant") => {
            let calls: Vec<Value> = parts("tool_call")
                .map(|it| json!({"id": it["id"]}))
                .collect();
            if calls.is_empty() {
                return vec![json!({"role": "assistant"})];
            }
            vec![json!({"role": "assistant", "tool_calls": calls})]
        }
        Some("tool") => parts("tool_result")
            .map(|it| json!({"role": "tool", "tool_call_id": it["tool_call_id"]}))
            .collect(),
        _ => vec![json!({"role": "user"})],
    }
}

/// The messages that Goose sends: neighbours of the model are one.
fn from_goose(entries: &[Value]) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    for entry in entries.iter().filter(|entry| entry["role"].is_string()) {
        let blocks = entry["content"].as_array().into_iter().flatten();
        let blocks: Vec<Value> = blocks
            .map(|block| match block["type"].as_str() {
                Some("toolRequest") => json!({"type": "toolCall", "id": block["id"]}),
                Some("toolResponse") => json!({"type": "tool_result", "tool_use_id": block["id"]}),
                _ => json!({"type": "text"}),
            })
            .collect();
        match messages.last_mut() {
            Some(last) if last["role"] == "assistant" && entry["role"] == "assistant" => {
                let content = last["content"].as_array_mut().expect("a list");
                content.extend(blocks);
            }
            _ => messages.push(json!({"role": entry["role"], "content": blocks})),
        }
    }
    messages
}

/// Every branch of a tree, from its leaf to the root.
fn branches(entries: &[Value], id: &str, parent: &str) -> Result<(), String> {
    let by_id: HashMap<&str, &Value> = entries
        .iter()
        .filter(|entry| entry["type"] != "session")
        .filter_map(|entry| Some((entry[id].as_str()?, entry)))
        .collect();
    let parents: HashSet<&str> = entries
        .iter()
        .filter_map(|entry| entry[parent].as_str())
        .collect();
    for known in &parents {
        if !by_id.contains_key(known) {
            return Err(format!("the parent {known} is not there"));
        }
    }
    for (leaf, _) in by_id.iter().filter(|(id, _)| !parents.contains(**id)) {
        let mut path = Vec::new();
        let mut at = Some(*leaf);
        while let Some(entry) = at.and_then(|id| by_id.get(id)) {
            path.push(*entry);
            at = entry[parent].as_str();
        }
        path.reverse();
        let mut path: Vec<Value> = sent(&path)
            .into_iter()
            .map(|entry| entry["message"].clone())
            .filter(Value::is_object)
            .collect();
        if id == "id" {
            rename(&mut path);
        }
        let path: Vec<&Value> = path.iter().collect();
        anthropic(&path).map_err(|error| format!("branch to {leaf}: {error}"))?;
    }
    Ok(())
}

/// As `OpenClaw` sends it: each call under an id of its own, and each result under that of the first call
/// with its id, in the last message with calls, that has none.
fn rename(messages: &mut [Value]) {
    let mut open: Vec<(String, String)> = Vec::new();
    for (number, message) in messages.iter_mut().enumerate() {
        let calls = message["content"].as_array_mut().into_iter().flatten();
        let calls: Vec<&mut Value> = calls.filter(|it| it["type"] == "toolCall").collect();
        if !calls.is_empty() {
            open.clear();
        }
        for (place, call) in calls.into_iter().enumerate() {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if !id.is_empty() {
                call["id"] = format!("{id}/{number}.{place}").into();
                open.push((id, call["id"].as_str().unwrap_or_default().to_owned()));
            }
        }
        // A result is a message of its own, or a block of one.
        let mut answer = |name: &mut Value| {
            if let Some(at) = open.iter().position(|(id, _)| name.as_str() == Some(id)) {
                *name = open.remove(at).1.into();
            }
        };
        if let Some(name) = message.get_mut("toolCallId") {
            answer(name);
        }
        let blocks = message["content"].as_array_mut().into_iter().flatten();
        let named = blocks.filter_map(|block| block.get_mut("tool_use_id"));
        named.for_each(answer);
    }
}

/// What is sent of a branch: behind its last compaction everything, before it what is kept.
fn sent<'e>(path: &[&'e Value]) -> Vec<&'e Value> {
    let Some(at) = path.iter().rposition(|entry| entry["type"] == "compaction") else {
        return path.to_vec();
    };
    let first = &path[at]["firstKeptEntryId"];
    let kept = path[..at].iter().position(|entry| entry["id"] == *first);
    [&path[kept.unwrap_or(at)..at], &path[at + 1..]].concat()
}

/// One turn as the provider sees it: neighbouring messages of a role are one.
#[derive(Default)]
struct AnthropicTurn {
    is_model: bool,
    calls: Vec<String>,
    results: Vec<String>,
    /// Something that is neither call nor result.
    has_more: bool,
    /// A result that something else stands before.
    late: Option<String>,
}

impl AnthropicTurn {
    /// Takes a message, in Anthropic's or `OpenClaw`'s words.
    fn take(&mut self, message: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if message["role"] == "toolResult" {
            return self.result(text(&message["toolCallId"]));
        }
        self.has_more |= message["content"].as_str().is_some_and(|it| !it.is_empty());
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use" | "toolCall") => self.calls.push(text(&block["id"])),
                Some("tool_result") => self.result(text(&block["tool_use_id"])),
                _ => self.has_more = true,
            }
        }
    }

    fn result(&mut self, id: String) {
        if self.has_more {
            self.late = self.late.take().or(Some(id.clone()));
        }
        self.results.push(id);
    }
}

fn anthropic(messages: &[&Value]) -> Result<(), String> {
    let mut turns: Vec<AnthropicTurn> = Vec::new();
    for message in messages {
        let is_model = message["role"] == "assistant";
        if turns.last().is_none_or(|turn| turn.is_model != is_model) {
            turns.push(AnthropicTurn {
                is_model,
                ..AnthropicTurn::default()
            });
        }
        turns.last_mut().expect("one was pushed").take(message);
    }
    let mut used = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (number, turn) in turns.iter().enumerate() {
        let mut answered = HashSet::new();
        if let (false, Some(late)) = (turn.is_model, &turn.late) {
            return Err(format!("messages.{number}: {late} is not first"));
        }
        for result in &turn.results {
            if !open.contains(result) {
                return Err(format!(
                    "messages.{number}: unexpected tool_use_id {result}"
                ));
            }
            if !answered.insert(result.clone()) {
                return Err(format!("messages.{number}: two results for {result}"));
            }
        }
        // Nothing is sent while calls still run: some of the last ones may have their results.
        let is_running = number + 1 == turns.len() && !turn.is_model && !turn.has_more;
        if let Some(missing) = open.iter().find(|call| !answered.contains(*call))
            && !is_running
        {
            return Err(format!("messages.{number}: no tool_result for {missing}"));
        }
        open.clear();
        if turn.is_model {
            for call in &turn.calls {
                if call.is_empty() || !used.insert(call.clone()) {
                    return Err(format!(
                        "messages.{number}: tool_use ids must be unique: {call}"
                    ));
                }
            }
            open.clone_from(&turn.calls);
        }
    }
    Ok(())
}

fn chat(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    for (number, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|call| call == id) else {
                return Err(format!(
                    "messages.{number}: a tool message without its call {id}"
                ));
            };
            open.remove(at);
            continue;
        }
        if let Some(missing) = open.first() {
            return Err(format!(
                "messages.{number}: {missing} did not have a response message"
            ));
        }
        let calls = message["tool_calls"].as_array();
        if calls.is_some_and(Vec::is_empty) {
            return Err(format!("messages.{number}: tool_calls is empty"));
        }
        for call in calls.into_iter().flatten() {
            let id = call["id"].as_str().unwrap_or_default().to_owned();
            if id.is_empty() || open.contains(&id) {
                return Err(format!("messages.{number}: duplicate call id {id}"));
            }
            open.push(id);
        }
    }
    // What is still open are calls of the last reply, which may still run.
    Ok(())
}

fn responses(items: &[&Value]) -> Result<(), String> {
    let mut calls: HashMap<&str, bool> = HashMap::new();
    // The last reply: behind it are outputs at most.
    let is_output = |item: &&&Value| item["type"] == "function_call_output";
    let is_model = |item: &&&Value| !is_output(item) && item["role"] != "user";
    let outputs = items.iter().rev().take_while(is_output).count();
    let reply = items
        .iter()
        .rev()
        .skip(outputs)
        .take_while(is_model)
        .count();
    let last_reply = items.len() - outputs - reply;
    let mut order = Vec::new();
    for (number, item) in items.iter().enumerate() {
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str() {
            Some("function_call") => {
                if calls.insert(id, false).is_some() {
                    return Err(format!("input.{number}: duplicate call {id}"));
                }
                order.push((number, id));
            }
            Some("function_call_output") => match calls.get_mut(id) {
                None => return Err(format!("input.{number}: no tool call found for {id}")),
                Some(true) => return Err(format!("input.{number}: two outputs for {id}")),
                Some(answered) => *answered = true,
            },
            _ => {}
        }
    }
    match order
        .iter()
        .find(|(number, id)| *number < last_reply && !calls[id])
    {
        Some((_, id)) => Err(format!("no tool output found for {id}")),
        None => Ok(()),
    }
}
