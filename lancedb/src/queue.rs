//! Whose turn it is to write, among all processes.
//!
//! Two locks, because whoever lets go of one and wants it again at once would nearly always get it
//! before those who look now and then: a writer first locks the gate, waits there for the lock of
//! the one that writes, and then opens the gate for the next. So who has just written stands behind
//! the one at the gate. Readers need neither.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_contract::memory::MemoryResult;
use rustix::fs::{FlockOperation, flock};

use crate::place::unusable;

/// What the one that writes has locked, beside the dataset. It also holds what was written since
/// the dataset was last put in order.
pub const MEMORY_LOCK_FILE: &str = "memory.lance.lock";
/// What the next one has locked.
pub const MEMORY_GATE_FILE: &str = "memory.lance.gate";
/// How long a writer waits for the writers before it, one of which may be putting everything in
/// order.
const LOCK_WAIT_MAX: Duration = Duration::from_mins(1);
/// How often it looks.
const LOCK_LOOK: Duration = Duration::from_millis(5);

/// The right to write, of this process.
pub(crate) struct WriterLock {
    file: File,
}

/// Waits for the right to write. It ends with what is given back.
pub(crate) async fn wait(state_dir: &Path) -> MemoryResult<WriterLock> {
    let until = Instant::now() + LOCK_WAIT_MAX;
    let gate = locked(&state_dir.join(MEMORY_GATE_FILE), until).await?;
    let file = locked(&state_dir.join(MEMORY_LOCK_FILE), until).await?;
    drop(gate);
    Ok(WriterLock { file })
}

async fn locked(path: &Path, until: Instant) -> MemoryResult<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
        .map_err(|error| unusable("open", path, &error))?;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if Instant::now() >= until {
            return Err(unusable("lock", path, &error.into()));
        }
        tokio::time::sleep(LOCK_LOOK).await;
    }
    Ok(file)
}

/// What was written since the dataset was last put in order, by all processes together: most live
/// for a single commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Since {
    pub(crate) commits: u64,
    pub(crate) rows: u64,
}

impl Since {
    /// With one more commit, of this many rows.
    pub(crate) fn and(self, rows: u64) -> Self {
        Self {
            commits: self.commits.saturating_add(1),
            rows: self.rows.saturating_add(rows),
        }
    }

    pub(crate) fn reaches(self, most: Self) -> bool {
        self.commits >= most.commits || self.rows >= most.rows
    }
}

impl WriterLock {
    /// What is not to be read counts as nothing: then the dataset is put in order later.
    pub(crate) fn since(&self) -> Since {
        let mut bytes = [0; 16];
        if self.file.read_exact_at(&mut bytes, 0).is_err() {
            return Since::default();
        }
        let numbers = u128::from_le_bytes(bytes);
        Since {
            commits: numbers as u64,
            rows: (numbers >> u64::BITS) as u64,
        }
    }

    /// Nothing depends on it but how soon the dataset is put in order, so it need not reach the
    /// disk, and a failure is none.
    pub(crate) fn note(&self, since: Since) {
        let numbers = u128::from(since.rows) << u64::BITS | u128::from(since.commits);
        let _ = self.file.write_all_at(&numbers.to_le_bytes(), 0);
    }
}
