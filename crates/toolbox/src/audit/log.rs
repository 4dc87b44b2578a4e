//! The file, and the newest hash beside it.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::Clock;
use holdfast_contract::redact::Redactor;
use holdfast_reliability::store::StoreError;
use holdfast_reliability::store::documents::{
    Created, Document, DocumentStore, NewDocument, Replaced, Replacement,
};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::sync::Mutex;

use super::line::{AUDIT_LINE_BYTES_MAX, AuditLine, NO_HASH};

/// Its name in the state directory.
pub const AUDIT_FILE: &str = "audit.log";
/// Size from which on the log goes on in a new file.
pub const AUDIT_FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// How much of the log's end is looked at for its last entries.
pub const AUDIT_TAIL_BYTES_MAX: u64 = 1024 * 1024;
/// Names of files that are no longer written to.
const SET_ASIDE_PREFIX: &str = "audit-";
const SET_ASIDE_SUFFIX: &str = ".log";
const KIND: &str = "audit";
const HEAD: &str = "head";

/// Why a line could not be written. What it was to record must not happen then.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file.
    #[error("the audit log {path} can not be written: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The database.
    #[error("the audit log's head can not be kept: {0}")]
    Store(#[from] StoreError),
}

/// The newest line, as the database knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    /// Its number; 0 before the first.
    pub seq: u64,
    /// Its hash.
    pub hash: String,
}

impl Default for Head {
    fn default() -> Self {
        Self {
            seq: 0,
            hash: NO_HASH.to_owned(),
        }
    }
}

/// Writes the log. Any number of processes may write at the same time.
pub struct AuditLog {
    path: PathBuf,
    store: Arc<dyn DocumentStore>,
    clock: Arc<dyn Clock>,
    redactor: Redactor,
    file_bytes_max: u64,
    /// One writer of this process at a time waits for the file's lock.
    turn: Mutex<()>,
}

/// The file, locked, and how it ends.
struct Locked {
    file: File,
    last: Option<AuditLine>,
    size_bytes: u64,
}

impl AuditLog {
    /// The log in this state directory.
    pub fn new(
        state_dir: &Path,
        store: Arc<dyn DocumentStore>,
        clock: Arc<dyn Clock>,
        redactor: Redactor,
    ) -> Self {
        Self {
            path: state_dir.join(AUDIT_FILE),
            store,
            clock,
            redactor,
            file_bytes_max: AUDIT_FILE_BYTES_MAX,
            turn: Mutex::new(()),
        }
    }

    /// The same log, with files of another size.
    #[must_use]
    pub fn with_files_of(mut self, bytes_max: u64) -> Self {
        self.file_bytes_max = bytes_max;
        self
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a line; it is on disk when this returns. Secrets are taken out here.
    pub async fn append(
        &self,
        event: &str,
        fields: Map<String, Value>,
    ) -> Result<AuditLine, AuditError> {
        let _turn = self.turn.lock().await;
        let mut shown = self.redactor.redact_value(&Value::Object(fields));
        self.redactor.hide_known_in(&mut shown);
        let Value::Object(fields) = shown else {
            // An object stays an object.
            return Err(self.failed(std::io::ErrorKind::InvalidData.into()));
        };
        let (locked, known, after) = self.lock_with_room().await?;
        let line = AuditLine::new(
            after.seq + 1,
            self.clock.now_ms(),
            event,
            fields,
            &after.hash,
        );
        let text = line.text() + "\n";
        let mut file = locked.file;
        // The lock goes with the file, and is held until the head is written as well.
        let file = self
            .blocking(move || {
                file.write_all(text.as_bytes())?;
                file.sync_data()?;
                Ok(file)
            })
            .await?;
        self.set_head(known, &line).await?;
        drop(file);
        Ok(line)
    }

    /// The file with room for a line, the head as it is known, and what the next line follows.
    async fn lock_with_room(&self) -> Result<(Locked, Option<Document>, Head), AuditError> {
        loop {
            let path = self.path.clone();
            let locked = self.blocking(move || lock(&path)).await?;
            let mut known = self.head_document().await?;
            let mut head = known.as_ref().map(head_of).unwrap_or_default();
            // Whoever wrote the last line did not get to anchor it. That comes first: of two such
            // lines nobody could say which of them Holdfast wrote.
            if let Some(last) = locked.last.as_ref().filter(|last| is_next(last, &head)) {
                self.set_head(known, last).await?;
                known = self.head_document().await?;
                head = known.as_ref().map(head_of).unwrap_or_default();
            }
            let after = follows(locked.last.as_ref(), &head);
            if locked.size_bytes < self.file_bytes_max {
                return Ok((locked, known, after));
            }
            // The chain goes on: the next line holds the hash of the last one in the old file. Who
            // is first in the new one is anybody's guess, so everything is looked at again.
            let (path, last) = (self.path.clone(), after.seq);
            self.blocking(move || set_aside(&path, &locked, last))
                .await?;
        }
    }

    /// The newest line as the database knows it.
    pub async fn head(&self) -> Result<Head, AuditError> {
        let known = self.head_document().await?;
        Ok(known.as_ref().map(head_of).unwrap_or_default())
    }

    /// The last entries, newest first, as far as they are within the last [`AUDIT_TAIL_BYTES_MAX`].
    pub async fn last(&self) -> Result<Vec<AuditLine>, AuditError> {
        let path = self.path.clone();
        let tail = self.blocking(move || read_tail(&path)).await?;
        let lines = tail.split(|byte| *byte == b'\n').rev();
        Ok(lines
            .filter_map(|line| serde_json::from_slice(line).ok())
            .collect())
    }

    async fn head_document(&self) -> Result<Option<Document>, AuditError> {
        Ok(self.store.document(KIND, HEAD).await?)
    }

    async fn set_head(&self, known: Option<Document>, line: &AuditLine) -> Result<(), AuditError> {
        let body = json!(Head {
            seq: line.seq,
            hash: line.hash.clone(),
        });
        let kept = if let Some(known) = known {
            let replaced = self.store.replace(Replacement::of(&known, body)).await?;
            matches!(replaced, Replaced::Done(_))
        } else {
            let new = NewDocument {
                kind: KIND.to_owned(),
                id: HEAD.to_owned(),
                group: String::new(),
                body,
                expires_at_ms: None,
            };
            matches!(self.store.create(new).await?, Created::New(_))
        };
        if kept {
            return Ok(());
        }
        // Nobody else writes it while the file is locked.
        let why = "somebody else has changed the audit log's head".to_owned();
        Err(StoreError::Unavailable(why).into())
    }

    async fn blocking<T: Send + 'static>(
        &self,
        act: impl FnOnce() -> std::io::Result<T> + Send + 'static,
    ) -> Result<T, AuditError> {
        let done = tokio::task::spawn_blocking(act).await;
        done.unwrap_or_else(|_| Err(std::io::Error::other("it panicked")))
            .map_err(|error| self.failed(error))
    }

    fn failed(&self, error: std::io::Error) -> AuditError {
        AuditError::File {
            path: self.path.clone(),
            error,
        }
    }
}

fn head_of(document: &Document) -> Head {
    // One that can not be read counts as none, and then does not fit the file.
    serde_json::from_value(document.body.clone()).unwrap_or_default()
}

/// Whether a line is the one that a process wrote right before it died.
fn is_next(last: &AuditLine, head: &Head) -> bool {
    last.seq == head.seq + 1 && last.prev == head.hash && last.hash == last.right_hash()
}

/// What the next line follows: the last one in the file, if it is the anchored one. Else the
/// anchored one, so that the gap stays visible.
fn follows(last: Option<&AuditLine>, head: &Head) -> Head {
    let seq = last.map_or(head.seq, |last| head.seq.max(last.seq));
    Head {
        seq,
        hash: head.hash.clone(),
    }
}

fn read_tail(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other?,
    };
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(AUDIT_TAIL_BYTES_MAX)))?;
    let mut tail = Vec::new();
    file.take(AUDIT_TAIL_BYTES_MAX).read_to_end(&mut tail)?;
    Ok(tail)
}

/// The files of the log, the oldest first, and the one that is written to last.
pub fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut files = Vec::new();
    let entries = match std::fs::read_dir(dir) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        other => other?,
    };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(SET_ASIDE_PREFIX) && name.ends_with(SET_ASIDE_SUFFIX) {
            files.push(entry.path());
        }
    }
    // Their names end in numbers of the same length.
    files.sort();
    if path.exists() {
        files.push(path.to_owned());
    }
    Ok(files)
}

/// Gives the file, which is locked, a name of its own, by its last line. Whoever waits for its lock
/// finds that it is no longer the log.
fn set_aside(path: &Path, _locked: &Locked, last: u64) -> std::io::Result<()> {
    let name = format!("{SET_ASIDE_PREFIX}{last:020}{SET_ASIDE_SUFFIX}");
    std::fs::rename(path, path.with_file_name(name))?;
    match path.parent() {
        Some(dir) => File::open(dir)?.sync_all(),
        None => Ok(()),
    }
}

/// Opens and locks the log, and finds its last line.
fn lock(path: &Path) -> std::io::Result<Locked> {
    loop {
        let file = OpenOptions::new()
            .read(true)
            .append(true)
            .create(true)
            .mode(0o600)
            .open(path)?;
        flock(&file, FlockOperation::LockExclusive)?;
        // While we waited for it, it may have been set aside.
        let is_log = match std::fs::metadata(path) {
            Ok(named) => named.ino() == file.metadata()?.ino(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        };
        if is_log {
            return end_of(file);
        }
    }
}

/// How the file ends. Half a line at the end is of a write that a power cut has ended: nobody was
/// told that it is there, and it goes.
fn end_of(mut file: File) -> std::io::Result<Locked> {
    let size = file.metadata()?.len();
    let from = size.saturating_sub(2 * AUDIT_LINE_BYTES_MAX as u64);
    file.seek(SeekFrom::Start(from))?;
    let mut tail = Vec::new();
    Read::by_ref(&mut file).read_to_end(&mut tail)?;
    let whole = tail
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |at| at + 1);
    if whole < tail.len() {
        file.set_len(size - (tail.len() - whole) as u64)?;
        tail.truncate(whole);
    }
    let last = tail
        .split(|byte| *byte == b'\n')
        .rfind(|line| !line.is_empty())
        .and_then(|line| serde_json::from_slice(line).ok());
    Ok(Locked {
        size_bytes: file.metadata()?.len(),
        file,
        last,
    })
}
