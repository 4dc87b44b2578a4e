//! `OpenClaw`'s sessions (and pi's, which they come from): a header, then a tree of entries.

use super::{Adapter, Ids, Joins, Pairing, message};
use crate::format::Format;
use crate::json::{Cursor, Invalid};
use crate::seen::{Kind, Parent, Seen};

/// `OpenClaw`'s session entries.
#[derive(Debug, Clone, Copy)]
pub struct OpenClaw;

impl Adapter for OpenClaw {
    fn format(&self) -> Format {
        Format::OpenClaw
    }

    fn pairing(&self) -> Pairing {
        Pairing::Adjacent(Joins::Never, Ids::Nothing)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        let mut kind = None;
        let (mut target, mut target_value) = (None, None);
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string_span().map(|span| kind = span),
            b"id" => cursor.string_span().map(|span| seen.id = span),
            b"parentId" => {
                (seen.parent, seen.parent_value) = cursor.parent()?;
                Ok(())
            }
            b"firstKeptEntryId" => cursor.string_span().map(|span| seen.kept = span),
            b"targetId" => {
                (target, target_value) = cursor.parent().map(|(parent, at)| (Some(parent), at))?;
                Ok(())
            }
            b"message" => message::read(cursor, seen),
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        seen.group = None;
        let text = cursor.text();
        match kind
            .map(|span| span.text(text))
            .as_ref()
            .map_or(&b""[..], |kind| kind.raw())
        {
            b"message" => return Ok(()),
            b"session" => {
                seen.kind = Kind::Header;
                seen.session = seen.id.take();
            }
            // Injected texts and summaries of other branches are sent to the model.
            b"custom_message" | b"branch_summary" => seen.kind = Kind::Message,
            b"compaction" => seen.kind = Kind::Compaction,
            // A marker that moves the conversation to another entry continues that one.
            b"leaf" => {
                if let Some(parent) = target {
                    (seen.parent, seen.parent_value) = (parent, target_value);
                }
                seen.kind = Kind::Neutral;
            }
            _ => seen.kind = Kind::Neutral,
        }
        seen.blocks.clear();
        seen.strange = None;
        if seen.kind != Kind::Compaction {
            seen.kept = None;
        }
        if seen.kind == Kind::Header {
            seen.parent = Parent::Before;
        }
        Ok(())
    }
}
