//! The formats, and which one a text is in.

use crate::adapter::is_crush_part;
use crate::foreign;
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
    /// Messages of `LangChain` and `LangGraph`.
    LangChain,
    /// Goose sessions: messages, one a line or one a database row.
    Goose,
    /// Crush sessions, and those of the first `OpenCode`: messages, one a database row.
    Crush,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::OpenClaw,
        Self::ClaudeCode,
        Self::Codex,
        Self::Anthropic,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::LangChain,
        Self::Goose,
        Self::Crush,
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
            Self::LangChain => "LangChain messages",
            Self::Goose => "Goose session",
            Self::Crush => "Crush session",
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
    /// A format that is known by its name and not read.
    Foreign(&'static str),
    /// A whole request or export: the messages are in this member.
    Wrapped,
    /// Nothing.
    Nothing,
}

/// The members of a request or an export that hold its messages.
pub(crate) const WRAPPERS: [&[u8]; 5] =
    [b"messages", b"input", b"items", b"history", b"conversation"];

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
    has_parts: bool,
    has_info: bool,
    has_data: bool,
    has_content: bool,
    has_model_calls: bool,
    /// `LangChain`'s mark of what it wrote down.
    has_lc: bool,
    /// Two members that the header of a Goose session has.
    has_working_dir: bool,
    has_description: bool,
    /// What the blocks of its message are.
    blocks: Option<Blocks>,
    has_call_id: bool,
    is_wrapped: bool,
}

/// Whose blocks a message holds.
#[derive(Clone, Copy)]
enum Blocks {
    Of(Format),
    Foreign(&'static str),
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
            cursor.object(|cursor, key| match key.raw() {
                b"parts" => parts(cursor, &mut top.blocks),
                _ => cursor.skip(),
            })
        }
        b"tool_calls" | b"tool_call_id" => cursor.skip().map(|()| top.has_tool_calls = true),
        b"toolCalls" => cursor.skip().map(|()| top.has_model_calls = true),
        b"call_id" => cursor.skip().map(|()| top.has_call_id = true),
        b"content" => {
            top.has_content = true;
            content(cursor, &mut top.blocks)
        }
        b"lc" => cursor.skip().map(|()| top.has_lc = true),
        b"working_dir" => cursor.skip().map(|()| top.has_working_dir = true),
        b"description" => cursor.skip().map(|()| top.has_description = true),
        b"parts" => {
            top.has_parts = cursor.peek() == b'[';
            parts(cursor, &mut top.blocks)
        }
        b"info" => {
            top.has_info = cursor.peek() == b'{';
            cursor.skip()
        }
        b"data" => {
            top.has_data = cursor.peek() == b'{';
            cursor.skip()
        }
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
fn content(cursor: &mut Cursor<'_>, found: &mut Option<Blocks>) -> Result<(), Invalid> {
    cursor.list(|cursor| {
        let (mut kind, mut foreign) = (None, None);
        cursor.object(|cursor, key| {
            if key.is(b"type") {
                return cursor.string().map(|text| kind = text);
            }
            let name = foreign::of_member(key.raw()).filter(|_| cursor.peek() == b'{');
            foreign = foreign.or(name);
            cursor.skip()
        })?;
        let blocks = match kind.map(Text::unescaped).as_deref() {
            Some(b"tool_use" | b"tool_result" | b"thinking") => Some(Blocks::Of(Format::Anthropic)),
            Some(b"input_text" | b"output_text" | b"input_image") => {
                Some(Blocks::Of(Format::OpenAiResponses))
            }
            Some(b"toolRequest" | b"toolResponse") => Some(Blocks::Of(Format::Goose)),
            Some(kind) => foreign::of_block(kind).map(Blocks::Foreign),
            None => foreign.map(Blocks::Foreign),
        };
        *found = found.or(blocks);
        Ok(())
    })
}

/// Whose parts a message has: Crush's have data, and Gemini's have no types.
fn parts(cursor: &mut Cursor<'_>, found: &mut Option<Blocks>) -> Result<(), Invalid> {
    cursor.list(|cursor| {
        let (mut kind, mut has_data, mut is_pydantic) = (None, false, false);
        cursor.object(|cursor, key| match key.raw() {
            b"type" => cursor.string().map(|text| kind = text),
            name => {
                has_data |= name == b"data";
                is_pydantic |= name == b"part_kind";
                cursor.skip()
            }
        })?;
        let blocks = match kind {
            Some(kind) if has_data && is_crush_part(kind.raw()) => Blocks::Of(Format::Crush),
            Some(_) => Blocks::Foreign(foreign::VERCEL),
            None if is_pydantic => Blocks::Foreign(foreign::PYDANTIC),
            None => Blocks::Foreign(foreign::GEMINI),
        };
        *found = found.or(Some(blocks));
        Ok(())
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
            return match self.blocks {
                Some(Blocks::Foreign(foreign::GEMINI)) => Hint::Foreign(foreign::QWEN),
                _ => Hint::Sure(ClaudeCode),
            };
        }
        if kind == b"session" || (kind == b"message" && self.has_message) {
            return Hint::Sure(OpenClaw);
        }
        if let Some(hint) = self.langchain(kind, role) {
            return hint;
        }
        if self.has_working_dir && self.has_description && role.is_empty() && !self.is_wrapped {
            return Hint::Sure(Format::Goose);
        }
        if let Some(name) = self.foreign(kind, role) {
            return Hint::Foreign(name);
        }
        if self.has_session_id && !kind.is_empty() {
            return Hint::Maybe(ClaudeCode);
        }
        if self.has_call_id || crate::adapter::is_responses_item(kind) {
            return Hint::Sure(OpenAiResponses);
        }
        if let Some(Blocks::Of(format)) = self.blocks {
            return Hint::Sure(format);
        }
        if self.has_tool_calls || matches!(role, b"tool" | b"system" | b"developer" | b"function") {
            return Hint::Sure(OpenAiChat);
        }
        if matches!(role, b"user" | b"assistant" | b"toolResult") {
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

    /// What speaks for a message of `LangChain`, which has a type and no role.
    fn langchain(&self, kind: &[u8], role: &[u8]) -> Option<Hint> {
        if self.has_lc && kind == b"constructor" {
            return Some(Hint::Sure(Format::LangChain));
        }
        let is_message = crate::adapter::is_langchain_message(kind) && role.is_empty();
        if !is_message || !(self.has_content || self.has_data) {
            return None;
        }
        match kind {
            _ if self.has_data || self.has_tool_calls => Some(Hint::Sure(Format::LangChain)),
            b"tool" | b"chat" => None,
            b"system" => Some(Hint::Maybe(Format::LangChain)),
            _ => Some(Hint::Sure(Format::LangChain)),
        }
    }

    /// The name of a format that is not read.
    fn foreign(&self, kind: &[u8], role: &[u8]) -> Option<&'static str> {
        let is_event = [&b"session."[..], b"assistant.", b"tool.", b"user."]
            .iter()
            .any(|of| kind.starts_with(of));
        if self.has_data && is_event {
            return Some(foreign::COPILOT);
        }
        if self.has_info && self.has_parts {
            return Some(foreign::OPENCODE);
        }
        if kind == b"gemini" {
            return Some(foreign::GEMINI_CLI);
        }
        if self.has_model_calls && kind == b"assistant" && role.is_empty() {
            return Some(foreign::GROK);
        }
        if self.has_message && !role.is_empty() && kind.is_empty() {
            return Some(foreign::CURSOR);
        }
        match self.blocks {
            Some(Blocks::Foreign(name)) => Some(name),
            _ => None,
        }
    }
}
