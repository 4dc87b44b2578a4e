//! What the tests share: conversations, written in every format.

pub(crate) mod provider;

use std::path::PathBuf;

use holdfast_transcript::Format;
use serde_json::{Value, json};

/// One entry of a conversation, in no format yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Said {
    /// Its own id, and a name for it in tests.
    pub(crate) id: String,
    pub(crate) what: What,
    /// Whom it continues when that is not the entry before it.
    pub(crate) parent: Option<String>,
    /// Only so much of its line was written.
    pub(crate) written: Option<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum What {
    User(String),
    Assistant {
        text: String,
        calls: Vec<Call>,
    },
    Result {
        call: String,
        text: String,
    },
    /// A result and a text in one message, where the format has that.
    ResultAndText {
        call: String,
        text: String,
    },
    /// The history before it is no longer sent, except from this entry on, or for these.
    Compacted {
        kept: String,
        instead: Vec<What>,
    },
    /// The same the other way round, which no provider takes.
    TextAndResult {
        call: String,
        text: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) arguments: Value,
}

impl Said {
    pub(crate) fn new(number: usize, what: What) -> Self {
        Self {
            id: format!("entry-{number}"),
            what,
            parent: None,
            written: None,
        }
    }
}

/// Whether a format's entries name whom they continue.
pub(crate) fn has_parents(format: Format) -> bool {
    matches!(format, Format::OpenClaw | Format::ClaudeCode)
}

/// Whether results have to follow their calls at once.
pub(crate) fn is_strict(format: Format) -> bool {
    !matches!(format, Format::Codex | Format::OpenAiResponses)
}

/// The first line of a session, where the format has one.
pub(crate) fn header(format: Format) -> Option<String> {
    match format {
        Format::OpenClaw => Some(
            json!({"type": "session", "version": 4, "id": "s1", "cwd": "/home/user"}).to_string(),
        ),
        Format::Codex => Some(
            json!({"timestamp": "t", "type": "session_meta", "payload": {"id": "s1", "cwd": "/"}})
                .to_string(),
        ),
        Format::Goose => Some(
            json!({"working_dir": "/home/user", "description": "", "message_count": 3}).to_string(),
        ),
        _ => None,
    }
}

/// A conversation as lines. A Responses message with several calls becomes several entries, so the
/// names of the entries are given back with them.
pub(crate) fn lines(format: Format, conversation: &[Said]) -> Vec<(String, String)> {
    let mut lines: Vec<(String, String)> = header(format)
        .into_iter()
        .map(|line| ("header".to_owned(), line))
        .collect();
    let mut before: Option<String> = None;
    for said in conversation {
        let parent = said.parent.clone().or(before.clone());
        for mut line in entries(format, said, parent.as_deref()) {
            if let Some(written) = said.written {
                let end = line.floor_char_boundary(written.clamp(1, line.len() - 1));
                line.truncate(end);
            }
            lines.push((said.id.clone(), line));
        }
        before = Some(said.id.clone());
    }
    lines
}

pub(crate) fn text(lines: &[(String, String)]) -> String {
    lines
        .iter()
        .flat_map(|(_, line)| [line.as_str(), "\n"])
        .collect()
}

fn entries(format: Format, said: &Said, parent: Option<&str>) -> Vec<String> {
    let envelope =
        |message: Value| -> String {
            match format {
            Format::OpenClaw => json!({
                "type": "message", "id": said.id, "parentId": parent,
                "timestamp": "2026-11-15T07:06:42.004Z", "message": message,
            }),
            Format::ClaudeCode => {
                let role = if message["role"] == "assistant" { "assistant" } else { "user" };
                json!({
                    "parentUuid": parent, "isSidechain": false, "sessionId": "s1", "type": role,
                    "uuid": said.id, "timestamp": "2026-11-15T07:06:42.004Z", "message": message,
                })
            }
            _ => message,
        }
        .to_string()
        };
    let item = |item: Value| -> String {
        match format {
            Format::Codex => json!({"timestamp": "t", "type": "response_item", "payload": item}),
            _ => item,
        }
        .to_string()
    };
    match (format, &said.what) {
        (Format::OpenClaw, What::Compacted { kept, .. }) => vec![
            json!({
                "type": "compaction", "id": said.id, "parentId": parent, "summary": "so far",
                "firstKeptEntryId": kept,
            })
            .to_string(),
        ],
        (Format::Codex, What::Compacted { instead, .. }) => {
            let history: Vec<Value> = instead.iter().flat_map(items).collect();
            let payload = json!({"message": "so far", "replacement_history": history});
            vec![json!({"timestamp": "t", "type": "compacted", "payload": payload}).to_string()]
        }
        (_, What::Compacted { .. }) => {
            let summary = Said {
                what: What::User("so far".to_owned()),
                ..said.clone()
            };
            entries(format, &summary, parent)
        }
        (Format::Codex | Format::OpenAiResponses, what) => {
            items(what).into_iter().map(item).collect()
        }
        (Format::OpenAiChat, what) => vec![envelope(chat(what))],
        (Format::LangChain, what) => vec![langchain(&said.id, what).to_string()],
        (Format::Goose, what) => vec![goose(what).to_string()],
        (Format::Crush, what) => vec![crush(&said.id, what).to_string()],
        (Format::OpenClaw, what) => vec![envelope(openclaw(what))],
        (_, what) => vec![envelope(anthropic(&said.id, what))],
    }
}

fn items(what: &What) -> Vec<Value> {
    match what {
        What::User(text) => {
            vec![
                json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
            ]
        }
        What::Compacted { .. } => unreachable!("is no item"),
        What::Assistant { text, calls } => {
            let mut items = Vec::new();
            if !text.is_empty() || calls.is_empty() {
                items.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
            }
            items.extend(calls.iter().map(|call| {
                json!({"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments.to_string()})
            }));
            items
        }
        What::Result { call, text }
        | What::ResultAndText { call, text }
        | What::TextAndResult { call, text } => {
            vec![json!({"type": "function_call_output", "call_id": call, "output": text})]
        }
    }
}

fn chat(what: &What) -> Value {
    match what {
        What::Compacted { .. } => unreachable!("is no message"),
        What::User(text) => json!({"role": "user", "content": text}),
        What::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        What::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments.to_string()}}))
                .collect();
            let content = if text.is_empty() {
                Value::Null
            } else {
                json!(text)
            };
            json!({"role": "assistant", "content": content, "tool_calls": calls})
        }
        What::Result { call, text }
        | What::ResultAndText { call, text }
        | What::TextAndResult { call, text } => {
            json!({"role": "tool", "tool_call_id": call, "content": text})
        }
    }
}

fn anthropic(id: &str, what: &What) -> Value {
    match what {
        What::Compacted { .. } => unreachable!("is no message"),
        What::User(text) => json!({"role": "user", "content": text}),
        What::Assistant { text, calls } => {
            let mut blocks = Vec::new();
            if !text.is_empty() || calls.is_empty() {
                blocks.push(json!({"type": "text", "text": text}));
            }
            blocks.extend(calls.iter().map(|call| {
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments})
            }));
            json!({"id": format!("msg-{id}"), "role": "assistant", "content": blocks})
        }
        What::Result { call, text } => {
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": text}]})
        }
        What::ResultAndText { call, text } => {
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": call, "content": text}, {"type": "text", "text": text},
            ]})
        }
        What::TextAndResult { call, text } => {
            json!({"role": "user", "content": [
                {"type": "text", "text": text}, {"type": "tool_result", "tool_use_id": call, "content": text},
            ]})
        }
    }
}

fn openclaw(what: &What) -> Value {
    match what {
        What::Assistant { text, calls } => {
            let mut blocks = Vec::new();
            if !text.is_empty() || calls.is_empty() {
                blocks.push(json!({"type": "text", "text": text}));
            }
            blocks.extend(calls.iter().map(|call| {
                json!({"type": "toolCall", "id": call.id, "name": call.name, "arguments": call.arguments})
            }));
            json!({"role": "assistant", "content": blocks, "stopReason": "toolUse", "timestamp": 1_794_726_402_038_u64})
        }
        What::Result { call, text } => json!({
            "role": "toolResult", "toolCallId": call, "toolName": "x",
            "content": [{"type": "text", "text": text}], "isError": false,
        }),
        other => anthropic("", other),
    }
}

/// A message of `LangChain`, in one of the three ways in which they are written down.
fn langchain(id: &str, what: &What) -> Value {
    let (kind, class, message) = match what {
        What::Compacted { .. } => unreachable!("is no message"),
        What::User(text) => ("human", "HumanMessage", json!({"content": text})),
        What::Assistant { text, calls } => {
            let calls: Vec<Value> = calls
                .iter()
                .map(|call| json!({"name": call.name, "args": call.arguments, "id": call.id, "type": "tool_call"}))
                .collect();
            (
                "ai",
                "AIMessage",
                json!({"content": text, "tool_calls": calls}),
            )
        }
        What::Result { call, text }
        | What::ResultAndText { call, text }
        | What::TextAndResult { call, text } => {
            let message = json!({"content": text, "name": "x", "tool_call_id": call});
            ("tool", "ToolMessage", message)
        }
    };
    match id.bytes().last().unwrap_or_default() % 3 {
        0 => json!({"type": kind, "data": message}),
        1 => {
            let class = json!(["langchain", "schema", "messages", class]);
            json!({"lc": 1, "type": "constructor", "id": class, "kwargs": message})
        }
        _ => {
            let mut message = message;
            message["type"] = json!(kind);
            message
        }
    }
}

fn goose(what: &What) -> Value {
    let (role, content) = match what {
        What::Compacted { .. } => unreachable!("is no message"),
        What::User(text) => ("user", vec![json!({"type": "text", "text": text})]),
        What::Assistant { text, calls } => {
            let mut blocks = Vec::new();
            if !text.is_empty() || calls.is_empty() {
                blocks.push(json!({"type": "text", "text": text}));
            }
            blocks.extend(calls.iter().map(|call| {
                let value = json!({"name": call.name, "arguments": call.arguments});
                let call_of = json!({"status": "success", "value": value});
                json!({"type": "toolRequest", "id": call.id, "toolCall": call_of})
            }));
            ("assistant", blocks)
        }
        What::Result { call, text }
        | What::ResultAndText { call, text }
        | What::TextAndResult { call, text } => {
            let value = json!([{"type": "text", "text": text}]);
            let result = json!({"status": "success", "value": value});
            let mut blocks =
                vec![json!({"type": "toolResponse", "id": call, "toolResult": result})];
            if !matches!(what, What::Result { .. }) {
                blocks.push(json!({"type": "text", "text": text}));
            }
            ("user", blocks)
        }
    };
    json!({"role": role, "created": 1_763_000_000, "content": content})
}

fn crush(id: &str, what: &What) -> Value {
    let part = |kind: &str, data: Value| json!({"type": kind, "data": data});
    let (role, mut parts) = match what {
        What::Compacted { .. } => unreachable!("is no message"),
        What::User(text) => ("user", vec![part("text", json!({"text": text}))]),
        What::Assistant { text, calls } => {
            let mut parts = Vec::new();
            if !text.is_empty() {
                parts.push(part("text", json!({"text": text})));
            }
            parts.extend(calls.iter().map(|call| {
                let input = call.arguments.to_string();
                let data = json!({"id": call.id, "name": call.name, "input": input, "type": "function", "finished": true});
                part("tool_call", data)
            }));
            ("assistant", parts)
        }
        What::Result { call, text }
        | What::ResultAndText { call, text }
        | What::TextAndResult { call, text } => {
            let data = json!({"tool_call_id": call, "name": "", "content": text, "metadata": "", "is_error": false});
            ("tool", vec![part("tool_result", data)])
        }
    };
    parts.push(part("finish", json!({"reason": "stop", "time": 0})));
    json!({"id": id, "role": role, "model": null, "created_at": 1_763_000_000, "parts": parts})
}

/// The real conversations beside the project; none where they are not.
pub(crate) fn trajectories() -> Vec<Vec<Said>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/data/trajectories/gpt-4o-airline.json");
    let path = std::env::var_os("HOLDFAST_TEST_DATA").map_or(path, |dir| {
        PathBuf::from(dir).join("trajectories/gpt-4o-airline.json")
    });
    let Ok(text) = std::fs::read_to_string(&path) else {
        println!(
            "skipped: there are no real trajectories at {}",
            path.display()
        );
        return Vec::new();
    };
    let all: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    all.iter().map(|one| conversation(&one["traj"])).collect()
}

fn conversation(messages: &Value) -> Vec<Said> {
    let messages = messages.as_array().expect("messages");
    let text = |message: &Value| message["content"].as_str().unwrap_or_default().to_owned();
    messages
        .iter()
        .enumerate()
        .map(|(number, message)| {
            let what = match message["role"].as_str() {
                Some("assistant") => What::Assistant {
                    text: text(message),
                    calls: message["tool_calls"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .map(call)
                        .collect(),
                },
                Some("tool") => What::Result {
                    call: message["tool_call_id"].as_str().expect("an id").to_owned(),
                    text: text(message),
                },
                _ => What::User(text(message)),
            };
            Said::new(number, what)
        })
        .collect()
}

fn call(call: &Value) -> Call {
    let arguments = call["function"]["arguments"].as_str().unwrap_or("{}");
    Call {
        id: call["id"].as_str().expect("an id").to_owned(),
        name: call["function"]["name"]
            .as_str()
            .expect("a name")
            .to_owned(),
        arguments: serde_json::from_str(arguments).unwrap_or_default(),
    }
}

/// Conversations of our own, so that there is always something to test with.
pub(crate) fn made_up() -> Vec<Vec<Said>> {
    (0..8_usize)
        .map(|seed| {
            let mut said = vec![What::User(format!("question {seed}: \"größe\" 🦞 \\ \n"))];
            for round in 0..6 + seed {
                let width = 1 + (seed + round) % 3;
                let calls: Vec<Call> = (0..width)
                    .map(|lane| Call {
                        id: format!("toolu_{seed}_{round}_{lane}"),
                        name: "read".to_owned(),
                        arguments: json!({"path": format!("a\"{round}.txt")}),
                    })
                    .collect();
                let ids: Vec<String> = calls.iter().map(|call| call.id.clone()).collect();
                let text = if round % 2 == 0 {
                    String::new()
                } else {
                    "Let me look.".to_owned()
                };
                said.push(What::Assistant { text, calls });
                for call in ids {
                    said.push(What::Result {
                        call,
                        text: format!("line {round}\n\tend"),
                    });
                }
                if round % 3 == 2 {
                    said.push(What::Assistant {
                        text: "Here it is.".to_owned(),
                        calls: Vec::new(),
                    });
                    said.push(What::User("and the next one?".to_owned()));
                }
            }
            said.push(What::Assistant {
                text: "Done.".to_owned(),
                calls: Vec::new(),
            });
            said.into_iter()
                .enumerate()
                .map(|(number, what)| Said::new(number, what))
                .collect()
        })
        .collect()
}
