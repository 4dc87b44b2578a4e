//! The same parser, fed in chunks.
//!
//! A later byte can change what an earlier one meant: a fence can turn a call into an example, a
//! closing tag can turn prose into a call, `?` makes a question of a wish. So the text is kept and
//! read when it is whole. The result is the same for any chunking because nothing is decided
//! before the end. A call is at most as long as a reply, so keeping it costs nothing that the
//! caller does not already hold.

use crate::model::{FinishReason, Parsed};
use crate::parse::Parser;

/// Takes chunks, gives the same answer as [`Parser::parse_any`] on the whole text.
///
/// ```
/// use holdfast_intent::{FinishReason, Parser, StreamParser};
/// let parser = Parser::default();
/// let mut stream = StreamParser::new(&parser);
/// stream.feed(b"[TOOL:read|pa");
/// stream.feed(b"th=a.txt]");
/// assert_eq!(stream.finish(FinishReason::Stop).intents[0].name, "read");
/// ```
#[derive(Debug)]
pub struct StreamParser<'p> {
    parser: &'p Parser,
    bytes: Vec<u8>,
}

impl<'p> StreamParser<'p> {
    /// A stream for this parser.
    pub fn new(parser: &'p Parser) -> Self {
        Self {
            parser,
            bytes: Vec::new(),
        }
    }

    /// Takes a chunk; a character may be split between two.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.bytes.extend_from_slice(chunk);
    }

    /// Reads what was fed. Bytes that are not UTF-8 are replaced.
    pub fn finish(self, finish: FinishReason) -> Parsed {
        let text = match String::from_utf8(self.bytes) {
            Ok(text) => text,
            Err(broken) => String::from_utf8_lossy(broken.as_bytes()).into_owned(),
        };
        self.parser.parse_any(&text, finish)
    }
}
