//! What went wrong, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rustix::io::Errno;

use crate::store::StoreError;

/// Below this much free space an I/O error is taken for a full disk: `SQLite` reports some writes
/// that found no space (to its shared-memory file, for one) as plain I/O errors.
const NEARLY_FULL_BYTES: u64 = 64 * 1024;

/// Why a step inside a transaction ended early.
#[derive(Debug)]
pub(crate) enum StepError {
    /// `SQLite` refused.
    Sql(rusqlite::Error),
    /// The store itself refused: a cap, a lock file, a record that can not be read.
    Store(StoreError),
}

/// The result of a step.
pub(crate) type StepResult<T> = Result<T, StepError>;

impl From<rusqlite::Error> for StepError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<StoreError> for StepError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The paths that errors name.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The state directory.
    pub(crate) dir: PathBuf,
    /// The database.
    pub(crate) db: PathBuf,
}

impl Place {
    /// Turns the error of a step into what a caller gets.
    pub(crate) fn explain_step(&self, error: StepError) -> StoreError {
        match error {
            StepError::Sql(error) => self.explain(&error),
            StepError::Store(error) => error,
        }
    }

    /// Turns an error of `SQLite` into what a caller gets.
    pub(crate) fn explain(&self, error: &rusqlite::Error) -> StoreError {
        let path = self.db.display();
        let dir = self.dir.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => self.full(error),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if self.disk_is_full() => {
                self.full(error)
            }
            Some(ErrorCode::NotADatabase) => StoreError::Unavailable(format!(
                "{path} is not a database ({error}); it was left as it is: move it away, or choose \
                 another state directory"
            )),
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Unavailable(format!(
                "{path} is damaged ({error}); it was left as it is: restore it from a backup, or \
                 move it away, which forgets which calls have already run"
            )),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                StoreError::Unavailable(format!(
                    "{path} is being held by another process ({error}): try again, and look for a \
                     process that is stopped or keeps a transaction open"
                ))
            }
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                StoreError::Unavailable(format!(
                    "{path} can not be opened for writing ({error}): check that {dir} is a \
                     directory and that this user may write to it and to the files in it"
                ))
            }
            _ => StoreError::Unavailable(format!("{path}: {error}")),
        }
    }

    /// Turns an error of the file system into what a caller gets.
    pub(crate) fn explain_io(&self, doing: &str, path: &Path, error: &io::Error) -> StoreError {
        let path = path.display();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::Full(format!(
                "could not {doing} {path} ({error}): free some space on that disk"
            )),
            _ if matches!(
                Errno::from_io_error(error),
                Some(Errno::MFILE | Errno::NFILE)
            ) =>
            {
                StoreError::Full(format!(
                    "could not {doing} {path} ({error}): every running call has one file open, so \
                     let fewer run at once or raise the limit on open files"
                ))
            }
            _ => StoreError::Unavailable(format!(
                "could not {doing} {path} ({error}): check that {} is a directory that this user \
                 may write to",
                self.dir.display()
            )),
        }
    }

    fn full(&self, error: &rusqlite::Error) -> StoreError {
        StoreError::Full(format!(
            "{} can not grow ({error}): free some space on that disk, flush old records, or raise \
             the limit",
            self.db.display()
        ))
    }

    fn disk_is_full(&self) -> bool {
        rustix::fs::statvfs(&self.dir)
            .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < NEARLY_FULL_BYTES)
    }
}

/// Whether `SQLite` has certainly undone the whole transaction for want of space.
pub(crate) fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Whether another connection was in the way.
pub(crate) fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}

/// The answer to anything that is asked of a store that is shutting down.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is shut down".to_owned())
}
