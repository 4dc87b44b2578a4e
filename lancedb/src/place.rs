//! The dataset in a directory: opened, locked for writers, kept in shape, made durable.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_contract::MemoryError;
use holdfast_contract::memory::MemoryResult;
use lancedb::Table;
use lancedb::index::Index;
use lancedb::index::scalar::BTreeIndexBuilder;
use lancedb::table::{CompactionOptions, OptimizeAction, OptimizeOptions};
use rustix::fs::{FlockOperation, flock, syncfs};
use tokio::runtime::Runtime;

use crate::{rows, words};

/// The dataset's directory in the state directory.
pub const MEMORY_DIR: &str = "memory.lance";
/// What writers lock, beside it.
pub const MEMORY_LOCK_FILE: &str = "memory.lance.lock";
/// The one table.
const TABLE: &str = "records";
/// How long a writer waits for the writers before it.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);
/// How often it looks.
const LOCK_LOOK: Duration = Duration::from_millis(5);
/// Commits after which small files are put together and the indices brought up to date.
const COMMITS_PER_UPKEEP: u64 = 256;
/// Rows after which the same is done.
const ROWS_PER_UPKEEP: u64 = 50_000;
/// How long versions are kept that nobody writes on; an export has to be done within.
const OLD_VERSIONS_KEPT_MINUTES: i64 = 60;
/// Threads of the store's own runtime.
const RUNTIME_THREADS: usize = 2;

/// Where the memory is.
pub(crate) struct Place {
    state_dir: PathBuf,
    pub(crate) records_max: u64,
    runtime: OnceLock<Result<Runtime, String>>,
    table: tokio::sync::Mutex<Option<Table>>,
    /// Writers of this process; those of others wait for the file.
    turn: tokio::sync::Mutex<()>,
    commits: AtomicU64,
    rows: AtomicU64,
}

impl Place {
    pub(crate) fn new(state_dir: &Path, records_max: u64) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            records_max,
            runtime: OnceLock::new(),
            table: tokio::sync::Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            commits: AtomicU64::new(0),
            rows: AtomicU64::new(0),
        }
    }

    pub(crate) fn runtime(&self) -> MemoryResult<&Runtime> {
        let made = self.runtime.get_or_init(|| {
            tokio::runtime::Builder::new_multi_thread()
                .worker_threads(RUNTIME_THREADS)
                .thread_name("holdfast-lancedb")
                .enable_all()
                .build()
                .map_err(|error| error.to_string())
        });
        made.as_ref().map_err(|reason| {
            MemoryError::Unavailable(format!("the runtime can not be started: {reason}"))
        })
    }

    /// The table as it is now, for one look: nothing that is written meanwhile is seen.
    pub(crate) async fn view(&self) -> MemoryResult<Table> {
        let table = self.table().await?;
        table.checkout_current().await.map_err(failed)
    }

    /// The table, created where there is none. What failed to open is tried again the next time.
    pub(crate) async fn table(&self) -> MemoryResult<Table> {
        let mut held = self.table.lock().await;
        if let Some(table) = &*held {
            return Ok(table.clone());
        }
        create_private_dir(&self.state_dir)?;
        // One process creates the table; the others find it.
        let lock = self.lock_file().await?;
        let table = self.open().await?;
        drop(lock);
        *held = Some(table.clone());
        Ok(table)
    }

    async fn open(&self) -> MemoryResult<Table> {
        let dir = self.state_dir.join(MEMORY_DIR);
        create_private_dir(&dir)?;
        // Zero: every look is at the newest version, whoever has written it.
        let connection = lancedb::connect(&dir.to_string_lossy())
            .read_consistency_interval(Duration::ZERO)
            .execute()
            .await
            .map_err(failed)?;
        let names = connection.table_names().execute().await.map_err(failed)?;
        if names.iter().any(|name| name == TABLE) {
            let table = connection
                .open_table(TABLE)
                .execute()
                .await
                .map_err(failed)?;
            rows::check(&*table.schema().await.map_err(failed)?)?;
            return Ok(table);
        }
        let made = connection.create_empty_table(TABLE, rows::schema());
        let table = made.execute().await.map_err(failed)?;
        // Untrained: it only says how texts are read, and rows that it does not hold yet are read
        // one by one.
        table
            .create_index(&["words"], Index::FTS(words::index()))
            .train(false)
            .execute()
            .await
            .map_err(failed)?;
        for column in ["id", "fingerprint"] {
            table
                .create_index(&[column], Index::BTree(BTreeIndexBuilder::default()))
                .train(false)
                .execute()
                .await
                .map_err(failed)?;
        }
        self.sync()?;
        Ok(table)
    }

    /// Takes the writers' turn. It ends with what is given back.
    pub(crate) async fn turn(&self) -> MemoryResult<Turn<'_>> {
        let own = self.turn.lock().await;
        let table = self.table().await?;
        let lock = self.lock_file().await?;
        table.checkout_latest().await.map_err(failed)?;
        Ok(Turn {
            place: self,
            table,
            _lock: lock,
            _own: own,
        })
    }

    async fn lock_file(&self) -> MemoryResult<File> {
        let path = self.state_dir.join(MEMORY_LOCK_FILE);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(|error| unusable("open", &path, &error))?;
        let until = Instant::now() + LOCK_WAIT_MAX;
        while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
            if Instant::now() >= until {
                return Err(unusable("lock", &path, &error.into()));
            }
            tokio::time::sleep(LOCK_LOOK).await;
        }
        Ok(file)
    }

    /// LanceDB leaves it to the system when its files reach the disk. What we have answered for has
    /// to be there.
    fn sync(&self) -> MemoryResult<()> {
        let dir = self.state_dir.join(MEMORY_DIR);
        File::open(&dir)
            .and_then(|dir| Ok(syncfs(dir)?))
            .map_err(|error| unusable("sync", &dir, &error))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // The last user may be a task of the runtime itself, where waiting for it would never end.
        if let Some(Ok(runtime)) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The right to write, until it is dropped.
pub(crate) struct Turn<'a> {
    place: &'a Place,
    pub(crate) table: Table,
    _lock: File,
    _own: tokio::sync::MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Makes what was committed durable, and now and then puts small files together.
    pub(crate) async fn commit(&self, rows: usize) -> MemoryResult<()> {
        self.place.sync()?;
        let commits = self.place.commits.fetch_add(1, Ordering::Relaxed) + 1;
        let rows = rows as u64;
        let all = self.place.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        if commits < COMMITS_PER_UPKEEP && all < ROWS_PER_UPKEEP {
            return Ok(());
        }
        self.place.commits.store(0, Ordering::Relaxed);
        self.place.rows.store(0, Ordering::Relaxed);
        // What was asked for is done; a table that is not tidied up is only slower.
        let _ = self.upkeep().await;
        Ok(())
    }

    async fn upkeep(&self) -> lancedb::Result<()> {
        let kept = lancedb::table::Duration::minutes(OLD_VERSIONS_KEPT_MINUTES);
        let actions = [
            OptimizeAction::Compact {
                options: CompactionOptions::default(),
                remap_options: None,
            },
            OptimizeAction::Index(OptimizeOptions::default()),
            OptimizeAction::Prune {
                older_than: Some(kept),
                delete_unverified: Some(false),
                error_if_tagged_old_versions: Some(false),
            },
        ];
        for action in actions {
            self.table.optimize(action).await?;
        }
        Ok(())
    }
}

fn create_private_dir(dir: &Path) -> MemoryResult<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| unusable("create", dir, &error))
}

fn unusable(what: &str, path: &Path, error: &io::Error) -> MemoryError {
    let text = format!("can not {what} {}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => MemoryError::Full(text),
        _ => MemoryError::Unavailable(text),
    }
}

/// What LanceDB says, in one line.
pub(crate) fn failed(error: impl std::fmt::Display) -> MemoryError {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default().to_owned();
    if text.contains("No space left on device") || text.contains("Disk quota exceeded") {
        return MemoryError::Full(format!("{line}; delete records that are no longer needed"));
    }
    MemoryError::Unavailable(line)
}

/// For `Arc<Place>` in signatures of this crate.
pub(crate) type Shared = Arc<Place>;
