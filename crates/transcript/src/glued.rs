//! A line that is not JSON, taken apart: whole entries that stand in it are entries all the same.
//!
//! A process that dies in the middle of a line leaves its half, and the next one appends behind it;
//! two writers may leave two entries without a line end between them. What stands in one line then
//! is a broken part, or none, and whole objects.

use std::ops::Range;

use crate::format::{Format, Hint, hint};
use crate::json::{Cursor, Invalid, Strings};
use crate::limits::GLUED_FACTOR_MAX;
use crate::read;
use crate::seen::Kind;

/// What is between two entries that have no line end between them.
const NO_LINE_END: &str = "two entries in one line";

/// A part of a line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// A whole entry.
    Entry(Range<usize>),
    /// What is not; empty between two entries.
    Broken(Range<usize>, Invalid),
}

/// Takes a broken line apart. None when there is no whole entry in it.
///
/// An object at the line's beginning, and what follows it at once, is an entry whatever it holds.
/// Behind a broken part an object may be a piece of the broken entry, so that it has to look like an
/// entry of this format, and the objects have to go on to the end of the line.
pub(crate) fn parts(format: Format, line: &[u8], why: Invalid) -> Option<Vec<Part>> {
    let mut looking = Looking {
        format,
        line,
        strings: Strings::default(),
        budget: line.len().saturating_mul(GLUED_FACTOR_MAX),
    };
    let (first, behind) = looking.run(0);
    let mut found = first;
    if behind < line.len() {
        found.extend(looking.tail(behind));
    }
    if matches!(&found[..], [] | [Range { start: 0, .. }]) && behind == line.len() {
        // Nothing, or one object, of which the adapter knows more.
        return None;
    }
    if found.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    let mut at = 0;
    for entry in found {
        if entry.start > at || at > 0 {
            let what = if entry.start > at {
                Invalid::new(why.at.saturating_sub(at), why.what)
            } else {
                Invalid::new(0, NO_LINE_END)
            };
            parts.push(Part::Broken(at..entry.start, what));
        }
        at = entry.end;
        parts.push(Part::Entry(entry));
    }
    if at < line.len() {
        let why = Invalid::new(why.at.saturating_sub(at), why.what);
        parts.push(Part::Broken(at..line.len(), why));
    }
    Some(parts)
}

struct Looking<'l> {
    format: Format,
    line: &'l [u8],
    strings: Strings,
    /// How many more bytes may be looked at.
    budget: usize,
}

impl Looking<'_> {
    fn blanks(&self, at: usize) -> usize {
        let rest = self.line.get(at..).unwrap_or_default();
        at + rest
            .iter()
            .take_while(|it| it.is_ascii_whitespace())
            .count()
    }

    /// The objects that follow each other from a place on, and where what is behind them begins.
    fn run(&mut self, start: usize) -> (Vec<Range<usize>>, usize) {
        let mut all: Vec<Range<usize>> = Vec::new();
        let mut at = start;
        loop {
            let next = self.blanks(at);
            if next == self.line.len() {
                // White space at the end belongs to the last of them.
                if let Some(last) = all.last_mut() {
                    last.end = next;
                }
                return (all, next);
            }
            let Some(end) = self.object(next) else {
                return (all, at);
            };
            all.push(next..end);
            at = end;
        }
    }

    /// The entries at the end of the line, behind something broken.
    fn tail(&mut self, from: usize) -> Vec<Range<usize>> {
        let mut at = from;
        while let Some(found) = memchr::memmem::find(&self.line[at..], b"{\"") {
            let start = at + found;
            let (all, end) = self.run(start);
            let is_tail = end == self.line.len() && !all.is_empty();
            if is_tail && all.iter().all(|it| self.is_entry(it.clone())) {
                return all;
            }
            if self.budget == 0 {
                break;
            }
            // What is inside an object that is whole is no entry.
            at = all
                .first()
                .map_or(start, |it| it.end.max(start))
                .max(start + 1);
        }
        Vec::new()
    }

    /// Whether a whole object is an entry, and not a piece of one.
    fn is_entry(&mut self, at: Range<usize>) -> bool {
        let text = &self.line[at];
        let hinted = self
            .strings
            .index(text)
            .and_then(|()| hint(text, &self.strings));
        let is_hinted = matches!(hinted, Ok(Hint::Sure(it) | Hint::Maybe(it)) if it == self.format);
        match (self.format, read::entry(self.format, text)) {
            (_, Err(_)) => false,
            (Format::OpenClaw, Ok(seen)) => is_hinted || seen.parent_value.is_some(),
            (Format::ClaudeCode | Format::Codex, Ok(_)) => is_hinted,
            (_, Ok(seen)) => seen.kind != Kind::Neutral,
        }
    }

    /// Where an object ends that begins here, if all of it is JSON.
    fn object(&mut self, start: usize) -> Option<usize> {
        if self.line.get(start) != Some(&b'{') {
            return None;
        }
        let end = self.extent(start)?;
        let text = &self.line[start..end];
        self.budget = self.budget.saturating_sub(text.len());
        std::str::from_utf8(text).ok()?;
        self.strings.index(text).ok()?;
        let mut cursor = Cursor::new(text, &self.strings);
        cursor.skip().and_then(|()| cursor.end()).ok()?;
        Some(end)
    }

    /// Where the bracket that begins here is closed, with those inside it.
    fn extent(&mut self, start: usize) -> Option<usize> {
        let mut depth = 0_usize;
        let mut is_string = false;
        let mut at = start;
        while let Some(byte) = self.line.get(at) {
            self.budget = self.budget.checked_sub(1)?;
            match (byte, is_string) {
                (b'\\', true) => at += 1,
                (b'"', _) => is_string = !is_string,
                // No string holds one, so that this is no JSON.
                (0..b' ', true) => return None,
                (b'{' | b'[', false) => depth += 1,
                (b'}' | b']', false) => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        None
    }
}
