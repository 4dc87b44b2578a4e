//! What a source is in, told from the first of its entries.

use std::io::Read;

use crate::document::items;
use crate::format::{Format, Hint, hint};
use crate::glued::{self, Part};
use crate::json::{Invalid, Strings};
use crate::limits::SNIFF_ENTRIES_MAX;
use crate::lines::{Lines, is_blank, mark};
use crate::read::{Layout, ReadError, Shape};

/// Finds out what a source is in, from what is in its buffer. Reads all of a source that seems to
/// be a document.
pub(crate) fn shape<R: Read>(
    source: &mut Lines<R>,
    strings: &mut Strings,
) -> Result<Option<Shape>, ReadError> {
    let mut votes = Votes::default();
    let mut lines = 0_u32;
    let is_list = source.is_list();
    let (text, is_begin) = source.peek();
    let text = &text[mark(text)..];
    for line in text.split(|byte| *byte == b'\n') {
        if votes.is_settled() || lines as usize > SNIFF_ENTRIES_MAX {
            break;
        }
        if is_blank(line) {
            continue;
        }
        lines += 1;
        votes.count(line, strings);
    }
    if let Some(name) = votes.foreign() {
        return Err(ReadError::NotUnderstood(name));
    }
    let by_lines = votes.winner().map(|format| Shape {
        format,
        layout: Layout::Lines,
    });
    let by_lines = by_lines.or_else(|| by_glued(text, strings));
    // No entry begins like a list, and of a document over several lines at most one is whole.
    let may_be_document =
        is_list || votes.winner().is_none() || (votes.broken > 0 && votes.broken + 1 >= lines);
    // Behind a line that is too long there is no document.
    if may_be_document && is_begin {
        let text = source.read_all()?;
        return Ok(match document_shape(text, strings, is_list)? {
            Some(shape) => Some(shape),
            None => by_lines,
        });
    }
    Ok(by_lines)
}

/// What broken lines are in when there are no others, told from the whole entries in them.
fn by_glued(text: &[u8], strings: &mut Strings) -> Option<Shape> {
    let lines = text.split(|byte| *byte == b'\n');
    let lines = lines.filter(|line| !is_blank(line));
    for line in lines.take(SNIFF_ENTRIES_MAX) {
        for format in Format::ALL {
            let parts = glued::parts(format, line, Invalid::new(0, "not an entry"));
            let mut votes = Votes::default();
            for part in parts.into_iter().flatten() {
                if let Part::Entry(entry) = part {
                    votes.count(&line[entry], strings);
                }
            }
            if let Some(format) = votes.winner() {
                let layout = Layout::Lines;
                return Some(Shape { format, layout });
            }
        }
    }
    None
}

/// What entries said about their format.
#[derive(Debug, Default)]
struct Votes {
    sure: [u32; Format::ALL.len()],
    maybe: [u32; Format::ALL.len()],
    foreign: u32,
    /// The first format that is known by its name and not read.
    foreign_name: Option<&'static str>,
    wrapped: u32,
    nothing: u32,
    broken: u32,
}

impl Votes {
    fn count(&mut self, entry: &[u8], strings: &mut Strings) {
        let Ok(hint) = strings.index(entry).and_then(|()| hint(entry, strings)) else {
            self.broken += 1;
            return;
        };
        match hint {
            Hint::Sure(format) => self.sure[format as usize] += 1,
            Hint::Maybe(format) => self.maybe[format as usize] += 1,
            Hint::Foreign(name) => {
                self.foreign += 1;
                self.foreign_name = self.foreign_name.or(Some(name));
            }
            Hint::Wrapped => self.wrapped += 1,
            Hint::Nothing => self.nothing += 1,
        }
    }

    /// Whether nothing that follows could change the outcome much.
    fn is_settled(&self) -> bool {
        // Three that are sure, and nobody who is sure of something else.
        let sure: u32 = self.sure.iter().sum();
        sure >= 3 && self.foreign == 0 && self.sure.contains(&sure)
    }

    /// The format that most of those that are sure are in, if it is one that is not read.
    fn foreign(&self) -> Option<&'static str> {
        let sure: u32 = self.sure.iter().sum();
        self.foreign_name.filter(|_| self.foreign >= sure)
    }

    fn winner(&self) -> Option<Format> {
        let most = |votes: &[u32; Format::ALL.len()]| {
            let all = Format::ALL.into_iter().zip(votes.iter().copied());
            all.filter(|(_, votes)| *votes > 0)
                .max_by_key(|(_, votes)| *votes)
                .map(|(format, _)| format)
        };
        most(&self.sure).or_else(|| most(&self.maybe))
    }
}

/// What a text is in if it is a document. One that breaks off is taken for a document only if it
/// begins like a list: it could as well be lines.
fn document_shape(
    text: &[u8],
    strings: &mut Strings,
    is_list: bool,
) -> Result<Option<Shape>, ReadError> {
    let items = items(text);
    let is_short = items.whole().nth(1).is_none();
    if !items.is_list() || (items.is_broken() && !is_list && is_short) {
        return Ok(None);
    }
    let mut votes = Votes::default();
    for item in items.whole().take(SNIFF_ENTRIES_MAX) {
        votes.count(&text[item], strings);
    }
    if let Some(name) = votes.foreign() {
        return Err(ReadError::NotUnderstood(name));
    }
    // A list without messages is a transcript without messages.
    let empty = items.all.is_empty();
    let format = votes.winner().or(empty.then_some(Format::OpenAiChat));
    Ok(format.map(|format| Shape {
        format,
        layout: Layout::Document {
            closers: items.closers,
            ends: items.ends,
        },
    }))
}
