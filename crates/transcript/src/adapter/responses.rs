//! Items of the Responses API.

use super::message::marks;
use super::{Adapter, Pairing};
use crate::format::Format;
use crate::json::{Cursor, Invalid, Text};
use crate::seen::{Block, BlockKind, Kind, Marks, Seen};

/// Items of the Responses API, one after the other.
#[derive(Debug, Clone, Copy)]
pub struct Responses;

impl Adapter for Responses {
    fn format(&self) -> Format {
        Format::OpenAiResponses
    }

    fn pairing(&self) -> Pairing {
        Pairing::Anywhere
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        item(cursor, seen)?;
        cursor.end()
    }
}

/// Calls that the caller has to answer; those of the server's own tools have no results here.
pub(crate) fn is_call(kind: &[u8]) -> bool {
    matches!(
        kind,
        b"function_call"
            | b"custom_tool_call"
            | b"local_shell_call"
            | b"shell_call"
            | b"apply_patch_call"
            | b"computer_call"
            | b"tool_search_call"
    )
}

/// Answers to them.
pub(crate) fn is_result(kind: &[u8]) -> bool {
    matches!(
        kind,
        b"function_call_output"
            | b"custom_tool_call_output"
            | b"local_shell_call_output"
            | b"shell_call_output"
            | b"apply_patch_call_output"
            | b"computer_call_output"
            | b"tool_search_output"
    )
}

/// Whether an entry's type is one of this format's own.
pub(crate) fn is_responses_item(kind: &[u8]) -> bool {
    is_call(kind) || is_result(kind) || matches!(kind, b"reasoning" | b"web_search_call")
}

/// Reads the item that begins here. Adds to what `seen` holds already.
pub(super) fn item(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    cursor.peek();
    let start = cursor.here();
    let text = cursor.text();
    let (mut kind, mut role, mut execution) = (None, None, None);
    let (mut call_id, mut name) = (None, None);
    let mut said = start..start;
    cursor.object(|cursor, key| match &*key.unescaped() {
        b"type" => cursor.string().map(|text| kind = text),
        b"role" => cursor.string_span().map(|span| role = span),
        b"call_id" => cursor.string_span().map(|span| call_id = span),
        b"name" => cursor.string_span().map(|span| name = span),
        b"output" => cursor.place().map(|place| said = place),
        b"execution" => cursor.string().map(|text| execution = text),
        _ => cursor.skip(),
    })?;
    let kind = kind.map_or(&b""[..], Text::raw);
    let end = cursor.here();
    let block = |kind, marks| Block {
        kind,
        id: call_id,
        name,
        marks,
        start,
        end,
    };
    let is_search = matches!(kind, b"tool_search_call" | b"tool_search_output");
    if is_search && !execution.is_some_and(|by| by.is(b"client")) {
        seen.kind = Kind::Neutral;
    } else if is_call(kind) {
        // Calls that the server answers itself carry no id for a result.
        if call_id.is_some() || matches!(kind, b"function_call" | b"custom_tool_call") {
            seen.blocks.push(block(BlockKind::Call, Marks::default()));
        }
        seen.kind = Kind::Assistant;
    } else if is_result(kind) {
        let said = seen.compares_results.then_some(said);
        let marks = marks(text, start..end, said, false);
        seen.blocks.push(block(BlockKind::Result, marks));
        seen.kind = Kind::Results;
    } else if role.is_some() && (kind.is_empty() || kind == b"message") {
        seen.role = role;
        let role = role.map(|role| role.text(text));
        seen.kind = match role {
            Some(role) if role.is(b"assistant") => Kind::Assistant,
            _ => Kind::Message,
        };
        seen.has_more = true;
    } else {
        seen.kind = Kind::Neutral;
    }
    Ok(())
}
