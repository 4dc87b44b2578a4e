//! `LangChain`'s messages, as `LangGraph` keeps them too. Three ways to write them down are in use:
//! `{"type": "ai", …}`, `{"type": "ai", "data": {…}}` and `{"lc": 1, "id": […, "AIMessage"],
//! "kwargs": {…}}`.

use super::message::{self, Speaker};
use super::{Adapter, Ids, Joins, Pairing};
use crate::format::Format;
use crate::json::{Cursor, Invalid, Text};
use crate::seen::Seen;

/// `LangChain`'s messages.
#[derive(Debug, Clone, Copy)]
pub struct LangChain;

impl Adapter for LangChain {
    fn format(&self) -> Format {
        Format::LangChain
    }

    fn pairing(&self) -> Pairing {
        Pairing::Adjacent(Joins::Never, Ids::Message)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        // Who speaks stands outside of the message in two of the three ways.
        let (mut kind, mut class, mut inner) = (None, None, None);
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string().map(|text| kind = text),
            b"id" if cursor.peek() == b'[' => {
                cursor.list(|cursor| cursor.string().map(|text| class = text.or(class)))
            }
            b"data" | b"kwargs" if cursor.peek() == b'{' => {
                cursor.later().map(|place| inner = Some(place))
            }
            _ => cursor.skip(),
        })?;
        cursor.end()?;
        let name = class.or(kind).map(Text::unescaped);
        let speaker = speaker(name.as_deref().unwrap_or_default());
        let mut message = cursor.at(inner.unwrap_or_default());
        message::read_of(speaker, &mut message, seen)?;
        // A stored message's id is not a message that spans entries.
        seen.group = None;
        Ok(())
    }
}

/// Whether a type or class is that of a message.
pub(crate) fn is_message(kind: &[u8]) -> bool {
    speaker(kind) != Speaker::Nobody
}

fn speaker(kind: &[u8]) -> Speaker {
    match kind {
        b"ai" | b"AIMessage" | b"AIMessageChunk" => Speaker::Model,
        b"tool" | b"ToolMessage" | b"ToolMessageChunk" => Speaker::Tool,
        b"human"
        | b"HumanMessage"
        | b"HumanMessageChunk"
        | b"system"
        | b"SystemMessage"
        | b"SystemMessageChunk"
        | b"chat"
        | b"ChatMessage"
        | b"ChatMessageChunk" => Speaker::Person,
        _ => Speaker::Nobody,
    }
}
