//! The dataset in a directory: opened, written by one at a time, kept in shape, made durable.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::OnceLock;
use std::time::Duration;

use holdfast_contract::MemoryError;
use holdfast_contract::memory::MemoryResult;
use lancedb::index::Index;
use lancedb::index::scalar::BTreeIndexBuilder;
use lancedb::table::{CompactionOptions, OptimizeAction, OptimizeOptions};
use lancedb::{Connection, Table};
use rustix::fs::syncfs;
use tokio::runtime::Runtime;

use crate::queue::{self, Since, WriterLock};
use crate::{rows, words};

/// The dataset's directory in the state directory.
pub const MEMORY_DIR: &str = "memory.lance";
/// The one table.
const TABLE: &str = "records";
/// The columns with an index, which are there before the first row is.
const INDEXED: [&str; 3] = ["words", "id", "fingerprint"];
/// What is written before small files are put together and the indices brought up to date.
const UPKEEP_AFTER: Since = Since {
    commits: 256,
    rows: 50_000,
};
/// How long versions are kept that nobody writes on; an export has to be done within.
const OLD_VERSIONS_KEPT_MINUTES: i64 = 60;
/// Threads of the store's own runtime.
const RUNTIME_THREADS: usize = 2;

/// Where the memory is.
pub(crate) struct Place {
    state_dir: PathBuf,
    pub(crate) records_max: u64,
    runtime: OnceLock<Result<Runtime, String>>,
    /// Once it is there with all of its indices.
    table: tokio::sync::Mutex<Option<Table>>,
    /// Writers of this process; those of others wait for the file.
    turn: tokio::sync::Mutex<()>,
    upkeep_after: Since,
}

impl Place {
    pub(crate) fn new(state_dir: &Path, records_max: u64) -> Self {
        Self {
            state_dir: state_dir.to_owned(),
            records_max,
            runtime: OnceLock::new(),
            table: tokio::sync::Mutex::default(),
            turn: tokio::sync::Mutex::default(),
            upkeep_after: UPKEEP_AFTER,
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

    /// The table as it is now, for one look: nothing that is written meanwhile is seen. `None`
    /// while nothing has been remembered. Waits for no writer.
    pub(crate) async fn view(&self) -> MemoryResult<Option<Table>> {
        let Some(table) = self.known().await? else {
            return Ok(None);
        };
        table.checkout_current().await.map(Some).map_err(failed)
    }

    /// The table, if it is there and whole.
    async fn known(&self) -> MemoryResult<Option<Table>> {
        let mut held = self.table.lock().await;
        if let Some(table) = &*held {
            return Ok(Some(table.clone()));
        }
        let dir = self.state_dir.join(MEMORY_DIR);
        if !dir.is_dir() {
            return Ok(None);
        }
        let Some(table) = found(&connect(&dir).await?).await? else {
            return Ok(None);
        };
        if missing_indices(&table).await?.is_empty() {
            *held = Some(table.clone());
            return Ok(Some(table));
        }
        // Somebody is creating it, or has died over that: its first row comes after its indices.
        if table.count_rows(None).await.map_err(failed)? == 0 {
            return Ok(None);
        }
        // Only an index that was lost otherwise is worth a reader's wait.
        drop(held);
        self.turn().await.map(|turn| Some(turn.table))
    }

    /// Takes the writers' turn. It ends with what is given back.
    pub(crate) async fn turn(&self) -> MemoryResult<Turn<'_>> {
        let own = self.turn.lock().await;
        create_private_dir(&self.state_dir)?;
        let lock = queue::wait(&self.state_dir).await?;
        let table = self.whole().await?;
        table.checkout_latest().await.map_err(failed)?;
        Ok(Turn {
            place: self,
            table,
            lock,
            _own: own,
        })
    }

    /// The table, with whatever is missing of it created. Only for who has the turn. What failed
    /// is tried again the next time.
    async fn whole(&self) -> MemoryResult<Table> {
        let mut held = self.table.lock().await;
        if let Some(table) = &*held {
            return Ok(table.clone());
        }
        let dir = self.state_dir.join(MEMORY_DIR);
        create_private_dir(&dir)?;
        let connection = connect(&dir).await?;
        let table = match found(&connection).await? {
            Some(table) => table,
            None => {
                let made = connection.create_empty_table(TABLE, rows::schema());
                made.execute().await.map_err(failed)?
            }
        };
        let missing = missing_indices(&table).await?;
        if !missing.is_empty() {
            for column in missing {
                create_index(&table, column).await?;
            }
            self.sync()?;
        }
        *held = Some(table.clone());
        Ok(table)
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
    lock: WriterLock,
    _own: tokio::sync::MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Makes what was committed durable, and now and then puts small files together.
    pub(crate) async fn commit(&self, rows: usize) -> MemoryResult<()> {
        self.place.sync()?;
        let since = self.lock.since().and(rows as u64);
        if !since.reaches(self.place.upkeep_after) {
            self.lock.note(since);
            return Ok(());
        }
        // What was asked for is done; a table that is not tidied up is only slower. One that can
        // not be is tried again after as much again, and after a crash by the next commit.
        let _ = self.upkeep().await;
        self.lock.note(Since::default());
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

async fn connect(dir: &Path) -> MemoryResult<Connection> {
    // Zero: every look is at the newest version, whoever has written it.
    lancedb::connect(&dir.to_string_lossy())
        .read_consistency_interval(Duration::ZERO)
        .execute()
        .await
        .map_err(failed)
}

/// The table, if there is one; an error if it is not ours. A directory that somebody who died over
/// creating it has left is none.
async fn found(connection: &Connection) -> MemoryResult<Option<Table>> {
    let table = match connection.open_table(TABLE).execute().await {
        Ok(table) => table,
        Err(lancedb::Error::TableNotFound { .. }) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    rows::check(&*table.schema().await.map_err(failed)?)?;
    Ok(Some(table))
}

async fn missing_indices(table: &Table) -> MemoryResult<Vec<&'static str>> {
    let there = table.list_indices().await.map_err(failed)?;
    let has_one = |column: &str| {
        let mut columns = there.iter().flat_map(|index| &index.columns);
        columns.any(|indexed| indexed == column)
    };
    Ok(INDEXED.into_iter().filter(|it| !has_one(it)).collect())
}

/// Untrained: it only says how the column is read, and rows that it does not hold yet are read one
/// by one.
async fn create_index(table: &Table, column: &str) -> MemoryResult<()> {
    let index = match column {
        "words" => Index::FTS(words::index()),
        _ => Index::BTree(BTreeIndexBuilder::default()),
    };
    let made = table.create_index(&[column], index).train(false);
    made.execute().await.map_err(failed)
}

fn create_private_dir(dir: &Path) -> MemoryResult<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| unusable("create", dir, &error))
}

pub(crate) fn unusable(what: &str, path: &Path, error: &io::Error) -> MemoryError {
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

#[cfg(test)]
mod tests {
    use holdfast_contract::{MemoryRecord, MemoryType, Trust};
    use holdfast_memory::backend::Put;

    use super::*;

    const COMMITS_PER_UPKEEP: u64 = 4;

    /// A place as a process of its own has it.
    fn opened(dir: &Path) -> Place {
        let mut place = Place::new(dir, 1_000);
        place.upkeep_after.commits = COMMITS_PER_UPKEEP;
        place
    }

    fn record(number: u64) -> MemoryRecord {
        MemoryRecord {
            id: format!("m{number}"),
            memory_type: MemoryType::Fact,
            content: format!("fact number {number}"),
            metadata: None,
            session_id: "s1".to_owned(),
            created_at_ms: 1_700_000_000_000 + number,
            trust: Trust::User,
            embedding: None,
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn processes_of_one_commit_put_the_dataset_in_order_together() {
        let dir = tempfile::tempdir().expect("a directory");
        for number in 0..COMMITS_PER_UPKEEP {
            let place = opened(dir.path());
            let kept = crate::write::remember(&place, record(number)).await;
            assert!(matches!(kept, Ok(Put::Added)), "{kept:?}");
        }
        let place = opened(dir.path());
        let turn = place.turn().await.expect("nobody else writes");
        assert_eq!(turn.lock.since(), Since::default());
        let stats = turn.table.stats().await.expect("counted");
        assert_eq!(stats.num_rows as u64, COMMITS_PER_UPKEEP);
        assert_eq!(stats.fragment_stats.num_fragments, 1);
    }
}
