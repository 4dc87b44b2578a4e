//! The second step: walking a text whose strings are known.

use std::ops::Range;

use super::{Invalid, Strings, Text, number};
use crate::seen::{Parent, Span};

/// What an object or a list is, one bit a level.
const OBJECT: bool = true;

/// Walks a JSON text and checks what it walks over.
///
/// ```
/// use holdfast_transcript::json::{Cursor, Strings};
/// let text = br#"{"role": "user", "content": [1, {"a": null}], "name": "x"}"#;
/// let mut strings = Strings::default();
/// strings.index(text).unwrap();
/// let mut cursor = Cursor::new(text, &strings);
/// let mut role = None;
/// cursor
///     .object(|cursor, key| {
///         if key.is(b"role") {
///             role = cursor.string()?.map(|text| text.to_str().into_owned());
///             Ok(())
///         } else {
///             cursor.skip()
///         }
///     })
///     .unwrap();
/// cursor.end().unwrap();
/// assert_eq!(role.as_deref(), Some("user"));
/// ```
#[derive(Debug)]
pub struct Cursor<'t> {
    text: &'t [u8],
    strings: &'t Strings,
    at: usize,
    /// Reused by [`Self::skip`]: what is open.
    open: Vec<bool>,
}

impl<'t> Cursor<'t> {
    /// A cursor at the start of a text whose strings were found with [`Strings::index`].
    pub const fn new(text: &'t [u8], strings: &'t Strings) -> Self {
        Self {
            text,
            strings,
            at: 0,
            open: Vec::new(),
        }
    }

    /// Where it stands.
    pub const fn position(&self) -> usize {
        self.at
    }

    /// The whole text.
    pub const fn text(&self) -> &'t [u8] {
        self.text
    }

    #[inline]
    fn byte(&self) -> u8 {
        // Nothing outside a string is a zero, so the end looks like any other wrong byte.
        self.text.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn white_space(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return byte;
            }
            self.at += 1;
        }
    }

    const fn wrong(&self, what: &'static str) -> Invalid {
        Invalid::new(self.at, what)
    }

    /// The first byte of the next value, without taking it.
    #[inline]
    pub fn peek(&mut self) -> u8 {
        self.white_space()
    }

    /// Nothing but white space is left.
    pub fn end(&mut self) -> Result<(), Invalid> {
        self.white_space();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.wrong("something behind the value"))
        }
    }

    /// Calls back for each member of an object; the callback has to take or skip the value. Any
    /// other value is skipped.
    pub fn object(
        &mut self,
        mut member: impl FnMut(&mut Self, Text<'t>) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        if self.white_space() != b'{' {
            return self.skip();
        }
        self.at += 1;
        if self.white_space() == b'}' {
            self.at += 1;
            return Ok(());
        }
        loop {
            let key = self.key_range()?;
            let key = self.text_at(key);
            member(self, key)?;
            match self.white_space() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.wrong("expected , or }")),
            }
        }
    }

    /// Calls back for each item of a list; the callback has to take or skip it. Any other value is
    /// skipped.
    pub fn list(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), Invalid>,
    ) -> Result<(), Invalid> {
        if self.white_space() != b'[' {
            return self.skip();
        }
        self.at += 1;
        if self.white_space() == b']' {
            self.at += 1;
            return Ok(());
        }
        loop {
            self.white_space();
            item(self)?;
            match self.white_space() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(());
                }
                _ => return Err(self.wrong("expected , or ]")),
            }
        }
    }

    /// The name of a member, up to its value.
    #[inline]
    fn key_range(&mut self) -> Result<Range<usize>, Invalid> {
        if self.white_space() != b'"' {
            return Err(self.wrong("expected a name"));
        }
        let range = self.string_range()?;
        if self.white_space() != b':' {
            return Err(self.wrong("expected :"));
        }
        self.at += 1;
        Ok(range)
    }

    /// The next value if it is a string; any other value is skipped.
    #[inline]
    pub fn string(&mut self) -> Result<Option<Text<'t>>, Invalid> {
        if self.white_space() == b'"' {
            let range = self.string_range()?;
            return Ok(Some(self.text_at(range)));
        }
        self.skip()?;
        Ok(None)
    }

    /// Where the next value is if it is a string; any other value is skipped. An empty string counts
    /// as none: no id is empty.
    #[inline]
    pub fn string_span(&mut self) -> Result<Option<Span>, Invalid> {
        if self.white_space() != b'"' {
            self.skip()?;
            return Ok(None);
        }
        let range = self.string_range()?;
        let is_escaped = self.strings.has_escape(range.start, range.end);
        Ok((!range.is_empty()).then(|| Span {
            start: place(range.start),
            end: place(range.end),
            is_escaped,
        }))
    }

    /// The next value as the name of a parent, and the place of that value.
    pub(crate) fn parent(&mut self) -> Result<(Parent, Option<(u32, u32)>), Invalid> {
        self.white_space();
        let start = self.here();
        let parent = self.string_span()?.map_or(Parent::Root, Parent::Named);
        Ok((parent, Some((start, self.here()))))
    }

    /// Where it stands, as places in an entry are kept.
    #[inline]
    pub(crate) fn here(&self) -> u32 {
        place(self.at)
    }

    /// Steps over a value, and says where it is, as places in an entry are kept.
    pub(crate) fn place(&mut self) -> Result<Range<u32>, Invalid> {
        let span = self.span()?;
        Ok(place(span.start)..place(span.end))
    }

    /// Steps over a value that will be looked at later.
    pub(crate) fn later(&mut self) -> Result<usize, Invalid> {
        self.white_space();
        let start = self.at;
        self.skip()?;
        Ok(start)
    }

    /// A cursor at a value that was stepped over.
    pub(crate) const fn at(&self, at: usize) -> Self {
        Self {
            text: self.text,
            strings: self.strings,
            at,
            open: Vec::new(),
        }
    }

    /// The string at a place.
    #[inline]
    fn text_at(&self, range: Range<usize>) -> Text<'t> {
        let is_escaped = self.strings.has_escape(range.start, range.end);
        Text::new(&self.text[range], is_escaped)
    }

    #[inline]
    fn string_range(&mut self) -> Result<Range<usize>, Invalid> {
        let start = self.at + 1;
        match self.strings.next_quote(start) {
            Some(end) if end < self.text.len() => {
                self.at = end + 1;
                Ok(start..end)
            }
            _ => Err(self.wrong("a string that does not end")),
        }
    }

    /// Steps over a value, says where it is, and checks it. Depth costs memory, not stack.
    pub fn span(&mut self) -> Result<Range<usize>, Invalid> {
        self.white_space();
        let start = self.at;
        self.skip()?;
        Ok(start..self.at)
    }

    /// Steps over a value and checks it.
    #[inline]
    pub fn skip(&mut self) -> Result<(), Invalid> {
        match self.white_space() {
            b'"' => self.string_range().map(|_| ()),
            b'{' | b'[' => self.skip_nested(),
            _ => self.scalar(),
        }
    }

    #[inline]
    fn scalar(&mut self) -> Result<(), Invalid> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let taken = match self.byte() {
            b't' if rest.starts_with(b"true") => Some(4),
            b'n' if rest.starts_with(b"null") => Some(4),
            b'f' if rest.starts_with(b"false") => Some(5),
            b'-' | b'0'..=b'9' => number::length(rest),
            _ => None,
        };
        self.at += taken.ok_or_else(|| self.wrong("expected a value"))?;
        Ok(())
    }

    fn skip_nested(&mut self) -> Result<(), Invalid> {
        let base = self.open.len();
        loop {
            // A value begins here.
            let byte = self.white_space();
            match byte {
                b'"' => {
                    self.string_range()?;
                }
                b'{' => {
                    self.at += 1;
                    if self.white_space() == b'}' {
                        self.at += 1;
                    } else {
                        self.open.push(OBJECT);
                        self.key_range()?;
                        continue;
                    }
                }
                b'[' => {
                    self.at += 1;
                    if self.white_space() == b']' {
                        self.at += 1;
                    } else {
                        self.open.push(!OBJECT);
                        continue;
                    }
                }
                _ => self.scalar()?,
            }
            // A value ended here: close what ends with it, then go to the next one.
            loop {
                if self.open.len() == base {
                    return Ok(());
                }
                let in_object = self.open.last() == Some(&OBJECT);
                match self.white_space() {
                    b',' => {
                        self.at += 1;
                        if in_object {
                            self.key_range()?;
                        }
                        break;
                    }
                    b'}' if in_object => {}
                    b']' if !in_object => {}
                    _ => return Err(self.wrong("expected , or a closing bracket")),
                }
                self.at += 1;
                self.open.pop();
            }
        }
    }
}

/// A place in an entry. Entries are shorter than `limits::ENTRY_BYTES_MAX`, so it always fits.
#[inline]
fn place(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
