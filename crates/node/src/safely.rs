//! No panic crosses into Node: there it would end the whole process.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::{Error, Result};

/// Runs `work`; a panic in it becomes an error that JavaScript can catch.
pub(crate) fn run<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    // What a panic may leave half done is behind locks that are not poisoned, and only counts.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<&str>()
            .map(|text| (*text).to_owned())
            .or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_default();
        Err(Error::from_reason(format!(
            "holdfast: a fault of ours, please report it: {said}"
        )))
    })
}

/// An error of ours in JavaScript.
pub(crate) fn failed(error: impl std::fmt::Display) -> Error {
    Error::from_reason(format!("holdfast: {error}"))
}
