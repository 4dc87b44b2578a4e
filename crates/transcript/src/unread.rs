//! Files that are in no known format. One that was meant to be a session is never passed over in
//! silence: its agent can not load it either.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use serde_json::Deserializer;
use serde_json::value::RawValue;

use crate::check::Fault;
use crate::discover::{Candidate, Claim};
use crate::finding::{self, Finding};
use crate::format::{Format, Hint, hint};
use crate::json::Strings;
use crate::limits::READ_BYTES;
use crate::read::{self, ReadError};

/// What a file is that is in no known format.
#[derive(Debug)]
pub(crate) enum Unread {
    /// White space: a session that nothing was said in yet.
    Blank,
    /// A session of which nothing can be read: the lines that are not JSON.
    Broken(Vec<Finding>),
    /// What is left of something that can not be told line by line, and what it was.
    Rest(&'static str),
    /// Whole, and no transcript.
    SomethingElse,
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

/// Whether a file that is in no known format was a session, so that it may be begun anew.
pub(crate) fn was_session(path: &Path) -> Result<bool, ReadError> {
    if ending(path) != Some("jsonl") {
        return Ok(damage(path)? != Damage::None);
    }
    Ok(matches!(lines(path)?, Unread::Blank | Unread::Broken(_)))
}

/// Finds out what a file is that is in no known format.
pub(crate) fn look(candidate: &Candidate) -> Result<Unread, ReadError> {
    let path = &candidate.path;
    let ending = ending(path);
    if ending == Some("sqlite") {
        return Ok(Unread::Rest(
            "is not a database, though it is named like one",
        ));
    }
    if ending == Some("db") && candidate.claim == Claim::Maybe {
        // Much that is no database has that name.
        return Ok(Unread::SomethingElse);
    }
    if ending != Some("jsonl") {
        return Ok(match damage(path)? {
            Damage::Blank if candidate.claim == Claim::Named => Unread::Blank,
            Damage::Rest => {
                Unread::Rest("is the rest of a transcript, of which nothing can be read")
            }
            Damage::Blank | Damage::None => Unread::SomethingElse,
        });
    }
    lines(path)
}

/// The lines that are not JSON.
fn lines(path: &Path) -> Result<Unread, ReadError> {
    let mut findings = Vec::new();
    let mut count = 0_u64;
    read::lines(File::open(path)?, |entry| {
        count += 1;
        if let Err(why) = entry.seen {
            findings.push(Finding {
                file: path.display().to_string(),
                fault: Fault::InvalidLine,
                entry: entry.number,
                offset: entry.offset,
                line: None,
                id: None,
                description: finding::of_invalid(Format::OpenClaw, why),
            });
        }
        Ok(())
    })?;
    if count > 0 && !findings.is_empty() {
        match values(File::open(path)?) {
            Values::Broken => {}
            Values::Entries => return Ok(Unread::Rest(OVER_LINES)),
            Values::Other => return Ok(Unread::SomethingElse),
        }
    }
    finding::count_lines(&mut findings, &mut File::open(path)?)?;
    Ok(match (count, findings.is_empty()) {
        (0, _) => Unread::Blank,
        (_, true) => Unread::SomethingElse,
        (_, false) => Unread::Broken(findings),
    })
}

/// What is said of entries that are printed for people.
const OVER_LINES: &str = "is not understood: its entries go over several lines, and sessions have one \
     a line (`jq -c .` writes them so)";

/// What a file is that is not JSON line by line.
enum Values {
    /// Not JSON, or not to its end.
    Broken,
    /// Whole, and the first value is an entry of a session.
    Entries,
    /// Whole, and something else.
    Other,
}

/// Whether a file is JSON as a whole, though its lines are not.
fn values(file: File) -> Values {
    let mut strings = Strings::default();
    let mut found = None;
    for value in Deserializer::from_reader(BufReader::new(file)).into_iter::<Box<RawValue>>() {
        let Ok(value) = value else {
            return Values::Broken;
        };
        found.get_or_insert_with(|| {
            let text = value.get().as_bytes();
            let hint = strings.index(text).and_then(|()| hint(text, &strings));
            match hint {
                Ok(Hint::Sure(_) | Hint::Maybe(_) | Hint::Foreign(_)) => Values::Entries,
                _ => Values::Other,
            }
        });
    }
    found.unwrap_or(Values::Broken)
}

/// Names that stand in the entries of transcripts.
const NAMES: [&[u8]; 6] = [
    b"\"role\"",
    b"\"parentId\"",
    b"\"parentUuid\"",
    b"\"sessionId\"",
    b"\"payload\"",
    b"\"call_id\"",
];

/// How a file is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    /// Nothing is in it but white space, or its blocks were lost and are zeros.
    Blank,
    /// It holds what is left of an entry.
    Rest,
    /// Not as far as can be told: it is something else.
    None,
}

/// What is wrong with a file that can not be read as a transcript. JSON that is whole is something
/// else.
fn damage(path: &Path) -> io::Result<Damage> {
    let mut text = Vec::new();
    let mut beginning = File::open(path)?.take(READ_BYTES as u64);
    beginning.read_to_end(&mut text)?;
    let is_lost = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
    if text.iter().all(is_lost) {
        return Ok(Damage::Blank);
    }
    let is_rest = |line: &[u8]| {
        let named = NAMES
            .iter()
            .any(|name| memchr::memmem::find(line, name).is_some());
        named && serde_json::from_slice::<serde::de::IgnoredAny>(line).is_err()
    };
    let is_named = text.split(|byte| *byte == b'\n').any(is_rest);
    // Only a look at all of it tells whether a long one breaks off.
    let is_rest = is_named && matches!(values(File::open(path)?), Values::Broken);
    Ok(if is_rest { Damage::Rest } else { Damage::None })
}
