//! Whole lines from a source, with one buffer for all of them.

use std::cell::Cell;
use std::io::{self, Read};

use crate::limits::{READ_BYTES, TRANSCRIPT_BYTES_MAX};
use crate::read::ReadError;

/// See the [module](self).
pub(crate) struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
    /// The bytes of whole lines at the front of the buffer.
    whole: usize,
    /// The bytes at the front that were handed out already.
    used: usize,
    filled: usize,
    /// Where the buffer begins in the source.
    offset: u64,
    is_at_end: bool,
    /// A longer line is passed over.
    line_bytes_max: usize,
}

/// What came of reading on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// There is at least one whole line.
    Lines,
    /// There was a line that is too long; it was passed over.
    TooLong {
        /// Its first byte.
        offset: u64,
        /// Its length, without the line's end.
        len: u64,
    },
    /// Nothing is left.
    Nothing,
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
    pub(crate) fn new(source: R, line_bytes_max: usize) -> Self {
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
            line_bytes_max,
        }
    }

    /// Reads as much as the format is told from, or all of a shorter source. Whatever was read
    /// before in this buffer, and however little a pipe gives at a time, the same bytes are looked at.
    pub(crate) fn fill_to_sniff(&mut self) -> Result<(), ReadError> {
        self.make_room();
        if self.buffer.len() < READ_BYTES {
            self.buffer.resize(READ_BYTES, 0);
        }
        while !self.is_at_end && self.filled < READ_BYTES {
            self.read()?;
        }
        self.whole = match memchr::memrchr(b'\n', &self.buffer[..self.filled]) {
            _ if self.is_at_end => self.filled,
            Some(last) => last + 1,
            None => 0,
        };
        Ok(())
    }

    /// Reads until there is at least one whole line.
    pub(crate) fn fill(&mut self) -> Result<Filled, ReadError> {
        if self.whole > self.used {
            return Ok(Filled::Lines);
        }
        self.make_room();
        while !self.is_at_end && self.whole == 0 {
            if self.filled > self.line_bytes_max {
                if self.offset > 0 || !self.is_list() {
                    return self.pass_over();
                }
                // No line, but a document: all of it is read at once.
                break;
            }
            self.grow();
            let new = self.read()?;
            if let Some(last) = memchr::memrchr(b'\n', &self.buffer[new.clone()]) {
                self.whole = new.start + last + 1;
            }
        }
        if self.whole == 0 {
            self.whole = self.filled;
        }
        Ok(match self.whole {
            0 => Filled::Nothing,
            _ => Filled::Lines,
        })
    }

    /// Reads once, and says where in the buffer the new bytes are.
    fn read(&mut self) -> Result<std::ops::Range<usize>, ReadError> {
        loop {
            match self.source.read(&mut self.buffer[self.filled..]) {
                Ok(read) => {
                    self.is_at_end = read == 0;
                    let start = self.filled;
                    self.filled += read;
                    return Ok(start..self.filled);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Moves what was not handed out to the front.
    fn make_room(&mut self) {
        self.buffer.copy_within(self.used..self.filled, 0);
        self.filled -= self.used;
        self.offset += self.used as u64;
        self.whole = self.whole.saturating_sub(self.used);
        self.used = 0;
    }

    /// Makes room for more of a line. In small steps: a long line should not cost twice its length.
    fn grow(&mut self) {
        if self.filled == self.buffer.len() {
            let more = READ_BYTES.max(self.filled / 8);
            self.buffer.reserve_exact(more);
            self.buffer.resize(self.filled + more, 0);
        }
    }

    /// Goes to the end of the line at the front of the buffer, which is too long.
    fn pass_over(&mut self) -> Result<Filled, ReadError> {
        let offset = self.offset;
        let mut len = self.filled as u64;
        self.buffer.truncate(READ_BYTES);
        self.buffer.shrink_to_fit();
        while !self.is_at_end {
            self.offset = offset + len;
            self.filled = 0;
            let new = self.read()?;
            let Some(end) = memchr::memchr(b'\n', &self.buffer[new.clone()]) else {
                len += new.len() as u64;
                continue;
            };
            len += end as u64;
            self.used = end + 1;
            let last = memchr::memrchr(b'\n', &self.buffer[new]).unwrap_or(end);
            self.whole = last + 1;
            return Ok(Filled::TooLong { offset, len });
        }
        (self.filled, self.used, self.whole) = (0, 0, 0);
        Ok(Filled::TooLong { offset, len })
    }

    /// The whole lines in the buffer, and where they begin in the source.
    pub(crate) fn take(&mut self) -> (u64, &[u8]) {
        let lines = self.used..self.whole;
        self.used = self.whole;
        (self.offset + lines.start as u64, &self.buffer[lines])
    }

    /// The whole lines that `take` would give, and whether the source begins with them.
    pub(crate) fn peek(&self) -> (&[u8], bool) {
        (&self.buffer[self.used..self.whole], self.offset == 0)
    }

    /// Whether what is in the buffer begins like a list.
    pub(crate) fn is_list(&self) -> bool {
        let text = &self.buffer[self.used..self.filled];
        let mut signs = text[mark(text)..].iter();
        signs.find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[')
    }

    /// Reads the rest into the buffer.
    pub(crate) fn read_all(&mut self) -> Result<&[u8], ReadError> {
        self.buffer.truncate(self.filled);
        let room = TRANSCRIPT_BYTES_MAX.saturating_sub(self.filled as u64);
        (&mut self.source)
            .take(room + 1)
            .read_to_end(&mut self.buffer)?;
        if self.buffer.len() as u64 > TRANSCRIPT_BYTES_MAX {
            return Err(ReadError::DocumentTooLarge);
        }
        self.filled = self.buffer.len();
        self.whole = self.filled;
        self.is_at_end = true;
        Ok(&self.buffer)
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

pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.first().is_none_or(|byte| *byte <= b' ') && line.iter().all(u8::is_ascii_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read from a text when lines may have so many bytes.
    fn read(text: &[u8], max: usize) -> Vec<(u64, Result<String, u64>)> {
        let mut lines = Lines::new(text, max);
        let mut all = Vec::new();
        loop {
            match lines.fill().expect("reads") {
                Filled::Nothing => return all,
                Filled::TooLong { offset, len } => all.push((offset, Err(len))),
                Filled::Lines => {
                    let (offset, text) = lines.take();
                    all.push((offset, Ok(String::from_utf8_lossy(text).into_owned())));
                }
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_passed_over_and_the_rest_is_read() {
        let long = "x".repeat(3 * READ_BYTES);
        let max = READ_BYTES + 10;
        let len = long.len() as u64;
        let ok = |text: &str| Ok(text.to_owned());
        let cases = [
            (
                format!("a\n{long}\nb\nc\n"),
                vec![(0, ok("a\n")), (2, Err(len)), (3 + len, ok("b\nc\n"))],
            ),
            (
                format!("{long}\nb"),
                vec![(0, Err(len)), (1 + len, ok("b"))],
            ),
            (format!("a\n{long}"), vec![(0, ok("a\n")), (2, Err(len))]),
            (
                format!("{long}\n\n{long}\n"),
                vec![(0, Err(len)), (1 + len, ok("\n")), (2 + len, Err(len))],
            ),
            (long.clone(), vec![(0, Err(len))]),
        ];
        for (text, expected) in cases {
            assert_eq!(read(text.as_bytes(), max), expected);
        }
    }
}
