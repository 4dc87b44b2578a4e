//! Goose's sessions: a header, then messages whose calls and results are blocks.

use super::message::marks;
use super::{Adapter, Ids, Joins, Pairing};
use crate::format::Format;
use crate::json::{Cursor, Invalid, Text};
use crate::seen::{Block, BlockKind, Kind, Marks, Seen, Span};

/// Goose's session entries, and the messages of what it exports.
#[derive(Debug, Clone, Copy)]
pub struct Goose;

impl Adapter for Goose {
    fn format(&self) -> Format {
        Format::Goose
    }

    fn pairing(&self) -> Pairing {
        // It puts neighbours together before it sends them.
        Pairing::Adjacent(Joins::Neighbours, Ids::Message)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        let (mut role, mut is_header, mut is_unsent) = (None, false, false);
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"role" => cursor.string_span().map(|span| role = span),
            b"content" => content(cursor, seen),
            b"working_dir" => {
                is_header = true;
                cursor.skip()
            }
            b"metadata" => cursor.object(|cursor, key| {
                is_unsent |= key.is(b"agentVisible") && cursor.peek() == b'f';
                cursor.skip()
            }),
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        seen.role = role;
        let role = role
            .filter(|_| !is_unsent)
            .map(|role| role.text(cursor.text()));
        match role.as_ref().map_or(&b""[..], |role| role.raw()) {
            b"assistant" => {
                seen.blocks.retain(|block| block.kind != BlockKind::Result);
                seen.kind = Kind::Assistant;
            }
            b"user" => {
                seen.blocks.retain(|block| block.kind == BlockKind::Result);
                seen.kind = match (seen.blocks.is_empty(), seen.has_more) {
                    (true, _) => Kind::Message,
                    (false, true) => Kind::Mixed,
                    (false, false) => Kind::Results,
                };
            }
            _ => {
                seen.blocks.clear();
                seen.kind = if is_header {
                    Kind::Header
                } else {
                    Kind::Neutral
                };
            }
        }
        Ok(())
    }
}

/// The blocks of a message.
fn content(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    // If a message has two of them, the last one counts, as in every JSON parser.
    seen.blocks.clear();
    seen.has_more = false;
    cursor.list(|cursor| {
        let start = cursor.here();
        let (mut kind, mut id, mut name) = (None, None, None);
        let mut said = start..start;
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string().map(|text| kind = text),
            b"id" => cursor.string_span().map(|span| id = span),
            b"toolCall" => call(cursor, &mut name),
            b"toolResult" => cursor.place().map(|place| said = place),
            _ => cursor.skip(),
        })?;
        let end = cursor.here();
        let (kind, marks) = match kind.map_or(&b""[..], Text::raw) {
            b"toolRequest" => (BlockKind::Call, Marks::default()),
            // Goose never sends them, so that they need no result.
            b"frontendToolRequest" => (BlockKind::BrokenOffCall, Marks::default()),
            b"toolResponse" => {
                let said = seen.compares_results.then_some(said);
                let marks = marks(cursor.text(), start..end, said, false);
                (BlockKind::Result, marks)
            }
            _ => {
                seen.has_more = true;
                return Ok(());
            }
        };
        seen.blocks.push(Block {
            kind,
            id,
            name,
            marks,
            start,
            end,
        });
        Ok(())
    })
}

/// The name of the tool that a call is for: in the call, or in the value of one that was understood.
fn call(cursor: &mut Cursor<'_>, name: &mut Option<Span>) -> Result<(), Invalid> {
    cursor.object(|cursor, key| match &*key.unescaped() {
        b"name" => cursor.string_span().map(|span| *name = span),
        b"value" => cursor.object(|cursor, key| {
            if key.is(b"name") {
                cursor.string_span().map(|span| *name = span)
            } else {
                cursor.skip()
            }
        }),
        _ => cursor.skip(),
    })
}
