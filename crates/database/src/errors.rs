//! What went wrong, where, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rustix::io::Errno;

/// Below this much free space an I/O error is taken for a full disk: `SQLite` reports some writes
/// that found no space (to its shared-memory file, for one) as plain I/O errors.
const NEARLY_FULL_BYTES: u64 = 64 * 1024;

/// Why a database could not be used. Nothing was changed in consequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// It can not grow.
    #[error("{0}")]
    Full(String),
    /// It can not be read or written.
    #[error("{0}")]
    Unavailable(String),
}

/// The result of a database operation.
pub type DatabaseResult<T> = Result<T, DatabaseError>;

/// What only the owner of a database can advise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// Completes "free some space on that disk, …".
    pub when_full: &'static str,
    /// Completes "restore it from a backup, or move it away, …".
    pub when_damaged: &'static str,
    /// Completes "every …" when there are no more file handles.
    pub when_out_of_files: &'static str,
}

/// The paths that errors name.
#[derive(Debug, Clone)]
pub struct Place {
    /// The state directory.
    pub dir: PathBuf,
    /// The database.
    pub db: PathBuf,
    /// What to do when it fails.
    pub advice: Advice,
}

impl Place {
    /// Turns an error of `SQLite` into what a caller gets.
    pub fn explain(&self, error: &rusqlite::Error) -> DatabaseError {
        let path = self.db.display();
        let dir = self.dir.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => self.full(error),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) if self.disk_is_full() => {
                self.full(error)
            }
            Some(ErrorCode::NotADatabase) => DatabaseError::Unavailable(format!(
                "{path} is not a database ({error}); it was left as it is: move it away, or choose \
                 another state directory"
            )),
            Some(ErrorCode::DatabaseCorrupt) => DatabaseError::Unavailable(format!(
                "{path} is damaged ({error}); it was left as it is: restore it from a backup, or \
                 move it away, {}",
                self.advice.when_damaged
            )),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                DatabaseError::Unavailable(format!(
                    "{path} is being held by another process ({error}): try again, and look for a \
                     process that is stopped or keeps a transaction open"
                ))
            }
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => {
                DatabaseError::Unavailable(format!(
                    "{path} can not be opened for writing ({error}): check that {dir} is a \
                     directory and that this user may write to it and to the files in it"
                ))
            }
            _ => DatabaseError::Unavailable(format!("{path}: {error}")),
        }
    }

    /// Turns an error of the file system into what a caller gets.
    pub fn explain_io(&self, doing: &str, path: &Path, error: &io::Error) -> DatabaseError {
        let path = path.display();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => DatabaseError::Full(
                format!("could not {doing} {path} ({error}): free some space on that disk"),
            ),
            _ if matches!(
                Errno::from_io_error(error),
                Some(Errno::MFILE | Errno::NFILE)
            ) =>
            {
                DatabaseError::Full(format!(
                    "could not {doing} {path} ({error}): {}",
                    self.advice.when_out_of_files
                ))
            }
            _ => DatabaseError::Unavailable(format!(
                "could not {doing} {path} ({error}): check that {} is a directory that this user \
                 may write to",
                self.dir.display()
            )),
        }
    }

    fn full(&self, error: &rusqlite::Error) -> DatabaseError {
        DatabaseError::Full(format!(
            "{} can not grow ({error}): free some space on that disk, {}",
            self.db.display(),
            self.advice.when_full
        ))
    }

    fn disk_is_full(&self) -> bool {
        rustix::fs::statvfs(&self.dir)
            .is_ok_and(|stat| stat.f_bavail.saturating_mul(stat.f_frsize) < NEARLY_FULL_BYTES)
    }
}

/// Whether `SQLite` has certainly undone the whole transaction for want of space.
pub fn is_full(error: &rusqlite::Error) -> bool {
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
}

/// Whether another connection was in the way.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    )
}
