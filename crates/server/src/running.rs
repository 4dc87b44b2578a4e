//! Which servers work on a state directory, for the command line to find them.
//!
//! Each server keeps a file there and a lock on it. The kernel takes the lock away when the process
//! ends, however it ends, so a file without one is a leftover.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::limits::SERVERS_MAX;

/// The directory in the state directory.
const DIR: &str = "servers";

/// A server that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Running {
    /// Where it answers.
    pub url: String,
    /// Its process.
    pub pid: u32,
    /// Since when.
    pub started_at_ms: u64,
}

/// A server's own file; gone when it is dropped.
pub struct Announced {
    path: PathBuf,
    _locked: File,
}

impl Running {
    /// Lets the command line find this server.
    pub fn announce(&self, state_dir: &Path) -> io::Result<Announced> {
        let dir = state_dir.join(DIR);
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)?;
        let new = dir.join(format!("{}.new", self.pid));
        let path = dir.join(format!("{}.json", self.pid));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&new)?;
        file.lock()?;
        file.write_all(&serde_json::to_vec(self)?)?;
        // Nobody sees it before it is whole and locked.
        fs::rename(&new, &path)?;
        Ok(Announced {
            path,
            _locked: file,
        })
    }

    /// The servers of a state directory, oldest first. Leftovers are removed.
    pub fn find(state_dir: &Path) -> io::Result<Vec<Self>> {
        let entries = match fs::read_dir(state_dir.join(DIR)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other?,
        };
        let mut found = Vec::new();
        for entry in entries.take(SERVERS_MAX) {
            let path = entry?.path();
            if path.extension().is_none_or(|ending| ending != "json") {
                continue;
            }
            if let Some(running) = look(&path) {
                found.push(running);
            }
        }
        found.sort_by_key(|running| running.started_at_ms);
        Ok(found)
    }
}

fn look(path: &Path) -> Option<Running> {
    let file = File::open(path).ok()?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => serde_json::from_reader(file).ok(),
        Ok(()) => {
            let _ = fs::remove_file(path);
            None
        }
        Err(TryLockError::Error(_)) => None,
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_found_while_they_run() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(Running::find(dir.path()).expect("reads"), []);
        let running = |pid, started_at_ms| Running {
            url: format!("http://127.0.0.1:{pid}"),
            pid,
            started_at_ms,
        };
        let (one, two) = (running(2001, 20), running(2002, 10));
        let first = one.announce(dir.path()).expect("announces");
        let second = two.announce(dir.path()).expect("announces");
        assert_eq!(
            Running::find(dir.path()).expect("reads"),
            [two, one.clone()]
        );
        drop(second);
        assert_eq!(Running::find(dir.path()).expect("reads"), [one]);
        // A killed process leaves its file, without a lock.
        let left = dir.path().join(DIR).join("2003.json");
        fs::write(&left, b"{}").expect("writes");
        drop(first);
        assert_eq!(Running::find(dir.path()).expect("reads"), []);
        assert!(!left.exists());
    }
}
