//! Where a string ends: what must follow a quotation mark for it to be the closing one.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use super::reader::{Place, Reader};
use super::string::is_name;
use crate::limits::LOOKAHEAD_BYTES_MAX;

impl Reader<'_> {
    /// Whether a quotation mark that ends before `after` ends the string.
    /// `doubt` says that the string already holds marks that nobody escaped.
    pub(super) fn closes(&self, after: usize, place: Place, doubt: bool) -> bool {
        let next = self.over_blank(after);
        // What is looked at behind the blanks has a limit.
        crate::steps::visit(next - after + LOOKAHEAD_BYTES_MAX / 4);
        let Some((byte, len)) = self.sign(next) else {
            return true;
        };
        match (place, byte) {
            (Place::Top, _) | (Place::Key, b':' | b',' | b'}' | b'=' | b'{') => true,
            // A colon was forgotten.
            (Place::Key, b'"' | b'\'') => next > after,
            (Place::Key, _) => false,
            (Place::Member, b',') => self.key_follows(next + len, doubt),
            // Two marks in a row: the first belongs to the text, unless a key surely follows.
            (Place::Member, b'"' | b'\'') if next == after => self.key_surely_follows(next),
            (Place::Member, b'"' | b'\'') => self.key_follows(next, doubt),
            (Place::Member, b'}') | (Place::Item, b']') => self.nest_follows(next + 1),
            (Place::Item, b',') => self.value_follows(next + len),
            (Place::Item, b'"' | b'\'') => next > after,
            (Place::Item, b')') => true,
            (Place::Argument, b')') => self.argument_end_follows(next + 1),
            (Place::Argument, b',') => self.argument_follows(next + 1),
            // The parenthesis was forgotten: the list's own closer ends the line.
            (Place::Argument, b']') => {
                let behind = self.over_spaces(next + 1);
                matches!(self.byte(behind), None | Some(b'\n' | b'<' | b'`'))
            }
            (Place::Argument, _) => false,
            (_, b'/') => matches!(self.byte(next + 1), Some(b'/' | b'*')),
            (_, b'#') => next > after,
            (_, b'<') => matches!(self.byte(next + 1), Some(b'|' | b'/')) && self.tag_follows(next),
            (_, b'}' | b']' | b')') => self.only_closers_follow(next),
            _ => false,
        }
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        (at < self.end).then(|| self.bytes[at])
    }

    /// The byte here and its length, with full width punctuation as what it stands for.
    pub(super) fn sign(&self, at: usize) -> Option<(u8, usize)> {
        let byte = self.byte(at)?;
        if byte == 0xEF {
            let rest = &self.bytes[at..self.end];
            if rest.starts_with("：".as_bytes()) {
                return Some((b':', 3));
            }
            if rest.starts_with("，".as_bytes()) {
                return Some((b',', 3));
            }
        }
        Some((byte, 1))
    }

    /// How many bytes of white space stand here, wider and unseen kinds included.
    pub(super) fn blank_at(&self, at: usize) -> usize {
        const WIDE: [&str; 5] = ["\u{a0}", "\u{200b}", "\u{feff}", "\u{3000}", "\u{202f}"];
        match self.byte(at) {
            Some(b' ' | b'\t' | b'\n' | b'\r') => 1,
            Some(0xC2 | 0xE2 | 0xE3 | 0xEF) => {
                let rest = &self.bytes[at..self.end];
                WIDE.iter()
                    .find(|blank| rest.starts_with(blank.as_bytes()))
                    .map_or(0, |blank| blank.len())
            }
            _ => 0,
        }
    }

    pub(super) fn over_blank(&self, mut at: usize) -> usize {
        loop {
            let blank = self.blank_at(at);
            if blank == 0 {
                return at;
            }
            at += blank;
        }
    }

    fn over_spaces(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), Some(b' ' | b'\t' | b'\r')) {
            at += 1;
        }
        at
    }

    /// A member's key and its colon, a closer (after a trailing comma), or the end.
    fn key_follows(&self, at: usize, doubt: bool) -> bool {
        let mut at = self.over_blank(at);
        while self.byte(at) == Some(b',') {
            at = self.over_blank(at + 1);
        }
        let rest = &self.bytes[at.min(self.end)..self.end];
        if ["...", "…", "\u{201c}", "\u{2018}"]
            .iter()
            .any(|start| rest.starts_with(start.as_bytes()))
        {
            return true;
        }
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
                            let colon = self.over_blank(key + 1);
                            return match self.sign(colon) {
                                Some((b':', len)) => !doubt || self.value_follows(colon + len),
                                None | Some((b'=' | b'{', _)) => true,
                                // The colon was forgotten.
                                Some((b'"' | b'\'', _)) => !doubt && colon > key + 1,
                                Some(_) => !doubt && is_unclosed_key(&self.bytes[at + 1..key]),
                            };
                        }
                        _ => {}
                    }
                    key += 1;
                }
                // Cut inside of a key, as far as one can see.
                stop < self.end || self.bytes[at + 1..stop].iter().all(|byte| is_name(*byte))
            }
            Some(b'\\') => true,
            Some(_) => {
                let mut key = at;
                while key < stop && is_name(self.bytes[key]) {
                    key += 1;
                }
                // `name": "read"`: only the opening mark was forgotten.
                if matches!(self.byte(key), Some(b'"' | b'\'')) {
                    key += 1;
                }
                key > at && matches!(self.sign(self.over_blank(key)), Some((b':', _)))
            }
        }
    }

    /// A key in marks and its colon, both in sight.
    pub(super) fn key_surely_follows(&self, at: usize) -> bool {
        let stop = (at + LOOKAHEAD_BYTES_MAX).min(self.end);
        let key = memchr::memchr(self.bytes[at], &self.bytes[(at + 1).min(stop)..stop]);
        key.is_some_and(|len| len > 0 && self.byte(self.over_blank(at + len + 2)) == Some(b':'))
    }

    fn value_follows(&self, at: usize) -> bool {
        let at = self.over_blank(at);
        let rest = &self.bytes[at.min(self.end)..self.end];
        match rest.first() {
            None => true,
            Some(b'"' | b'\'' | b'{' | b'[' | b']' | b'-' | b'0'..=b'9' | b'/' | b'#') => true,
            Some(_) => [
                "true", "false", "null", "True", "False", "None", "...", "\u{201c}",
            ]
            .iter()
            .any(|word| rest.starts_with(word.as_bytes())),
        }
    }

    /// After a closer: another closer, a comma, or, at the outermost level, anything.
    fn nest_follows(&self, at: usize) -> bool {
        if self.depth <= 1 {
            return true;
        }
        let mut next = self.over_blank(at);
        if self.byte(next) == Some(b'\\') {
            // Line breaks that were escaped once too often.
            while self.byte(next) == Some(b'\\') && self.byte(next + 1) == Some(b'n') {
                next = self.over_blank(next + 2);
            }
            return matches!(self.byte(next), None | Some(b'}' | b']'));
        }
        match self.byte(next) {
            None | Some(b'}' | b']' | b',' | b')') => true,
            Some(b'<') => self.tag_follows(next),
            Some(b'/') => matches!(self.byte(next + 1), Some(b'/' | b'*')),
            Some(b'#') => true,
            // The next member or item, its comma forgotten.
            Some(b'"') => self.key_follows(next, false),
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
                .all(|byte| matches!(byte, b'}' | b']' | b')' | b' ' | b'\n' | b'\r' | b'\t'))
    }
}

/// `name: ` or `name: {`: a key whose closing mark was forgotten, up to the value's own mark.
fn is_unclosed_key(between: &[u8]) -> bool {
    let name = between.iter().take_while(|byte| is_name(**byte)).count();
    name > 0
        && between.get(name) == Some(&b':')
        && between[name + 1..]
            .iter()
            .all(|byte| matches!(byte, b' ' | b'{' | b'['))
}
