//! Who uses the store: locks that the kernel takes off when their holder dies.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use crate::error::{At, UndoError, UndoResult};
use crate::limits::LOCK_WAIT_MS_MAX;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(2);

/// How much of what a lock protects is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    Shared,
    Alone,
}

fn open(path: &Path) -> UndoResult<File> {
    fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .at("can not open", path)
}

/// Takes a lock, and waits for it up to the limit. It is held as long as the file is open.
pub(crate) fn take(path: &Path, hold: Hold) -> UndoResult<File> {
    let until = Instant::now() + Duration::from_millis(LOCK_WAIT_MS_MAX);
    loop {
        if let Some(file) = attempt(path, hold)? {
            return Ok(file);
        }
        if Instant::now() > until {
            return Err(UndoError::Busy(path.to_owned()));
        }
        thread::sleep(PAUSE);
    }
}

/// Takes a lock if it is free.
pub(crate) fn attempt(path: &Path, hold: Hold) -> UndoResult<Option<File>> {
    let operation = match hold {
        Hold::Shared => FlockOperation::NonBlockingLockShared,
        Hold::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    let file = open(path)?;
    match flock(&file, operation) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error).at("can not lock", path),
    }
}
