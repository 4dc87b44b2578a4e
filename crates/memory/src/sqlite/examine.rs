//! A look at a memory that changes nothing.

use std::path::Path;
use std::time::Duration;

use holdfast_contract::MemoryError;
use holdfast_contract::memory::MemoryResult;
use holdfast_database::Place;
use rusqlite::{Connection, OpenFlags};

use super::schema::SCHEMA;
use super::{ADVICE, MEMORY_BUSY_WAIT_MS, MEMORY_FILE, from_database};

/// Looks whether the memory in this directory is whole: its pages, its mark and its version. How many
/// records it has; nothing where there is none. Neither made nor brought up to date.
pub fn examine(dir: &Path) -> MemoryResult<Option<u64>> {
    let place = Place {
        dir: dir.to_owned(),
        db: dir.join(MEMORY_FILE),
        advice: ADVICE,
    };
    if !place.db.exists() {
        return Ok(None);
    }
    let explained = |error: rusqlite::Error| from_database(place.explain(&error));
    // Read-only as the system understands it: not even a log is moved into the file.
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(&place.db, flags).map_err(explained)?;
    conn.busy_timeout(Duration::from_millis(MEMORY_BUSY_WAIT_MS))
        .map_err(explained)?;
    looked_at(&conn, &place)
        .map_err(explained)?
        .map(Some)
        .map_err(|why| MemoryError::Unavailable(format!("{}: {why}", place.db.display())))
}

fn looked_at(conn: &Connection, place: &Place) -> rusqlite::Result<Result<u64, String>> {
    let found: String = conn.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if found != "ok" {
        let what = place.advice.when_damaged;
        return Ok(Err(format!("it is damaged ({found}): move it away {what}")));
    }
    let number = |pragma: &str| conn.query_row(pragma, [], |row| row.get::<_, i64>(0));
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    if tables == 0 {
        // Made, and nothing was ever put into it.
        return Ok(Ok(0));
    }
    if number("PRAGMA application_id")? != i64::from(SCHEMA.application_id) {
        return Ok(Err("it is a database of another program".to_owned()));
    }
    let version = number("PRAGMA user_version")?;
    let known = SCHEMA.migrations.len();
    if !usize::try_from(version).is_ok_and(|version| version <= known) {
        return Ok(Err(format!(
            "it was written by a newer Holdfast (schema {version}, this one knows up to {known})"
        )));
    }
    let records = number("SELECT coalesce(sum(records), 0) FROM memories_count")?;
    Ok(Ok(u64::try_from(records).unwrap_or_default()))
}
