//! Repair of a session of Crush. Its messages have a time in seconds, and messages of one second are read
//! in the order of their row ids: so what is put between two rows may need both.

use std::collections::HashSet;

use rusqlite::{Transaction, params};
use serde_json::value::RawValue;

use super::{StoreError, StoredSession, read_session};
use crate::index::Number;
use crate::read;
use crate::render::Piece;

/// A row, as far as a repair makes or changes it.
#[derive(serde::Deserialize)]
struct Row<'r> {
    id: String,
    #[serde(borrow)]
    parts: &'r RawValue,
}

/// Rewrites the rows of a session, and gives it back as it is then.
pub(super) fn rewrite(
    transaction: &Transaction<'_>,
    session: &StoredSession,
    pieces: Vec<Piece>,
    now_s: i64,
) -> Result<StoredSession, StoreError> {
    let mut writer = Writer {
        transaction,
        session,
        free: transaction.query_row("SELECT max(rowid) + 1 FROM messages", [], |row| row.get(0))?,
        last: (i64::MIN, i64::MIN),
        now_s,
    };
    writer.forget(&pieces)?;
    let mut expected = Vec::new();
    let id = |number: Number| session.index.entry(number).map_or(0, |entry| entry.id);
    for piece in pieces {
        match piece {
            Piece::Same(range) => {
                for number in range {
                    expected.push(id(number));
                    writer.keep(number)?;
                }
            }
            Piece::Altered(number, text) => {
                expected.push(id(number));
                writer.alter(number, &text)?;
                writer.keep(number)?;
            }
            Piece::Moved(number, _) => {
                expected.push(id(number));
                writer.put_here(number)?;
            }
            Piece::Made(text) => {
                expected.push(made_id(session, &text));
                writer.insert(&text)?;
            }
        }
    }
    let after = read_session(transaction, session.format, false, &session.id)?;
    let found: Vec<u64> = after.index.entries().map(|entry| entry.id).collect();
    if found == expected {
        Ok(after)
    } else {
        Err(StoreError::NotMended(session.id.clone()))
    }
}

/// The number for the id of a message that was made.
fn made_id(session: &StoredSession, text: &[u8]) -> u64 {
    let seen = read::entry(session.format, text).ok();
    let id = seen.and_then(|seen| seen.id);
    id.map_or(0, |id| crate::index::hash_of(id.text(text)))
}

struct Writer<'w> {
    transaction: &'w Transaction<'w>,
    session: &'w StoredSession,
    /// A row id that nobody has.
    free: i64,
    /// The time and the row id of the last row that was written.
    last: (i64, i64),
    now_s: i64,
}

impl Writer<'_> {
    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), rusqlite::Error> {
        self.transaction.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn row(&self, number: Number) -> i64 {
        let entry = self.session.index.entry(number);
        entry.map_or(0, |entry| entry.offset.cast_signed())
    }

    const fn next_free(&mut self) -> i64 {
        self.free += 1;
        self.free - 1
    }

    /// Removes the rows that are in no piece.
    fn forget(&self, pieces: &[Piece]) -> Result<(), rusqlite::Error> {
        let mut kept = HashSet::new();
        for piece in pieces {
            match piece {
                Piece::Same(range) => kept.extend(range.clone()),
                Piece::Altered(number, _) | Piece::Moved(number, _) => {
                    kept.insert(*number);
                }
                Piece::Made(_) => {}
            }
        }
        for (number, _) in (0..).zip(self.session.index.entries()) {
            if !kept.contains(&number) {
                self.run("DELETE FROM messages WHERE rowid = ?1", [self.row(number)])?;
            }
        }
        Ok(())
    }

    fn alter(&self, number: Number, text: &[u8]) -> Result<(), StoreError> {
        let row: Row<'_> = parse(text)?;
        let sql = "UPDATE messages SET parts = ?2 WHERE rowid = ?1";
        Ok(self.run(sql, params![self.row(number), row.parts.get()])?)
    }

    /// A row that stays. In one second it comes behind the last one.
    fn keep(&mut self, number: Number) -> Result<(), rusqlite::Error> {
        let row = self.row(number);
        let sql = "SELECT created_at FROM messages WHERE rowid = ?1";
        let at: i64 = self.transaction.query_row(sql, [row], |row| row.get(0))?;
        if (at, row) > self.last {
            self.last = (at, row);
            return Ok(());
        }
        self.put_here(number)
    }

    /// A row that comes behind the last one, whatever its time.
    fn put_here(&mut self, number: Number) -> Result<(), rusqlite::Error> {
        let row = self.next_free();
        let sql = "UPDATE messages SET rowid = ?2, created_at = ?3 WHERE rowid = ?1";
        self.run(sql, params![self.row(number), row, self.last.0])?;
        self.last.1 = row;
        Ok(())
    }

    fn insert(&mut self, text: &[u8]) -> Result<(), StoreError> {
        let made: Row<'_> = parse(text)?;
        let row = self.next_free();
        let sql = "INSERT INTO messages (rowid, id, session_id, role, parts, created_at, updated_at) VALUES (?1, ?2, ?3, 'tool', ?4, ?5, ?6)";
        let at = self.last.0;
        let values = params![
            row,
            made.id,
            self.session.id,
            made.parts.get(),
            at,
            self.now_s
        ];
        self.run(sql, values)?;
        self.last.1 = row;
        Ok(())
    }
}

fn parse(text: &[u8]) -> Result<Row<'_>, StoreError> {
    serde_json::from_slice(text).map_err(|error| StoreError::Io(error.into()))
}
