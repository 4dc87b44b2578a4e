//! What a model meant: text in, intents and problems out.
//!
//! Models without working tool calls still say what they want: as broken JSON, `ReAct` blocks,
//! Harmony channels, tags, Python calls or plain English. This crate reads all of them. It is pure,
//! never fails, never panics, and its time is linear in the text.
//!
//! ```
//! use holdfast_intent::{FinishReason, Parser};
//! let text = r#"<tool_call>{"name": "web_search", "arguments": {"query": "rust", "count": "5"}}"#;
//! let parsed = Parser::default().parse(text, FinishReason::Stop);
//! assert_eq!(parsed.intents[0].arguments["count"], 5);
//! ```
//!
//! | module | what it does |
//! |---|---|
//! | [`json`] | reads JSON as models write it and says how it ended |
//! | `doc` | finds code blocks and quotations |
//! | `thoughts` | private reasoning that a server left in the text |
//! | `hidden` | comments, struck-out text and what is marked up as an example |
//! | `cues` | words that make a call an example |
//! | `forms` | the structured forms, found by their openers |
//! | `fuzzy` | plain English |
//! | `native` | a chat server's own `tool_calls` |
//! | `wire` | puts a server's raw stream together |
//! | `shown` | what a text shows as code, whatever its words say |
//! | `signs` | what only calls have, where none could be read |
//! | `guide` | the schema's say: names, types, what is missing |
//! | `parse` | chooses strategies and puts a reply together |
//! | `word_bits` | words and their bits, for one pass over all words of a text |

mod built_in;
mod coerce;
mod corrective;
mod cues;
mod doc;
mod forms;
mod fuzzy;
mod guide;
mod hidden;
pub mod json;
pub mod limits;
mod model;
mod native;
mod parse;
mod problem;
mod raw;
mod shown;
mod signs;
mod sketch;
mod steps;
mod stream;
mod thoughts;
mod tools;
mod wire;
mod word_bits;

pub use guide::FUZZY_MUTATING_MAX;
pub use model::{FinishReason, Intent, Parsed, Strategy};
pub use parse::Parser;
pub use problem::Problem;
pub use stream::StreamParser;
pub use thoughts::{
    OPENED_THOUGHT_END, OPENED_THOUGHT_START, THOUGHT_TAGS, aloud_from, ends_opened_thought,
    opened_thought_end, opens_a_thought, thoughts, without_thoughts,
};
pub use tools::{ToolSet, ToolSpec};
pub use wire::Pieces as ReplyPieces;

/// From this confidence on a read-only tool may run.
pub const RUN_READ_ONLY_MIN: f64 = 0.5;
/// From this confidence on a tool that changes things may run.
pub const RUN_MUTATING_MIN: f64 = 0.8;
