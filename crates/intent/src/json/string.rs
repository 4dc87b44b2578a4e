//! Strings, and where they end. The hard part: `"he said "hi", and left"` holds marks that nobody
//! escaped. A mark ends the string only if what follows is what JSON wants there; valid JSON always
//! passes that test, so valid JSON is never read differently.

use memchr::memmem;
use serde::de::IgnoredAny;

use super::Ending;
use super::reader::{Place, Reader};

/// Marks of which opener and closer are whole tokens: nothing inside them is escaped.
const TOKEN_MARKS: &[(&str, &str)] = &[
    ("<|\"|>", "<|\"|>"),
    ("<|\"|\"", "<|\"|\""),
    ("<escape>", "<escape>"),
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
            0xE2 if rest.starts_with("\u{201c}".as_bytes()) => {
                Some(self.curly(&["\u{201d}", "\u{201c}", "\""], place))
            }
            0xE2 if rest.starts_with("\u{2018}".as_bytes()) => {
                Some(self.curly(&["\u{2019}", "\u{2018}", "'"], place))
            }
            b'<' | 0xEF => {
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

    /// A Python string with letters before its marks: `r'\d'`, `f"{x}"`, `b'x'`.
    pub(super) fn prefixed(&mut self, place: Place) -> Option<String> {
        let rest = &self.bytes[self.pos..self.end];
        let letters = rest
            .iter()
            .take_while(|byte| b"rRbBuUfF".contains(byte))
            .count();
        if !(1..=2).contains(&letters) || !matches!(rest.get(letters), Some(b'"' | b'\'')) {
            return None;
        }
        let has = |letter: u8| {
            rest[..letters]
                .iter()
                .any(|byte| byte.eq_ignore_ascii_case(&letter))
        };
        let (is_raw, is_filled_in) = (has(b'r'), has(b'f'));
        self.repaired = true;
        self.pos += letters;
        let start = self.pos;
        let read = self.string(place)?;
        let written = &self.text[start..self.pos];
        let marks = if written.starts_with("\"\"\"") || written.starts_with("\'\'\'") {
            3
        } else {
            1
        };
        self.lost |= is_filled_in && written.contains('{');
        let inner = written.get(marks..written.len().saturating_sub(marks));
        match inner {
            Some(inner) if is_raw && self.ending != Ending::OpenString => Some(inner.to_owned()),
            _ => Some(read),
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

    /// A string in typographic marks: it ends at the first of the closers that what JSON wants
    /// follows.
    fn curly(&mut self, closers: &[&str], place: Place) -> String {
        self.repaired = true;
        self.pos += "\u{201c}".len();
        let start = self.pos;
        let mut from = start;
        while let Some((at, which)) = crate::doc::first_of(&self.bytes[from..self.end], closers) {
            let at = from + at;
            from = at + closers[which].len();
            if self.closes(from, place, false) {
                self.pos = from;
                return unescape(&self.text[start..at]);
            }
        }
        self.pos = self.end;
        self.ended(Ending::OpenString);
        unescape(&self.text[start..self.end])
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
        let start = self.pos;
        let (mut doubt, mut strict) = (false, true);
        while let Some(byte) = self.peek() {
            if byte == mark {
                if !doubt && let Some(next) = self.joined(self.pos + 1, place) {
                    out.push_str(&self.text[from..self.pos]);
                    self.repaired = true;
                    self.pos = next;
                    from = next;
                    continue;
                }
                if self.closes(self.pos + 1, place, doubt) {
                    out.push_str(&self.text[from..self.pos]);
                    self.pos += 1;
                    let raw = &self.text[start..self.pos - 1];
                    return if strict {
                        out
                    } else {
                        windows_path(raw).unwrap_or(out)
                    };
                }
                self.repaired = true;
                doubt = true;
                self.pos = self.object_around(start).unwrap_or(self.pos + 1);
            } else if byte == b'\\' {
                out.push_str(&self.text[from..self.pos]);
                strict &= self.escape(&mut out);
                from = self.pos;
            } else {
                let rest = &self.bytes[self.pos..self.end];
                let plain = memchr::memchr2(mark, b'\\', rest).unwrap_or(rest.len());
                let least = rest[..plain].iter().copied().min();
                self.repaired |= least.is_some_and(|byte| byte < 0x20);
                self.pos += plain;
            }
        }
        out.push_str(&self.text[from..self.pos]);
        self.ended(Ending::OpenString);
        out
    }

    /// `"{"a": "b"}"`: a mark that does not close and opens the first key of an object is content,
    /// and so is all of that object. Where it ends, or where it turns out to be none: then nobody
    /// knows which of its marks ends the string.
    fn object_around(&mut self, start: usize) -> Option<usize> {
        let before = self.text[start..self.pos].trim_end();
        if self.torn || !before.ends_with('{') || !self.key_surely_follows(self.pos) {
            return None;
        }
        let brace = start + before.len() - 1;
        let rest = &self.text[brace..self.end];
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<IgnoredAny>();
        let len = match values.next() {
            Some(Ok(_)) => values.byte_offset(),
            Some(Err(error)) => {
                self.torn = true;
                offset_of(rest, error.line(), error.column())
            }
            None => return None,
        };
        crate::steps::visit(len);
        Some(crate::doc::floor(self.text, brace + len).max(self.pos + 1))
    }

    /// Behind a closing mark: a plus sign and another string (JavaScript), or another string on
    /// the next line (Python). Where that one's text starts.
    fn joined(&self, after: usize, place: Place) -> Option<usize> {
        let next = self.over_blank(after);
        let mark = |at| matches!(self.byte(at), Some(b'"' | b'\''));
        if self.byte(next) == Some(b'+') {
            let second = self.over_blank(next + 1);
            return (mark(second) && self.byte(second) == self.byte(after - 1))
                .then_some(second + 1);
        }
        let broken = self.bytes[after..next.min(self.end)].contains(&b'\n');
        (place == Place::Argument && broken && self.byte(next) == self.byte(after - 1))
            .then_some(next + 1)
    }

    /// Reads an escape; false when JSON does not know it.
    fn escape(&mut self, out: &mut String) -> bool {
        let rest = &self.text[self.pos..self.end];
        let (taken, strict) = unescape_one(rest, out);
        self.repaired |= !strict;
        self.pos += taken;
        strict
    }
}

/// Where the place is that serde counts in lines and columns.
fn offset_of(text: &str, line: usize, column: usize) -> usize {
    let mut breaks = memchr::memchr_iter(b'\n', text.as_bytes());
    let start = match line.checked_sub(2) {
        Some(before) => breaks.nth(before).map_or(0, |at| at + 1),
        None => 0,
    };
    (start + column.saturating_sub(1)).min(text.len())
}

pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$')
}

/// `C:\Users\new`: with a drive before it and a stroke that can be no escape, no stroke is one.
fn windows_path(raw: &str) -> Option<String> {
    let drive = raw.as_bytes();
    let is_path = drive.len() > 3
        && drive[0].is_ascii_alphabetic()
        && drive[1] == b':'
        && drive[2] == b'\\'
        && drive[3] != b'\\';
    is_path.then(|| raw.replace("\\\\", "\\"))
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
