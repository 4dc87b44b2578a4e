//! The embedded durable store: one `SQLite` database in a state directory, shared by every process
//! that uses the directory.
//!
//! | module | what it does |
//! |---|---|
//! | `schema` | the tables, and how older ones become these |
//! | `queue`, `writer` | one thread that puts everything that waits into one transaction |
//! | `reader` | reads beside it |
//! | `locks` | who is still alive, by operating-system locks |
//! | `waiters` | duplicates that wait for a running call, also of another process |
//! | `rows`, `usage`, `dedupe` | the records of intents, and what they take up |
//! | `documents` | approvals, rules, sessions |
//! | `errors` | what went wrong, where, and what to do about it |
//!
//! Whatever goes wrong is an error and never a grant: a call that can not be protected is not run.
//! No file is ever deleted or rewritten to get going again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_contract::Clock;
use holdfast_database::{FileIdentity, connection, migrate};
use parking_lot::{Condvar, Mutex};
use rusqlite::Connection;
use tokio::sync::oneshot;

use self::errors::{ADVICE, Place, StepResult, closed};
use self::locks::Locks;
use self::queue::Queue;
use self::reader::Readers;
use self::waiters::Waiters;
use self::writer::{ClosureOp, Durability, Step, Writer};
use crate::store::{StoreError, StoreResult};

mod breakers;
mod dedupe;
mod documents;
mod errors;
mod heir;
mod journal;
pub(crate) mod locks;
pub(crate) mod queue;
pub(crate) mod reader;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod turns;
mod usage;
mod waiters;
mod writer;

/// The database's name in the state directory.
pub const DATABASE_FILE: &str = "holdfast.db";
/// Default of [`SqliteOptions::keys_max`].
pub const SQLITE_KEYS_MAX: u64 = 500_000;
/// Default of [`SqliteOptions::bytes_max`].
pub const SQLITE_BYTES_MAX: u64 = 4 * 1024 * 1024 * 1024;
/// Default of [`SqliteOptions::busy_wait_ms`].
pub const BUSY_WAIT_MS: u64 = 10_000;
/// How long the drop of a store waits for its last writes. They are usually a matter of
/// milliseconds; the bound is for a database that another process holds.
const CLOSE_WAIT: Duration = Duration::from_secs(15);

/// The limits of an embedded store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteOptions {
    /// Records. At the bound the ones that ended longest ago are forgotten; if none has ended, a
    /// claim is refused.
    pub keys_max: u64,
    /// Bytes of records, roughly; as with `keys_max`.
    pub bytes_max: u64,
    /// How long to wait for a database that another process holds.
    pub busy_wait_ms: u64,
    /// Pages of the database file, if it is to be bounded. At the bound a write fails as on a full
    /// disk.
    pub pages_max: Option<u32>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            keys_max: SQLITE_KEYS_MAX,
            bytes_max: SQLITE_BYTES_MAX,
            busy_wait_ms: BUSY_WAIT_MS,
            pages_max: None,
        }
    }
}

impl SqliteOptions {
    fn opening(&self) -> holdfast_database::Options {
        holdfast_database::Options {
            busy_wait_ms: self.busy_wait_ms,
            pages_max: self.pages_max,
        }
    }
}

/// Set once, waited for with a bound.
#[derive(Default)]
struct Flag {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Flag {
    fn set(&self) {
        *self.set.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self, at_most: Duration) -> bool {
        let mut set = self.set.lock();
        let _ = self.changed.wait_while_for(&mut set, |set| !*set, at_most);
        *set
    }
}

/// What the threads of a store share.
struct Shared {
    place: Place,
    clock: Arc<dyn Clock>,
    options: SqliteOptions,
    queue: Queue,
    readers: Readers,
    locks: Locks,
    waiters: Waiters,
    commits: AtomicU64,
    writer_done: Flag,
    #[cfg(test)]
    hooks: tests::Hooks,
}

/// The state directory of one process: records of intents, and whatever else has tables here.
pub struct SqliteState {
    shared: Arc<Shared>,
    writer: Option<JoinHandle<()>>,
}

impl SqliteState {
    /// Opens the state directory, creating it (for its owner alone) and the database where needed,
    /// and bringing an older database up to date. Blocks for a moment.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use holdfast_contract::SystemClock;
    /// use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
    ///
    /// let dir = tempfile::tempdir()?;
    /// let store = SqliteState::open(dir.path(), Arc::new(SystemClock), SqliteOptions::default())?;
    /// assert!(dir.path().join("holdfast.db").exists());
    /// # drop(store);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(
        dir: &Path,
        clock: Arc<dyn Clock>,
        options: SqliteOptions,
    ) -> StoreResult<Arc<Self>> {
        let place = Place {
            dir: dir.to_owned(),
            db: dir.join(DATABASE_FILE),
            advice: ADVICE,
        };
        connection::create_private_dir(&place, dir)?;
        connection::create_private_file(&place)?;
        let conn = connection::open_writer(&place, &options.opening())?;
        migrate(&conn, &place, &schema::SCHEMA)?;
        let identity = FileIdentity::of(&place)?;
        let shared = Arc::new(Shared {
            locks: Locks::open(&place)?,
            place,
            clock,
            options,
            queue: Queue::new(),
            readers: Readers::new(),
            waiters: Waiters::default(),
            commits: AtomicU64::new(0),
            writer_done: Flag::default(),
            #[cfg(test)]
            hooks: tests::Hooks::default(),
        });
        let writer = Writer::new(shared.clone(), conn, identity);
        let thread = std::thread::Builder::new()
            .name("holdfast-writer".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| {
                StoreError::Unavailable(format!("could not start the writer thread: {error}"))
            })?;
        Ok(Arc::new(Self {
            shared,
            writer: Some(thread),
        }))
    }

    /// Transactions committed so far by this process. Far fewer than operations when many arrive
    /// at once.
    pub fn commits(&self) -> u64 {
        self.shared.commits.load(Ordering::Relaxed)
    }

    /// Carries out a step in a transaction, and answers once it is committed.
    ///
    /// The step may run twice if the first transaction was undone; only the last run counts. It is
    /// carried out even if the caller goes away meanwhile.
    pub(crate) async fn write<T, F>(&self, durability: Durability, step: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnMut(&mut Step<'_>) -> StepResult<T> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        self.shared
            .queue
            .push(Box::new(ClosureOp::new(durability, step, Some(reply))))
            .await?;
        answer.await.unwrap_or_else(|_| Err(closed()))
    }

    /// As [`Self::write`], from a place that can not wait, inside or outside a runtime. Says
    /// whether it was taken in: beyond [`queue::DETACHED_QUEUE_MAX`] it is not.
    pub(crate) fn write_detached<T, F>(&self, durability: Durability, step: F) -> bool
    where
        T: Send + 'static,
        F: FnMut(&mut Step<'_>) -> StepResult<T> + Send + 'static,
    {
        self.shared
            .queue
            .push_detached(Box::new(ClosureOp::new(durability, step, None)))
    }

    /// Reads on a connection of its own, never blocked by the writer. Needs a tokio runtime.
    pub(crate) async fn read<T, F>(&self, look: F) -> StoreResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> StepResult<T> + Send + 'static,
    {
        reader::read(self.shared.clone(), look).await
    }
}

/// Carries out what has been taken in, then ends the threads.
impl Drop for SqliteState {
    fn drop(&mut self) {
        self.shared.queue.close();
        self.shared.waiters.close();
        if let Some(poller) = self.shared.waiters.take_poller() {
            // A panic of it has hurt nobody: the waiting were woken above.
            let _ = poller.join();
        }
        if self.shared.writer_done.wait(CLOSE_WAIT)
            && let Some(writer) = self.writer.take()
        {
            let _ = writer.join();
        }
    }
}
