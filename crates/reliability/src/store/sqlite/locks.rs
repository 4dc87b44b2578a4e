//! Who is still alive, by operating-system locks.
//!
//! Every granted claim holds an exclusive `flock` on a file of its own, named in its row. The lock
//! belongs to the open file, not to the process: it ends when the last process that has it open is
//! gone. Nothing has to be written or renewed for that, and the kernel tells the truth even about a
//! process that was killed.
//!
//! The file exists and is locked before the record is visible, and is given up only after the
//! record has ended; so "no file" and "a file nobody has locked" both mean that the holder is gone.
//!
//! Children inherit the lock of a second file, their call's heir (`heir.rs`): whoever has a lock can
//! release it, and a command must not be able to make its own call look dead while it runs.
//!
//! Files are used again by the process that made them: creating one for every claim makes the sync
//! of the claims several times dearer, since the file system has to write its journal as well, and
//! some file systems search long for a place next to files that have just been removed.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_contract::{Entropy as _, Lifeline, SystemEntropy};
use holdfast_database::connection::create_private_dir;
use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};

use super::errors::Place;
use super::heir::{self, Heir};
use crate::idempotency::key::StoredKey;
use crate::idempotency::transition::Holder;
use crate::store::{StoreError, StoreResult};

/// The directory of the lock files, below the state directory.
const LOCKS_DIR: &str = "locks";
/// Files kept for the next claims, closed; more are removed when they get free.
const IDLE_LOCKS_MAX: usize = 4_096;
/// Files kept for the next claims, open and locked. Each is a file handle of this process.
pub(crate) const SPARE_LOCKS_MAX: usize = 128;
/// Tries for a file that a sweep may be looking at.
const LOCK_TRIES_MAX: u32 = 20;

/// A locked file. No child ever inherits it.
#[derive(Debug)]
pub(super) struct Lock {
    /// Its name, for the row.
    pub(super) name: String,
    /// What children are handed.
    pub(super) lifeline: Lifeline,
    heir: Arc<Heir>,
    file: File,
}

impl Lock {
    fn new(dir: &Path, name: String, file: File) -> Self {
        let heir = Arc::new(Heir::of(dir, &name));
        let lender = heir.clone();
        Self {
            name,
            lifeline: Lifeline::new(move || lender.lend()),
            heir,
            file,
        }
    }

    /// The same file for another claim, which the children of this one have no part in.
    fn renewed(self, dir: &Path) -> Self {
        if self.lifeline.is_unused() {
            return self;
        }
        self.heir.end();
        Self::new(dir, self.name, self.file)
    }

    /// Whether the file still has a name that others can find it under.
    fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() > 0)
    }
}

/// The lock files of one state directory, and those that this process holds.
pub(super) struct Locks {
    place: Place,
    dir: PathBuf,
    /// In front of the names of all files made here.
    prefix: String,
    made: AtomicU64,
    /// By claim. Kept here because a caller may drop its own copy while the call still runs.
    held: Mutex<HashMap<(StoredKey, Arc<str>), Lock>>,
    /// Of claims that have ended; given up when the answers are out.
    let_go: Mutex<Vec<Lock>>,
    /// For the next claims, still open and locked: nobody else can ever have had them.
    spare: Mutex<Vec<Lock>>,
    /// Names of files that are there for the next claims. Nobody has them locked, so a sweep of
    /// another process may remove them.
    idle: Mutex<Vec<String>>,
}

impl Locks {
    pub(super) fn open(place: &Place) -> StoreResult<Self> {
        let dir = place.dir.join(LOCKS_DIR);
        create_private_dir(place, &dir)?;
        Ok(Self {
            place: place.clone(),
            dir,
            prefix: unique_prefix(),
            made: AtomicU64::new(0),
            held: Mutex::default(),
            let_go: Mutex::default(),
            spare: Mutex::default(),
            idle: Mutex::default(),
        })
    }

    /// A locked file for a claim that is about to be granted.
    pub(super) fn acquire(&self) -> StoreResult<Lock> {
        while let Some(spare) = { self.spare.lock().pop() } {
            if spare.is_there() {
                return Ok(spare);
            }
        }
        while let Some(name) = { self.idle.lock().pop() } {
            let path = self.dir.join(&name);
            // A file that is gone, or that somebody is looking at, is passed over; the next sweep
            // takes what is left of it.
            let Ok(file) = OpenOptions::new().write(true).open(&path) else {
                continue;
            };
            if lock(&file) && is_at(&file, &path) {
                return Ok(Lock::new(&self.dir, name, file));
            }
        }
        let mut tries = 0;
        loop {
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{number}", self.prefix);
            let path = self.dir.join(&name);
            let created = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path);
            match created {
                Ok(file) => {
                    // A sweep may have found the file between its creation and the lock.
                    if lock(&file) && is_at(&file, &path) {
                        return Ok(Lock::new(&self.dir, name, file));
                    }
                    tries += 1;
                }
                Err(error) => {
                    return Err(self.place.explain_io("create", &path, &error).into());
                }
            }
            if tries == LOCK_TRIES_MAX {
                return Err(StoreError::Unavailable(format!(
                    "could not lock a file in {}: choose a state directory on a local disk",
                    self.dir.display()
                )));
            }
        }
    }

    /// Takes care of a lock until its claim ends.
    pub(super) fn keep(&self, key: StoredKey, owner: Arc<str>, lock: Lock) {
        self.held.lock().insert((key, owner), lock);
    }

    /// Whether the claim is one that this process has been granted and has not ended.
    pub(super) fn holds(&self, key: &StoredKey, owner: &str) -> bool {
        self.held.lock().contains_key(&(*key, Arc::from(owner)))
    }

    /// The claim has ended: its lock is no longer needed.
    pub(super) fn let_go(&self, key: StoredKey, owner: Arc<str>) {
        let ended = self.held.lock().remove(&(key, owner));
        if let Some(lock) = ended {
            self.give_back(lock);
        }
    }

    /// Takes a lock back that no visible record names.
    pub(super) fn give_back(&self, lock: Lock) {
        self.let_go.lock().push(lock);
    }

    /// Makes the files of claims that have ended ready for the next ones.
    pub(super) fn recycle(&self) {
        let ended = std::mem::take(&mut *self.let_go.lock());
        for ended in ended {
            let Some(ended) = self.spare(ended.renewed(&self.dir)) else {
                continue;
            };
            if self.idle.lock().len() >= IDLE_LOCKS_MAX {
                // Still locked, so nobody can have put another in its place. A file that stays is
                // a stale one, which the next sweep removes.
                let _ = std::fs::remove_file(self.dir.join(&ended.name));
                continue;
            }
            drop(ended.file);
            self.idle.lock().push(ended.name);
        }
    }

    /// Keeps a file as it is for the next claim, or gives it back if that can not be. Opening and
    /// locking one takes longer than everything else about a claim but its sync.
    fn spare(&self, ended: Lock) -> Option<Lock> {
        let mut spare = self.spare.lock();
        if spare.len() >= SPARE_LOCKS_MAX {
            return Some(ended);
        }
        spare.push(ended);
        None
    }

    /// Whether the holder of a claim is known to be gone.
    pub(super) fn holder(&self, key: &StoredKey, owner: &str, lock_file: Option<&str>) -> Holder {
        // A row without a file was not written by this store: nothing is known.
        let Some(name) = lock_file else {
            return Holder::MayLive;
        };
        if self.holds(key, owner) {
            return Holder::MayLive;
        }
        match is_locked(&self.dir.join(name)) {
            // A call that is gone may have left a child behind.
            Holder::Dead => is_locked(&heir::path(&self.dir, name)),
            Holder::MayLive => Holder::MayLive,
        }
    }

    /// Removes the files that dead holders left; says how many.
    pub(super) fn sweep(&self) -> StoreResult<u64> {
        let entries = std::fs::read_dir(&self.dir)
            .map_err(|error| self.place.explain_io("list", &self.dir, &error))?;
        let idle: HashSet<OsString> = self.idle.lock().iter().map(OsString::from).collect();
        let mut removed = 0;
        for entry in entries.flatten() {
            if idle.contains(&entry.file_name()) {
                continue;
            }
            let path = entry.path();
            let Ok(file) = File::open(&path) else {
                continue;
            };
            // Exclusive, and checked again under the lock: of two sweeps only one may remove the
            // name, or the second could remove a file that was created after the first.
            if lock(&file) && is_at(&file, &path) && std::fs::remove_file(&path).is_ok() {
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// How many claims this process holds.
    #[cfg(test)]
    pub(super) fn held_count(&self) -> usize {
        self.held.lock().len()
    }
}

/// A store that ends well leaves no files behind. Those of running calls stay, for all to see that
/// nobody holds them any more.
impl Drop for Locks {
    fn drop(&mut self) {
        for spare in self.spare.get_mut().drain(..) {
            // Still locked, so nobody can have put another in its place.
            let _ = std::fs::remove_file(self.dir.join(&spare.name));
        }
        for name in self.idle.get_mut().drain(..) {
            let path = self.dir.join(name);
            // Whoever has it locked has made it anew after a sweep.
            if File::open(&path).is_ok_and(|file| lock(&file) && is_at(&file, &path)) {
                let _ = std::fs::remove_file(path);
            }
        }
    }
}

/// What no other store ever has in front of its names. The process id is there for people: ids come
/// again (in another container, after a restart), and a dead process may have left a record that
/// names its file, and a child that holds its heir.
fn unique_prefix() -> String {
    format!("{}-{:016x}", std::process::id(), SystemEntropy.next_u64())
}

/// Whether somebody lives who has this file locked.
fn is_locked(path: &Path) -> Holder {
    match File::open(path) {
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

pub(super) fn lock(file: &File) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// Whether the open file is the one under that name.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(open), Ok(named)) => open.dev() == named.dev() && open.ino() == named.ino(),
        _ => false,
    }
}
