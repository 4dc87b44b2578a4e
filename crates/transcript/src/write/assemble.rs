//! The repaired transcript as bytes, from the old one and a plan. Runs of entries that stay are
//! copied as they are, line ends and all.

use std::io::{self, Read, Seek, SeekFrom, Write};

use crate::index::{Index, Number};
use crate::plan::Plan;
use crate::read::{Ends, Layout, Shape};
use crate::render::{Piece, Texts, pieces};

/// Reads entries from where they stand.
pub(crate) struct Places<'s, S> {
    pub(crate) index: &'s Index,
    pub(crate) source: &'s mut S,
}

impl<S: Read + Seek> Texts for Places<'_, S> {
    fn beginning(&mut self, number: Number, bytes_max: usize) -> io::Result<(Vec<u8>, u64)> {
        let entry = self
            .index
            .entry(number)
            .ok_or_else(|| io::Error::other("no such entry"))?;
        let len = bytes_max.min(entry.len as usize);
        let mut text = Vec::with_capacity(len);
        self.source.seek(SeekFrom::Start(entry.offset))?;
        self.source.take(len as u64).read_to_end(&mut text)?;
        if text.len() == len {
            Ok((text, u64::from(entry.len)))
        } else {
            Err(io::Error::other("the file got shorter while it was read"))
        }
    }
}

/// Writes the repaired transcript.
pub(crate) fn assemble<S: Read + Seek>(
    shape: Shape,
    index: &Index,
    plan: &Plan,
    source: &mut S,
    out: &mut impl Write,
) -> io::Result<()> {
    let total = source.seek(SeekFrom::End(0))?;
    let mut old = Old {
        index,
        total,
        layout: shape.layout,
    };
    // Two readers of one source: pieces are rendered first, runs are copied when they come.
    let mut parts = Vec::new();
    {
        let mut texts = Places {
            index,
            source: &mut *source,
        };
        pieces(shape.format, index, plan, &mut texts, |piece| {
            parts.push(piece);
            Ok(())
        })?;
    }
    match shape.layout {
        Layout::Lines => old.lines(source, parts, out),
        Layout::Document { closers, ends } => {
            shape.writable().map_err(io::Error::other)?;
            old.document(source, parts, (closers, ends), out)
        }
    }
}

struct Old<'o> {
    index: &'o Index,
    total: u64,
    layout: Layout,
}

impl Old<'_> {
    /// Where an entry begins with the blank lines before it, and where its line ends.
    fn line(&self, number: Number) -> (u64, u64) {
        let start = match number.checked_sub(1) {
            None => 0,
            Some(before) => self.line_end(before),
        };
        (start, self.line_end(number))
    }

    /// Behind the line's end: entries are as long as their lines, so one more byte ends it. A line
    /// whose length does not fit into the index ends where the next one begins, and so does an entry
    /// that shares its line.
    fn line_end(&self, number: Number) -> u64 {
        debug_assert_eq!(self.layout, Layout::Lines);
        let next = self.index.entry(number + 1).map(|next| next.offset);
        let next = next.unwrap_or(self.total).min(self.total);
        match self.index.entry(number) {
            Some(entry) if entry.len != u32::MAX => {
                next.min(entry.offset + u64::from(entry.len) + 1)
            }
            _ => next,
        }
    }

    fn lines<S: Read + Seek>(
        &mut self,
        source: &mut S,
        parts: Vec<Piece>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let (mut ended, mut is_last) = (true, true);
        for piece in parts {
            if !ended {
                out.write_all(b"\n")?;
            }
            match piece {
                Piece::Same(range) => {
                    let (start, _) = self.line(range.start);
                    let (_, end) = self.line(range.end - 1);
                    copy(source, start, end, out)?;
                    ended = Self::is_ended(source, end)?;
                    is_last = end == self.total;
                }
                Piece::Altered(number, text) | Piece::Moved(number, text) => {
                    out.write_all(&text)?;
                    // The line keeps its own end; a last line without one gets none.
                    let (_, end) = self.line(number);
                    let len = self
                        .index
                        .entry(number)
                        .map_or(0, |it| it.offset + u64::from(it.len));
                    copy(source, len.min(end), end, out)?;
                    ended = Self::is_ended(source, end)?;
                    is_last = end == self.total;
                }
                Piece::Made(text) => {
                    out.write_all(&text)?;
                    out.write_all(b"\n")?;
                    ended = true;
                }
            }
        }
        if !ended && !is_last {
            // It shared its line with what went: the next entry must not be glued to it again.
            out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Whether the byte before a place ends a line.
    fn is_ended<S: Read + Seek>(source: &mut S, end: u64) -> io::Result<bool> {
        let Some(last) = end.checked_sub(1) else {
            return Ok(true);
        };
        let mut byte = [0];
        source.seek(SeekFrom::Start(last))?;
        source.read_exact(&mut byte)?;
        Ok(byte == *b"\n")
    }

    fn document<S: Read + Seek>(
        &mut self,
        source: &mut S,
        parts: Vec<Piece>,
        (closers, ends): (u8, Ends),
        out: &mut impl Write,
    ) -> io::Result<()> {
        let span = |number: Number| {
            let entry = self.index.entry(number);
            entry.map_or((self.total, self.total), |entry| {
                (entry.offset, entry.offset + u64::from(entry.len))
            })
        };
        let count = Number::try_from(self.index.len()).unwrap_or(Number::MAX);
        let (first, _) = span(0);
        copy(source, 0, first, out)?;
        let mut between: Option<(u64, u64)> = (count > 1).then(|| (span(0).1, span(1).0));
        // Beside a broken item there may be more, or less, than a comma.
        let is_sure = self.index.invalid().first().is_none_or(|(at, _)| *at > 1);
        between = between.filter(|_| is_sure);
        let mut written = false;
        for piece in parts {
            if written {
                match between.take_if(|_| matches!(piece, Piece::Same(_))) {
                    Some((start, end)) => {
                        between = Some((start, end));
                        copy(source, start, end, out)?;
                    }
                    None => out.write_all(b",")?,
                }
            }
            written = true;
            match piece {
                Piece::Same(range) => {
                    copy(source, span(range.start).0, span(range.end - 1).1, out)?;
                }
                Piece::Altered(_, text) | Piece::Moved(_, text) | Piece::Made(text) => {
                    out.write_all(&text)?;
                }
            }
        }
        // A document that broke off is closed; any other one ends as it did.
        if ends == Ends::BrokenOff {
            let closing: &[u8] = if closers > 1 { b"]}" } else { b"]" };
            return out.write_all(closing);
        }
        let last = count.saturating_sub(1);
        copy(source, span(last).1, self.total, out)
    }
}

fn copy<S: Read + Seek>(
    source: &mut S,
    start: u64,
    end: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    source.seek(SeekFrom::Start(start))?;
    let copied = io::copy(&mut source.take(end - start), out)?;
    if copied == end - start {
        Ok(())
    } else {
        Err(io::Error::other("the file got shorter while it was read"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::READ_BYTES;
    use crate::plan::{Strategy, plan};
    use crate::read;
    use crate::write::write_plan;
    use crate::{adapter, check::Fault, check::check};

    const USER: &str = r#"{"role":"user","content":"hi"}"#;
    const ORPHAN: &str = r#"{"role":"tool","tool_call_id":"x","content":"lost"}"#;

    fn repaired(index: &Index, shape: Shape, source: &mut (impl Read + Seek)) -> String {
        let pairing = adapter::adapter(shape.format).pairing();
        let plan = plan(index, pairing, Strategy::RemoveOrphans);
        let mut out = Vec::new();
        write_plan(shape, index, &plan, source, &mut out).expect("writes");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn a_line_that_is_too_long_is_a_finding_and_costs_nothing_else() {
        let long = "x".repeat(2 * READ_BYTES);
        let max = READ_BYTES + 1;
        for (text, at) in [
            (format!("{USER}\n{ORPHAN}\n{long}\n\n{USER}\n"), 2),
            (format!("{long}\n{USER}\n{ORPHAN}\n{USER}\n"), 0),
            (format!("{USER}\n{ORPHAN}\n{USER}\n{long}"), 3),
        ] {
            let (shape, index) = read::index_with(text.as_bytes(), max, true).expect("a session");
            let pairing = adapter::adapter(shape.format).pairing();
            let found = check(&index, pairing);
            let faults: Vec<_> = found.iter().map(|it| (it.entry, it.fault)).collect();
            assert!(faults.contains(&(at, Fault::InvalidLine)), "{faults:?}");
            assert_eq!(faults.len(), 2, "{faults:?}");
            let whole = repaired(&index, shape, &mut io::Cursor::new(&text));
            let lines: Vec<&str> = whole.lines().filter(|line| !line.is_empty()).collect();
            assert_eq!(lines, [USER, USER]);
        }
    }

    #[test]
    fn a_line_of_more_than_four_gigabytes_ends_where_the_next_one_begins() {
        const LEN: u64 = 5_000_000_000;
        let mut file = tempfile::tempfile().expect("a file");
        let first = format!("{USER}\n");
        file.write_all(first.as_bytes()).expect("writes");
        // A hole: it takes no room on a disk.
        let behind = first.len() as u64 + LEN + 1;
        file.seek(SeekFrom::Start(behind - 1)).expect("seeks");
        file.write_all(format!("\n{USER}\n").as_bytes())
            .expect("writes");
        let seen = read::entry(crate::Format::OpenAiChat, USER.as_bytes()).expect("JSON");
        let mut index = Index::default();
        let why = crate::json::Invalid::new(0, "too long");
        index.push(0, USER.as_bytes(), &seen).expect("fits");
        index
            .push_invalid(first.len() as u64, u32::MAX, why)
            .expect("fits");
        index.push(behind, USER.as_bytes(), &seen).expect("fits");
        let shape = Shape {
            format: crate::Format::OpenAiChat,
            layout: Layout::Lines,
        };
        let whole = repaired(&index, shape, &mut file);
        assert_eq!(whole, format!("{USER}\n{USER}\n"));
    }
}
