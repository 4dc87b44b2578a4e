//! What is wrong, in words: for people, for `--json`, and for the incident log.

use std::io::{self, Read, Seek, SeekFrom};

use crate::check::{Fault, Found};
use crate::format::Format;
use crate::host;
use crate::index::{Entry, Index, Link, Number};
use crate::json::Invalid;
use crate::limits::READ_BYTES;
use crate::read::{self, Shape};
use crate::seen::{Kind, Seen};

/// One finding. Its members are the interface of `holdfast scan --json`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The file; for a store, the file, a `#` and the session.
    pub file: String,
    /// What is wrong.
    #[serde(rename = "type")]
    pub fault: Fault,
    /// The entry's number, from 0.
    pub entry: u32,
    /// The entry's first byte in the file; in a store, its sequence number.
    pub offset: u64,
    /// The line that the entry begins in, from 1, for people; none in a store.
    #[serde(skip)]
    pub line: Option<u64>,
    /// The call's id, or the id of the parent that is not there.
    pub id: Option<String>,
    /// What is wrong and what comes of it, in one line.
    pub description: String,
}

/// Where a finding's words come from.
pub(crate) struct Words<'w> {
    pub(crate) file: &'w str,
    pub(crate) format: Format,
    pub(crate) index: &'w Index,
}

impl Words<'_> {
    /// Puts what was found into words. Each entry is asked for and read once, however much was found
    /// in it, and those that can not be read are not asked for.
    pub(crate) fn findings(
        &self,
        found: &[Found],
        mut text: impl FnMut(&Entry, Number, &mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<Vec<Finding>> {
        let mut buffer = Vec::new();
        let mut findings = Vec::with_capacity(found.len());
        for of_entry in found.chunk_by(|one, next| one.entry == next.entry) {
            let number = of_entry.first().map_or(0, |found| found.entry);
            let Some(entry) = self.index.entry(number) else {
                continue;
            };
            buffer.clear();
            let mut seen = None;
            if entry.kind != Kind::Invalid {
                text(&entry, number, &mut buffer)?;
                seen = read::entry(self.format, &buffer).ok();
            }
            let put = |found: &Found| self.finding(*found, &buffer, seen.as_ref());
            findings.extend(of_entry.iter().map(put));
        }
        Ok(findings)
    }

    /// A finding in an entry that was read already.
    fn finding(&self, found: Found, text: &[u8], seen: Option<&Seen>) -> Finding {
        let entry = self.index.entry(found.entry);
        let id = seen.and_then(|seen| self.id(found, seen, text));
        let (what, outcome) = words(self.format, found, id.as_deref());
        let what = match self
            .index
            .invalid()
            .binary_search_by_key(&found.entry, |it| it.0)
        {
            Ok(at) if found.fault == Fault::InvalidLine => {
                format!("{what}: {}", self.index.invalid()[at].1)
            }
            _ => what,
        };
        Finding {
            file: self.file.to_owned(),
            fault: found.fault,
            entry: found.entry,
            offset: entry.map_or(0, |entry| entry.offset),
            line: None,
            id,
            description: format!("{what}; {outcome}"),
        }
    }

    fn is_linked(&self, found: Found) -> bool {
        let entry = self.index.entry(found.entry);
        entry.is_some_and(|it| it.kind == Kind::Compaction && it.link != Link::Broken)
    }

    fn id(&self, found: Found, seen: &Seen, text: &[u8]) -> Option<String> {
        let span = match found.item {
            Some(item) => {
                let first = self.index.items_of(found.entry).start;
                seen.blocks.get(item as usize - first)?.id?
            }
            // Its parent is there: what is not is the entry that a compaction keeps.
            None if self.is_linked(found) => seen.kept?,
            None => match seen.parent {
                crate::seen::Parent::Named(span) => span,
                _ => return None,
            },
        };
        Some(span.text(text).to_str().into_owned())
    }
}

/// What is wrong and what comes of it, in one line.
pub(crate) fn in_words(format: Format, found: Found, id: Option<&str>) -> String {
    let (what, outcome) = words(format, found, id);
    format!("{what}; {outcome}")
}

/// What is wrong, and what the agent or the provider that the format belongs to does about it.
fn words(format: Format, found: Found, id: Option<&str>) -> (String, String) {
    let id = id.unwrap_or("(none)");
    let what = match found.fault {
        Fault::InvalidLine => "this is not a JSON entry".to_owned(),
        Fault::BrokenParent => format!("it continues {id}, which is not there"),
        Fault::OrphanedToolResult if found.is_compacted => {
            format!("the result of {id}, whose call was compacted away")
        }
        Fault::OrphanedToolResult => format!("the result of {id}, which nobody called"),
        Fault::MisplacedToolResult => format!("the result of {id} does not follow its call"),
        Fault::DuplicateToolResult => format!("another result of {id}"),
        Fault::MissingToolResult => format!("the call {id} has no result"),
        Fault::DuplicateToolCallId => format!("the call id {id} was used before"),
    };
    (what, host::outcome(format, found.fault, id))
}

/// Puts what was found into words. The entries are read once more: nothing of their text was kept.
pub fn describe(
    file: &str,
    shape: Shape,
    index: &Index,
    found: &[Found],
    source: &mut (impl Read + Seek),
) -> io::Result<Vec<Finding>> {
    let words = Words {
        file,
        format: shape.format,
        index,
    };
    let mut findings = words.findings(found, |entry, _, text| {
        source.seek(SeekFrom::Start(entry.offset))?;
        source.take(u64::from(entry.len)).read_to_end(text)?;
        Ok(())
    })?;
    count_lines(&mut findings, source)?;
    Ok(findings)
}

/// Finds out in which line each finding is. They come in the order of their places.
pub(crate) fn count_lines(
    findings: &mut [Finding],
    source: &mut (impl Read + Seek),
) -> io::Result<()> {
    source.seek(SeekFrom::Start(0))?;
    let mut buffer = vec![0; READ_BYTES];
    let (mut line, mut offset, mut chunk) = (1, 0_u64, 0..0);
    for finding in findings {
        while offset < finding.offset {
            if chunk.is_empty() {
                chunk = 0..source.read(&mut buffer)?;
            }
            if chunk.is_empty() {
                // It got shorter meanwhile.
                return Ok(());
            }
            let wanted = usize::try_from(finding.offset - offset).unwrap_or(usize::MAX);
            let part = chunk.start..chunk.end.min(chunk.start.saturating_add(wanted));
            line += memchr::memchr_iter(b'\n', &buffer[part.clone()]).count() as u64;
            offset += part.len() as u64;
            chunk.start = part.end;
        }
        finding.line = Some(line);
    }
    Ok(())
}

/// What is wrong with a line that is not JSON.
pub(crate) fn of_invalid(format: Format, why: Invalid) -> String {
    let (what, outcome) = words(format, INVALID, None);
    format!("{what}: {why}; {outcome}")
}

const INVALID: Found = Found {
    entry: 0,
    item: None,
    fault: Fault::InvalidLine,
    call: None,
    is_compacted: false,
};
