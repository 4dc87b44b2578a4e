//! From bytes to entries: lines, or the items of one JSON document, in the format they are in.

use std::cell::Cell;
use std::io::{self, Read};

use crate::adapter::adapter;
pub use crate::document::Ends;
use crate::document::items;
use crate::format::{Format, Hint, hint};
use crate::index::{Index, TooLong};
use crate::json::{Cursor, Invalid, Strings};
use crate::limits::{ENTRY_BYTES_MAX, READ_BYTES, SNIFF_ENTRIES_MAX, TRANSCRIPT_BYTES_MAX};
use crate::seen::{Kind, Seen};

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
    /// Its bytes, without the end of the line.
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
    /// It is too large.
    #[error("{0}")]
    TooLong(#[from] TooLong),
    /// One of its lines is too long.
    #[error("has a line of more than {ENTRY_BYTES_MAX} bytes")]
    LineTooLong,
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
    let mut index = Index::default();
    let shape = entries(source, |entry| {
        let len = u32::try_from(entry.bytes.len()).unwrap_or(u32::MAX);
        match entry.seen {
            Ok(seen) => index.push(entry.offset, entry.bytes, seen)?,
            Err(why) => index.push_invalid(entry.offset, len, why)?,
        }
        Ok(())
    })?;
    Ok((shape, index))
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
    mut entry: impl FnMut(RawEntry<'_>) -> Result<(), ReadError>,
) -> Result<Shape, ReadError> {
    let mut lines = Lines::new(source);
    let mut strings = Strings::default();
    lines.fill_to_sniff()?;
    // One line may be longer than that.
    lines.fill()?;
    let Some(shape) = lines.shape(&mut strings)? else {
        return Err(ReadError::UnknownFormat);
    };
    let mut reading = Reading {
        format: shape.format,
        strings,
        seen: Seen::default(),
        number: 0,
    };
    match shape.layout {
        Layout::Lines => {
            while lines.fill()? {
                let (start, chunk) = lines.take();
                reading.lines(start, chunk, &mut entry)?;
            }
        }
        Layout::Document { .. } => {
            lines.read_all()?;
            reading.document(&lines.buffer, &mut entry)?;
        }
    }
    Ok(shape)
}

struct Reading {
    format: Format,
    strings: Strings,
    seen: Seen,
    number: u32,
}

impl Reading {
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
                self.entry(start + at as u64, line, is_utf8, entry)?;
            }
            at = end + 1;
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
        self.seen.clear();
        let read = if is_utf8 { Ok(()) } else { utf8(bytes) }
            .and_then(|()| self.strings.index(bytes))
            .and_then(|()| {
                let mut cursor = Cursor::new(bytes, &self.strings);
                adapter(self.format).read(&mut cursor, &mut self.seen)
            });
        let number = self.number;
        self.number = self.number.saturating_add(1);
        entry(RawEntry {
            number,
            offset,
            bytes,
            seen: read.map(|()| &self.seen),
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
            let number = self.number;
            self.number = self.number.saturating_add(1);
            entry(RawEntry {
                number,
                offset,
                bytes: &text[item],
                seen: Err(why),
            })?;
        }
        Ok(())
    }
}

/// The length of the byte order mark that a text begins with.
pub(crate) fn mark(text: &[u8]) -> usize {
    const MARK: &[u8] = b"\xef\xbb\xbf";
    if text.starts_with(MARK) {
        MARK.len()
    } else {
        0
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.first().is_none_or(|byte| *byte <= b' ') && line.iter().all(u8::is_ascii_whitespace)
}

fn utf8(bytes: &[u8]) -> Result<(), Invalid> {
    std::str::from_utf8(bytes)
        .map(|_| ())
        .map_err(|error| Invalid::new(error.valid_up_to(), "a byte that is not UTF-8"))
}

/// Whole lines from a source, with one buffer for all of them.
struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The bytes of whole lines at the front of the buffer.
    whole: usize,
    /// The bytes at the front that were handed out already.
    used: usize,
    filled: usize,
    offset: u64,
    is_at_end: bool,
}

thread_local! {
    /// The buffer of the last source: with many small files, clearing a new one for each would cost
    /// more than reading them.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

impl<R> Drop for Lines<R> {
    fn drop(&mut self) {
        if self.buffer.capacity() <= 2 * READ_BYTES {
            SPARE.set(std::mem::take(&mut self.buffer));
        }
    }
}

impl<R: Read> Lines<R> {
    fn new(source: R) -> Self {
        let mut buffer = SPARE.take();
        // A short document left it short: the format is told from what fits into the first read.
        buffer.resize(buffer.len().max(READ_BYTES), 0);
        Self {
            source,
            buffer,
            whole: 0,
            used: 0,
            filled: 0,
            offset: 0,
            is_at_end: false,
        }
    }

    /// Reads as much as the format is told from, or all of a shorter source. Whatever was read
    /// before in this buffer, and however little a pipe gives at a time, the same bytes are looked at.
    fn fill_to_sniff(&mut self) -> Result<(), ReadError> {
        if self.buffer.len() < READ_BYTES {
            self.buffer.resize(READ_BYTES, 0);
        }
        while !self.is_at_end && self.filled < READ_BYTES {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => self.filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        let lines = memchr::memrchr(b'\n', &self.buffer[..self.filled]);
        self.whole = match lines {
            Some(last) if !self.is_at_end => last + 1,
            _ if self.is_at_end => self.filled,
            _ => 0,
        };
        Ok(())
    }

    /// Reads until there is at least one whole line; false at the end.
    fn fill(&mut self) -> Result<bool, ReadError> {
        if self.whole > self.used {
            return Ok(true);
        }
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.offset += self.used as u64;
        (self.used, self.whole) = (0, 0);
        while !self.is_at_end && self.whole == 0 {
            if self.filled > ENTRY_BYTES_MAX {
                return Err(ReadError::LineTooLong);
            }
            self.grow();
            let read = match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            self.is_at_end = read == 0;
            let new = self.filled..self.filled + read;
            self.filled = new.end;
            if let Some(last) = memchr::memrchr(b'\n', &self.buffer[new.clone()]) {
                self.whole = new.start + last + 1;
            }
        }
        if self.whole == 0 {
            self.whole = self.filled;
        }
        Ok(self.whole > 0)
    }

    /// Makes room for more of a line. In small steps: a long line should not cost twice its length.
    fn grow(&mut self) {
        if self.filled == self.buffer.len() {
            let more = READ_BYTES.max(self.filled / 8);
            self.buffer.reserve_exact(more);
            self.buffer.resize(self.filled + more, 0);
        }
    }

    /// The whole lines in the buffer, and where they begin in the source.
    fn take(&mut self) -> (u64, &[u8]) {
        let lines = self.used..self.whole;
        self.used = self.whole;
        (self.offset + lines.start as u64, &self.buffer[lines])
    }

    /// Reads the rest into the buffer.
    fn read_all(&mut self) -> Result<(), ReadError> {
        self.buffer.truncate(self.filled);
        let room = TRANSCRIPT_BYTES_MAX - self.filled as u64;
        (&mut self.source)
            .take(room + 1)
            .read_to_end(&mut self.buffer)?;
        if self.buffer.len() as u64 > TRANSCRIPT_BYTES_MAX {
            return Err(ReadError::DocumentTooLarge);
        }
        self.filled = self.buffer.len();
        self.whole = self.filled;
        self.is_at_end = true;
        Ok(())
    }

    /// Finds out what the source is in, from what is in the buffer. Reads all of a source that
    /// seems to be a document.
    fn shape(&mut self, strings: &mut Strings) -> Result<Option<Shape>, ReadError> {
        let mut votes = Votes::default();
        let mut lines = 0_u32;
        let text = &self.buffer[mark(&self.buffer[..self.whole])..self.whole];
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
        let first = text.iter().find(|byte| !byte.is_ascii_whitespace());
        let by_lines = votes.winner().map(|format| Shape {
            format,
            layout: Layout::Lines,
        });
        // No entry begins like a list, and of a document over several lines at most one is whole.
        let is_list = first == Some(&b'[');
        if is_list || by_lines.is_none() || (votes.broken > 0 && votes.broken + 1 >= lines) {
            self.read_all()?;
            return Ok(match document_shape(&self.buffer, strings, is_list) {
                Some(shape) => Some(shape),
                None => by_lines,
            });
        }
        Ok(by_lines)
    }
}

/// What entries said about their format.
#[derive(Debug, Default)]
struct Votes {
    sure: [u32; Format::ALL.len()],
    maybe: [u32; Format::ALL.len()],
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
            Hint::Wrapped => self.wrapped += 1,
            Hint::Nothing => self.nothing += 1,
        }
    }

    /// Whether nothing that follows could change the outcome much.
    fn is_settled(&self) -> bool {
        // Three that are sure, and nobody who is sure of something else.
        let sure: u32 = self.sure.iter().sum();
        sure >= 3 && self.sure.contains(&sure)
    }

    fn winner(&self) -> Option<Format> {
        let most = |votes: &[u32; 6]| {
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
fn document_shape(text: &[u8], strings: &mut Strings, is_list: bool) -> Option<Shape> {
    let items = items(text);
    let is_short = items.whole().nth(1).is_none();
    if !items.is_list() || (items.is_broken() && !is_list && is_short) {
        return None;
    }
    let mut votes = Votes::default();
    for item in items.whole().take(SNIFF_ENTRIES_MAX) {
        votes.count(&text[item], strings);
    }
    // A list without messages is a transcript without messages.
    let empty = items.all.is_empty();
    let format = votes.winner().or(empty.then_some(Format::OpenAiChat))?;
    Some(Shape {
        format,
        layout: Layout::Document {
            closers: items.closers,
            ends: items.ends,
        },
    })
}

/// Reads one entry on its own.
pub fn entry(format: Format, bytes: &[u8]) -> Result<Seen, Invalid> {
    let mut strings = Strings::default();
    let mut seen = Seen::default();
    if bytes.len() > ENTRY_BYTES_MAX {
        return Err(Invalid::new(ENTRY_BYTES_MAX, "an entry that is too long"));
    }
    utf8(bytes)?;
    strings.index(bytes)?;
    adapter(format).read(&mut Cursor::new(bytes, &strings), &mut seen)?;
    debug_assert_ne!(seen.kind, Kind::Invalid);
    Ok(seen)
}
