//! Who did what to the reliability layer.
//!
//! One JSON object a line, in an owner-only file of the state directory that is only ever appended
//! to. An action's first line is on disk before the action begins: one that can not be written down
//! does not happen. Its second line says how it ended.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_contract::time::rfc3339;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::limits::AUDIT_TAIL_BYTES_MAX;

/// The file in the state directory.
pub const AUDIT_FILE: &str = "admin-audit.jsonl";

/// How far an action got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Phase {
    /// It was asked for and is about to be done.
    Asked,
    /// It was done.
    Done,
    /// It could not be done.
    Failed,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// When, for people.
    pub timestamp: String,
    /// When.
    pub at_ms: u64,
    /// Ties the lines of one action together.
    pub id: String,
    /// How far it got.
    pub phase: Phase,
    /// Who: the fingerprint of the token.
    pub token: String,
    /// From where.
    pub peer: String,
    /// Who they say they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// What; redacted.
    pub action: Value,
    /// How it ended; redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
}

impl Entry {
    /// The same action, at its end.
    #[must_use]
    pub fn ended(&self, phase: Phase, at_ms: u64, result: Value) -> Self {
        Self {
            timestamp: rfc3339(at_ms),
            at_ms,
            phase,
            result: Some(result),
            ..self.clone()
        }
    }
}

/// The log.
#[derive(Clone)]
pub struct Audit {
    path: PathBuf,
    file: Arc<Mutex<File>>,
}

impl Audit {
    /// Opens the log in a state directory.
    pub fn open(state_dir: &Path) -> io::Result<Self> {
        let path = state_dir.join(AUDIT_FILE);
        let file = OpenOptions::new()
            .create(true)
            .append(true)
            .mode(0o600)
            .open(&path)?;
        Ok(Self {
            path,
            file: Arc::new(Mutex::new(file)),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a line, and waits until it is on disk.
    pub async fn write(&self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let file = self.file.clone();
        // A line is one write to a file in append mode, so processes do not mix theirs.
        blocking(move || {
            let mut file = file.lock();
            file.write_all(&line)?;
            file.sync_data()
        })
        .await
    }

    /// The last entries, newest first.
    pub async fn last(&self, limit: usize) -> io::Result<Vec<Value>> {
        let path = self.path.clone();
        let tail = blocking(move || read_tail(&path)).await?;
        Ok(tail
            .lines()
            .rev()
            .filter_map(|line| serde_json::from_str(line).ok())
            .take(limit)
            .collect())
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| Err(io::Error::other(error)))
}

fn read_tail(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(AUDIT_TAIL_BYTES_MAX)))?;
    let mut tail = Vec::new();
    file.take(AUDIT_TAIL_BYTES_MAX).read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn lines_are_added_and_read_back_newest_first() {
        let dir = tempfile::tempdir().expect("a directory");
        let audit = Audit::open(dir.path()).expect("opens");
        let asked = Entry {
            timestamp: rfc3339(1_000),
            at_ms: 1_000,
            id: "one".to_owned(),
            phase: Phase::Asked,
            token: "abc".to_owned(),
            peer: "127.0.0.1".to_owned(),
            operator: None,
            action: json!({"action": "reset"}),
            result: None,
        };
        audit.write(&asked).await.expect("writes");
        // Another process has the same file open.
        let other = Audit::open(dir.path()).expect("opens");
        let done = asked.ended(Phase::Done, 2_000, json!({"reset": []}));
        other.write(&done).await.expect("writes");
        let found = audit.last(10).await.expect("reads");
        assert_eq!(
            found,
            [
                serde_json::to_value(&done).expect("serialises"),
                serde_json::to_value(&asked).expect("serialises")
            ]
        );
        assert_eq!(audit.last(1).await.expect("reads").len(), 1);
        let mode = std::fs::metadata(audit.path()).expect("there").mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}
