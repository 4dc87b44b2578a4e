//! Why a step of the store ended early, and what a caller gets to know.

use holdfast_database::{Advice, DatabaseError};

use crate::store::StoreError;

pub(crate) use holdfast_database::{Place, is_full};

/// What to do when the store of records fails.
pub(super) const ADVICE: Advice = Advice {
    when_full: "flush old records, or raise the limit",
    when_damaged: "which forgets which calls have already run",
    when_out_of_files: "every running call has one file open, so let fewer run at once or raise the \
                        limit on open files",
};

impl From<DatabaseError> for StoreError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Full(message) => Self::Full(message),
            DatabaseError::Unavailable(message) => Self::Unavailable(message),
        }
    }
}

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

/// Turns the error of a step into what a caller gets.
pub(crate) fn explain_step(place: &Place, error: StepError) -> StoreError {
    match error {
        StepError::Sql(error) => place.explain(&error).into(),
        StepError::Store(error) => error,
    }
}

/// The answer to anything that is asked of a store that is shutting down.
pub(crate) fn closed() -> StoreError {
    StoreError::Unavailable("the store is shut down".to_owned())
}
