//! One file a format: where in an entry its id, its parent, its calls and its results are.

mod claude_code;
mod codex;
mod crush;
mod goose;
mod langchain;
mod message;
mod messages;
mod openclaw;
mod responses;

pub use claude_code::ClaudeCode;
pub use codex::Codex;
pub use crush::Crush;
pub(crate) use crush::is_part as is_crush_part;
pub use goose::Goose;
pub use langchain::LangChain;
pub(crate) use langchain::is_message as is_langchain_message;
pub use messages::{AnthropicMessages, ChatMessages};
pub use openclaw::OpenClaw;
pub use responses::Responses;
pub(crate) use responses::{is_call, is_responses_item, is_result};

use crate::format::Format;
use crate::json::{Cursor, Invalid};
use crate::seen::Seen;

/// How strictly calls and results have to stand together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// Results follow the message with their calls at once (Anthropic, chat completions).
    Adjacent(Joins, Ids),
    /// A result comes anywhere behind its call (Responses).
    Anywhere,
}

/// Which entries are one message of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Joins {
    /// Every entry is a message of its own.
    Never,
    /// Entries that follow each other: the provider puts them together.
    Neighbours,
    /// Entries with the same message id, also with results between them.
    Groups,
}

/// Within what the ids of calls have to differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ids {
    /// The whole conversation.
    Conversation,
    /// One message of the model: servers of chat completions begin anew with every reply, and take
    /// back what they gave out.
    Message,
    /// Nothing: the agent gives calls and results to each other in the order in which they come, and
    /// sends them under ids of its own (`OpenClaw`, whatever its provider gave out).
    Nothing,
}

/// Reads the entries of one format.
pub trait Adapter: Sync {
    /// Which format.
    fn format(&self) -> Format;

    /// Which rule of pairing its provider has.
    fn pairing(&self) -> Pairing;

    /// Finds what matters in an entry, and checks that the whole entry is JSON. What it does not
    /// know it steps over.
    fn read(&self, cursor: &mut Cursor<'_>, seen: &mut Seen) -> Result<(), Invalid>;
}

/// The adapter of a format.
pub const fn adapter(format: Format) -> &'static dyn Adapter {
    match format {
        Format::OpenClaw => &OpenClaw,
        Format::ClaudeCode => &ClaudeCode,
        Format::Codex => &Codex,
        Format::Anthropic => &AnthropicMessages,
        Format::OpenAiChat => &ChatMessages,
        Format::OpenAiResponses => &Responses,
        Format::LangChain => &LangChain,
        Format::Goose => &Goose,
        Format::Crush => &Crush,
    }
}
