//! From bytes to entries: lines, or the items of one JSON document, in the format they are in.

use std::io::{self, Read};

use crate::adapter::adapter;
pub use crate::document::Ends;
use crate::document::items;
use crate::format::Format;
use crate::glued::{self, Part};
use crate::index::{Index, TooLong};
use crate::json::{Cursor, Invalid, Strings};
use crate::limits::{ENTRY_BYTES_MAX, TRANSCRIPT_BYTES_MAX};
use crate::lines::{Filled, Lines, is_blank, mark};
use crate::seen::{Kind, Seen};
use crate::sniff;

/// How entries stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One a line.
    Lines,
    /// The items of a list in one JSON document. `closers` brackets are open around an item, which
    /// matters when the document breaks off.
    Document {
        /// How many brackets have to be closed behind the last item.
        closers: u8,
        /// How it ends.
        ends: Ends,
    },
}

/// What a transcript is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// The format of its entries.
    pub format: Format,
    /// How they stand in the file.
    pub layout: Layout,
}

/// One entry as it stands in the file.
#[derive(Debug)]
pub struct RawEntry<'t> {
    /// Its number in the session.
    pub number: u32,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in the file, without the end of the line.
    pub len: u64,
    /// Its bytes; none of a line that is longer than [`ENTRY_BYTES_MAX`].
    pub bytes: &'t [u8],
    /// What the adapter found in it, or why it is not JSON.
    pub seen: Result<&'t Seen, Invalid>,
}

/// Why a transcript can not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The operating system says no.
    #[error("can not be read: {0}")]
    Io(#[from] io::Error),
    /// Nothing in it looks like a transcript.
    #[error("is not a transcript in a known format")]
    UnknownFormat,
    /// It is a transcript, and nobody can read its calls.
    #[error("is not understood: it holds {0}, and Holdfast can not read their calls")]
    NotUnderstood(&'static str),
    /// It is too large.
    #[error("{0}")]
    TooLong(#[from] TooLong),
    /// A repair would have to guess.
    #[error(
        "is one JSON document that is broken in a way that a repair would have to guess; it was not touched"
    )]
    Unclear,
    /// It is one JSON document, and too large for that.
    #[error("is one JSON document of more than {TRANSCRIPT_BYTES_MAX} bytes")]
    DocumentTooLarge,
}

impl Shape {
    /// Refuses what can not be written anew without losing something.
    pub(crate) const fn writable(self) -> Result<Self, ReadError> {
        match self.layout {
            Layout::Document {
                ends: Ends::Unclear,
                ..
            } => Err(ReadError::Unclear),
            _ => Ok(self),
        }
    }
}

/// Reads a transcript into an index.
pub fn index(source: impl Read) -> Result<(Shape, Index), ReadError> {
    index_with(source, ENTRY_BYTES_MAX, false)
}

/// The same for a repair, which asks which results say the same.
pub fn index_to_repair(source: impl Read) -> Result<(Shape, Index), ReadError> {
    index_with(source, ENTRY_BYTES_MAX, true)
}

/// The same, with another bound for lines.
pub(crate) fn index_with(
    source: impl Read,
    line_bytes_max: usize,
    compares_results: bool,
) -> Result<(Shape, Index), ReadError> {
    let mut index = Index::default();
    let shape = entries_with(source, line_bytes_max, compares_results, |entry| {
        let len = u32::try_from(entry.len).unwrap_or(u32::MAX);
        match entry.seen {
            Ok(seen) => index.push(entry.offset, entry.bytes, seen)?,
            Err(why) => index.push_invalid(entry.offset, len, why)?,
        }
        Ok(())
    })?;
    match index.strange() {
        // Calls that were passed over, and none that was read.
        Some(name) if index.items().next().is_none() => Err(ReadError::NotUnderstood(name)),
        _ => Ok((shape, index)),
    }
}

/// Calls back for each entry of a transcript, in order, and says what it is in. Blank lines are no
/// entries.
///
/// ```
/// use holdfast_transcript::{Format, read};
/// let lines = br#"{"role":"user","content":"hi"}
/// {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]}
/// "#;
/// let mut names = Vec::new();
/// let shape = read::entries(&lines[..], |entry| {
///     for block in &entry.seen.unwrap().blocks {
///         names.push(block.name.unwrap().text(entry.bytes).to_str().into_owned());
///     }
///     Ok(())
/// })
/// .unwrap();
/// assert_eq!((shape.format, names), (Format::Anthropic, vec!["read".to_owned()]));
/// ```
pub fn entries(
    source: impl Read,
    entry: impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
) -> Result<Shape, ReadError> {
    entries_with(source, ENTRY_BYTES_MAX, false, entry)
}

fn entries_with(
    source: impl Read,
    line_bytes_max: usize,
    compares_results: bool,
    mut entry: impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
) -> Result<Shape, ReadError> {
    let mut lines = Lines::new(source, line_bytes_max);
    let mut strings = Strings::default();
    let mut too_long = Vec::new();
    lines.fill_to_sniff()?;
    // One line may be longer than that, or too long to be looked at.
    while let Filled::TooLong { offset, len } = lines.fill()? {
        too_long.push((offset, len));
        lines.fill_to_sniff()?;
    }
    let Some(shape) = sniff::shape(&mut lines, &mut strings)? else {
        return Err(ReadError::UnknownFormat);
    };
    let mut reading = Reading {
        format: shape.format,
        strings,
        seen: Seen {
            compares_results,
            ..Seen::default()
        },
        number: 0,
    };
    for (offset, len) in too_long {
        reading.too_long(offset, len, &mut entry)?;
    }
    match shape.layout {
        Layout::Lines => reading.all_lines(&mut lines, &mut entry)?,
        Layout::Document { .. } => reading.document(lines.read_all()?, &mut entry)?,
    }
    Ok(shape)
}

/// Calls back for each line of a source that is in no known format: whether it is JSON is all that
/// can be said of it.
pub(crate) fn lines(
    source: impl Read,
    mut entry: impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
) -> Result<(), ReadError> {
    let mut reading = Reading {
        format: Format::OpenAiChat,
        strings: Strings::default(),
        seen: Seen::default(),
        number: 0,
    };
    reading.all_lines(&mut Lines::new(source, ENTRY_BYTES_MAX), &mut entry)
}

struct Reading {
    format: Format,
    strings: Strings,
    seen: Seen,
    number: u32,
}

impl Reading {
    fn all_lines(
        &mut self,
        lines: &mut Lines<impl Read>,
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        loop {
            match lines.fill()? {
                Filled::Lines => {
                    let (start, chunk) = lines.take();
                    self.lines(start, chunk, entry)?;
                }
                Filled::TooLong { offset, len } => self.too_long(offset, len, entry)?,
                Filled::Nothing => return Ok(()),
            }
        }
    }

    fn lines(
        &mut self,
        start: u64,
        chunk: &[u8],
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        // Checked once for all lines of the chunk; line by line only to find the bad one.
        let is_utf8 = simdutf8::basic::from_utf8(chunk).is_ok();
        // A byte order mark says nothing, and is no part of the first line.
        let mut at = if start == 0 { mark(chunk) } else { 0 };
        while at < chunk.len() {
            let end = memchr::memchr(b'\n', &chunk[at..]).map_or(chunk.len(), |len| at + len);
            let line = &chunk[at..end];
            if !is_blank(line) {
                self.line(start + at as u64, line, is_utf8, entry)?;
            }
            at = end + 1;
        }
        Ok(())
    }

    /// One entry, or what is left of some in one line.
    fn line(
        &mut self,
        offset: u64,
        bytes: &[u8],
        is_utf8: bool,
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let read = self.read(bytes, is_utf8);
        let parts = match read {
            Ok(()) => None,
            Err(why) => glued::parts(self.format, bytes, why),
        };
        let Some(parts) = parts else {
            return self.hand_out(offset, bytes, read, entry);
        };
        for part in parts {
            let (range, read) = match part {
                Part::Entry(range) => {
                    let read = self.read(&bytes[range.clone()], false);
                    (range, read)
                }
                Part::Broken(range, why) => (range, Err(why)),
            };
            self.hand_out(offset + range.start as u64, &bytes[range], read, entry)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        offset: u64,
        bytes: &[u8],
        is_utf8: bool,
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let read = self.read(bytes, is_utf8);
        self.hand_out(offset, bytes, read, entry)
    }

    fn read(&mut self, bytes: &[u8], is_utf8: bool) -> Result<(), Invalid> {
        self.seen.clear();
        if !is_utf8 {
            utf8(bytes)?;
        }
        self.strings.index(bytes)?;
        let mut cursor = Cursor::new(bytes, &self.strings);
        adapter(self.format).read(&mut cursor, &mut self.seen)
    }

    fn hand_out(
        &mut self,
        offset: u64,
        bytes: &[u8],
        read: Result<(), Invalid>,
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        let number = self.next();
        entry(RawEntry {
            number,
            offset,
            len: bytes.len() as u64,
            bytes,
            seen: read.map(|()| &self.seen),
        })
    }

    fn next(&mut self) -> u32 {
        let number = self.number;
        self.number = self.number.saturating_add(1);
        number
    }

    /// A line that nobody looked at.
    fn too_long(
        &mut self,
        offset: u64,
        len: u64,
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        entry(RawEntry {
            number: self.next(),
            offset,
            len,
            bytes: &[],
            seen: Err(Invalid::new(ENTRY_BYTES_MAX, TOO_LONG)),
        })
    }

    fn document(
        &mut self,
        text: &[u8],
        entry: &mut impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
    ) -> Result<(), ReadError> {
        for (item, why) in items(text).all {
            let offset = item.start as u64;
            let Some(why) = why else {
                self.entry(offset, &text[item], false, entry)?;
                continue;
            };
            entry(RawEntry {
                number: self.next(),
                offset,
                len: item.len() as u64,
                bytes: &text[item],
                seen: Err(why),
            })?;
        }
        Ok(())
    }
}

/// What is wrong with an entry of more than [`ENTRY_BYTES_MAX`].
const TOO_LONG: &str = "an entry that is too long";

fn utf8(bytes: &[u8]) -> Result<(), Invalid> {
    std::str::from_utf8(bytes)
        .map(|_| ())
        .map_err(|error| Invalid::new(error.valid_up_to(), "a byte that is not UTF-8"))
}

/// Reads one entry on its own.
pub fn entry(format: Format, bytes: &[u8]) -> Result<Seen, Invalid> {
    let mut strings = Strings::default();
    let mut seen = Seen {
        compares_results: true,
        ..Seen::default()
    };
    if bytes.len() > ENTRY_BYTES_MAX {
        return Err(Invalid::new(ENTRY_BYTES_MAX, TOO_LONG));
    }
    utf8(bytes)?;
    strings.index(bytes)?;
    adapter(format).read(&mut Cursor::new(bytes, &strings), &mut seen)?;
    debug_assert_ne!(seen.kind, Kind::Invalid);
    Ok(seen)
}
