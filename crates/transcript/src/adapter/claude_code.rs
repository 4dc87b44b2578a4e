//! Claude Code's sessions: entries in envelopes with `uuid` and `parentUuid`. One message of the
//! model spans several entries, one a block, which share the message's id.

use super::{Adapter, Ids, Joins, Pairing, message};
use crate::format::Format;
use crate::json::{Cursor, Invalid};
use crate::seen::{Kind, Seen};

/// Claude Code's session entries.
#[derive(Debug, Clone, Copy)]
pub struct ClaudeCode;

impl Adapter for ClaudeCode {
    fn format(&self) -> Format {
        Format::ClaudeCode
    }

    fn pairing(&self) -> Pairing {
        Pairing::Adjacent(Joins::Groups, Ids::Conversation)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        let mut kind = None;
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string_span().map(|span| kind = span),
            b"uuid" => cursor.string_span().map(|span| seen.id = span),
            b"parentUuid" => {
                (seen.parent, seen.parent_value) = cursor.parent()?;
                Ok(())
            }
            b"sessionId" => cursor.string_span().map(|span| seen.session = span),
            b"message" => message::read(cursor, seen),
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        let text = cursor.text();
        let kind = kind.map(|span| span.text(text));
        let is_message = kind.is_some_and(|kind| matches!(kind.raw(), b"user" | b"assistant"))
            && seen.id.is_some();
        if !is_message {
            seen.kind = Kind::Neutral;
            seen.blocks.clear();
            seen.strange = None;
        }
        if seen.kind != Kind::Assistant {
            seen.group = None;
        }
        Ok(())
    }
}
