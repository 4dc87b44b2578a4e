//! Who is still alive, by operating-system locks.
//!
//! Every granted claim holds an exclusive `flock` on a file of its own. The lock belongs to the
//! open file, not to the process: it ends when the last process that has it open is gone, so a
//! child that inherited it keeps the claim alive. Nothing has to be written or renewed for that,
//! and the kernel tells the truth even about a process that was killed.
//!
//! The file exists and is locked before the record is visible, and is removed only after the
//! record has ended; so "no file" and "a file nobody has locked" both mean that the holder is gone.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use holdfast_contract::Lifeline;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::connection::create_private_dir;
use super::errors::Place;
use crate::idempotency::key::StoredKey;
use crate::idempotency::transition::Holder;
use crate::store::{StoreError, StoreResult};

/// The directory of the lock files, below the state directory.
const LOCKS_DIR: &str = "locks";
/// Longest owner token, well below what a file name may have.
const OWNER_BYTES_MAX: usize = 128;
/// Tries for a lock that a sweep may be looking at.
const LOCK_TRIES_MAX: u32 = 20;
/// Between two tries.
const LOCK_RETRY: Duration = Duration::from_millis(1);

struct Held {
    key: StoredKey,
    lifeline: Lifeline,
}

/// The lock files of one state directory, and those that this process holds.
pub(super) struct Locks {
    place: Place,
    dir: PathBuf,
    /// By owner. Kept here because a caller may drop its own copy while the call still runs.
    held: Mutex<HashMap<String, Held>>,
    /// Of claims that have ended; removed when the answers are out.
    let_go: Mutex<Vec<(String, Lifeline)>>,
}

impl Locks {
    pub(super) fn open(place: &Place) -> StoreResult<Self> {
        let dir = place.dir.join(LOCKS_DIR);
        create_private_dir(place, &dir)?;
        Ok(Self {
            place: place.clone(),
            dir,
            held: Mutex::default(),
            let_go: Mutex::default(),
        })
    }

    /// Creates and locks the file of a claim that is about to be granted.
    pub(super) fn acquire(&self, owner: &str) -> StoreResult<Lifeline> {
        let path = self.path_of(owner)?;
        let io = |error: &io::Error| self.place.explain_io("lock", &path, error);
        for _ in 0..LOCK_TRIES_MAX {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)
                .map_err(|error| io(&error))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                // A sweep may have removed the file between its creation and the lock.
                Ok(()) if is_at(&file, &path) => return Ok(Lifeline::new(file)),
                Ok(()) => {}
                Err(Errno::WOULDBLOCK) => sleep(LOCK_RETRY),
                Err(error) => return Err(io(&error.into())),
            }
        }
        Err(StoreError::Unavailable(format!(
            "the owner token {owner} is already in use ({})",
            path.display()
        )))
    }

    /// Takes care of a lock until its claim ends.
    pub(super) fn keep(&self, owner: String, key: StoredKey, lifeline: Lifeline) {
        self.held.lock().insert(owner, Held { key, lifeline });
    }

    /// Whether the claim is one that this process has been granted and has not ended.
    pub(super) fn holds(&self, owner: &str) -> bool {
        self.held.lock().contains_key(owner)
    }

    /// The claim has ended: its lock is no longer needed.
    pub(super) fn let_go(&self, owner: &str, key: &StoredKey) {
        let mut held = self.held.lock();
        if held.get(owner).is_some_and(|held| held.key == *key)
            && let Some(ended) = held.remove(owner)
        {
            self.let_go.lock().push((owner.to_owned(), ended.lifeline));
        }
    }

    /// Removes the files of claims that have ended.
    pub(super) fn remove_let_go(&self) {
        let ended = std::mem::take(&mut *self.let_go.lock());
        for (owner, lifeline) in ended {
            self.remove(&owner, &lifeline);
        }
    }

    /// Removes the file of a lock that is still held: nobody else can have put another in its place.
    pub(super) fn remove(&self, owner: &str, _still_locked: &Lifeline) {
        if let Ok(path) = self.path_of(owner) {
            // A file that stays is a stale one, which the next sweep removes.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Whether the holder of a claim is known to be gone.
    pub(super) fn holder(&self, owner: &str) -> Holder {
        if self.holds(owner) {
            return Holder::MayLive;
        }
        // A token that can not be a file name was not written by this store: nothing is known.
        let Ok(path) = self.path_of(owner) else {
            return Holder::MayLive;
        };
        match File::open(&path) {
            // Shared, so that two who ask at once do not take each other for the holder.
            Ok(file) => match flock(&file, FlockOperation::NonBlockingLockShared) {
                Ok(()) => Holder::Dead,
                Err(_) => Holder::MayLive,
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => Holder::Dead,
            // Out of file handles, for one: that says nothing about the holder.
            Err(_) => Holder::MayLive,
        }
    }

    /// Removes the files that dead holders left; says how many.
    pub(super) fn sweep(&self) -> StoreResult<u64> {
        let entries = std::fs::read_dir(&self.dir)
            .map_err(|error| self.place.explain_io("list", &self.dir, &error))?;
        let mut removed = 0;
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(file) = File::open(&path) else {
                continue;
            };
            // Exclusive, and checked again under the lock: of two sweeps only one may remove the
            // name, or the second could remove a file that was created after the first.
            if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
                && is_at(&file, &path)
                && std::fs::remove_file(&path).is_ok()
            {
                removed += 1;
            }
        }
        Ok(removed)
    }

    fn path_of(&self, owner: &str) -> StoreResult<PathBuf> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let safe = !owner.is_empty()
            && owner.len() <= OWNER_BYTES_MAX
            && !owner.starts_with('.')
            && owner.bytes().all(allowed);
        if safe {
            Ok(self.dir.join(owner))
        } else {
            Err(StoreError::Unavailable(format!(
                "the owner token {owner:?} can not be a file name: use up to {OWNER_BYTES_MAX} \
                 letters, digits, '-', '_' and '.', not starting with '.'"
            )))
        }
    }
}

/// Whether the open file is the one under that name.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.dev() == named.dev() && open.ino() == named.ino(),
        _ => false,
    }
}
