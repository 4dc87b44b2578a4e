//! Opening the database.

use std::fs::{DirBuilder, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::errors::{DatabaseError, DatabaseResult, Place, is_busy};

/// Prepared statements kept per connection: more than the store has.
const STATEMENTS_MAX: usize = 64;
/// The log is cut back to this after a checkpoint.
const WAL_KEEP_BYTES: i64 = 64 * 1024 * 1024;
/// Pages in the log before they are moved to the database. More than `SQLite`'s 1,000: the pages of
/// the indices are written over and over, and moving them less often is moving fewer of them.
const CHECKPOINT_PAGES: i64 = 8_000;
/// Memory for pages, in KiB. More than `SQLite`'s 2,000: claims land all over the index of keys, and
/// a page that is not in memory is read from the log again.
const CACHE_KIB: i64 = 16_384;
/// Between two tries for a database that another process holds.
const BUSY_STEP_US: std::ops::Range<u64> = 200..2_000;

/// How a database is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How long to wait for a database that another process holds.
    pub busy_wait_ms: u64,
    /// Pages of the database file, if it is to be bounded. At the bound a write fails as on a full
    /// disk.
    pub pages_max: Option<u32>,
}

/// Creates a directory, and those above it, for its owner alone. One that exists stays as it is.
pub fn create_private_dir(place: &Place, dir: &Path) -> DatabaseResult<()> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|error| place.explain_io("create", dir, &error))
}

/// Sees to it that the database exists and that only its owner may read it. `SQLite` gives its log
/// and shared memory the same permissions.
///
/// A database that exists is never opened here: closing any descriptor of it would release the
/// locks that `SQLite` holds for this process, and others would take it for gone.
pub fn create_private_file(place: &Place) -> DatabaseResult<()> {
    let io = |error: std::io::Error| place.explain_io("open", &place.db, &error);
    match std::fs::metadata(&place.db) {
        Ok(found) if found.permissions().mode() & 0o077 != 0 => {
            // Payloads are stored whole, secrets included.
            std::fs::set_permissions(&place.db, Permissions::from_mode(0o600))
                .map_err(|error| place.explain_io("restrict to its owner", &place.db, &error))
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let made = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&place.db);
            match made {
                // Another process was faster, and made it the same way.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
                made => made.map(drop).map_err(io),
            }
        }
        Err(error) => Err(io(error)),
    }
}

/// Opens a connection that writes.
pub fn open_writer(place: &Place, options: &Options) -> DatabaseResult<Connection> {
    let conn = open(place, options)?;
    let sql = |error: rusqlite::Error| place.explain(&error);
    switch_to_wal(&conn, place, options)?;
    conn.pragma_update(None, "journal_size_limit", WAL_KEEP_BYTES)
        .map_err(sql)?;
    conn.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)
        .map_err(sql)?;
    conn.pragma_update(None, "cache_size", -CACHE_KIB)
        .map_err(sql)?;
    conn.pragma_update(None, "temp_store", "MEMORY")
        .map_err(sql)?;
    if let Some(pages_max) = options.pages_max {
        conn.query_row(&format!("PRAGMA max_page_count = {pages_max}"), [], |_| {
            Ok(())
        })
        .map_err(sql)?;
    }
    Ok(conn)
}

/// Opens a connection that only reads.
pub fn open_reader(place: &Place, options: &Options) -> DatabaseResult<Connection> {
    let conn = open(place, options)?;
    conn.pragma_update(None, "query_only", true)
        .map_err(|error| place.explain(&error))?;
    Ok(conn)
}

fn open(place: &Place, options: &Options) -> DatabaseResult<Connection> {
    let sql = |error: rusqlite::Error| place.explain(&error);
    // Not created here: a file that vanished must not be replaced by an empty one.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = Connection::open_with_flags(&place.db, flags).map_err(sql)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    conn.busy_handler(Some(busy_handler(options.busy_wait_ms)))
        .map_err(sql)?;
    Ok(conn)
}

/// Waits in short, uneven steps: `SQLite`'s own steps grow to 100 ms, with which one busy process
/// can keep another from ever finding the gap between two of its transactions.
fn busy_handler(wait_ms: u64) -> impl FnMut(i32) -> bool + Send + 'static {
    let mut waited_us = 0;
    let mut unevenness = u64::from(std::process::id());
    move |tries| {
        if tries == 0 {
            waited_us = 0;
        }
        if waited_us >= wait_ms.saturating_mul(1_000) {
            return false;
        }
        // A linear congruential step: evenly spread is all that is needed.
        unevenness = unevenness
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let span = BUSY_STEP_US.end - BUSY_STEP_US.start;
        let step_us = BUSY_STEP_US.start + (unevenness >> 33) % span;
        sleep(Duration::from_micros(step_us));
        waited_us += step_us;
        true
    }
}

/// Write-ahead logging: readers are never blocked, and a commit is one sequential write.
fn switch_to_wal(conn: &Connection, place: &Place, options: &Options) -> DatabaseResult<()> {
    let mut wait = busy_handler(options.busy_wait_ms);
    let mut tries = 0;
    loop {
        // `SQLite` does not ask its busy handler here: two processes that create the file at once
        // would otherwise wait for each other.
        match conn.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        }) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(mode) => {
                return Err(DatabaseError::Unavailable(format!(
                    "{} can not use write-ahead logging (it stays in mode {mode}): choose a state \
                     directory on a local disk",
                    place.db.display()
                )));
            }
            Err(error) if is_busy(&error) && wait(tries) => tries += 1,
            Err(error) => return Err(place.explain(&error)),
        }
    }
}

/// Which file was opened.
///
/// A database that is moved away under a running process would go on being written by it, while
/// the next process starts an empty one: both would believe that they protect the same effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    /// The file that is there now.
    pub fn of(place: &Place) -> DatabaseResult<Self> {
        let metadata = std::fs::metadata(&place.db)
            .map_err(|error| place.explain_io("find", &place.db, &error))?;
        Ok(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
        })
    }

    /// Whether it still is.
    pub fn check(&self, place: &Place) -> DatabaseResult<()> {
        if Self::of(place)? == *self {
            return Ok(());
        }
        Err(DatabaseError::Unavailable(format!(
            "{} was replaced while it was in use: restart every process that uses it",
            place.db.display()
        )))
    }
}
