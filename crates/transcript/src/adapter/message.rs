//! A message, as five of the formats have it: at the top of an entry or inside it.

use std::ops::Range;

use crate::foreign;
use crate::json::{Cursor, Invalid, Text};
use crate::seen::{Block, BlockKind, Kind, Marks, Seen, Span, says};
use crate::stand_in;

/// A message's members as they come.
#[derive(Default)]
struct Message {
    role: Option<Span>,
    /// The id of the call that a message of results answers.
    answers: Option<Span>,
    tool_name: Option<Span>,
    /// Whether results name their tool in place of a call.
    is_by_name: bool,
    broke_off: bool,
    /// It is for people only: the model is never sent it.
    is_unsent: bool,
    start: u32,
    /// Where the value of `content` is.
    said: Range<u32>,
    /// Which blocks came from `content`, and which from `tool_calls`.
    content: Range<usize>,
    calls: Range<usize>,
}

/// Who speaks in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    /// The model.
    Model,
    /// A tool, with the result of one call.
    Tool,
    /// Whoever else the model is sent: people, and the host.
    Person,
    /// Nobody that the model is sent.
    Nobody,
}

impl Speaker {
    fn of(role: &[u8]) -> Self {
        match role {
            b"assistant" => Self::Model,
            b"tool" | b"toolResult" => Self::Tool,
            b"" | b"function" => Self::Nobody,
            _ => Self::Person,
        }
    }
}

/// Reads the message that begins here into `seen`: its role, its calls and results, and what kind of
/// entry they make.
pub(super) fn read(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    let message = Message::read(cursor, seen)?;
    let role = message.role.map(|role| role.text(cursor.text()));
    let speaker = Speaker::of(role.as_ref().map_or(&b""[..], |role| role.raw()));
    message.finish(speaker, cursor.text(), cursor.here(), seen);
    Ok(())
}

/// The same for a message of which is known who speaks, and whose calls stand in `tool_calls` alone:
/// what its content says of them is a copy.
pub(super) fn read_of(
    speaker: Speaker,
    cursor: &mut Cursor<'_>,
    seen: &mut Seen,
) -> Result<(), Invalid> {
    let message = Message::read(cursor, seen)?;
    seen.blocks.drain(message.content.clone());
    seen.strange = None;
    message.finish(speaker, cursor.text(), cursor.here(), seen);
    Ok(())
}

impl Message {
    /// Takes the members of the message that begins here.
    fn read(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<Self, Invalid> {
        cursor.peek();
        let mut message = Self {
            start: cursor.here(),
            ..Self::default()
        };
        cursor.object(|cursor, key| message.member(cursor, key, seen))?;
        Ok(message)
    }

    fn member<'t>(
        &mut self,
        cursor: &mut Cursor<'t>,
        key: Text<'t>,
        seen: &mut Seen,
    ) -> Result<(), Invalid> {
        match &*key.unescaped() {
            b"role" => cursor.string_span().map(|span| self.role = span),
            b"content" => {
                // If a message has two of them, the last one counts, as in every JSON parser.
                forget(seen, &mut self.content, &mut self.calls);
                cursor.peek();
                let start = cursor.here();
                content(cursor, seen)?;
                self.said = start..cursor.here();
                self.content.end = seen.blocks.len();
                Ok(())
            }
            b"tool_calls" => {
                forget(seen, &mut self.calls, &mut self.content);
                tool_calls(cursor, seen)?;
                self.calls.end = seen.blocks.len();
                Ok(())
            }
            b"tool_call_id" | b"toolCallId" | b"toolUseId" => {
                cursor.string_span().map(|span| self.answers = span)
            }
            b"toolName" => cursor.string_span().map(|span| self.tool_name = span),
            b"tool_name" => cursor.string_span().map(|span| {
                self.tool_name = span;
                self.is_by_name = span.is_some();
            }),
            b"id" => cursor.string_span().map(|span| seen.group = span),
            b"stopReason" => cursor.string().map(|reason| {
                self.broke_off =
                    reason.is_some_and(|reason| matches!(reason.raw(), b"error" | b"aborted"));
            }),
            b"parts" if cursor.peek() == b'[' => {
                seen.strange = Some(foreign::GEMINI);
                cursor.skip()
            }
            b"excludeFromContext" => {
                self.is_unsent = cursor.peek() == b't';
                cursor.skip()
            }
            _ => cursor.skip(),
        }
    }

    fn finish(&self, speaker: Speaker, text: &[u8], end: u32, seen: &mut Seen) {
        seen.role = self.role;
        let speaker = if self.is_unsent {
            Speaker::Nobody
        } else {
            speaker
        };
        match speaker {
            Speaker::Model => {
                seen.kind = Kind::Assistant;
                // A result in a model's own message is a server's, and paired by it.
                seen.blocks.retain(|block| block.kind != BlockKind::Result);
                if self.broke_off {
                    for block in &mut seen.blocks {
                        block.kind = BlockKind::BrokenOffCall;
                    }
                }
            }
            Speaker::Tool => {
                seen.kind = Kind::Results;
                seen.has_more = false;
                seen.blocks.clear();
                let said = seen.compares_results.then(|| self.said.clone());
                seen.blocks.push(Block {
                    kind: BlockKind::Result,
                    id: self.answers,
                    name: self.tool_name,
                    marks: Marks {
                        is_by_name: self.is_by_name && self.answers.is_none(),
                        ..marks(text, self.start..end, said, false)
                    },
                    start: self.start,
                    end,
                });
            }
            Speaker::Nobody => {
                seen.kind = Kind::Neutral;
                seen.blocks.clear();
                if self.is_unsent && self.answers.is_some() {
                    seen.blocks.push(Block {
                        kind: BlockKind::UnsentResult,
                        id: self.answers,
                        name: self.tool_name,
                        marks: Marks::default(),
                        start: self.start,
                        end,
                    });
                }
            }
            Speaker::Person => {
                seen.blocks.retain(|block| block.kind == BlockKind::Result);
                seen.kind = match (seen.blocks.is_empty(), seen.has_more) {
                    (true, _) => Kind::Message,
                    (false, true) => Kind::Mixed,
                    (false, false) => Kind::Results,
                };
            }
        }
    }
}

/// Takes out the blocks of an earlier member of the same name, and begins at the end.
fn forget(seen: &mut Seen, gone: &mut Range<usize>, other: &mut Range<usize>) {
    seen.blocks.drain(gone.clone());
    if other.start >= gone.end {
        *other = other.start - gone.len()..other.end - gone.len();
    }
    *gone = seen.blocks.len()..seen.blocks.len();
}

/// A string, or a list of blocks.
fn content(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    seen.has_more = false;
    if cursor.peek() != b'[' {
        // An empty text is as good as none.
        seen.has_more = cursor.string()?.is_some_and(|text| !text.raw().is_empty());
        return Ok(());
    }
    cursor.list(|cursor| {
        let start = cursor.here();
        let mut kind = None;
        let (mut id, mut name, mut answers) = (None, None, None);
        let (mut said, mut foreign) = (start..start, None);
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"type" => cursor.string().map(|text| kind = text),
            b"id" => cursor.string_span().map(|span| id = span),
            b"name" => cursor.string_span().map(|span| name = span),
            b"tool_use_id" | b"toolCallId" | b"toolUseId" => {
                cursor.string_span().map(|span| answers = span)
            }
            b"content" => cursor.place().map(|place| said = place),
            name => {
                foreign = foreign.or(foreign::of_member(name).filter(|_| cursor.peek() == b'{'));
                cursor.skip()
            }
        })?;
        let end = cursor.here();
        let block = |kind, id, marks| Block {
            kind,
            id,
            name,
            marks,
            start,
            end,
        };
        match kind.map_or(&b""[..], Text::raw) {
            b"toolCall" | b"tool_use" | b"toolUse" | b"functionCall" => {
                seen.blocks
                    .push(block(BlockKind::Call, id, Marks::default()));
            }
            b"tool_result" | b"toolResult" => {
                let said = seen.compares_results.then_some(said);
                let marks = marks(cursor.text(), start..end, said, seen.has_more);
                seen.blocks.push(block(BlockKind::Result, answers, marks));
            }
            kind => {
                let strange = if kind.is_empty() {
                    foreign
                } else {
                    foreign::of_block(kind)
                };
                seen.strange = seen.strange.or(strange);
                seen.has_more = true;
            }
        }
        Ok(())
    })
}

/// The calls of a chat completion's message.
fn tool_calls(cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid> {
    cursor.list(|cursor| {
        let start = cursor.here();
        let (mut id, mut name) = (None, None);
        cursor.object(|cursor, key| match &*key.unescaped() {
            b"id" => cursor.string_span().map(|span| id = span),
            b"name" => cursor.string_span().map(|span| name = span),
            b"function" | b"custom" => cursor.object(|cursor, key| {
                if key.is(b"name") {
                    cursor.string_span().map(|span| name = span)
                } else {
                    cursor.skip()
                }
            }),
            _ => cursor.skip(),
        })?;
        seen.blocks.push(Block {
            kind: BlockKind::Call,
            id,
            name,
            marks: Marks::default(),
            start,
            end: cursor.here(),
        });
        Ok(())
    })
}

/// What is peculiar about the result at a place, which says what is at another place inside it.
pub(super) fn marks(
    text: &[u8],
    result: Range<u32>,
    said: Option<Range<u32>>,
    is_late: bool,
) -> Marks {
    let at = |place: Range<u32>| text.get(place.start as usize..place.end as usize);
    Marks {
        is_stand_in: at(result).is_some_and(stand_in::is_one),
        is_late,
        says: said.and_then(at).map_or(0, says),
        ..Marks::default()
    }
}
