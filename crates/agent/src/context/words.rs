//! Turns calls in a history into what a model without calls understands.
//!
//! Such a model's server knows neither `tool_calls` nor the role `tool`; some refuse them. So the
//! calls are written as the model itself would have, and the results as the loop tells them.

use std::collections::{HashMap, HashSet};

use holdfast_intent::Strategy;
use serde_json::{Value, json};

use crate::chat::{Message, NativeCall, Role};
use crate::results::batch;

/// The history for a model whose replies are read by this strategy.
pub fn told(messages: Vec<Message>, strategy: Strategy) -> Vec<Message> {
    if strategy == Strategy::Native {
        return messages;
    }
    let mut names: HashMap<String, String> = HashMap::new();
    let mut told = Vec::with_capacity(messages.len());
    let mut results: Vec<String> = Vec::new();
    for message in messages {
        if message.role == Role::Tool {
            let name = message.answers.as_ref().and_then(|id| names.get(id));
            let name = name.map_or("tool", String::as_str);
            results.push(format!("[TOOL_RESULT: {name}]\n{}", message.content));
            continue;
        }
        flush(&mut told, &mut results);
        for call in &message.calls {
            names.insert(call.id.clone(), call.name.clone());
        }
        told.push(with_calls(message, strategy));
    }
    flush(&mut told, &mut results);
    told
}

/// Gives results the ids of their calls back where a client has changed them: `OpenClaw` sends ids without
/// whatever is neither letter nor digit. A result whose id is some call's is left alone, and so is one that
/// could be of several.
pub fn matched(mut messages: Vec<Message>) -> Vec<Message> {
    let calls = messages.iter().flat_map(|it| &it.calls);
    let ids: HashSet<String> = calls.map(|call| call.id.clone()).collect();
    let mut by_bare: HashMap<String, Option<&str>> = HashMap::new();
    for id in &ids {
        let same = by_bare.entry(bare(id)).or_insert(Some(id));
        if *same != Some(id) {
            *same = None;
        }
    }
    for message in &mut messages {
        if let Some(id) = message.answers.as_mut().filter(|id| !ids.contains(*id))
            && let Some(Some(meant)) = by_bare.get(&bare(id))
        {
            id.clear();
            id.push_str(meant);
        }
    }
    messages
}

fn bare(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).collect()
}

fn flush(told: &mut Vec<Message>, results: &mut Vec<String>) {
    if !results.is_empty() {
        told.push(Message::text(Role::User, batch(results)));
        results.clear();
    }
}

fn with_calls(mut message: Message, strategy: Strategy) -> Message {
    for call in std::mem::take(&mut message.calls) {
        if !message.content.is_empty() {
            message.content.push('\n');
        }
        message.content.push_str(&written(&call, strategy));
    }
    message
}

fn written(call: &NativeCall, strategy: Strategy) -> String {
    let arguments = Value::Object(call.arguments.clone());
    match strategy {
        Strategy::React => format!("Action: {}\nAction Input: {arguments}", call.name),
        Strategy::GuidedJson => {
            json!({"reasoning": "", "tool_calls": [{"name": call.name, "arguments": arguments}],
                   "done": false})
            .to_string()
        }
        _ => {
            let call = json!({"name": call.name, "arguments": arguments});
            format!("<tool_call>\n{call}\n</tool_call>")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_whose_ids_were_stripped_find_their_calls() {
        let call = |id: &str| NativeCall {
            id: id.to_owned(),
            name: "read".to_owned(),
            arguments: serde_json::Map::new(),
        };
        let asked = |ids: &[&str]| Message {
            calls: ids.iter().map(|id| call(id)).collect(),
            ..Message::text(Role::Assistant, "")
        };
        let answer = |id: &str| Message {
            answers: Some(id.to_owned()),
            ..Message::text(Role::Tool, "done")
        };
        let history = vec![
            asked(&["call_1_25843_0", "call_2", "call-2", "x_1"]),
            answer("call1258430"),
            answer("call2"),
            answer("x_1"),
            answer("nobody"),
        ];
        let found: Vec<_> = matched(history)
            .into_iter()
            .filter_map(|it| it.answers)
            .collect();
        assert_eq!(found, ["call_1_25843_0", "call2", "x_1", "nobody"]);
    }

    #[test]
    fn calls_and_results_are_told_in_words() {
        let wire = [
            json!({"role": "user", "content": "Weather?"}),
            json!({"role": "assistant", "content": null, "tool_calls": [
                {"id": "a", "type": "function",
                 "function": {"name": "weather", "arguments": "{\"city\":\"Bern\"}"}},
                {"id": "b", "type": "function",
                 "function": {"name": "time", "arguments": "{}"}}]}),
            json!({"role": "tool", "content": "sunny", "tool_call_id": "a"}),
            json!({"role": "tool", "content": "noon", "tool_call_id": "b"}),
            json!({"role": "user", "content": "Thanks."}),
        ];
        let messages: Vec<Message> = wire
            .iter()
            .map(|it| Message::from_wire(it).expect("a message"))
            .collect();
        assert_eq!(told(messages.clone(), Strategy::Native), messages);
        let told = told(messages, Strategy::React);
        let roles: Vec<Role> = told.iter().map(|it| it.role).collect();
        assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::User]);
        assert_eq!(
            told[1].content,
            "Action: weather\nAction Input: {\"city\":\"Bern\"}\nAction: time\nAction Input: {}"
        );
        assert!(
            told.iter()
                .all(|it| it.calls.is_empty() && it.answers.is_none())
        );
        let results = &told[2].content;
        assert!(
            results.contains("[TOOL_RESULT: weather]\nsunny\n\n[TOOL_RESULT: time]\nnoon"),
            "{results}"
        );
    }
}
