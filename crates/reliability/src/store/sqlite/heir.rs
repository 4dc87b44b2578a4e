//! The lock that the children of a call inherit.
//!
//! It is a file of its own beside the call's. A child has the open file, and whoever has that can
//! release its lock: `flock -u 3` in a shell is enough. So the worst a child can do is to say that
//! it is gone itself; the call it belongs to goes on being seen for as long as its process lives.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::locks::{is_at, lock};

/// Tries for a file that a sweep may be looking at.
const HEIR_TRIES_MAX: u32 = 20;

/// Where the children's lock of the call with this lock file is.
pub(super) fn path(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.heir"))
}

/// The children's lock of one claim.
#[derive(Debug)]
pub(super) struct Heir {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    /// No child has asked.
    Unmade,
    /// Open and locked. All children of one call share it.
    Lent(File),
    /// The claim has ended: what was still to be started comes too late.
    Ended,
}

impl Heir {
    pub(super) fn of(dir: &Path, name: &str) -> Self {
        Self {
            path: path(dir, name),
            state: Mutex::new(State::Unmade),
        }
    }

    /// The locked file for one more child.
    pub(super) fn lend(&self) -> io::Result<File> {
        let mut state = self.state.lock();
        match &*state {
            State::Ended => return Err(io::Error::other("the call has ended")),
            // Locked again, should an earlier child have let go of it; and a sweep may then have
            // taken the file for a dead one's.
            State::Lent(file) if lock(file) && is_at(file, &self.path) => return file.try_clone(),
            State::Lent(_) | State::Unmade => {}
        }
        let file = self.make()?;
        let lent = file.try_clone();
        *state = State::Lent(file);
        lent
    }

    fn make(&self) -> io::Result<File> {
        for _ in 0..HEIR_TRIES_MAX {
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&self.path)?;
            // Nothing confines what a child writes into a file that it was handed open, so it can
            // not write into this one. A lock needs no more than to read. A sweep may have removed
            // the file in between.
            let file = match File::open(&self.path) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            if lock(&file) && is_at(&file, &self.path) {
                return Ok(file);
            }
        }
        let why = format!("{} can not be locked", self.path.display());
        Err(io::Error::other(why))
    }

    /// The claim has ended. Children that live on have nothing more to do with it.
    pub(super) fn end(&self) {
        let ended = std::mem::replace(&mut *self.state.lock(), State::Ended);
        if let State::Lent(_) = ended {
            // What stays is a file of no claim, which the next sweep after its child removes.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
