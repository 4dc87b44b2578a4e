//! Formats that are known by their names and not read. A session in one of them is never said to be
//! clean: nobody looked at its calls.

/// Messages of the Vercel AI SDK.
pub(crate) const VERCEL: &str = "Vercel AI SDK messages";
/// Messages of Amazon Bedrock's Converse API.
pub(crate) const BEDROCK: &str = "Bedrock Converse messages";
/// Contents of Gemini's API.
pub(crate) const GEMINI: &str = "Gemini contents";
/// What Gemini CLI records.
pub(crate) const GEMINI_CLI: &str = "a Gemini CLI session";
/// What Qwen Code records.
pub(crate) const QWEN: &str = "a Qwen Code session";
/// What Cursor's agent records.
pub(crate) const CURSOR: &str = "a Cursor transcript";
/// What today's `OpenCode` exports.
pub(crate) const OPENCODE: &str = "an OpenCode session";
/// What GitHub's Copilot CLI records.
pub(crate) const COPILOT: &str = "a Copilot CLI session";
/// What Grok CLI exports.
pub(crate) const GROK: &str = "a Grok CLI session";
/// Goose's messages inside something else, such as its stream of events.
pub(crate) const GOOSE: &str = "events of Goose";
/// Messages of Pydantic AI.
pub(crate) const PYDANTIC: &str = "Pydantic AI messages";
/// Calls that nobody has a name for.
const UNKNOWN: &str = "calls in a form that is not known";

/// Whose calls or results the blocks of a type are, where the type is not one that is read.
pub(crate) fn of_block(kind: &[u8]) -> Option<&'static str> {
    match kind {
        b"tool-call" | b"tool-result" | b"tool-error" | b"tool-invocation" | b"dynamic-tool" => {
            Some(VERCEL)
        }
        b"toolRequest" | b"toolResponse" | b"frontendToolRequest" => Some(GOOSE),
        b"tool_call" | b"tool_response" | b"function_call" | b"function_response"
        | b"function_result" | b"tool_request" | b"tool-request" => Some(UNKNOWN),
        _ if kind.starts_with(b"tool-") => Some(VERCEL),
        _ => None,
    }
}

/// Whose calls or results a block holds that has a member with this name.
pub(crate) fn of_member(name: &[u8]) -> Option<&'static str> {
    match name {
        b"toolUse" | b"toolResult" => Some(BEDROCK),
        b"functionCall" | b"functionResponse" => Some(GEMINI),
        _ => None,
    }
}

/// Whose sessions a database holds that has these tables and columns.
pub(crate) const DATABASES: [(&str, &str, &str); 2] = [
    ("part", "message_id", "OpenCode sessions in a database"),
    ("cursorDiskKV", "value", "Cursor chats in a database"),
];
