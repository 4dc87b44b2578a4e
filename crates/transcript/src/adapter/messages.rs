//! Messages as the APIs of Anthropic and `OpenAI` take them.

use super::{Adapter, Ids, Joins, Pairing, message};
use crate::format::Format;
use crate::json::{Cursor, Invalid};
use crate::seen::Seen;

/// Messages of Anthropic's API: calls and results are blocks of their content.
#[derive(Debug, Clone, Copy)]
pub struct AnthropicMessages;

/// Messages of the Chat Completions API: calls in `tool_calls`, results in messages of their own.
#[derive(Debug, Clone, Copy)]
pub struct ChatMessages;

impl Adapter for AnthropicMessages {
    fn format(&self) -> Format {
        Format::Anthropic
    }

    fn pairing(&self) -> Pairing {
        Pairing::Adjacent(Joins::Neighbours, Ids::Conversation)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        read(cursor, seen)
    }
}

impl Adapter for ChatMessages {
    fn format(&self) -> Format {
        Format::OpenAiChat
    }

    fn pairing(&self) -> Pairing {
        Pairing::Adjacent(Joins::Never, Ids::Message)
    }

    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
        read(cursor, seen)
    }
}

fn read(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    message::read(cursor, seen)?;
    // A stored message's id is not a message that spans entries.
    seen.group = None;
    cursor.end()
}
