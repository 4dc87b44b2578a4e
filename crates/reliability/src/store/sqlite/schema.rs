//! The tables, and how older ones become these.

use rusqlite::Connection;

use super::errors::Place;
use crate::store::{StoreError, StoreResult};

/// Marks the file as ours ("HOLD"), so that a database of something else is never written to.
const APPLICATION_ID: i32 = 0x484F_4C44;

/// Each entry takes the schema one version further. Entries are only ever added at the end.
pub(super) const MIGRATIONS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3, VERSION_4];

/// `body` is the whole record as JSON and the truth about it. The other columns repeat what has to
/// be found by SQL; numbers beyond `SQLite`'s integers are cut there and whole in the body.
const VERSION_1: &str = "
    CREATE TABLE records (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        state TEXT NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER NOT NULL,
        lock_until_ms INTEGER,
        version INTEGER NOT NULL,
        owner TEXT NOT NULL,
        session_key TEXT NOT NULL,
        tool TEXT NOT NULL,
        content_key BLOB,
        lock_file TEXT,
        bytes INTEGER NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX records_by_session ON records (session_key);
    CREATE INDEX records_by_tool ON records (tool);
    CREATE INDEX records_by_expiry ON records (expires_at_ms);
    CREATE INDEX records_by_content ON records (content_key, updated_at_ms)
        WHERE content_key IS NOT NULL;
    CREATE INDEX records_in_flight ON records (id) WHERE state = 'inflight';
    CREATE INDEX records_evictable ON records (updated_at_ms)
        WHERE state IN ('done', 'failed', 'cancelled');

    -- What the records take up, kept by triggers so that no statement can forget it.
    CREATE TABLE records_usage (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        records INTEGER NOT NULL,
        bytes INTEGER NOT NULL
    ) STRICT;
    INSERT INTO records_usage VALUES (1, 0, 0);
    CREATE TRIGGER records_added AFTER INSERT ON records BEGIN
        UPDATE records_usage SET records = records + 1, bytes = bytes + new.bytes;
    END;
    CREATE TRIGGER records_removed AFTER DELETE ON records BEGIN
        UPDATE records_usage SET records = records - 1, bytes = bytes - old.bytes;
    END;
    CREATE TRIGGER records_resized AFTER UPDATE OF bytes ON records WHEN old.bytes <> new.bytes BEGIN
        UPDATE records_usage SET bytes = bytes + new.bytes - old.bytes;
    END;
";

/// Breakers and turns are small JSON states; the journal keeps the last calls in their order.
const VERSION_2: &str = "
    CREATE TABLE breakers (
        key TEXT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE turns (
        key TEXT NOT NULL PRIMARY KEY,
        state TEXT NOT NULL,
        version INTEGER NOT NULL,
        touched_at_ms INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX turns_by_touch ON turns (touched_at_ms);
    CREATE TABLE calls (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        request_id TEXT NOT NULL,
        body TEXT NOT NULL
    ) STRICT;
    CREATE INDEX calls_by_request ON calls (request_id);
";

/// What the records take up is counted by the writer from here on, once a transaction, instead of by
/// triggers on every row and an index for the count. And `IN` with three values or more, in
/// the condition of an index, has every write build a table of them; `OR` does not.
const VERSION_3: &str = "
    DROP TRIGGER records_added;
    DROP TRIGGER records_removed;
    DROP TRIGGER records_resized;
    DROP INDEX records_in_flight;
    DROP INDEX records_evictable;
    CREATE INDEX records_evictable ON records (updated_at_ms)
        WHERE state = 'done' OR state = 'failed' OR state = 'cancelled';
    ALTER TABLE records_usage ADD COLUMN in_flight INTEGER NOT NULL DEFAULT 0;
    UPDATE records_usage SET in_flight = (SELECT count(*) FROM records WHERE state = 'inflight');
";

/// Documents: approvals, rules, sessions, and whatever else is small and has to be durable.
const VERSION_4: &str = "
    CREATE TABLE documents (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        \"group\" TEXT NOT NULL,
        version INTEGER NOT NULL,
        body TEXT NOT NULL,
        created_at_ms INTEGER NOT NULL,
        updated_at_ms INTEGER NOT NULL,
        expires_at_ms INTEGER,
        PRIMARY KEY (kind, id)
    ) STRICT;
    CREATE INDEX documents_by_group ON documents (kind, \"group\", id);
    CREATE INDEX documents_by_expiry ON documents (expires_at_ms) WHERE expires_at_ms IS NOT NULL;
";

/// Brings the database to the newest version that `migrations` knows, one transaction a version.
pub(super) fn migrate(conn: &Connection, place: &Place, migrations: &[&str]) -> StoreResult<()> {
    let sql = |error: rusqlite::Error| place.explain(&error);
    refuse_strangers(conn, place)?;
    loop {
        let version = version(conn).map_err(sql)?;
        let Ok(done) = usize::try_from(version) else {
            return Err(StoreError::Unavailable(format!(
                "{} has the impossible schema version {version}",
                place.db.display()
            )));
        };
        if done > migrations.len() {
            return Err(StoreError::Unavailable(format!(
                "{} was written by a newer Holdfast (schema {done}, this one knows up to {}): \
                 upgrade this Holdfast, or choose another state directory",
                place.db.display(),
                migrations.len()
            )));
        }
        let Some(next) = migrations.get(done) else {
            return Ok(());
        };
        conn.execute_batch("BEGIN IMMEDIATE").map_err(sql)?;
        if let Err(error) = step(conn, version, next) {
            // The first error says what happened; one of the rollback would only hide it.
            let _ = conn.execute_batch("ROLLBACK");
            return Err(sql(error));
        }
    }
}

/// One version further, unless another process has been faster.
fn step(conn: &Connection, seen: i64, migration: &str) -> rusqlite::Result<()> {
    if version(conn)? == seen {
        conn.execute_batch(migration)?;
        conn.pragma_update(None, "user_version", seen + 1)?;
        conn.pragma_update(None, "application_id", APPLICATION_ID)?;
    }
    conn.execute_batch("COMMIT")
}

fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn refuse_strangers(conn: &Connection, place: &Place) -> StoreResult<()> {
    // One statement, so one snapshot: another process may be creating the tables right now.
    let (id, tables): (i64, i64) = conn
        .query_row(
            "SELECT (SELECT application_id FROM pragma_application_id),
                    (SELECT count(*) FROM sqlite_schema)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(|error| place.explain(&error))?;
    if tables > 0 && id != i64::from(APPLICATION_ID) {
        return Err(StoreError::Unavailable(format!(
            "{} is a database of another program; it was left as it is: choose another state \
             directory",
            place.db.display()
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> Place {
        Place {
            dir: "/state".into(),
            db: "/state/holdfast.db".into(),
        }
    }

    #[test]
    fn an_older_schema_is_migrated_and_keeps_its_rows() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, &place(), MIGRATIONS).unwrap();
        conn.execute(
            "INSERT INTO records (key, state, updated_at_ms, expires_at_ms, version, owner,
             session_key, tool, bytes, body) VALUES (x'00', 'done', 1, 2, 1, 'o', 's', 't', 7, '{}')",
            [],
        )
        .unwrap();
        let longer: Vec<&str> = MIGRATIONS
            .iter()
            .copied()
            .chain(["ALTER TABLE records ADD COLUMN note TEXT NOT NULL DEFAULT 'none'"])
            .collect();
        migrate(&conn, &place(), &longer).unwrap();
        let note: String = conn
            .query_row("SELECT note FROM records", [], |row| row.get(0))
            .unwrap();
        assert_eq!(note, "none");
        assert_eq!(
            version(&conn).unwrap(),
            i64::try_from(longer.len()).unwrap()
        );
        migrate(&conn, &place(), &longer).unwrap();
    }

    #[test]
    fn a_newer_schema_is_refused_with_what_to_do() {
        let conn = Connection::open_in_memory().unwrap();
        let longer: Vec<&str> = MIGRATIONS
            .iter()
            .copied()
            .chain(["CREATE TABLE later (x)"])
            .collect();
        migrate(&conn, &place(), &longer).unwrap();
        let Err(StoreError::Unavailable(message)) = migrate(&conn, &place(), MIGRATIONS) else {
            panic!("a newer schema was accepted");
        };
        assert!(message.contains("newer Holdfast"), "{message}");
        assert!(message.contains("/state/holdfast.db"), "{message}");
    }

    #[test]
    fn a_failing_migration_leaves_the_old_schema() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, &place(), MIGRATIONS).unwrap();
        let broken: Vec<&str> = MIGRATIONS
            .iter()
            .copied()
            .chain(["CREATE TABLE half (x); CREATE TABLE half (x);"])
            .collect();
        assert!(migrate(&conn, &place(), &broken).is_err());
        assert_eq!(
            version(&conn).unwrap(),
            i64::try_from(MIGRATIONS.len()).unwrap()
        );
        assert!(conn.is_autocommit());
        migrate(&conn, &place(), MIGRATIONS).unwrap();
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE contacts (name)").unwrap();
        let Err(StoreError::Unavailable(message)) = migrate(&conn, &place(), MIGRATIONS) else {
            panic!("another program's database was accepted");
        };
        assert!(message.contains("another program"), "{message}");
        let tables: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}
