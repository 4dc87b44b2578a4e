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

/// A lock that is held.
///
/// Dropping it unlocks the file, and does not only close it: a child that was just forked
/// elsewhere in this process has the file open too, until it runs its program.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Drop for Locked {
    fn drop(&mut self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
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

/// Takes a lock, and waits for it up to the limit.
pub(crate) fn take(path: &Path, hold: Hold) -> UndoResult<Locked> {
    let until = Instant::now() + Duration::from_millis(LOCK_WAIT_MS_MAX);
    loop {
        if let Some(locked) = attempt(path, hold)? {
            return Ok(locked);
        }
        if Instant::now() > until {
            return Err(UndoError::Busy(path.to_owned()));
        }
        thread::sleep(PAUSE);
    }
}

/// Takes a lock if it is free.
pub(crate) fn attempt(path: &Path, hold: Hold) -> UndoResult<Option<Locked>> {
    let operation = match hold {
        Hold::Shared => FlockOperation::NonBlockingLockShared,
        Hold::Alone => FlockOperation::NonBlockingLockExclusive,
    };
    let file = open(path)?;
    match flock(&file, operation) {
        Ok(()) => Ok(Some(Locked(file))),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(error) => Err(error).at("can not lock", path),
    }
}
