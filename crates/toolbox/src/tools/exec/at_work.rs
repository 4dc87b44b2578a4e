//! In which workspaces something of a command may still run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

static WORKSPACES: Mutex<BTreeMap<PathBuf, usize>> = Mutex::new(BTreeMap::new());

/// Held while a command runs, and while something that it left may.
#[derive(Debug)]
pub(super) struct AtWork(PathBuf);

impl AtWork {
    pub(super) fn in_workspace(workspace: &Path) -> Self {
        *WORKSPACES.lock().entry(workspace.to_owned()).or_default() += 1;
        Self(workspace.to_owned())
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let mut all = WORKSPACES.lock();
        if let Some(count) = all.get_mut(&self.0) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.0);
            }
        }
    }
}

/// Whether something runs there, or may.
pub(crate) fn is_at_work(workspace: &Path) -> bool {
    WORKSPACES.lock().contains_key(workspace)
}
