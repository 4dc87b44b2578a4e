//! Entries that were not there: the answer to a call whose result is lost, and a result that was
//! taken out of a message with other things.
//!
//! Ids are derived from what they belong to, so that the same repair makes the same bytes.

use sha2::{Digest, Sha256};

use crate::format::Format;
use crate::json::{Cursor, Strings};
use crate::read;
use crate::seen::{Block, Span};
use crate::stand_in::LOST;

/// The id of the entry made for a block, as JSON, where the format has ids and the entry has one.
pub(super) fn id(format: Format, text: &[u8], block: usize) -> Option<Vec<u8>> {
    let seen = read::entry(format, text).ok()?;
    if !matches!(
        format,
        Format::OpenClaw | Format::ClaudeCode | Format::Crush
    ) {
        return None;
    }
    let entry = seen.id?.text(text);
    let place = block;
    let block = seen.blocks.get(place)?;
    let name = |block: &Block| (block.kind, block.id.map(|id| id.text(text).raw()));
    let twins = seen.blocks.iter().take(place);
    let twins = twins.filter(|other| name(other) == name(block)).count();
    let mut hasher = Sha256::new();
    hasher.update(b"holdfast transcript entry\0");
    hasher.update(entry.unescaped());
    hasher.update(b"\0");
    hasher.update([u8::from(block.kind == crate::seen::BlockKind::Result)]);
    hasher.update(block.id.map_or(&b""[..], |id| id.text(text).raw()));
    // Calls of one entry may have one id, and each gets a result of its own.
    if twins > 0 {
        hasher.update(b"\0");
        hasher.update(twins.to_string());
    }
    let digest = hasher.finalize();
    let hex = super::hex(&digest[..16]);
    // The form of a UUID, version 8: one that an application makes by its own rule.
    let uuid = format!(
        "\"{}-{}-8{}-a{}-{}\"",
        &hex[..8],
        &hex[8..12],
        &hex[13..16],
        &hex[17..20],
        &hex[20..32]
    );
    Some(uuid.into_bytes())
}

/// The answer to a call whose result is lost.
pub(super) fn answer(format: Format, text: &[u8], block: usize, parent: &[u8]) -> Option<Vec<u8>> {
    let seen = read::entry(format, text).ok()?;
    let call = seen.blocks.get(block)?;
    let call_id = json(call.id, text);
    let name = json(call.name, text);
    let lost = LOST.as_bytes();
    let tool_result = join(&[
        b"{\"type\":\"tool_result\",\"tool_use_id\":",
        &call_id,
        b",\"is_error\":true,\"content\":\"",
        lost,
        b"\"}",
    ]);
    let made = match format {
        Format::OpenClaw => {
            let stamp = copied(text, &[b"message", b"timestamp"], b",\"timestamp\":");
            let message = join(&[
                b"{\"role\":\"toolResult\",\"toolCallId\":",
                &call_id,
                b",\"toolName\":",
                &name,
                b",\"content\":[{\"type\":\"text\",\"text\":\"",
                lost,
                b"\"}],\"isError\":true",
                &stamp,
                b"}",
            ]);
            openclaw(text, id(format, text, block), parent, &message)
        }
        Format::ClaudeCode => claude_code(text, id(format, text, block), parent, &tool_result),
        // A call in `tool_calls` has its answer in a message of its own, whatever the rest looks like.
        Format::Anthropic if !is_in(text, b"tool_calls", call.start) => {
            join(&[b"{\"role\":\"user\",\"content\":[", &tool_result, b"]}"])
        }
        Format::Anthropic | Format::OpenAiChat => join(&[
            b"{\"role\":\"tool\",\"tool_call_id\":",
            &call_id,
            b",\"content\":\"",
            lost,
            b"\"}",
        ]),
        Format::LangChain => langchain(text, &call_id, &name),
        Format::Crush => {
            let part = join(&[
                b"{\"type\":\"tool_result\",\"data\":{\"tool_call_id\":",
                &call_id,
                b",\"name\":",
                &name,
                b",\"content\":\"",
                lost,
                b"\",\"metadata\":\"\",\"is_error\":true}}",
            ]);
            crush(id(format, text, block), &part)
        }
        Format::Goose => {
            let failed = join(&[b"{\"status\":\"error\",\"error\":\"", lost, b"\"}"]);
            let block = join(&[
                b"{\"type\":\"toolResponse\",\"id\":",
                &call_id,
                b",\"toolResult\":",
                &failed,
                b"}",
            ]);
            goose(text, &block)
        }
        Format::OpenAiResponses => output(text, call.start as usize..call.end as usize, &call_id)?,
        Format::Codex => {
            let item = output(text, call.start as usize..call.end as usize, &call_id)?;
            codex(text, &item)
        }
    };
    Some(made)
}

/// A result taken out of an entry with other things, as an entry of its own.
pub(super) fn extracted(
    format: Format,
    text: &[u8],
    block: usize,
    call_entry: &[u8],
    parent: &[u8],
) -> Option<Vec<u8>> {
    let seen = read::entry(format, text).ok()?;
    let found = seen.blocks.get(block)?;
    let bytes = text.get(found.start as usize..found.end as usize)?;
    let message = || join(&[b"{\"role\":\"user\",\"content\":[", bytes, b"]}"]);
    Some(match format {
        Format::OpenClaw => openclaw(call_entry, id(format, text, block), parent, &message()),
        Format::ClaudeCode => claude_code(call_entry, id(format, text, block), parent, bytes),
        Format::Anthropic | Format::OpenAiChat => message(),
        Format::Goose => goose(call_entry, bytes),
        Format::Crush => crush(id(format, text, block), bytes),
        // There a result is a message, and always alone.
        Format::OpenAiResponses | Format::LangChain => bytes.to_vec(),
        Format::Codex => codex(call_entry, bytes),
    })
}

fn openclaw(model: &[u8], id: Option<Vec<u8>>, parent: &[u8], message: &[u8]) -> Vec<u8> {
    let links = id.map_or(Vec::new(), |id| {
        join(&[b",\"id\":", &id, b",\"parentId\":", parent])
    });
    let stamp = copied(model, &[b"timestamp"], b",\"timestamp\":");
    join(&[
        b"{\"type\":\"message\"",
        &links,
        &stamp,
        b",\"message\":",
        message,
        b"}",
    ])
}

/// An entry like the model's own, as Claude Code writes them.
fn claude_code(model: &[u8], id: Option<Vec<u8>>, parent: &[u8], block: &[u8]) -> Vec<u8> {
    let mut made = join(&[b"{\"parentUuid\":", parent]);
    for key in [
        "isSidechain",
        "userType",
        "cwd",
        "sessionId",
        "version",
        "gitBranch",
    ] {
        let name = format!(",\"{key}\":");
        made.extend(copied(model, &[key.as_bytes()], name.as_bytes()));
    }
    made.extend_from_slice(b",\"type\":\"user\",\"message\":{\"role\":\"user\",\"content\":[");
    made.extend_from_slice(block);
    made.extend_from_slice(b"]},\"uuid\":");
    made.extend(id.unwrap_or_else(|| b"null".to_vec()));
    made.extend(copied(model, &[b"timestamp"], b",\"timestamp\":"));
    made.push(b'}');
    made
}

/// A message of the tool, written down like the model's own.
fn langchain(model: &[u8], call_id: &[u8], name: &[u8]) -> Vec<u8> {
    let message = join(&[
        b"\"type\":\"tool\",\"content\":\"",
        LOST.as_bytes(),
        b"\",\"tool_call_id\":",
        call_id,
        b",\"name\":",
        name,
        b",\"status\":\"error\"",
    ]);
    if member(model, &[b"data"]).is_some() {
        return join(&[b"{\"type\":\"tool\",\"data\":{", &message, b"}}"]);
    }
    if member(model, &[b"kwargs"]).is_none() {
        return join(&[b"{", &message, b"}"]);
    }
    join(&[
        b"{\"lc\":1,\"type\":\"constructor\",\"id\":[\"langchain\",\"schema\",\"messages\",\"ToolMessage\"],\"kwargs\":{",
        &message,
        b"}}",
    ])
}

/// A message of the person, with what Goose wrote beside the model's own.
fn goose(model: &[u8], block: &[u8]) -> Vec<u8> {
    join(&[
        b"{\"role\":\"user\"",
        &copied(model, &[b"created"], b",\"created\":"),
        b",\"content\":[",
        block,
        b"]",
        &copied(model, &[b"metadata"], b",\"metadata\":"),
        b"}",
    ])
}

/// A message of the tool, with the mark that nothing comes any more.
fn crush(id: Option<Vec<u8>>, part: &[u8]) -> Vec<u8> {
    join(&[
        b"{\"id\":",
        &id.unwrap_or_else(|| b"null".to_vec()),
        b",\"role\":\"tool\",\"parts\":[",
        part,
        b",{\"type\":\"finish\",\"data\":{\"reason\":\"stop\",\"time\":0}}]}",
    ])
}

fn codex(model: &[u8], item: &[u8]) -> Vec<u8> {
    let stamp = copied(model, &[b"timestamp"], b"\"timestamp\":");
    let comma: &[u8] = if stamp.is_empty() { b"" } else { b"," };
    join(&[
        b"{",
        &stamp,
        comma,
        b"\"type\":\"response_item\",\"payload\":",
        item,
        b"}",
    ])
}

/// The output item that answers a call item.
fn output(text: &[u8], call: std::ops::Range<usize>, call_id: &[u8]) -> Option<Vec<u8>> {
    let item = text.get(call)?;
    let kind = member(item, &[b"type"]).unwrap_or_default();
    let lost = LOST.as_bytes();
    let text_output = join(&[b"\"output\":\"", lost, b"\""]);
    let (kind, rest): (&[u8], Vec<u8>) = match kind.as_slice() {
        b"\"custom_tool_call\"" => (b"custom_tool_call_output", text_output),
        b"\"apply_patch_call\"" => (
            b"apply_patch_call_output",
            join(&[b"\"status\":\"failed\",", &text_output]),
        ),
        b"\"shell_call\"" => (
            b"shell_call_output",
            join(&[
                b"\"output\":[{\"stdout\":\"\",\"stderr\":\"",
                lost,
                b"\",\"outcome\":{\"type\":\"timeout\"}}]",
            ]),
        ),
        b"\"tool_search_call\"" => (
            b"tool_search_output",
            b"\"status\":\"completed\",\"execution\":\"client\",\"tools\":[]".to_vec(),
        ),
        _ => (b"function_call_output", text_output),
    };
    Some(join(&[
        b"{\"type\":\"",
        kind,
        b"\",\"call_id\":",
        call_id,
        b",",
        &rest,
        b"}",
    ]))
}

fn json(span: Option<Span>, text: &[u8]) -> Vec<u8> {
    let raw = span.map_or(&b""[..], |span| span.text(text).raw());
    join(&[b"\"", raw, b"\""])
}

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// A member of an entry, behind a name; nothing when the entry has no such member.
fn copied(text: &[u8], path: &[&[u8]], name: &[u8]) -> Vec<u8> {
    member(text, path).map_or(Vec::new(), |value| join(&[name, &value]))
}

/// The value at a path, as it stands in the text.
fn member(text: &[u8], path: &[&[u8]]) -> Option<Vec<u8>> {
    let (first, rest) = path.split_first()?;
    let mut strings = Strings::default();
    strings.index(text).ok()?;
    let mut found = None;
    Cursor::new(text, &strings)
        .object(|cursor, key| {
            let span = cursor.span()?;
            if key.is(first) {
                found = Some(span);
            }
            Ok(())
        })
        .ok()?;
    let value = text.get(found?)?;
    if rest.is_empty() {
        Some(value.to_vec())
    } else {
        member(value, rest)
    }
}

/// Whether a place in an entry is inside a member.
fn is_in(text: &[u8], key: &[u8], at: u32) -> bool {
    let mut strings = Strings::default();
    let mut is_inside = false;
    let walked = strings.index(text).and_then(|()| {
        Cursor::new(text, &strings).object(|cursor, name| {
            let span = cursor.span()?;
            is_inside |= name.is(key) && span.contains(&(at as usize));
            Ok(())
        })
    });
    walked.is_ok() && is_inside
}
