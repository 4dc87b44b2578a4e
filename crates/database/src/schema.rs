//! Versions of a database, and how older ones become the newest.

use rusqlite::Connection;

use crate::errors::{DatabaseError, DatabaseResult, Place};

/// What a database of ours looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schema {
    /// Marks the file as this owner's, so that a database of something else is never written to.
    pub application_id: i32,
    /// Each entry takes the schema one version further. Entries are only ever added at the end.
    pub migrations: &'static [&'static str],
}

/// Brings the database to the newest version that `schema` knows, one transaction a version.
pub fn migrate(conn: &Connection, place: &Place, schema: &Schema) -> DatabaseResult<()> {
    let sql = |error: rusqlite::Error| place.explain(&error);
    refuse_strangers(conn, place, schema)?;
    loop {
        let version = version(conn).map_err(sql)?;
        let Ok(done) = usize::try_from(version) else {
            return Err(DatabaseError::Unavailable(format!(
                "{} has the impossible schema version {version}",
                place.db.display()
            )));
        };
        if done > schema.migrations.len() {
            return Err(DatabaseError::Unavailable(format!(
                "{} was written by a newer Holdfast (schema {done}, this one knows up to {}): \
                 upgrade this Holdfast, or choose another state directory",
                place.db.display(),
                schema.migrations.len()
            )));
        }
        let Some(next) = schema.migrations.get(done) else {
            return Ok(());
        };
        conn.execute_batch("BEGIN IMMEDIATE").map_err(sql)?;
        if let Err(error) = step(conn, version, next, schema.application_id) {
            // The first error says what happened; one of the rollback would only hide it.
            let _ = conn.execute_batch("ROLLBACK");
            return Err(sql(error));
        }
    }
}

/// One version further, unless another process has been faster.
fn step(
    conn: &Connection,
    seen: i64,
    migration: &str,
    application_id: i32,
) -> rusqlite::Result<()> {
    if version(conn)? == seen {
        conn.execute_batch(migration)?;
        conn.pragma_update(None, "user_version", seen + 1)?;
        conn.pragma_update(None, "application_id", application_id)?;
    }
    conn.execute_batch("COMMIT")
}

fn version(conn: &Connection) -> rusqlite::Result<i64> {
    conn.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn refuse_strangers(conn: &Connection, place: &Place, schema: &Schema) -> DatabaseResult<()> {
    // One statement, so one snapshot: another process may be creating the tables right now.
    let (id, tables): (i64, i64) = conn
        .query_row(
            "SELECT (SELECT application_id FROM pragma_application_id),
                    (SELECT count(*) FROM sqlite_schema)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
        .map_err(|error| place.explain(&error))?;
    if tables > 0 && id != i64::from(schema.application_id) {
        return Err(DatabaseError::Unavailable(format!(
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
    use crate::errors::Advice;

    const FIRST: &str = "CREATE TABLE notes (text TEXT NOT NULL) STRICT";
    const SECOND: &str = "ALTER TABLE notes ADD COLUMN tag TEXT NOT NULL DEFAULT 'none'";

    fn place() -> Place {
        Place {
            dir: "/state".into(),
            db: "/state/notes.db".into(),
            advice: Advice {
                when_full: "delete some notes",
                when_damaged: "which forgets all notes",
                when_out_of_files: "too many notes are open",
            },
        }
    }

    fn schema(migrations: &'static [&'static str]) -> Schema {
        Schema {
            application_id: 7,
            migrations,
        }
    }

    #[test]
    fn an_older_schema_is_migrated_and_keeps_its_rows() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, &place(), &schema(&[FIRST])).unwrap();
        conn.execute("INSERT INTO notes VALUES ('milk')", [])
            .unwrap();
        for _ in 0..2 {
            migrate(&conn, &place(), &schema(&[FIRST, SECOND])).unwrap();
            let row: (String, String) = conn
                .query_row("SELECT text, tag FROM notes", [], |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .unwrap();
            assert_eq!(row, ("milk".to_owned(), "none".to_owned()));
            assert_eq!(version(&conn).unwrap(), 2);
        }
    }

    #[test]
    fn a_newer_schema_is_refused_with_what_to_do() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, &place(), &schema(&[FIRST, SECOND])).unwrap();
        let Err(DatabaseError::Unavailable(message)) = migrate(&conn, &place(), &schema(&[FIRST]))
        else {
            panic!("a newer schema was accepted");
        };
        assert!(message.contains("newer Holdfast"), "{message}");
        assert!(message.contains("/state/notes.db"), "{message}");
    }

    #[test]
    fn a_failing_migration_leaves_the_old_schema() {
        let conn = Connection::open_in_memory().unwrap();
        migrate(&conn, &place(), &schema(&[FIRST])).unwrap();
        let broken = schema(&[FIRST, "CREATE TABLE half (x); CREATE TABLE half (x);"]);
        assert!(migrate(&conn, &place(), &broken).is_err());
        assert_eq!(version(&conn).unwrap(), 1);
        assert!(conn.is_autocommit());
        migrate(&conn, &place(), &schema(&[FIRST])).unwrap();
    }

    #[test]
    fn another_programs_database_is_left_alone() {
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch("CREATE TABLE contacts (name)").unwrap();
        let Err(DatabaseError::Unavailable(message)) = migrate(&conn, &place(), &schema(&[FIRST]))
        else {
            panic!("another program's database was accepted");
        };
        assert!(message.contains("another program"), "{message}");
        let tables: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .unwrap();
        assert_eq!(tables, 1);
    }
}
