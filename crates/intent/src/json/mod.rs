//! JSON as models write it: read in one pass, repaired where that is safe, and honest about the
//! end. Valid JSON is read exactly as a strict reader would, but for a name
//! that stands there twice.

mod closing;
mod reader;
mod skim;
mod string;
mod word;

use serde_json::Value;

pub(crate) use skim::{Skimmed, skim, skim_open};
pub(crate) use word::number_from;

/// How a value ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// All that was opened was closed.
    Whole,
    /// Closers are missing, but the last value was finished: repairable, unless the model was cut.
    MissingClosers,
    /// The text ended where a value could go on (after a comma, a colon, inside a number).
    OpenValue,
    /// The text ended inside a string.
    OpenString,
}

/// A value and how it was come by.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub struct Repaired {
    /// The value.
    pub value: Value,
    /// The byte after it.
    pub end: usize,
    /// Whether strict JSON would have refused the text, or lost one of two members of one name.
    pub repaired: bool,
    /// How it ended.
    pub ending: Ending,
    /// Whether `...` stands where members or items were left out.
    pub elided: bool,
    /// Whether it can be read in more than one way: two members have one name and different values,
    /// or an object in marks can not be told from what is around it. Of two members the first one is
    /// kept, which nothing inside a later value can have written.
    pub ambiguous: bool,
    /// Whether something in it is no value and was left out or kept as its text: an expression
    /// (`data['city']`), or a member without a value.
    pub lost: bool,
}

impl Repaired {
    /// Whether the text was valid JSON as it stood.
    pub fn is_strict(&self) -> bool {
        !self.repaired && self.ending == Ending::Whole
    }
}

/// Reads the object or list that starts at `at`, looking no further than `end`.
///
/// `None` when no object or list starts there, or when it nests too deep.
///
/// ```
/// use holdfast_intent::json::{Ending, read_at};
/// let text = "{'path': 'it's.txt', count: 5, deep: True,}";
/// let read = read_at(text, 0, text.len()).unwrap();
/// assert_eq!(read.value, serde_json::json!({"path": "it's.txt", "count": 5, "deep": true}));
/// assert!(read.repaired);
/// assert_eq!(read.ending, Ending::Whole);
/// ```
pub fn read_at(text: &str, at: usize, end: usize) -> Option<Repaired> {
    try_read_at(text, at, end)?.ok()
}

/// The same; `Err` has the place at which the text nests too deep.
pub(crate) fn try_read_at(text: &str, at: usize, end: usize) -> Option<Result<Repaired, usize>> {
    let end = end.min(text.len());
    if !matches!(text.as_bytes().get(at), Some(b'{' | b'[')) || at >= end {
        return None;
    }
    Some(read(text, at, end, reader::Place::Top))
}

/// Reads a whole text that should be one object or list, with anything around it.
pub fn read_text(text: &str) -> Option<Repaired> {
    let at = memchr::memchr2(b'{', b'[', text.as_bytes())?;
    read_at(text, at, text.len())
}

/// Reads one Python argument value (`"x"`, `[1, 2]`, `None`); it ends before `,` or `)`.
pub(crate) fn read_argument(text: &str, at: usize, end: usize) -> Option<Repaired> {
    read(text, at, end.min(text.len()), reader::Place::Argument).ok()
}

fn read(text: &str, at: usize, end: usize, place: reader::Place) -> Result<Repaired, usize> {
    let mut reader = reader::Reader::new(text, at, end);
    let value = reader.value(place);
    reader.finish(value)
}

#[cfg(test)]
mod tests;
