//! Crush's messages, and those of the first `OpenCode`, which it comes from: parts with data in them.
//! They are the rows of a database.

use super::message::marks;
use super::{Adapter, Ids, Joins, Pairing};
use crate::foreign;
use crate::format::Format;
use crate::json::{Cursor, Invalid, Text};
use crate::seen::{Block, BlockKind, Kind, Marks, Seen};

/// Crush's messages.
#[derive(Debug, Clone, Copy)]
pub struct Crush;

impl Adapter for Crush {
    fn format(&self) -> Format {
        Format::Crush
    }

    fn pairing(&self) -> Pairing {
        Pairing::Adjacent(Joins::Never, Ids::Message)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"id" => cursor.string_span().map(|span| seen.id = span),
            b"role" => cursor.string_span().map(|span| seen.role = span),
            b"parts" => parts(cursor, seen),
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        let role = seen.role.map(|role| role.text(cursor.text()));
        let (kind, keeps) = match role.as_ref().map_or(&b""[..], |role| role.raw()) {
            b"assistant" => (Kind::Assistant, Some(BlockKind::Call)),
            b"tool" => (Kind::Results, Some(BlockKind::Result)),
            b"" => (Kind::Neutral, None),
            _ => (Kind::Message, None),
        };
        seen.blocks.retain(|block| Some(block.kind) == keeps);
        seen.kind = kind;
        if kind == Kind::Results {
            // Beside the results there is only a mark that they are all.
            seen.has_more = false;
            if seen.blocks.is_empty() {
                seen.kind = Kind::Neutral;
            }
        }
        Ok(())
    }
}

/// The types of parts.
pub(crate) fn is_part(kind: &[u8]) -> bool {
    matches!(
        kind,
        b"text"
            | b"reasoning"
            | b"tool_call"
            | b"tool_result"
            | b"finish"
            | b"image_url"
            | b"binary"
    )
}

fn parts(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    // If a message has two of them, the last one counts, as in every JSON parser.
    seen.blocks.clear();
    seen.has_more = false;
    cursor.list(|cursor| {
        let start = cursor.here();
        let (mut kind, mut id, mut answers, mut name) = (None, None, None, None);
        let mut said = start..start;
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string().map(|text| kind = text),
            b"data" => cursor.object(|cursor, key| match &*key.unescaped() {
                b"id" => cursor.string_span().map(|span| id = span),
                b"name" => cursor.string_span().map(|span| name = span),
                b"tool_call_id" => cursor.string_span().map(|span| answers = span),
                b"content" => cursor.place().map(|place| said = place),
                _ => cursor.skip(),
            }),
            _ => cursor.skip(),
        })?;
        let end = cursor.here();
        let (kind, id, marks) = match kind.map_or(&b""[..], Text::raw) {
            b"tool_call" => (BlockKind::Call, id, Marks::default()),
            b"tool_result" => {
                let said = seen.compares_results.then_some(said);
                let marks = marks(cursor.text(), start..end, said, false);
                (BlockKind::Result, answers, marks)
            }
            b"finish" => return Ok(()),
            kind => {
                seen.strange = seen.strange.or(foreign::of_block(kind));
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
