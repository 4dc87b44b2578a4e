//! Codex's rollouts: items of the Responses API and events of its own, each in an envelope.

use super::{Adapter, Pairing, responses};
use crate::format::Format;
use crate::json::{Cursor, Invalid};
use crate::seen::{Kind, Seen};

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
        // The type decides how the payload is read, and may stand behind it.
        let mut kind = None;
        let mut payload = None;
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string().map(|text| kind = text),
            b"payload" => cursor.later().map(|place| payload = Some(place)),
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        let Some(payload) = payload else {
            return Ok(());
        };
        let mut cursor = cursor.at(payload);
        match kind.as_ref().map_or(&b""[..], |kind| kind.raw()) {
            b"response_item" => responses::item(&mut cursor, seen),
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
                cursor.object(|cursor, key| {
                    if key.is(b"replacement_history") {
                        cursor.list(|cursor| responses::item(cursor, seen))
                    } else {
                        cursor.skip()
                    }
                })?;
                seen.kind = Kind::Cut;
                seen.role = None;
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
