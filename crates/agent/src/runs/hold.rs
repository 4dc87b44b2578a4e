//! Which runs somebody of this process has in hand.
//!
//! A run is in one hand at most: of whoever begins it, works on it, takes it up or ends it. Nobody
//! else here writes it meanwhile, so whatever the store has of this process was written by that one
//! hand, also when the answer to the write was lost.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// All of them.
#[derive(Clone, Default)]
pub(super) struct Holds(Arc<Inner>);

#[derive(Default)]
struct Inner {
    held: Mutex<HashSet<String>>,
    freed: Notify,
}

/// A run that is in hand until this is dropped.
pub(super) struct Hold {
    run: String,
    all: Holds,
}

impl Holds {
    /// Takes a run in hand, unless somebody has it.
    pub(super) fn take(&self, run: &str) -> Option<Hold> {
        let is_free = self.0.held.lock().insert(run.to_owned());
        is_free.then(|| Hold {
            run: run.to_owned(),
            all: self.clone(),
        })
    }

    /// Whether somebody has it.
    pub(super) fn has(&self, run: &str) -> bool {
        self.0.held.lock().contains(run)
    }

    /// Ready when nobody has it.
    pub(super) async fn until_free(&self, run: &str) {
        loop {
            let freed = self.0.freed.notified();
            if !self.has(run) {
                return;
            }
            freed.await;
        }
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.all.0.held.lock().remove(&self.run);
        self.all.0.freed.notify_waiters();
    }
}
