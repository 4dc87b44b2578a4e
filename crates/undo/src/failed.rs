//! Workspaces for which the store failed a short while ago. Only this process remembers them.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::limits::{FAILED_REMEMBERED_MAX, OVER_BUDGET_REMEMBERED_MS};

/// When the store last failed to take the state before a call, by workspace.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<PathBuf, u64>>);

impl Failures {
    fn all(&self) -> MutexGuard<'_, HashMap<PathBuf, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers a failure. The oldest one goes where there are too many.
    pub(crate) fn add(&self, workspace: PathBuf, now_ms: u64) {
        let mut all = self.all();
        if all.len() >= FAILED_REMEMBERED_MAX && !all.contains_key(&workspace) {
            let oldest = all.iter().min_by_key(|(_, at_ms)| **at_ms);
            if let Some(oldest) = oldest.map(|(path, _)| path.clone()) {
                all.remove(&oldest);
            }
        }
        all.insert(workspace, now_ms);
    }

    pub(crate) fn clear(&self, workspace: &Path) {
        self.all().remove(workspace);
    }

    /// Whether the last attempt failed, and not too long ago.
    pub(crate) fn is_recent(&self, workspace: &Path, now_ms: u64) -> bool {
        let at_ms = self.all().get(workspace).copied();
        // A clock that was set back says nothing about the age.
        let age_ms = at_ms.and_then(|at_ms| now_ms.checked_sub(at_ms));
        age_ms.is_some_and(|age_ms| age_ms < OVER_BUDGET_REMEMBERED_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failure_is_remembered_for_a_while() {
        let failures = Failures::default();
        let path = Path::new("/a");
        failures.add(path.into(), 1000);
        assert!(failures.is_recent(path, 1000));
        assert!(failures.is_recent(path, 999 + OVER_BUDGET_REMEMBERED_MS));
        assert!(!failures.is_recent(path, 1000 + OVER_BUDGET_REMEMBERED_MS));
        assert!(!failures.is_recent(Path::new("/b"), 1000));
        failures.clear(path);
        assert!(!failures.is_recent(path, 1000));
    }

    #[test]
    fn oldest_failure_goes_when_there_are_too_many() {
        let failures = Failures::default();
        let path = |number: usize| PathBuf::from(format!("/{number}"));
        for number in 0..=FAILED_REMEMBERED_MAX {
            failures.add(path(number), number as u64);
        }
        // One that is known already takes no room.
        failures.add(path(1), 1);
        assert_eq!(failures.all().len(), FAILED_REMEMBERED_MAX);
        assert!(!failures.is_recent(&path(0), 1) && failures.is_recent(&path(1), 1));
    }
}
