//! What a provider would accept, written from the documented rules of its API and from nothing else:
//! no code is shared with the checker, and everything is parsed with `serde_json`.
//!
//! Anthropic: consecutive messages of a role are one turn; every `tool_use` of a turn needs one
//! `tool_result` in the next turn, which has to be the user's; every `tool_result` needs its
//! `tool_use` in the turn before; ids are unique. Chat completions: an assistant message with
//! `tool_calls`, whose ids differ, is followed by one `tool` message for each, before anything else.
//! Responses: every
//! output comes behind its call, every call has one output. A conversation whose last turn is the
//! model's may have calls that still run.

use std::collections::{HashMap, HashSet};

use holdfast_transcript::Format;
use serde_json::Value;

/// Whether a provider would take the conversation in these lines; why not, if not.
pub(crate) fn accepts(format: Format, text: &str) -> Result<(), String> {
    let mut entries = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        entries
            .push(serde_json::from_str::<Value>(line).map_err(|error| format!("{error}: {line}"))?);
    }
    match format {
        Format::OpenAiChat => chat(&entries),
        Format::OpenAiResponses => responses(&entries.iter().collect::<Vec<_>>()),
        Format::Codex => {
            let items: Vec<&Value> = entries
                .iter()
                .filter(|entry| entry["type"] == "response_item")
                .map(|entry| &entry["payload"])
                .collect();
            responses(&items)
        }
        Format::Anthropic => anthropic(&entries.iter().collect::<Vec<_>>()),
        Format::OpenClaw => branches(&entries, "id", "parentId"),
        Format::ClaudeCode => branches(&entries, "uuid", "parentUuid"),
    }
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
            path.push(&entry["message"]);
            at = entry[parent].as_str();
        }
        path.reverse();
        let path: Vec<&Value> = path
            .into_iter()
            .filter(|message| message.is_object())
            .collect();
        anthropic(&path).map_err(|error| format!("branch to {leaf}: {error}"))?;
    }
    Ok(())
}

/// Calls and results of a message, in Anthropic's or `OpenClaw`'s words.
fn blocks(message: &Value) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    if message["role"] == "toolResult" {
        results.push(
            message["toolCallId"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        );
        return (calls, results);
    }
    for block in message["content"].as_array().into_iter().flatten() {
        match block["type"].as_str() {
            Some("tool_use" | "toolCall") => {
                calls.push(block["id"].as_str().unwrap_or_default().to_owned());
            }
            Some("tool_result") => {
                results.push(block["tool_use_id"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
    (calls, results)
}

fn anthropic(messages: &[&Value]) -> Result<(), String> {
    // Turns: who, calls, results.
    let mut turns: Vec<(bool, Vec<String>, Vec<String>)> = Vec::new();
    for message in messages {
        let is_model = message["role"] == "assistant";
        let (calls, results) = blocks(message);
        match turns.last_mut() {
            Some(turn) if turn.0 == is_model => {
                turn.1.extend(calls);
                turn.2.extend(results);
            }
            _ => turns.push((is_model, calls, results)),
        }
    }
    let mut used = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (number, (is_model, calls, results)) in turns.iter().enumerate() {
        let mut answered = HashSet::new();
        for result in results {
            if !open.contains(result) {
                return Err(format!(
                    "messages.{number}: unexpected tool_use_id {result}"
                ));
            }
            if !answered.insert(result.clone()) {
                return Err(format!("messages.{number}: two results for {result}"));
            }
        }
        if let Some(missing) = open.iter().find(|call| !answered.contains(*call)) {
            return Err(format!("messages.{number}: no tool_result for {missing}"));
        }
        open.clear();
        if *is_model {
            for call in calls {
                if call.is_empty() || !used.insert(call.clone()) {
                    return Err(format!(
                        "messages.{number}: tool_use ids must be unique: {call}"
                    ));
                }
            }
            open.clone_from(calls);
        }
    }
    Ok(())
}

fn chat(messages: &[Value]) -> Result<(), String> {
    let mut open: Vec<String> = Vec::new();
    let mut has_begun = false;
    for (number, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|call| call == id) else {
                return Err(format!(
                    "messages.{number}: a tool message without its call {id}"
                ));
            };
            open.remove(at);
            has_begun = true;
            continue;
        }
        if let Some(missing) = open.first() {
            return Err(format!(
                "messages.{number}: {missing} did not have a response message"
            ));
        }
        has_begun = false;
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
    match open.first() {
        Some(missing) if has_begun => Err(format!("{missing} did not have a response message")),
        _ => Ok(()),
    }
}

fn responses(items: &[&Value]) -> Result<(), String> {
    let mut calls: HashMap<&str, bool> = HashMap::new();
    let mut last_said = 0;
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
            Some("function_call_output") => {
                last_said = number;
                match calls.get_mut(id) {
                    None => return Err(format!("input.{number}: no tool call found for {id}")),
                    Some(true) => return Err(format!("input.{number}: two outputs for {id}")),
                    Some(answered) => *answered = true,
                }
            }
            _ if item["role"] == "user" => last_said = number,
            _ => {}
        }
    }
    match order
        .iter()
        .find(|(number, id)| *number < last_said && !calls[id])
    {
        Some((_, id)) => Err(format!("no tool output found for {id}")),
        None => Ok(()),
    }
}
