//! A session as what happened in it: turns, model requests, calls and their results.
//!
//! The checker asks whether a transcript is whole; the audit asks what it cost. That needs models,
//! tokens, times and results, in one shape for every format. One small reader a format fills it.

mod anthropic;
mod builder;
mod claude_code;
mod codex;
mod crush;
mod fields;
mod goose;
mod langchain;
mod openai_chat;
mod openai_responses;
mod openclaw;
mod source;

use std::io::Read;

use holdfast_contract::time::parse_rfc3339;
use serde_json::Value;

use crate::format::Format;
use crate::read::{self, ReadError};
use builder::Builder;
pub use source::{Found, each, from_bytes};

/// A result's text is kept up to this size; what is longer keeps its beginning and its length.
pub const RESULT_TEXT_BYTES_MAX: usize = 16 * 1024;

/// One conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Session {
    /// What people did, and what followed from it.
    pub turns: Vec<Turn>,
    /// Whether nothing came behind the last answer but results: its calls may still run.
    pub may_run: bool,
}

impl Session {
    /// Leaves out what was answered before. What has no time stays.
    pub fn retain_since(&mut self, since_ms: u64) {
        for turn in &mut self.turns {
            turn.requests
                .retain(|request| request.at_ms.is_none_or(|at_ms| at_ms >= since_ms));
        }
        self.turns.retain(|turn| !turn.requests.is_empty());
    }

    /// All calls in their order, each with the request that asked for it.
    pub fn calls(&self) -> impl Iterator<Item = (&Request, &Call)> {
        self.turns
            .iter()
            .flat_map(|turn| &turn.requests)
            .flat_map(|request| request.calls.iter().map(move |call| (request, call)))
    }
}

/// From one message of a person to the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Turn {
    /// The answers of the model.
    pub requests: Vec<Request>,
}

/// One answer of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// When it was there.
    pub at_ms: Option<u64>,
    /// When the entry before it was written: what lies between is what the answer took.
    pub asked_at_ms: Option<u64>,
    /// Which model.
    pub model: Option<String>,
    /// What it cost.
    pub usage: Usage,
    /// The calls it asked for.
    pub calls: Vec<Call>,
}

/// Where a number of tokens comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Counted {
    /// The provider said so.
    Recorded,
    /// Nobody said anything: a quarter of the bytes.
    #[default]
    Estimated,
}

/// Tokens, and money where the transcript says how much.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Usage {
    /// Read anew.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Put into a cache.
    pub cache_write: u64,
    /// What the host wrote down, in US dollars.
    pub cost_usd: Option<f64>,
    /// Where the tokens come from.
    pub counted: Counted,
}

impl Usage {
    /// All tokens.
    pub fn tokens(&self) -> u64 {
        self.input + self.output + self.cache_read + self.cache_write
    }
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// As the model gave it.
    pub id: String,
    /// The tool's name.
    pub tool: String,
    /// The arguments; text that is not JSON stays text.
    pub arguments: Value,
    /// What came back.
    pub result: Option<Outcome>,
}

/// What came back from a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// When it was there.
    pub at_ms: Option<u64>,
    /// Whether the transcript marks it as an error.
    pub failed: bool,
    /// The exit code, where a command ran.
    pub exit_code: Option<i32>,
    /// The text.
    pub text: String,
}

/// Takes one entry of a transcript.
type Reader = fn(&Value, &mut Builder);

/// The reader of a format.
fn reader(format: Format) -> Reader {
    match format {
        Format::OpenClaw => openclaw::read,
        Format::ClaudeCode => claude_code::read,
        Format::Codex => codex::read,
        Format::Anthropic => anthropic::read,
        Format::OpenAiChat => openai_chat::read,
        Format::OpenAiResponses => openai_responses::read,
        Format::LangChain => langchain::read,
        Format::Goose => goose::read,
        Format::Crush => crush::read,
    }
}

/// Reads a transcript in a format that is known already. Lines that are not JSON are passed over:
/// they are the checker's business.
///
/// ```
/// use holdfast_transcript::{Format, history};
/// let lines = br#"{"role":"user","content":"hi"}
/// {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]}
/// "#;
/// let session = history::read(Format::Anthropic, &lines[..])?;
/// assert_eq!(session.calls().count(), 1);
/// # Ok::<(), holdfast_transcript::read::ReadError>(())
/// ```
pub fn read(format: Format, source: impl Read) -> Result<Session, ReadError> {
    read_with(format, source, |_, _| {})
}

/// The same; each entry is shown to somebody else as well.
fn read_with(
    format: Format,
    source: impl Read,
    mut show: impl FnMut(u32, &Value),
) -> Result<Session, ReadError> {
    let mut builder = Builder::default();
    let take = reader(format);
    read::entries(source, |entry| {
        if let Ok(value) = serde_json::from_slice(entry.bytes) {
            take(&value, &mut builder);
            show(entry.number, &value);
        }
        Ok(())
    })?;
    Ok(builder.finish())
}

/// When a day (`YYYY-MM-DD`, UTC) begins.
///
/// ```
/// use holdfast_transcript::history::day_begins_ms;
/// assert_eq!(day_begins_ms("1970-01-02"), Some(86_400_000));
/// assert_eq!(day_begins_ms("yesterday"), None);
/// ```
pub fn day_begins_ms(day: &str) -> Option<u64> {
    parse_rfc3339(&format!("{day}T00:00:00Z"))
}

#[cfg(test)]
mod tests;
