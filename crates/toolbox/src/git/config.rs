//! A small strict reader of git's configuration files, and the edits that set settings aside.
//!
//! Git itself is never run to read them: it would do what the file says. The grammar is that of git's
//! `config.c`. A file that does not follow it is not read at all, and git refuses it too.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::text::Bytes;

/// The name of a setting. Sections and keys are in lower case, as git compares them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Name {
    pub(super) section: String,
    pub(super) sub: Option<Bytes>,
    pub(super) key: String,
}

impl Name {
    /// The middle part, which is case-sensitive.
    pub(super) fn sub(&self) -> &[u8] {
        self.sub.as_ref().map_or(&[], |sub| &sub.0)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.", self.section)?;
        if let Some(sub) = &self.sub {
            write!(f, "{}.", String::from_utf8_lossy(&sub.0))?;
        }
        f.write_str(&self.key)
    }
}

/// One setting of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Setting {
    pub(super) name: Name,
    /// `None` where there is no `=`, which git reads as `true`.
    pub(super) value: Option<Vec<u8>>,
    /// Its bytes: whole lines, except behind a section's header on the same line.
    pub(super) span: Range<usize>,
}

/// A header, and where it ends.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Header {
    section: String,
    sub: Option<Bytes>,
    end: usize,
}

/// A file that was read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Config {
    headers: Vec<Header>,
    pub(super) settings: Vec<Setting>,
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Reader<'_> {
    /// The next byte; the end of a line is one byte, and so is the end of the file.
    fn next(&mut self) -> u8 {
        let byte = self.bytes.get(self.at).copied();
        self.at += 1;
        match byte {
            Some(b'\r') if self.bytes.get(self.at) == Some(&b'\n') => {
                self.at += 1;
                b'\n'
            }
            byte => byte.unwrap_or(b'\n'),
        }
    }

    fn is_over(&self) -> bool {
        self.at >= self.bytes.len()
    }

    fn skip_line(&mut self) {
        while self.next() != b'\n' {}
    }

    /// The rest of a header, after its `[`.
    fn header(&mut self) -> Option<Header> {
        let mut base = String::new();
        let mut quoted = None;
        loop {
            match self.next() {
                b']' => break,
                b' ' | b'\t' if quoted.is_none() => {
                    quoted = Some(self.quoted_part()?);
                    if self.next() != b']' {
                        return None;
                    }
                    break;
                }
                it if it.is_ascii_alphanumeric() || it == b'-' || it == b'.' => {
                    base.push(it.to_ascii_lowercase().into());
                }
                _ => return None,
            }
        }
        // `[a.b]` is an old way to write `[a "b"]`.
        let (section, dotted) = match base.split_once('.') {
            Some((section, rest)) => (section.to_owned(), Some(rest.as_bytes().to_vec())),
            None => (base, None),
        };
        let sub = match (dotted, quoted) {
            (Some(dotted), Some(quoted)) => Some([dotted, quoted].join(&b'.')),
            (dotted, quoted) => dotted.or(quoted),
        };
        (!section.is_empty()).then_some(Header {
            section,
            sub: sub.map(Bytes),
            end: self.at,
        })
    }

    fn quoted_part(&mut self) -> Option<Vec<u8>> {
        let mut byte = self.next();
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        if byte != b'"' {
            return None;
        }
        let mut part = Vec::new();
        loop {
            match self.next() {
                b'"' => return Some(part),
                b'\n' => return None,
                b'\\' => match self.next() {
                    b'\n' => return None,
                    it => part.push(it),
                },
                it => part.push(it),
            }
        }
    }

    /// The rest of a setting's name, and its value. Nothing where this is no setting.
    fn setting(&mut self, first: u8) -> Option<(String, Option<Vec<u8>>)> {
        let mut key = String::from(char::from(first.to_ascii_lowercase()));
        let mut byte = self.next();
        while byte.is_ascii_alphanumeric() || byte == b'-' {
            key.push(byte.to_ascii_lowercase().into());
            byte = self.next();
        }
        while matches!(byte, b' ' | b'\t') {
            byte = self.next();
        }
        match byte {
            b'\n' => Some((key, None)),
            b'=' => Some((key, Some(self.value()?))),
            _ => None,
        }
    }

    fn value(&mut self) -> Option<Vec<u8>> {
        let mut value = Vec::new();
        // Length without the blanks at the end.
        let mut kept = 0;
        let mut is_quoted = false;
        loop {
            let byte = self.next();
            match byte {
                b'\n' if is_quoted => return None,
                b'\n' => break,
                b' ' | b'\t' | b'\r' if !is_quoted => {
                    if !value.is_empty() {
                        value.push(byte);
                    }
                    continue;
                }
                b'#' | b';' if !is_quoted => {
                    self.skip_line();
                    break;
                }
                b'"' => is_quoted = !is_quoted,
                b'\\' => match self.next() {
                    // The value goes on in the next line.
                    b'\n' => continue,
                    b't' => value.push(b'\t'),
                    b'b' => value.push(8),
                    b'n' => value.push(b'\n'),
                    it @ (b'\\' | b'"') => value.push(it),
                    _ => return None,
                },
                _ => value.push(byte),
            }
            kept = value.len();
        }
        value.truncate(kept);
        Some(value)
    }
}

/// Reads a file; `None` where git would not either.
pub(super) fn parse(bytes: &[u8]) -> Option<Config> {
    if bytes.contains(&0) {
        return None;
    }
    let mut config = Config::default();
    let at = if bytes.starts_with(b"\xef\xbb\xbf") {
        3
    } else {
        0
    };
    let mut reader = Reader { bytes, at };
    // Where the line begins, while there are only blanks in it.
    let mut line = Some(at);
    while !reader.is_over() {
        let start = reader.at;
        match reader.next() {
            b'\n' => line = Some(reader.at),
            b' ' | b'\t' | b'\r' => {}
            b'#' | b';' => {
                reader.skip_line();
                line = Some(reader.at);
            }
            b'[' => {
                config.headers.push(reader.header()?);
                line = None;
            }
            first if first.is_ascii_alphabetic() => {
                let (key, value) = reader.setting(first)?;
                let header = config.headers.last()?;
                let end = reader.at.min(bytes.len());
                let span = match line {
                    Some(line) => line..end,
                    None => start..without_newline(bytes, end),
                };
                let (section, sub) = (header.section.clone(), header.sub.clone());
                config.settings.push(Setting {
                    name: Name { section, sub, key },
                    value,
                    span,
                });
                line = Some(reader.at);
            }
            _ => return None,
        }
    }
    Some(config)
}

fn without_newline(bytes: &[u8], end: usize) -> usize {
    let line = &bytes[..end];
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line).len()
}

impl Setting {
    /// The bytes that stand for it in a file.
    pub(super) fn line(&self, bytes: &[u8]) -> Vec<u8> {
        bytes[self.span.clone()].to_vec()
    }
}

/// Puts other bytes in the place of some, which are in order and do not overlap.
pub(super) fn replace(bytes: &[u8], edits: &[(Range<usize>, Vec<u8>)]) -> Vec<u8> {
    let mut made = Vec::with_capacity(bytes.len());
    let mut at = 0;
    for (span, instead) in edits {
        made.extend_from_slice(&bytes[at..span.start]);
        let was_line = bytes[..span.end].ends_with(b"\n");
        made.extend_from_slice(instead);
        if !instead.is_empty() && was_line && !instead.ends_with(b"\n") {
            made.push(b'\n');
        }
        at = span.end;
    }
    made.extend_from_slice(&bytes[at..]);
    made
}

/// Adds a line at the end of a setting's section, which is made where there is none.
pub(super) fn insert(bytes: &[u8], name: &Name, line: &[u8]) -> Option<Vec<u8>> {
    let config = parse(bytes)?;
    let mut line = line.to_vec();
    if !line.first().is_some_and(u8::is_ascii_whitespace) {
        line.insert(0, b'\t');
    }
    end_line(&mut line);
    let is_ours = |section: &str, sub: &Option<Bytes>| section == name.section && *sub == name.sub;
    let header = config
        .headers
        .iter()
        .rfind(|it| is_ours(&it.section, &it.sub));
    let last = config
        .settings
        .iter()
        .rfind(|it| is_ours(&it.name.section, &it.name.sub));
    let place = header
        .map(|it| it.end)
        .max(last.map(|it| it.span.end))
        .map(
            |end| match bytes[end..].iter().position(|it| *it == b'\n') {
                _ if bytes[..end].ends_with(b"\n") => (end, end),
                Some(rest) => (end, end + rest + 1),
                None => (end, bytes.len()),
            },
        )
        // Behind a further header on the same line the place is in another section.
        .filter(|(end, at)| {
            config
                .headers
                .iter()
                .all(|it| it.end <= *end || it.end > *at)
        });
    let at = place.map_or(bytes.len(), |(_, at)| at);
    let mut made = bytes[..at].to_vec();
    if !made.is_empty() {
        end_line(&mut made);
    }
    if place.is_none() {
        made.extend(header_of(name));
    }
    made.extend(line);
    made.extend_from_slice(&bytes[at..]);
    Some(made)
}

/// Ends the line, also where a value would go on in the next one.
fn end_line(text: &mut Vec<u8>) {
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    if text.ends_with(b"\\\n") || text.ends_with(b"\\\r\n") {
        text.push(b'\n');
    }
}

fn header_of(name: &Name) -> Vec<u8> {
    let mut made = format!("[{}", name.section).into_bytes();
    if let Some(sub) = &name.sub {
        made.extend_from_slice(b" \"");
        for byte in &sub.0 {
            if matches!(byte, b'"' | b'\\') {
                made.push(b'\\');
            }
            made.push(*byte);
        }
        made.push(b'"');
    }
    made.extend_from_slice(b"]\n");
    made
}
