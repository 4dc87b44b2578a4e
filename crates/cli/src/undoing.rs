//! The stores of what workspaces were before calls, and of what was set aside in them.

use std::sync::Arc;

use holdfast_toolbox::git::GitKeeper;
use holdfast_undo::{UndoResult, UndoSettings, UndoStore};

use crate::app::App;
use crate::config::home;

impl App {
    /// What workspaces were before calls.
    pub(crate) fn undo_store(&self) -> UndoResult<UndoStore> {
        let settings = UndoSettings {
            home: home(),
            ..self.config.undo.clone()
        };
        UndoStore::open(&self.state_dir, settings, self.clock.clone())
    }

    /// What git would run later, as calls leave it.
    pub(crate) fn git_keeper(&self) -> Arc<GitKeeper> {
        let keeper = GitKeeper::new(&self.state_dir, home(), self.clock.clone());
        Arc::new(keeper)
    }

    /// What workspaces were, for calls. Where it can not be opened, calls run and say that they can not be undone.
    pub(crate) fn undo_for_calls(&self) -> Option<Arc<UndoStore>> {
        if self.config.undo.points_max == 0 {
            return None;
        }
        self.undo_store().ok().map(Arc::new)
    }
}
