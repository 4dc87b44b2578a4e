//! What only this store can be tested for.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use holdfast_contract::SystemClock;
use parking_lot::Mutex;

use super::{SqliteOptions, SqliteState};
use crate::idempotency::transition::ClaimRequest;
use crate::store::conformance::wish;
use crate::store::{Claim, DedupeStore, StoreError};

mod batches;
mod files;
mod processes;

/// Nothing takes this long unless it hangs.
const HANG: Duration = Duration::from_mins(1);

type CommitHook = Box<dyn FnMut() -> Option<StoreError> + Send>;

/// Lets a test stand between the last operation of a batch and its commit.
#[derive(Default)]
pub(in crate::store::sqlite) struct Hooks {
    before_commit: Mutex<Option<CommitHook>>,
}

impl Hooks {
    /// An error makes the commit fail.
    pub(in crate::store::sqlite) fn before_commit(&self) -> Option<StoreError> {
        self.before_commit.lock().as_mut().and_then(|hook| hook())
    }

    fn set(&self, hook: impl FnMut() -> Option<StoreError> + Send + 'static) {
        *self.before_commit.lock() = Some(Box::new(hook));
    }
}

/// Holds the writer up before its next commit, and lets all go on when dropped.
struct Gate {
    reached: Receiver<()>,
    _open_on_drop: Sender<()>,
}

impl Gate {
    fn close(store: &SqliteState) -> Self {
        let (tell, reached) = channel();
        let (open, opened) = channel::<()>();
        store.shared.hooks.set(move || {
            // Both fail once the gate is gone, and mean nothing then.
            let _ = tell.send(());
            let _ = opened.recv();
            None
        });
        Self {
            reached,
            _open_on_drop: open,
        }
    }

    fn wait_until_reached(&self) {
        self.reached.recv_timeout(HANG).unwrap();
    }
}

fn open(dir: &Path) -> Arc<SqliteState> {
    open_with(dir, SqliteOptions::default()).unwrap()
}

fn open_with(dir: &Path, options: SqliteOptions) -> Result<Arc<SqliteState>, StoreError> {
    SqliteState::open(dir, Arc::new(SystemClock), options)
}

async fn claim(store: &SqliteState, wish: ClaimRequest) -> Claim {
    tokio::time::timeout(HANG, store.claim(&wish))
        .await
        .unwrap()
        .unwrap()
}

async fn granted(store: &SqliteState, number: u16, owner: &str) {
    let claim = claim(store, wish(number, owner)).await;
    assert!(
        matches!(claim, Claim::Granted { .. }),
        "not granted: {claim:?}"
    );
}

/// Tries until it is so.
async fn until<F: Future<Output = bool>>(mut so: impl FnMut() -> F) {
    let deadline = Instant::now() + HANG;
    while !so().await {
        assert!(Instant::now() < deadline, "it never came to be");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn lock_files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir.join("locks"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}
