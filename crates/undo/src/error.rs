//! Why the store could not do what it was asked.

use std::io;
use std::path::{Path, PathBuf};

use crate::point::Point;

/// Why an operation of the store failed.
#[derive(Debug, thiserror::Error)]
pub enum UndoError {
    /// A file of the store or of the workspace could not be used.
    #[error("{what} {path}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Another process holds the workspace for too long.
    #[error("another process has used {0} for too long")]
    Busy(PathBuf),
    /// No point has this id, or no point holds a call of this id.
    #[error("there is no undo point {0}")]
    Unknown(String),
    /// The point belongs to a call that still runs.
    #[error("a call of this workspace still runs (point {0})")]
    Running(String),
    /// An earlier undo has already taken the point back.
    #[error("point {point} was already taken back by {by}; undo {by} to bring its changes again")]
    TakenBack {
        /// The point that was asked for.
        point: String,
        /// The undo that took it back.
        by: String,
    },
    /// Later calls would be taken back too, and the options do not allow it.
    #[error("this also takes back {} later point(s)", .0.len())]
    AlsoTakesBack(Vec<Point>),
    /// A file of the store does not hold what was written to it.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// A budget was reached. Nothing was kept.
    #[error("{0}")]
    Over(#[from] crate::point::NotKept),
}

/// The result of an operation of the store.
pub type UndoResult<T> = Result<T, UndoError>;

/// Gives an I/O error its place.
pub(crate) trait At<T> {
    fn at(self, what: &'static str, path: &Path) -> UndoResult<T>;
}

impl<T, E: Into<io::Error>> At<T> for Result<T, E> {
    fn at(self, what: &'static str, path: &Path) -> UndoResult<T> {
        self.map_err(|error| UndoError::Io {
            what,
            path: path.to_owned(),
            source: error.into(),
        })
    }
}
