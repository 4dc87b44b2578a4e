//! Messages of `LangChain`, Goose and Crush in memory.

use serde_json::Value;

use super::{Blocks, calls, marks, text};
use crate::adapter::is_langchain_message;
use crate::seen::{BlockKind, Kind, Marks};

/// What a message of `LangChain` is.
pub(super) fn langchain<'v>(entry: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    let class = entry.get("id").and_then(Value::as_array);
    let class = class.and_then(|path| path.iter().rev().find_map(Value::as_str));
    let name = class.or_else(|| text(entry, "type")).unwrap_or_default();
    let inner = [entry.get("kwargs"), entry.get("data")];
    let inner = inner.into_iter().flatten().find(|it| it.is_object());
    let message = inner.unwrap_or(entry);
    match name {
        "ai" | "AIMessage" | "AIMessageChunk" => {
            calls(message.get("tool_calls"), blocks);
            Kind::Assistant
        }
        "tool" | "ToolMessage" | "ToolMessageChunk" => {
            let id = text(message, "tool_call_id");
            blocks.push((BlockKind::Result, marks(message.get("content"), false), id));
            Kind::Results
        }
        name if is_langchain_message(name.as_bytes()) => Kind::Message,
        _ => Kind::Neutral,
    }
}

/// What an entry of a Goose session is.
pub(super) fn goose<'v>(entry: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    let is_unsent = entry.pointer("/metadata/agentVisible") == Some(&Value::Bool(false));
    let role = text(entry, "role").filter(|_| !is_unsent);
    let is_model = match role {
        Some("assistant") => true,
        Some("user") => false,
        _ if entry.get("working_dir").is_some() => return Kind::Header,
        _ => return Kind::Neutral,
    };
    let mut has_more = false;
    let content = entry.get("content").and_then(Value::as_array);
    for block in content.into_iter().flatten() {
        let id = text(block, "id");
        match text(block, "type") {
            Some("toolRequest") if is_model => blocks.push((BlockKind::Call, Marks::default(), id)),
            Some("frontendToolRequest") if is_model => {
                blocks.push((BlockKind::BrokenOffCall, Marks::default(), id));
            }
            Some("toolResponse") if !is_model => {
                let result = block.get("toolResult");
                let said = result.and_then(|it| it.get("value")).or(result);
                blocks.push((BlockKind::Result, marks(said, false), id));
            }
            Some("toolRequest" | "frontendToolRequest" | "toolResponse") => {}
            _ => has_more = true,
        }
    }
    match (is_model, blocks.is_empty(), has_more) {
        (true, ..) => Kind::Assistant,
        (_, true, _) => Kind::Message,
        (_, false, true) => Kind::Mixed,
        (_, false, false) => Kind::Results,
    }
}

/// What a message of Crush is.
pub(super) fn crush<'v>(entry: &'v Value, blocks: &mut Blocks<'v>) -> Kind {
    let role = text(entry, "role").unwrap_or_default();
    let parts = entry.get("parts").and_then(Value::as_array);
    for part in parts.into_iter().flatten() {
        let data = part.get("data").unwrap_or(&Value::Null);
        match (role, text(part, "type")) {
            ("assistant", Some("tool_call")) => {
                blocks.push((BlockKind::Call, Marks::default(), text(data, "id")));
            }
            ("tool", Some("tool_result")) => {
                let marks = marks(data.get("content"), false);
                blocks.push((BlockKind::Result, marks, text(data, "tool_call_id")));
            }
            _ => {}
        }
    }
    match role {
        "assistant" => Kind::Assistant,
        "tool" if !blocks.is_empty() => Kind::Results,
        "" | "tool" => Kind::Neutral,
        _ => Kind::Message,
    }
}
