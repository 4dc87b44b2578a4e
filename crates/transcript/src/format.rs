//! The formats, and which one a text is in.

use crate::json::{Cursor, Invalid, Strings, Text};

/// A transcript's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Format {
    /// `OpenClaw` (and pi) sessions: a tree of entries, one a line or one a database row.
    OpenClaw,
    /// Claude Code sessions: a tree of entries, one a line.
    ClaudeCode,
    /// Codex rollouts: items of the Responses API in envelopes, one a line.
    Codex,
    /// Messages of Anthropic's API.
    Anthropic,
    /// Messages of `OpenAI`'s Chat Completions API.
    OpenAiChat,
    /// Items of `OpenAI`'s Responses API.
    OpenAiResponses,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::OpenClaw,
        Self::ClaudeCode,
        Self::Codex,
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
    ];

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenClaw => "OpenClaw session",
            Self::ClaudeCode => "Claude Code session",
            Self::Codex => "Codex rollout",
            Self::Anthropic => "Anthropic messages",
            Self::OpenAiChat => "OpenAI chat messages",
            Self::OpenAiResponses => "OpenAI Responses items",
        }
    }
}

/// What the top of one entry gives away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hint {
    /// Certainly this format.
    Sure(Format),
    /// This format unless something says otherwise.
    Maybe(Format),
    /// A whole request or export: the messages are in this member.
    Wrapped,
    /// Nothing.
    Nothing,
}

/// The members of a request that hold its messages.
pub(crate) const WRAPPERS: [&[u8]; 4] = [b"messages", b"input", b"items", b"history"];

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says whether a member was there"
)]
struct Top<'t> {
    kind: Option<Text<'t>>,
    role: Option<Text<'t>>,
    has_uuid: bool,
    has_session_id: bool,
    has_payload: bool,
    has_message: bool,
    has_tool_calls: bool,
    has_blocks: Option<Format>,
    has_call_id: bool,
    is_wrapped: bool,
}

/// What one entry says about the format it is in.
pub(crate) fn hint(entry: &[u8], strings: &Strings) -> Result<Hint, Invalid> {
    let mut cursor = Cursor::new(entry, strings);
    if cursor.peek() != b'{' {
        cursor.skip()?;
        return cursor.end().map(|()| Hint::Nothing);
    }
    let mut top = Top::default();
    cursor.object(|cursor, key| match &*key.unescaped() {
        b"type" => cursor.string().map(|text| top.kind = text),
        b"role" => cursor.string().map(|text| top.role = text),
        b"uuid" | b"leafUuid" => cursor.skip().map(|()| top.has_uuid = true),
        b"sessionId" => cursor.skip().map(|()| top.has_session_id = true),
        b"payload" => {
            top.has_payload = cursor.peek() == b'{';
            cursor.skip()
        }
        b"message" => {
            top.has_message = cursor.peek() == b'{';
            cursor.skip()
        }
        b"tool_calls" | b"tool_call_id" => cursor.skip().map(|()| top.has_tool_calls = true),
        b"call_id" => cursor.skip().map(|()| top.has_call_id = true),
        b"content" => content(cursor, &mut top.has_blocks),
        raw if WRAPPERS.contains(&raw) => {
            top.is_wrapped |= cursor.peek() == b'[';
            cursor.skip()
        }
        _ => cursor.skip(),
    })?;
    cursor.end()?;
    Ok(top.hint())
}

/// Which format the types of content blocks belong to.
fn content(cursor: &mut Cursor<'_>, found: &mut Option<Format>) -> Result<(), Invalid> {
    cursor.list(|cursor| {
        cursor.object(|cursor, key| {
            if !key.is(b"type") {
                return cursor.skip();
            }
            let format = cursor.string()?.and_then(|kind| match &*kind.unescaped() {
                b"tool_use" | b"tool_result" | b"thinking" => Some(Format::Anthropic),
                b"input_text" | b"output_text" | b"input_image" => Some(Format::OpenAiResponses),
                _ => None,
            });
            *found = found.or(format);
            Ok(())
        })
    })
}

impl Top<'_> {
    fn hint(&self) -> Hint {
        use Format::{Anthropic, ClaudeCode, Codex, OpenAiChat, OpenAiResponses, OpenClaw};
        let (kind, role) = (
            self.kind.map(Text::unescaped),
            self.role.map(Text::unescaped),
        );
        let (kind, role) = (kind.unwrap_or_default(), role.unwrap_or_default());
        let (kind, role) = (&*kind, &*role);
        if self.has_payload
            && matches!(
                kind,
                b"session_meta" | b"response_item" | b"event_msg" | b"turn_context" | b"compacted"
            )
        {
            return Hint::Sure(Codex);
        }
        if self.has_uuid && !kind.is_empty() {
            return Hint::Sure(ClaudeCode);
        }
        if kind == b"session" || (kind == b"message" && self.has_message) {
            return Hint::Sure(OpenClaw);
        }
        if self.has_session_id && !kind.is_empty() {
            return Hint::Maybe(ClaudeCode);
        }
        if self.has_call_id || crate::adapter::is_responses_item(kind) {
            return Hint::Sure(OpenAiResponses);
        }
        if let Some(format) = self.has_blocks {
            return Hint::Sure(format);
        }
        if self.has_tool_calls || matches!(role, b"tool" | b"system" | b"developer" | b"function") {
            return Hint::Sure(OpenAiChat);
        }
        if !role.is_empty() {
            // Text alone looks the same in three formats, and is checked alike in all of them.
            return Hint::Maybe(if kind == b"message" {
                OpenAiResponses
            } else {
                Anthropic
            });
        }
        if self.is_wrapped {
            return Hint::Wrapped;
        }
        Hint::Nothing
    }
}
