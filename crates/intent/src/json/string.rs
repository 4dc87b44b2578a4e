//! Strings, and where they end. The hard part: `"he said "hi", and left"` holds marks that nobody
//! escaped. A mark ends the string only if what follows is what JSON wants there; valid JSON always
//! passes that test, so valid JSON is never read differently.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use memchr::memmem;

use super::Ending;
use super::reader::{Place, Reader};
use crate::limits::LOOKAHEAD_BYTES_MAX;

/// Marks of which opener and closer are whole tokens: nothing inside them is escaped.
const TOKEN_MARKS: &[(&str, &str)] = &[
    ("<|\"|>", "<|\"|>"),
    ("<|\"|\"", "<|\"|\""),
    ("\u{201c}", "\u{201d}"),
    ("\u{2018}", "\u{2019}"),
    ("\u{ff02}", "\u{ff02}"),
];

impl Reader<'_> {
    /// The string at this place, if one starts here.
    pub(super) fn string(&mut self, place: Place) -> Option<String> {
        let rest = &self.bytes[self.pos..self.end];
        match rest.first()? {
            b'"' if rest.starts_with(b"\"\"\"") => Some(self.fenced("\"\"\"")),
            b'\'' if rest.starts_with(b"'''") => Some(self.fenced("'''")),
            mark @ (b'"' | b'\'' | b'`') => Some(self.marked(*mark, place)),
            b'\\' if rest.starts_with(b"\\\"") => Some(self.escaped_marks()),
            b'<' | 0xE2 | 0xEF => {
                let (open, close) = TOKEN_MARKS
                    .iter()
                    .find(|(open, _)| rest.starts_with(open.as_bytes()))?;
                self.repaired = true;
                self.pos += open.len();
                Some(self.until(close).to_owned())
            }
            _ => None,
        }
    }

    /// All up to the closer, which is stepped over.
    fn until(&mut self, close: &str) -> &str {
        let start = self.pos;
        let rest = &self.bytes[start..self.end];
        if let Some(at) = memmem::find(rest, close.as_bytes()) {
            self.pos = start + at + close.len();
            &self.text[start..start + at]
        } else {
            self.pos = self.end;
            self.ended(Ending::OpenString);
            &self.text[start..self.end]
        }
    }

    /// A Python string in three marks.
    fn fenced(&mut self, marks: &str) -> String {
        self.repaired = true;
        self.pos += marks.len();
        let raw = self.until(marks).to_owned();
        unescape(&raw)
    }

    /// JSON inside JSON that lost its outer string: `{\"a\": \"b\"}`.
    fn escaped_marks(&mut self) -> String {
        self.repaired = true;
        self.pos += 2;
        let start = self.pos;
        let mut from = start;
        while let Some(at) = memmem::find(&self.bytes[from..self.end], b"\\\"") {
            let at = from + at;
            if at > start && self.bytes[at - 1] == b'\\' {
                from = at + 2;
                continue;
            }
            self.pos = at + 2;
            return unescape(&unescape(&self.text[start..at]));
        }
        self.pos = self.end;
        self.ended(Ending::OpenString);
        unescape(&self.text[start..self.end])
    }

    fn marked(&mut self, mark: u8, place: Place) -> String {
        self.repaired |= mark != b'"';
        self.pos += 1;
        let mut out = String::new();
        let mut from = self.pos;
        while let Some(byte) = self.peek() {
            if byte == mark {
                if self.closes(self.pos + 1, place) {
                    out.push_str(&self.text[from..self.pos]);
                    self.pos += 1;
                    return out;
                }
                self.repaired = true;
                self.pos += 1;
            } else if byte == b'\\' {
                out.push_str(&self.text[from..self.pos]);
                self.escape(&mut out);
                from = self.pos;
            } else {
                self.repaired |= byte < 0x20;
                self.pos += 1;
            }
        }
        out.push_str(&self.text[from..self.pos]);
        self.ended(Ending::OpenString);
        out
    }

    fn escape(&mut self, out: &mut String) {
        let rest = &self.text[self.pos..self.end];
        let (taken, strict) = unescape_one(rest, out);
        self.repaired |= !strict;
        self.pos += taken;
    }

    /// Whether a quotation mark that ends before `after` ends the string.
    fn closes(&self, after: usize, place: Place) -> bool {
        let next = self.over_blank(after);
        let Some(byte) = self.byte(next) else {
            return true;
        };
        match (place, byte) {
            (Place::Top, _) | (Place::Key, b':' | b',' | b'}' | b'=' | b'{') => true,
            (Place::Key, _) => false,
            (Place::Member, b',') => self.key_follows(next + 1),
            (Place::Member, b'"' | b'\'') => self.key_follows(next),
            (Place::Member, b'}') | (Place::Item, b']') => self.nest_follows(next + 1),
            (Place::Item, b',') => self.value_follows(next + 1),
            (Place::Item, b'"' | b'\'') => next > after,
            (Place::Item, b')') => true,
            (Place::Argument, b')') => self.argument_end_follows(next + 1),
            (Place::Argument, b',') => self.argument_follows(next + 1),
            (Place::Argument, _) => false,
            (_, b'/') => matches!(self.byte(next + 1), Some(b'/' | b'*')),
            (_, b'#') => next > after,
            (_, b'<') => matches!(self.byte(next + 1), Some(b'|' | b'/')) && self.tag_follows(next),
            (_, b'}' | b']') => self.only_closers_follow(next),
            _ => false,
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        (at < self.end).then(|| self.bytes[at])
    }

    fn over_blank(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            at += 1;
        }
        at
    }

    /// A member's key and its colon, a closer (after a trailing comma), or the end.
    fn key_follows(&self, at: usize) -> bool {
        let at = self.over_blank(at);
        let stop = (at + LOOKAHEAD_BYTES_MAX).min(self.end);
        match self.byte(at) {
            None | Some(b'}') => true,
            Some(b'/') => matches!(self.byte(at + 1), Some(b'/' | b'*')),
            Some(b'#') => true,
            Some(mark @ (b'"' | b'\'')) => {
                let mut key = at + 1;
                while key < stop {
                    match self.bytes[key] {
                        b'\\' => key += 1,
                        b'\n' => return false,
                        byte if byte == mark => {
                            return matches!(
                                self.byte(self.over_blank(key + 1)),
                                None | Some(b':' | b'=' | b'{')
                            );
                        }
                        _ => {}
                    }
                    key += 1;
                }
                true
            }
            Some(b'\\') => true,
            Some(_) => {
                let mut key = at;
                while key < stop && is_name(self.bytes[key]) {
                    key += 1;
                }
                key > at && self.byte(self.over_blank(key)) == Some(b':')
            }
        }
    }

    fn value_follows(&self, at: usize) -> bool {
        let at = self.over_blank(at);
        let rest = &self.bytes[at.min(self.end)..self.end];
        match rest.first() {
            None => true,
            Some(b'"' | b'\'' | b'{' | b'[' | b']' | b'-' | b'0'..=b'9' | b'/' | b'#') => true,
            Some(_) => ["true", "false", "null", "True", "False", "None"]
                .iter()
                .any(|word| rest.starts_with(word.as_bytes())),
        }
    }

    /// After a closer: another closer, a comma, or, at the outermost level, anything.
    fn nest_follows(&self, at: usize) -> bool {
        if self.depth <= 1 {
            return true;
        }
        let next = self.over_blank(at);
        match self.byte(next) {
            None | Some(b'}' | b']' | b',' | b')') => true,
            Some(b'<') => self.tag_follows(next),
            Some(b'/') => matches!(self.byte(next + 1), Some(b'/' | b'*')),
            Some(b'#') => true,
            // The next member or item, its comma forgotten.
            Some(b'"') => self.key_follows(next),
            Some(b'{') => true,
            Some(_) => false,
        }
    }

    fn argument_follows(&self, at: usize) -> bool {
        let at = self.over_blank(at);
        match self.byte(at) {
            None => true,
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let stop = (at + LOOKAHEAD_BYTES_MAX).min(self.end);
                let mut key = at;
                while key < stop && is_name(self.bytes[key]) {
                    key += 1;
                }
                self.byte(self.over_blank(key)) == Some(b'=') || self.value_follows(at)
            }
            Some(b')') => true,
            Some(_) => self.value_follows(at),
        }
    }

    fn argument_end_follows(&self, at: usize) -> bool {
        let next = self.over_blank(at);
        match self.byte(next) {
            Some(b'"' | b'\'') => false,
            Some(b')') => matches!(
                self.byte(self.over_blank(next + 1)),
                None | Some(b']' | b',' | b'`' | b'\n' | b'.' | b';')
            ),
            _ => true,
        }
    }

    fn tag_follows(&self, at: usize) -> bool {
        const TAGS: [&str; 8] = [
            "</tool",
            "</function",
            "</invoke",
            "</param",
            "</arg",
            "</minimax",
            "<|",
            "<tool_call|",
        ];
        let rest = &self.bytes[at.min(self.end)..self.end];
        TAGS.iter().any(|tag| rest.starts_with(tag.as_bytes()))
    }

    fn only_closers_follow(&self, at: usize) -> bool {
        let stop = (at + LOOKAHEAD_BYTES_MAX).min(self.end);
        let rest = &self.bytes[at..stop];
        stop == self.end
            && rest
                .iter()
                .all(|byte| matches!(byte, b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
    }
}

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$')
}

/// The text without its escapes; what is no escape stays as it is.
pub(crate) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        let (taken, _) = unescape_one(&rest[at..], &mut out);
        rest = &rest[at + taken..];
    }
    out.push_str(rest);
    out
}

/// Reads the escape at the start of `rest`: how many bytes it took, and whether JSON knows it.
fn unescape_one(rest: &str, out: &mut String) -> (usize, bool) {
    let Some(letter) = rest[1..].chars().next() else {
        return (1, false);
    };
    let plain = match letter {
        '"' | '\\' | '/' => letter,
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => return unicode(rest, out),
        '\'' | '`' => {
            out.push(letter);
            return (2, false);
        }
        '\n' => return (2, false),
        _ => {
            // `\d` in a regular expression: the writer forgot to double the stroke.
            out.push('\\');
            out.push(letter);
            return (1 + letter.len_utf8(), false);
        }
    };
    out.push(plain);
    (2, true)
}

fn unicode(rest: &str, out: &mut String) -> (usize, bool) {
    let unit = |at: usize| -> Option<u32> {
        let hex = rest.get(at + 2..at + 6)?;
        (rest.get(at..at + 2)? == "\\u" && hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then(|| u32::from_str_radix(hex, 16).ok())?
    };
    let Some(first) = unit(0) else {
        out.push_str("\\u");
        return (2, false);
    };
    if let Some(letter) = char::from_u32(first) {
        out.push(letter);
        return (6, true);
    }
    if let Some(second) = unit(6)
        && (0xD800..0xDC00).contains(&first)
        && (0xDC00..0xE000).contains(&second)
        && let Some(letter) =
            char::from_u32(0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    {
        out.push(letter);
        return (12, true);
    }
    out.push('\u{fffd}');
    (6, false)
}
