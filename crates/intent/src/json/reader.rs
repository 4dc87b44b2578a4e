//! The walk over objects and lists. Always moves forward, never back.

use serde_json::{Map, Value};

use super::{Ending, Repaired};
use crate::limits::{LOOKAHEAD_BYTES_MAX, NESTING_MAX};

/// Where a value stands, which decides what can follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Top,
    Key,
    Member,
    Item,
    Argument,
}

/// What became of members of one name, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Repetition {
    None,
    /// They have the same value.
    Same,
    /// They differ, and only the first one was kept.
    Dropped,
}

#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) bytes: &'a [u8],
    pub(super) pos: usize,
    begin: usize,
    pub(super) end: usize,
    pub(super) depth: usize,
    pub(super) repaired: bool,
    pub(super) ending: Ending,
    pub(super) elided: bool,
    repetition: Repetition,
    /// Whether a string holds what begins like an object and is none.
    pub(super) torn: bool,
    /// Whether something was no value: it was left out, or kept as its text.
    pub(super) lost: bool,
    /// Where it became too deep.
    too_deep: Option<usize>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(text: &'a str, at: usize, end: usize) -> Self {
        Self {
            text,
            bytes: text.as_bytes(),
            pos: at,
            begin: at,
            end,
            depth: 0,
            repaired: false,
            ending: Ending::Whole,
            elided: false,
            repetition: Repetition::None,
            torn: false,
            lost: false,
            too_deep: None,
        }
    }

    /// What was read, or the place at which it nests too deep.
    pub(super) fn finish(self, value: Value) -> Result<Repaired, usize> {
        crate::steps::visit(self.too_deep.unwrap_or(self.pos) - self.begin);
        match self.too_deep {
            Some(at) => Err(at),
            None => Ok(Repaired {
                value,
                end: self.pos,
                repaired: self.repaired
                    || self.repetition != Repetition::None
                    || self.ending != Ending::Whole,
                ending: self.ending,
                elided: self.elided,
                ambiguous: self.torn || self.repetition == Repetition::Dropped,
                lost: self.lost,
            }),
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        (self.pos < self.end).then(|| self.bytes[self.pos])
    }

    pub(super) fn ended(&mut self, how: Ending) {
        self.ending = self.ending.max(how);
    }

    /// Skips white space and comments.
    fn skip_blank(&mut self) {
        while let Some(byte) = self.peek() {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => self.pos += 1,
                b'/' if self.bytes[self.pos..self.end].starts_with(b"//") => self.skip_line(),
                b'/' if self.bytes[self.pos..self.end].starts_with(b"/*") => {
                    self.repaired = true;
                    let rest = &self.bytes[self.pos..self.end];
                    self.pos += memchr::memmem::find(rest, b"*/").map_or(rest.len(), |at| at + 2);
                }
                b'#' => self.skip_line(),
                // A line break that was escaped once too often.
                b'\\' if matches!(self.byte(self.pos + 1), Some(b'n' | b't' | b'r')) => {
                    self.repaired = true;
                    self.pos += 2;
                }
                _ => {
                    let blank = self.blank_at(self.pos);
                    if blank == 0 {
                        break;
                    }
                    self.repaired = true;
                    self.pos += blank;
                }
            }
        }
    }

    fn skip_line(&mut self) {
        self.repaired = true;
        let rest = &self.bytes[self.pos..self.end];
        self.pos += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    pub(super) fn value(&mut self, place: Place) -> Value {
        self.skip_blank();
        match self.peek() {
            None => {
                self.ended(Ending::OpenValue);
                Value::Null
            }
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::list),
            Some(b'(') if place != Place::Top => {
                self.repaired = true;
                self.nested(Self::list)
            }
            Some(_) => match self.prefixed(place).or_else(|| self.string(place)) {
                Some(text) => Value::String(text),
                None => self.word(place),
            },
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Value) -> Value {
        if self.depth >= NESTING_MAX {
            self.too_deep = self.too_deep.or(Some(self.pos));
            self.pos = self.end;
            return Value::Null;
        }
        self.depth += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    /// Steps over `...` or `…` in the place of members or items.
    fn skip_ellipsis(&mut self) -> bool {
        let rest = &self.bytes[self.pos..self.end];
        let len = match rest.first() {
            Some(b'.') if rest.starts_with(b"...") => 3,
            Some(0xE2) if rest.starts_with("…".as_bytes()) => 3,
            _ => return false,
        };
        self.pos += len;
        self.elided = true;
        self.repaired = true;
        true
    }

    fn object(&mut self) -> Value {
        let mut members = Map::new();
        // The items of a Python set, which has no values.
        let mut items = Vec::new();
        self.pos += 1;
        let mut after_comma = true;
        loop {
            self.skip_blank();
            let before = self.pos;
            match self.peek() {
                None => {
                    self.ended(if after_comma {
                        Ending::OpenValue
                    } else {
                        Ending::MissingClosers
                    });
                    return self.object_or_set(members, items);
                }
                Some(b'}') => {
                    self.repaired |= after_comma && !members.is_empty();
                    self.pos += 1;
                    return self.object_or_set(members, items);
                }
                // A list around us is closed: our own closer was forgotten.
                Some(b']' | b')') if self.depth > 1 => {
                    self.repaired = true;
                    return self.object_or_set(members, items);
                }
                Some(b',' | b';') => {
                    self.repaired |= after_comma;
                    after_comma = true;
                    self.pos += 1;
                }
                Some(b']' | b')' | b':') => {
                    self.repaired = true;
                    self.pos += 1;
                }
                Some(0xEF) if matches!(self.sign(self.pos), Some((b',', _))) => {
                    self.repaired = true;
                    after_comma = true;
                    self.pos += "，".len();
                }
                Some(b'.' | 0xE2) if self.skip_ellipsis() => after_comma = false,
                Some(_) => {
                    self.repaired |= !after_comma;
                    after_comma = false;
                    items.extend(self.member(&mut members));
                }
            }
            if self.pos == before {
                self.step();
            }
        }
    }

    /// What stood between braces. Items without values are a set, and a set is a list in JSON.
    fn object_or_set(&mut self, members: Map<String, Value>, items: Vec<Value>) -> Value {
        if members.is_empty() && !items.is_empty() {
            return Value::Array(items);
        }
        self.lost |= !items.is_empty();
        Value::Object(members)
    }

    /// Reads one member. What has no value is an item of a set, and is given back.
    fn member(&mut self, members: &mut Map<String, Value>) -> Option<Value> {
        let start = self.pos;
        let marked = self.string(Place::Key);
        let is_bare = marked.is_none();
        let key = marked.unwrap_or_else(|| self.bare_key());
        let key = self.unclosed_key(start).unwrap_or(key);
        self.skip_blank();
        match self.peek() {
            Some(b':') => self.pos += 1,
            Some(0xEF) if matches!(self.sign(self.pos), Some((b':', _))) => {
                self.repaired = true;
                self.pos += "：".len();
            }
            Some(b'=') => {
                self.repaired = true;
                self.pos += 1;
                if self.peek() == Some(b'>') {
                    self.pos += 1;
                }
            }
            None => {
                self.ended(Ending::OpenValue);
                return None;
            }
            Some(b',' | b'}') => {
                self.repaired = true;
                if key.is_empty() && is_bare {
                    return None;
                }
                return Some(if is_bare {
                    self.literal(&key)
                } else {
                    Value::String(key)
                });
            }
            Some(_) => self.repaired = true,
        }
        self.skip_blank();
        if self.peek().is_none() {
            // A value that never began is not a null.
            self.ended(Ending::OpenValue);
            return None;
        }
        let value = self.value(Place::Member);
        self.insert(members, key, value);
        None
    }

    /// Of two members of the same name the first one is kept, which nothing inside a later value
    /// can have written, and the loss of the other is said.
    fn insert(&mut self, members: &mut Map<String, Value>, key: String, value: Value) {
        let found = match members.get(&key) {
            None => Repetition::None,
            Some(known) if *known == value => Repetition::Same,
            Some(_) => Repetition::Dropped,
        };
        self.repetition = self.repetition.max(found);
        if found == Repetition::None {
            members.insert(key, value);
        }
    }

    /// `"name: "read"`: the key's closing mark was forgotten, so the string ran on into the value.
    /// The step back is short, so the walk stays linear.
    fn unclosed_key(&mut self, start: usize) -> Option<String> {
        let marked = matches!(self.byte(start), Some(b'"' | b'\''));
        let next = self.over_blank(self.pos);
        if !marked
            || self.pos - start > LOOKAHEAD_BYTES_MAX
            || matches!(self.sign(next), Some((b':' | b'=', _)))
        {
            return None;
        }
        let raw = &self.text[start + 1..self.pos];
        let colon = raw.find(':')?;
        let name = raw[..colon].trim_end();
        let value = raw[colon + 1..].trim_start();
        let plain = !name.is_empty() && name.bytes().all(super::string::is_name);
        if !plain || !value.starts_with(['"', '\'', '{', '[']) {
            return None;
        }
        let name = name.to_owned();
        self.pos = start + 1 + colon;
        self.repaired = true;
        self.ending = Ending::Whole;
        Some(name)
    }

    fn list(&mut self) -> Value {
        let mut items = Vec::new();
        let closer = if self.peek() == Some(b'(') {
            b')'
        } else {
            b']'
        };
        self.pos += 1;
        let mut after_comma = true;
        loop {
            self.skip_blank();
            let before = self.pos;
            match self.peek() {
                None => {
                    self.ended(if after_comma {
                        Ending::OpenValue
                    } else {
                        Ending::MissingClosers
                    });
                    return Value::Array(items);
                }
                Some(byte) if byte == closer => {
                    self.repaired |= after_comma && !items.is_empty();
                    self.pos += 1;
                    return Value::Array(items);
                }
                Some(b'}' | b')' | b']') if self.depth > 1 => {
                    self.repaired = true;
                    return Value::Array(items);
                }
                Some(b',') => {
                    self.repaired |= after_comma;
                    after_comma = true;
                    self.pos += 1;
                }
                Some(b'}' | b')' | b']' | b':') => {
                    self.repaired = true;
                    self.pos += 1;
                }
                Some(0xEF) if matches!(self.sign(self.pos), Some((b',', _))) => {
                    self.repaired = true;
                    after_comma = true;
                    self.pos += "，".len();
                }
                Some(b'.' | 0xE2) if self.skip_ellipsis() => after_comma = false,
                Some(_) => {
                    self.repaired |= !after_comma;
                    after_comma = false;
                    items.push(self.value(Place::Item));
                }
            }
            if self.pos == before {
                self.step();
            }
        }
    }

    /// Moves over one character, so that every loop ends.
    fn step(&mut self) {
        self.repaired = true;
        self.pos += 1;
        while self.pos < self.end && !self.text.is_char_boundary(self.pos) {
            self.pos += 1;
        }
    }
}
