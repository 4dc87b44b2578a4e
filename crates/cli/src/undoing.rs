//! The store of what workspaces were before calls.

use std::sync::Arc;

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

    /// The same for calls. Where it can not be opened, calls run and say that they can not be undone.
    pub(crate) fn undo_for_calls(&self) -> Option<Arc<UndoStore>> {
        if self.config.undo.points_max == 0 {
            return None;
        }
        self.undo_store().ok().map(Arc::new)
    }
}
