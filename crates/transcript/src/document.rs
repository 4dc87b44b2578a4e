//! The list of messages in one JSON document: the document itself, or a member of a request.
//!
//! A document that is whole is walked once. One that is not is walked again with care: behind a
//! fault the next message that can be read is looked for, so that one bad byte costs one message,
//! and what stands behind the list is kept.

use std::ops::Range;

use crate::format::{Hint, WRAPPERS, hint};
use crate::json::{Cursor, Invalid, Strings};
use crate::limits::RESYNC_FACTOR_MAX;

/// How a document ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    /// As JSON does, though items may be broken.
    Whole,
    /// In the middle of its list.
    BrokenOff,
    /// It can not be told where the list ends, or what is behind it is not JSON.
    Unclear,
}

/// The items of a document's list, in order.
pub(crate) struct Items {
    /// Where each is, and what is wrong with it.
    pub(crate) all: Vec<(Range<usize>, Option<Invalid>)>,
    /// How many brackets are open around an item.
    pub(crate) closers: u8,
    pub(crate) ends: Ends,
    /// Where the list's first item may be; none when there is no list.
    list: Option<usize>,
}

impl Items {
    /// Those that can be read.
    pub(crate) fn whole(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let whole = self.all.iter().filter(|(_, why)| why.is_none());
        whole.map(|(item, _)| item.clone())
    }

    pub(crate) const fn is_list(&self) -> bool {
        self.list.is_some()
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.ends != Ends::Whole || self.all.iter().any(|(_, why)| why.is_some())
    }

    fn walk(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Invalid> {
        self.list = Some(cursor.position() + 1);
        cursor.list(|cursor| {
            let span = cursor.span()?;
            self.all.push((span, None));
            Ok(())
        })
    }
}

/// Finds the list in a document.
pub(crate) fn items(text: &[u8]) -> Items {
    let mut found = Items {
        all: Vec::new(),
        closers: 1,
        ends: Ends::Whole,
        list: None,
    };
    let mut strings = Strings::default();
    // A string that does not end is found by the cursor as well, and then its place is known.
    let indexed = strings.index(text);
    let mut cursor = Cursor::new(text, &strings).at(crate::lines::mark(text));
    let walked = if cursor.peek() == b'[' {
        found.walk(&mut cursor)
    } else {
        cursor.object(|cursor, key| {
            let is_it = WRAPPERS.contains(&key.raw()) && cursor.peek() == b'[';
            if found.list.is_none() && is_it {
                found.closers = 2;
                return found.walk(cursor);
            }
            cursor.skip()
        })
    };
    let end = walked.and_then(|()| cursor.end()).and(indexed);
    if let Err(why) = end {
        match found.list {
            Some(start) => {
                let mut recovery = Recovery::new(text, found.closers, why);
                found.ends = recovery.run(start);
                found.all = recovery.all;
            }
            None => found.ends = Ends::Unclear,
        }
    }
    found
}

/// A document with nothing in its list, and everything around the list as it was.
pub(crate) fn emptied(text: &[u8]) -> Vec<u8> {
    let items = items(text);
    let Some(begin) = items.list else {
        return b"[]\n".to_vec();
    };
    let head = &text[..begin];
    let end = items.all.last().map_or(begin, |(item, _)| item.end);
    let behind = &text[end..];
    match behind.iter().position(|byte| !byte.is_ascii_whitespace()) {
        Some(bracket) if items.ends == Ends::Whole && behind[bracket] == b']' => {
            [head, &behind[bracket..]].concat()
        }
        _ if items.closers > 1 => [head, b"]}\n"].concat(),
        _ => [head, b"]\n"].concat(),
    }
}

struct Recovery<'t> {
    text: &'t [u8],
    closers: u8,
    /// The first fault, with its place in the document.
    first: Invalid,
    all: Vec<(Range<usize>, Option<Invalid>)>,
    strings: Strings,
    /// How many more bytes may be looked at: a hostile document is given up, not walked for ever.
    budget: usize,
    /// The broken item behind which items were found again.
    synced: Option<usize>,
    is_doubtful: bool,
}

impl<'t> Recovery<'t> {
    fn new(text: &'t [u8], closers: u8, first: Invalid) -> Self {
        Self {
            text,
            closers,
            first,
            all: Vec::new(),
            strings: Strings::default(),
            budget: text.len().saturating_mul(RESYNC_FACTOR_MAX),
            synced: None,
            is_doubtful: false,
        }
    }

    fn byte(&self, at: usize) -> u8 {
        self.text.get(at).copied().unwrap_or(0)
    }

    /// The first byte at or behind a place that is not white space.
    fn sign(&self, mut at: usize) -> usize {
        while self.text.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        at
    }

    fn broken(&mut self, range: Range<usize>, what: &'static str) {
        let is_first = self.all.iter().all(|(_, why)| why.is_none());
        let why = if is_first && self.first.at >= range.start {
            Invalid::new(self.first.at - range.start, self.first.what)
        } else {
            Invalid::new(0, what)
        };
        self.all.push((range, Some(why)));
    }

    /// Walks the list from its first item.
    fn run(&mut self, start: usize) -> Ends {
        let mut at = self.sign(start);
        if self.byte(at) == b']' {
            return self.behind(at);
        }
        loop {
            let Some(end) = self.value(at) else {
                let comma = self.comma_before(at);
                if let (b']', Some(comma)) = (self.byte(at), comma)
                    && self.is_tail(at + 1)
                {
                    // A comma behind the last item, and nothing else.
                    self.broken(comma..comma + 1, "a comma too many");
                    return Ends::Whole;
                }
                match self.resync(at, at) {
                    Ok(next) => at = next,
                    Err(ends) => return ends,
                }
                continue;
            };
            let next = self.sign(end);
            let is_parted = matches!(self.byte(next), b',' | b']' | b'{');
            if !is_parted && self.byte(at) != b'{' {
                // A name or a value of an item that lost its bracket.
                match self.resync(at, next) {
                    Ok(next) => at = next,
                    Err(ends) => return ends,
                }
                continue;
            }
            self.all.push((at..end, None));
            match self.byte(next) {
                b',' => at = self.sign(next + 1),
                b']' if self.is_tail(next + 1) => return Ends::Whole,
                b']' => match self.synced {
                    None => return self.behind(next),
                    Some(broken) => match self.undo(broken, next + 1) {
                        Ok(next) => at = next,
                        Err(ends) => return ends,
                    },
                },
                b'{' => {
                    // Only the comma is missing.
                    self.broken(next..next, "expected , or ]");
                    at = next;
                }
                _ => match self.resync(next, next) {
                    Ok(next) => at = next,
                    Err(ends) => return ends,
                },
            }
        }
    }

    /// The list is closed, and something behind it is wrong.
    fn behind(&mut self, bracket: usize) -> Ends {
        self.broken(bracket + 1..self.text.len(), "not JSON behind the list");
        Ends::Unclear
    }

    /// What was taken for items of the list was inside a broken one.
    fn undo(&mut self, broken: usize, from: usize) -> Result<usize, Ends> {
        self.is_doubtful = true;
        let start = self.all.get(broken).map_or(from, |(range, _)| range.start);
        self.all.truncate(broken);
        self.resync(start, from)
    }

    /// Looks for the next item, or the end of the list, behind a broken item. Says where the next
    /// item begins, or how the document ends.
    fn resync(&mut self, start: usize, from: usize) -> Result<usize, Ends> {
        let mut at = from;
        while at < self.text.len() && self.budget > 0 {
            self.budget -= 1;
            match self.byte(at) {
                b']' if self.is_tail(at + 1) => {
                    let end = self.trim(start, at);
                    self.broken(start..end, "not an item");
                    return Err(Ends::Whole);
                }
                b',' => {
                    let next = self.sign(at + 1);
                    match self.item(next) {
                        Some((_, true)) => {
                            let end = self.trim(start, at);
                            self.synced = Some(self.all.len());
                            self.broken(start..end, "not an item");
                            return Ok(next);
                        }
                        // Something inside the broken item.
                        Some((end, false)) => at = end.saturating_sub(1),
                        None => {}
                    }
                }
                _ => {}
            }
            at += 1;
        }
        self.broken(start..self.text.len(), "not an item");
        let is_given_up = at < self.text.len();
        Err(if self.is_doubtful || is_given_up {
            Ends::Unclear
        } else {
            Ends::BrokenOff
        })
    }

    fn trim(&self, start: usize, mut end: usize) -> usize {
        while end > start && self.byte(end - 1).is_ascii_whitespace() {
            end -= 1;
        }
        end
    }

    fn comma_before(&self, at: usize) -> Option<usize> {
        let last = self.trim(0, at).checked_sub(1)?;
        (self.byte(last) == b',' && !self.all.is_empty()).then_some(last)
    }

    /// Where an object ends that begins here, and whether it is an entry of a transcript.
    fn item(&mut self, at: usize) -> Option<(usize, bool)> {
        if self.byte(at) != b'{' {
            return None;
        }
        let end = self.value(at)?;
        let hint = hint(&self.text[at..end], &self.strings);
        let is_entry = matches!(hint, Ok(Hint::Sure(_) | Hint::Maybe(_)));
        Some((end, is_entry))
    }

    /// Where a value ends that begins here, if it is JSON.
    fn value(&mut self, at: usize) -> Option<usize> {
        let end = self.extent(at, 0)?;
        let value = &self.text[at..end];
        self.strings.index(value).ok()?;
        let mut cursor = Cursor::new(value, &self.strings);
        cursor.skip().and_then(|()| cursor.end()).ok()?;
        Some(end)
    }

    /// Whether a document can go on like this behind its list, up to its end.
    fn is_tail(&mut self, at: usize) -> bool {
        let sign = self.sign(at);
        if self.closers == 1 {
            return sign == self.text.len();
        }
        if !matches!(self.byte(sign), b',' | b'}') {
            return false;
        }
        let Some(end) = self.extent(sign, 1) else {
            return false;
        };
        if self.sign(end) != self.text.len() {
            return false;
        }
        let object = [b"{\"list\":0", &self.text[sign..end]].concat();
        let is_json = self.strings.index(&object).and_then(|()| {
            let mut cursor = Cursor::new(&object, &self.strings);
            cursor.skip().and_then(|()| cursor.end())
        });
        is_json.is_ok()
    }

    /// Where the brackets that are open here, and those that follow, are all closed. A value
    /// without brackets ends before the next sign.
    fn extent(&mut self, start: usize, mut depth: usize) -> Option<usize> {
        let mut at = start;
        while let Some(byte) = self.text.get(at) {
            self.budget = self.budget.checked_sub(1)?;
            match byte {
                b'"' => {
                    at = self.string_end(at + 1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at + 1);
                    }
                }
                _ if depth == 0 => {
                    let rest = &self.text[at..];
                    let ends = |byte: &u8| byte.is_ascii_whitespace() || b",]}".contains(byte);
                    let len = rest.iter().position(ends).unwrap_or(rest.len());
                    return (len > 0).then_some(at + len);
                }
                _ => {}
            }
            at += 1;
        }
        None
    }

    /// Behind the quote that ends a string.
    fn string_end(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            let rest = self.text.get(at..)?;
            let len = memchr::memchr2(b'"', b'\\', rest)?;
            self.budget = self.budget.checked_sub(len)?;
            at += len;
            if self.byte(at) == b'"' {
                return Some(at + 1);
            }
            at += 2;
        }
    }
}
