//! An export, line by line. The file is foreign: every line is bounded, checked and named by its
//! number when it is wrong.

use std::io::{BufRead, Read};

use holdfast_contract::MemoryRecord;

use super::format::{Header, read_header, read_record};
use crate::check::check_record;

/// One line. The longest record fits with room to spare.
pub const EXPORT_LINE_BYTES_MAX: usize = 1024 * 1024;

/// A line that can not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}{}", imported(*.records))]
pub struct LineError {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub reason: String,
    /// Records before it that were read and kept.
    pub records: u64,
}

fn imported(records: u64) -> String {
    match records {
        0 => String::new(),
        1 => " (the record before it is in)".to_owned(),
        several => format!(" (the {several} records before it are in)"),
    }
}

impl LineError {
    /// The same, after so many records that were kept.
    #[must_use]
    pub fn after(self, records: u64) -> Self {
        Self { records, ..self }
    }
}

/// The records of an export.
pub struct ImportReader<R> {
    source: R,
    header: Header,
    version: u64,
    line: u64,
    records: u64,
    done: bool,
}

impl<R: BufRead> ImportReader<R> {
    /// Reads the first line.
    pub fn new(mut source: R) -> Result<Self, LineError> {
        let failed = |reason: String| LineError {
            line: 1,
            reason,
            records: 0,
        };
        let first = read_line(&mut source).map_err(failed)?;
        let first = first.ok_or_else(|| failed("the file is empty".to_owned()))?;
        let text = first.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&first);
        let (header, version) = read_header(text).map_err(failed)?;
        Ok(Self {
            source,
            header,
            version,
            line: 1,
            records: 0,
            done: false,
        })
    }

    /// What the first line says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    fn next_record(&mut self) -> Result<Option<MemoryRecord>, String> {
        loop {
            self.line += 1;
            let Some(line) = read_line(&mut self.source)? else {
                return self.end().map(|()| None);
            };
            if line.trim_ascii().is_empty() {
                continue;
            }
            let record = read_record(&line, self.version)?;
            check_record(&record).map_err(|error| match error {
                holdfast_contract::MemoryError::Invalid { field, reason } => {
                    format!("{field}: {reason}")
                }
                other => other.to_string(),
            })?;
            self.records += 1;
            return Ok(Some(record));
        }
    }

    /// A file that was cut between two lines is still a cut file.
    fn end(&self) -> Result<(), String> {
        match self.header.records {
            Some(promised) if promised != self.records => Err(format!(
                "the file ends after {} records, and its first line promises {promised}: it was \
                 cut, or joined with another",
                self.records
            )),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Iterator for ImportReader<R> {
    type Item = Result<MemoryRecord, LineError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.next_record();
        self.done = !matches!(next, Ok(Some(_)));
        match next {
            Ok(record) => record.map(Ok),
            Err(reason) => Some(Err(LineError {
                line: self.line,
                reason,
                records: 0,
            })),
        }
    }
}

/// The next line without its end, or none at the end of the file.
fn read_line(source: &mut impl BufRead) -> Result<Option<Vec<u8>>, String> {
    let mut line = Vec::new();
    let read = source
        .by_ref()
        .take(EXPORT_LINE_BYTES_MAX as u64 + 1)
        .read_until(b'\n', &mut line)
        .map_err(|error| format!("it can not be read: {error}"))?;
    if read == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > EXPORT_LINE_BYTES_MAX {
        return Err(format!("it is longer than {EXPORT_LINE_BYTES_MAX} bytes"));
    }
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = r#"{"schema_version":2,"exported_at":"2026-02-20T08:00:00Z","agent":"a","record_types":["fact"],"records":2}"#;

    fn record(id: &str) -> String {
        format!(
            r#"{{"id":"{id}","memory_type":"fact","content":"c","session_id":"s","created_at":"2026-02-20T08:00:00Z","trust":"user"}}"#
        )
    }

    fn read(text: &str) -> Result<Vec<MemoryRecord>, LineError> {
        ImportReader::new(text.as_bytes())?.collect()
    }

    #[test]
    fn lines_are_read_however_they_end() {
        let (a, b) = (record("a"), record("b"));
        for text in [
            format!("{HEADER}\n{a}\n{b}\n"),
            format!("{HEADER}\n{a}\n{b}"),
            format!("\u{feff}{HEADER}\r\n{a}\r\n\r\n{b}\r\n\n"),
        ] {
            assert_eq!(read(&text).unwrap().len(), 2);
        }
    }

    #[test]
    fn a_bad_line_is_named() {
        let good = record("a");
        let long = "x".repeat(EXPORT_LINE_BYTES_MAX + 1);
        for (text, line, reason) in [
            (String::new(), 1, "empty"),
            ("hello".to_owned(), 1, "expected"),
            (format!("{HEADER}\n{good}\n"), 3, "ends after 1 records"),
            (format!("{HEADER}\n{good}\n{{\"id\""), 3, "EOF"),
            (
                format!("{HEADER}\n\n{good}\nnull\n"),
                4,
                "not a JSON object",
            ),
            (format!("{HEADER}\n{long}"), 2, "longer than"),
            (format!("{HEADER}\n{}\n", record("")), 2, "id: it is empty"),
        ] {
            let error = read(&text).unwrap_err();
            assert_eq!(error.line, line, "{error}");
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
