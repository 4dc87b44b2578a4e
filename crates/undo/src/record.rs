//! Points as they are kept: one JSON file each, replaced as a whole.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::entry::{Entry, Why};
use crate::error::{At, UndoError, UndoResult};
use crate::hash::{hex, unhex};
use crate::point::{Coverage, LeftOut, Origin, Point};
use crate::wire::{Reader, Writer};

/// The format of a record.
const VERSION: u32 = 1;

/// One kept point.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    version: u32,
    pub(crate) id: String,
    pub(crate) sequence: u64,
    #[serde(with = "path_text")]
    pub(crate) workspace: PathBuf,
    pub(crate) calls: Vec<String>,
    pub(crate) origin: Origin,
    /// Of an undo: the first point that it takes back.
    pub(crate) goes_back_to: Option<u64>,
    pub(crate) begun_ms: u64,
    pub(crate) ended_ms: Option<u64>,
    pub(crate) interrupted: bool,
    pub(crate) before: State,
    /// `None` while a call runs, or where the state after it could not be taken.
    pub(crate) after: Option<State>,
}

/// One state of a workspace.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct State {
    pub(crate) roots: Vec<Root>,
    pub(crate) left_out: Vec<LeftOut>,
    pub(crate) left_out_count: u64,
    /// Each reason for which something was left out, also of what is only counted.
    #[serde(default)]
    pub(crate) left_out_for: Vec<Why>,
}

/// One directory of a state: the workspace, or the git directory that a worktree shares.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Root {
    #[serde(with = "path_text")]
    pub(crate) path: PathBuf,
    #[serde(with = "entry_text")]
    pub(crate) entry: Entry,
}

impl State {
    pub(crate) fn root(&self, path: &Path) -> Option<&Entry> {
        let root = self.roots.iter().find(|root| root.path == path);
        root.map(|root| &root.entry)
    }

    /// Whether something was left out for such a reason.
    pub(crate) fn leaves_out(&self, such: impl Fn(Why) -> bool) -> bool {
        let named = self.left_out.iter().map(|left_out| left_out.why);
        self.left_out_for.iter().copied().chain(named).any(such)
    }

    /// Remembers reasons for which something was left out.
    pub(crate) fn leave_out_for(&mut self, reasons: impl IntoIterator<Item = Why>) {
        for why in reasons {
            if !self.left_out_for.contains(&why) {
                self.left_out_for.push(why);
            }
        }
    }
}

impl Record {
    pub(crate) fn new(workspace: &Path, sequence: u64, origin: Origin, before: State) -> Self {
        Self {
            version: VERSION,
            id: format!("{}-{sequence}", workspace_name(workspace)),
            sequence,
            workspace: workspace.to_owned(),
            calls: Vec::new(),
            origin,
            goes_back_to: None,
            begun_ms: 0,
            ended_ms: None,
            interrupted: false,
            before,
            after: None,
        }
    }

    pub(crate) fn load(path: &Path) -> UndoResult<Self> {
        let bytes = fs::read(path).at("can not read", path)?;
        let record: Self = serde_json::from_slice(&bytes)
            .map_err(|error| UndoError::Damaged(format!("{}: {error}", path.display())))?;
        if record.version == VERSION {
            Ok(record)
        } else {
            let text = format!("{} is of another version", path.display());
            Err(UndoError::Damaged(text))
        }
    }

    pub(crate) fn save(&self, dir: &Path) -> UndoResult<()> {
        let path = dir.join(format!("{}.json", self.sequence));
        let bytes = serde_json::to_vec(self)
            .map_err(|error| UndoError::Damaged(format!("{}: {error}", path.display())))?;
        // A call's point that a power cut takes away is a loss; an undo's is one in the middle of writing.
        let durable = matches!(self.origin, Origin::Undo { .. });
        replace(&path, &bytes, durable)
    }

    pub(crate) fn coverage(&self) -> Coverage {
        if self.before.left_out_count == 0 {
            Coverage::Full
        } else {
            Coverage::Partial
        }
    }

    /// What callers see of it.
    pub(crate) fn point(&self, taken_back_by: Option<String>) -> Point {
        Point {
            id: self.id.clone(),
            workspace: self.workspace.clone(),
            calls: self.calls.clone(),
            origin: self.origin.clone(),
            begun_ms: self.begun_ms,
            ended_ms: self.ended_ms,
            interrupted: self.interrupted,
            coverage: self.coverage(),
            left_out: self.before.left_out.clone(),
            left_out_count: self.before.left_out_count,
            taken_back_by,
        }
    }
}

/// How a workspace is called in the store.
pub(crate) fn workspace_name(workspace: &Path) -> String {
    hex(&crate::hash::Hash::of(workspace.as_os_str().as_bytes()).0[..6])
}

/// Writes a file under another name and renames it, so that nobody ever sees half of it.
pub(crate) fn replace(path: &Path, bytes: &[u8], durable: bool) -> UndoResult<()> {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let number = COUNTER.fetch_add(1, Ordering::Relaxed);
    let new = path.with_extension(format!("new-{}-{number}", std::process::id()));
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)
        .at("can not create", &new)?;
    file.write_all(bytes).at("can not write", &new)?;
    if durable {
        file.sync_data().at("can not sync", &new)?;
    }
    fs::rename(&new, path).at("can not replace", path)?;
    if durable && let Some(dir) = path.parent() {
        File::open(dir)
            .and_then(|dir| dir.sync_data())
            .at("can not sync", dir)?;
    }
    Ok(())
}

/// Bytes as a path.
pub(crate) fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes.to_vec()))
}

/// Paths in JSON, which knows UTF-8 only: other paths stand there as hexadecimal digits.
pub(crate) mod path_text {
    use std::os::unix::ffi::OsStrExt;
    use std::path::{Path, PathBuf};

    use serde::{Deserialize, Deserializer, Serializer};

    use super::{hex, path_of, unhex};

    const HEX: &str = "hex:";

    pub(crate) fn serialize<S: Serializer>(path: &Path, out: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) if !text.starts_with(HEX) => out.serialize_str(text),
            _ => out.serialize_str(&format!("{HEX}{}", hex(path.as_os_str().as_bytes()))),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(text)?;
        match text.strip_prefix(HEX) {
            None => Ok(text.into()),
            Some(digits) => unhex(digits)
                .map(|bytes| path_of(&bytes))
                .ok_or_else(|| serde::de::Error::custom("these are no hexadecimal digits")),
        }
    }
}

/// Entries in JSON: the bytes that trees hold, as hexadecimal digits.
mod entry_text {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::{Entry, Reader, Writer, hex, unhex};

    pub(super) fn serialize<S: Serializer>(entry: &Entry, out: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Writer::default();
        entry.write(&mut bytes);
        out.serialize_str(&hex(&bytes.done()))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(text: D) -> Result<Entry, D::Error> {
        let bytes = unhex(&String::deserialize(text)?);
        bytes
            .and_then(|bytes| Entry::read(&mut Reader::new(&bytes)))
            .ok_or_else(|| serde::de::Error::custom("this is no entry"))
    }
}
