//! The embedded memory: one `SQLite` database in a directory, shared by every process that uses it.
//!
//! | module | what it does |
//! |---|---|
//! | `schema` | the tables |
//! | `rows` | a row becomes a record |
//! | `write` | records and vectors in, in transactions |
//! | `read` | search, listings, snapshots |
//! | `examine` | a look that changes nothing |
//! | `cache` | all vectors of one model in memory, kept up with other processes' writes |
//!
//! The file is opened when it is first needed. Nothing is ever deleted or rewritten to get going
//! again: a damaged, full or foreign file is an error that says what to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::memory::{Inserted, MemoryCursor, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryError, MemoryRecord, MemoryType};
use holdfast_database::{Advice, DatabaseError, FileIdentity, Options, Place, connection, migrate};
use parking_lot::{Mutex, RwLock};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::Semaphore;

use self::cache::Vectors;
use crate::backend::{Backend, Put, RecallPlan, Recalled, Snapshot};

mod cache;
mod examine;
mod read;
mod rows;
mod schema;
#[cfg(test)]
mod tests;
mod write;

pub use examine::examine;
pub use write::REMOVED_VECTORS_MAX;

/// The database's name in the state directory.
pub const MEMORY_FILE: &str = "memory.db";
/// Default of [`SqliteMemoryOptions::records_max`].
pub const MEMORY_RECORDS_MAX: u64 = 1_000_000;
/// Reads at the same time; further ones wait.
pub const MEMORY_READERS_MAX: usize = 4;
/// Default of [`SqliteMemoryOptions::busy_wait_ms`].
pub const MEMORY_BUSY_WAIT_MS: u64 = 10_000;

const ADVICE: Advice = Advice {
    when_full: "delete records that are no longer needed, or raise the limit",
    when_damaged: "and import your last export with `holdfast memory import`",
    when_out_of_files: "raise the limit on open files",
};

/// The limits of an embedded memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SqliteMemoryOptions {
    /// Records; one more is refused.
    pub records_max: u64,
    /// How long to wait for a database that another process holds.
    pub busy_wait_ms: u64,
    /// Pages of the database file, if it is to be bounded.
    pub pages_max: Option<u32>,
}

impl Default for SqliteMemoryOptions {
    fn default() -> Self {
        Self {
            records_max: MEMORY_RECORDS_MAX,
            busy_wait_ms: MEMORY_BUSY_WAIT_MS,
            pages_max: None,
        }
    }
}

impl SqliteMemoryOptions {
    fn opening(&self) -> Options {
        Options {
            busy_wait_ms: self.busy_wait_ms,
            pages_max: self.pages_max,
        }
    }
}

/// Why a step ended early.
pub(crate) enum StepError {
    Sql(rusqlite::Error),
    Memory(MemoryError),
}

type StepResult<T> = Result<T, StepError>;

impl From<rusqlite::Error> for StepError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<MemoryError> for StepError {
    fn from(error: MemoryError) -> Self {
        Self::Memory(error)
    }
}

fn from_database(error: DatabaseError) -> MemoryError {
    match error {
        DatabaseError::Full(message) => MemoryError::Full(message),
        DatabaseError::Unavailable(message) => MemoryError::Unavailable(message),
    }
}

/// The database once it is open.
struct Opened {
    identity: FileIdentity,
    writer: Mutex<Connection>,
    idle_readers: Mutex<Vec<Connection>>,
    vectors: RwLock<Option<Vectors>>,
}

struct Shared {
    place: Place,
    options: SqliteMemoryOptions,
    opened: Mutex<Option<Arc<Opened>>>,
    turns: Arc<Semaphore>,
}

/// The embedded memory of one state directory.
#[derive(Clone)]
pub struct SqliteMemory {
    shared: Arc<Shared>,
}

impl SqliteMemory {
    /// The memory in this directory. Nothing is opened or created before it is needed.
    pub fn new(dir: &Path, options: SqliteMemoryOptions) -> Self {
        Self {
            shared: Arc::new(Shared {
                place: Place {
                    dir: dir.to_owned(),
                    db: dir.join(MEMORY_FILE),
                    advice: ADVICE,
                },
                options,
                opened: Mutex::default(),
                turns: Arc::new(Semaphore::new(MEMORY_READERS_MAX)),
            }),
        }
    }

    /// Where the database is.
    pub fn path(&self) -> PathBuf {
        self.shared.place.db.clone()
    }

    /// Carries out a step in a transaction of its own, on a thread that may block.
    async fn write<T, F>(&self, step: F) -> MemoryResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Transaction<'_>, &SqliteMemoryOptions) -> StepResult<T> + Send + 'static,
    {
        let shared = self.shared.clone();
        blocking(move || {
            let opened = shared.open()?;
            let mut conn = opened.writer.lock();
            shared.explained(|| {
                let transaction = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
                let done = step(&transaction, &shared.options)?;
                transaction.commit()?;
                Ok(done)
            })
        })
        .await
    }

    /// Looks at one state of the database, on a thread that may block.
    async fn read<T, F>(&self, look: F) -> MemoryResult<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &Opened) -> StepResult<T> + Send + 'static,
    {
        let shared = self.shared.clone();
        let turn = self.shared.turns.clone().acquire_owned().await;
        blocking(move || {
            // Held until the end, also when the caller has gone by then.
            let _turn = turn;
            let opened = shared.open()?;
            let idle = opened.idle_readers.lock().pop();
            let conn = match idle {
                Some(conn) => conn,
                None => shared.reader()?,
            };
            let found = shared.explained(|| {
                let transaction = conn.unchecked_transaction()?;
                let found = look(&transaction, &opened)?;
                transaction.commit()?;
                Ok(found)
            })?;
            // After an error the connection is dropped instead: the next read starts afresh.
            opened.idle_readers.lock().push(conn);
            Ok(found)
        })
        .await
    }
}

impl Shared {
    /// The open database. What failed to open is tried again the next time.
    fn open(&self) -> MemoryResult<Arc<Opened>> {
        let mut opened = self.opened.lock();
        if let Some(opened) = &*opened {
            opened.identity.check(&self.place).map_err(from_database)?;
            return Ok(opened.clone());
        }
        let fresh = Arc::new(self.open_file().map_err(from_database)?);
        *opened = Some(fresh.clone());
        Ok(fresh)
    }

    fn open_file(&self) -> Result<Opened, DatabaseError> {
        connection::create_private_dir(&self.place, &self.place.dir)?;
        connection::create_private_file(&self.place)?;
        let conn = connection::open_writer(&self.place, &self.options.opening())?;
        migrate(&conn, &self.place, &schema::SCHEMA)?;
        Ok(Opened {
            identity: FileIdentity::of(&self.place)?,
            writer: Mutex::new(conn),
            idle_readers: Mutex::default(),
            vectors: RwLock::default(),
        })
    }

    fn reader(&self) -> MemoryResult<Connection> {
        connection::open_reader(&self.place, &self.options.opening()).map_err(from_database)
    }

    /// Runs a step and says in full what went wrong.
    fn explained<T>(&self, step: impl FnOnce() -> StepResult<T>) -> MemoryResult<T> {
        step().map_err(|error| match error {
            StepError::Sql(error) => from_database(self.place.explain(&error)),
            StepError::Memory(error) => error,
        })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> MemoryResult<T> + Send + 'static,
) -> MemoryResult<T> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|error| {
            Err(MemoryError::Unavailable(format!(
                "the work was cut short: {error}"
            )))
        })
}

#[async_trait]
impl Backend for SqliteMemory {
    async fn recall(&self, plan: RecallPlan) -> MemoryResult<Recalled> {
        self.read(move |conn, opened| read::recall(conn, &opened.vectors, &plan))
            .await
    }

    async fn get(&self, id: &str) -> MemoryResult<Option<MemoryRecord>> {
        let id = id.to_owned();
        self.read(move |conn, _| read::get(conn, &id)).await
    }

    async fn list(&self, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>> {
        let page = page.clone();
        self.read(move |conn, _| read::list(conn, &page)).await
    }

    async fn count(&self, memory_type: Option<MemoryType>) -> MemoryResult<u64> {
        self.read(move |conn, _| read::count(conn, memory_type))
            .await
    }

    async fn remember(&self, record: MemoryRecord) -> MemoryResult<Put> {
        self.write(move |step, options| write::remember(step, options, &record))
            .await
    }

    async fn insert(&self, records: Vec<MemoryRecord>) -> MemoryResult<Inserted> {
        self.write(move |step, options| write::insert(step, options, &records))
            .await
    }

    async fn delete(&self, id: &str) -> MemoryResult<bool> {
        let id = id.to_owned();
        self.write(move |step, _| write::delete(step, &id)).await
    }

    async fn without_embedding(
        &self,
        model: &str,
        dimensions: usize,
        after: Option<MemoryCursor>,
        limit: usize,
    ) -> MemoryResult<Vec<MemoryRecord>> {
        let model = model.to_owned();
        self.read(move |conn, _| {
            read::without_embedding(conn, &model, dimensions, after.as_ref(), limit)
        })
        .await
    }

    async fn embed(&self, vectors: Vec<(String, Embedding)>) -> MemoryResult<u64> {
        self.write(move |step, _| write::embed(step, &vectors))
            .await
    }

    async fn snapshot(&self) -> MemoryResult<Box<dyn Snapshot>> {
        let shared = self.shared.clone();
        blocking(move || {
            shared.open()?;
            let conn = shared.reader()?;
            let snapshot = read::SqliteSnapshot::begin(conn, shared.place.clone())?;
            Ok(Box::new(snapshot) as Box<dyn Snapshot>)
        })
        .await
    }
}
