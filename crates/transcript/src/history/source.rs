//! The sessions of a file or a store.

use std::fs::File;
use std::path::Path;

use super::{Builder, Session, read, reader};
use crate::adapter::adapter;
use crate::check::{self, Fault, check};
use crate::discover::{Candidate, Claim};
use crate::format::Format;
use crate::read::{ReadError, index};
use crate::store::{Store, StoreError, is_store};

/// One session that was read.
#[derive(Debug)]
pub struct Found {
    /// Its file, and its id in a store.
    pub name: String,
    /// What happened in it.
    pub session: Session,
    /// Results that belong to no call.
    pub orphaned_results: u64,
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

/// Twice through the file: its format and its faults first, then what happened.
fn from_file(path: &Path, take: &mut impl FnMut(Found)) -> Result<(), Trouble> {
    let open = || File::open(path).map_err(ReadError::Io);
    let (shape, index) = index(open()?)?;
    let faults = check(&index, adapter(shape.format).pairing());
    take(Found {
        name: path.display().to_string(),
        session: read(shape.format, open()?)?,
        orphaned_results: orphaned(&faults),
    });
    Ok(())
}

fn from_store(path: &Path, take: &mut impl FnMut(Found)) -> Result<(), Trouble> {
    let store = Store::open(path)?;
    for id in store.sessions()? {
        let stored = store.session(&id)?;
        let mut builder = Builder::default();
        for (number, _) in stored.index.entries().enumerate() {
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            if let Ok(value) = serde_json::from_slice(stored.text(number)) {
                reader(Format::OpenClaw)(&value, &mut builder);
            }
        }
        take(Found {
            name: format!("{}#{id}", path.display()),
            session: builder.finish(),
            orphaned_results: orphaned(&stored.check()),
        });
    }
    Ok(())
}

fn orphaned(faults: &[check::Found]) -> u64 {
    let orphans = faults
        .iter()
        .filter(|found| found.fault == Fault::OrphanedToolResult);
    orphans.count() as u64
}
