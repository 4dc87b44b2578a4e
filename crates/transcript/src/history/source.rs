//! The sessions of a file or a store.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::fields::time_ms;
use super::{Builder, Session, read_with, reader};
use crate::adapter::adapter;
use crate::check::{self, Fault, check};
use crate::discover::{Candidate, Claim};
use crate::index::Number;
use crate::read::{ReadError, index};
use crate::store::{Store, StoreError, is_store};

/// One session that was read.
#[derive(Debug)]
pub struct Found {
    /// Its file, and its id in a store.
    pub name: String,
    /// What happened in it.
    pub session: Session,
    /// When results came that belong to no call, as far as they say.
    pub orphaned_results: Vec<Option<u64>>,
}

impl Found {
    /// Leaves out what happened before. What has no time stays.
    pub fn retain_since(&mut self, since_ms: u64) {
        self.session.retain_since(since_ms);
        self.orphaned_results
            .retain(|at_ms| at_ms.is_none_or(|at_ms| at_ms >= since_ms));
    }
}

/// Calls back for each session in a file. What is no transcript is passed over, unless somebody
/// named it.
pub fn each(candidate: &Candidate, take: &mut impl FnMut(Found)) -> Result<(), String> {
    let path = &candidate.path;
    let read = match is_store(path) {
        Ok(true) => from_store(path, take),
        Ok(false) => from_file(path, take),
        Err(error) => Err(Trouble::Other(format!("can not be read: {error}"))),
    };
    match read {
        Err(Trouble::NoTranscript) if candidate.claim == Claim::Named => {
            Err(ReadError::UnknownFormat.to_string())
        }
        Err(Trouble::Other(why)) => Err(why),
        Ok(()) | Err(Trouble::NoTranscript) => Ok(()),
    }
}

enum Trouble {
    NoTranscript,
    Other(String),
}

impl From<ReadError> for Trouble {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::UnknownFormat => Self::NoTranscript,
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<StoreError> for Trouble {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NoTranscripts => Self::NoTranscript,
            error => Self::Other(error.to_string()),
        }
    }
}

/// Reads a session that is in memory.
pub fn from_bytes(name: &str, text: &[u8]) -> Result<Found, ReadError> {
    from(name, || Ok(text))
}

fn from_file(path: &Path, take: &mut impl FnMut(Found)) -> Result<(), Trouble> {
    let name = path.display().to_string();
    take(from(&name, || File::open(path).map_err(ReadError::Io))?);
    Ok(())
}

/// Twice through the source: its format and its faults first, then what happened.
fn from<R: Read>(name: &str, open: impl Fn() -> Result<R, ReadError>) -> Result<Found, ReadError> {
    let (shape, index) = index(open()?)?;
    let orphans = orphans(&check(&index, adapter(shape.format).pairing()));
    let mut orphaned_results = Vec::new();
    let session = read_with(shape.format, open()?, |number, value| {
        orphaned_results.extend(times(&orphans, number, value));
    })?;
    Ok(Found {
        name: name.to_owned(),
        session,
        orphaned_results,
    })
}

/// When an entry was written, as far as it says, for each result in it that belongs to no call.
fn times(
    orphans: &HashMap<Number, usize>,
    number: Number,
    entry: &Value,
) -> impl Iterator<Item = Option<u64>> {
    let inner = entry.get("message").and_then(|it| it.get("timestamp"));
    let time = time_ms(entry.get("timestamp").or(inner));
    std::iter::repeat_n(time, orphans.get(&number).copied().unwrap_or(0))
}

fn from_store(path: &Path, take: &mut impl FnMut(Found)) -> Result<(), Trouble> {
    let store = Store::open(path)?;
    for id in store.sessions()? {
        let stored = store.session(&id)?;
        let mut builder = Builder::default();
        let orphans = orphans(&stored.check());
        let mut orphaned_results = Vec::new();
        for (number, _) in stored.index.entries().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            if let Ok(value) = serde_json::from_slice(stored.text(number)) {
                reader(stored.format)(&value, &mut builder);
                orphaned_results.extend(times(&orphans, number, &value));
            }
        }
        take(Found {
            name: format!("{}#{id}", path.display()),
            session: builder.finish(),
            orphaned_results,
        });
    }
    Ok(())
}

/// How many results belong to no call, by their entries.
fn orphans(faults: &[check::Found]) -> HashMap<Number, usize> {
    let mut orphans = HashMap::new();
    for found in faults {
        if found.fault == Fault::OrphanedToolResult {
            *orphans.entry(found.entry).or_default() += 1;
        }
    }
    orphans
}
