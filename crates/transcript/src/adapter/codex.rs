//! Codex's rollouts: items of the Responses API and events of its own, each in an envelope.

use super::{Adapter, Pairing, responses};
use crate::format::Format;
use crate::json::{Cursor, Invalid, Text};
use crate::seen::{Kind, Reply, Seen};

/// Codex's rollout entries.
#[derive(Debug, Clone, Copy)]
pub struct Codex;

impl Adapter for Codex {
    fn format(&self) -> Format {
        Format::Codex
    }

    fn pairing(&self) -> Pairing {
        Pairing::Anywhere
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        // The type decides how the payload is read. It nearly always stands before it.
        let mut kind: Option<Text<'_>> = None;
        let mut later = None;
        cursor.object(|cursor, key| match (&*key.unescaped(), kind) {
            (b"type", None) => cursor.string().map(|text| kind = text),
            (b"payload", Some(kind)) if later.is_none() => payload(cursor, kind, seen),
            (b"payload", _) => cursor.later().map(|place| later = Some(place)),
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        if let (Some(place), Some(kind)) = (later, kind) {
            seen.clear();
            payload(&mut cursor.at(place), kind, seen)?;
        }
        Ok(())
    }
}

/// Reads what an envelope of this type holds.
fn payload(cursor: &mut Cursor<'_>, kind: Text<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    match kind.raw() {
        b"response_item" => responses::item(cursor, seen),
        b"session_meta" => {
            seen.kind = Kind::Header;
            cursor.object(|cursor, key| {
                if key.is(b"id") {
                    cursor.string_span().map(|span| seen.session = span)
                } else {
                    cursor.skip()
                }
            })
        }
        b"compacted" => {
            // The items it carries take the place of everything before it.
            let mut reply = Reply::default();
            cursor.object(|cursor, key| {
                if key.is(b"replacement_history") {
                    cursor.list(|cursor| {
                        let before = seen.blocks.len();
                        responses::item(cursor, seen)?;
                        reply.step(seen.kind, before, seen.blocks.len());
                        Ok(())
                    })
                } else {
                    cursor.skip()
                }
            })?;
            for block in seen.blocks.iter_mut().take(reply.first) {
                block.marks.is_past = true;
            }
            seen.kind = Kind::Cut;
            seen.role = None;
            Ok(())
        }
        _ => cursor.skip(),
    }
}
