//! Repair of a store: one transaction, after an online backup, when nobody else has it open.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, params};

use super::{Store, StoreError, StoredSession, has_column, has_table, push};
use crate::check::Found;
use crate::finding::Finding;
use crate::format::Format;
use crate::index::{Index, Number};
use crate::plan::{Changes, Plan, Strategy};
use crate::render::{Piece, pieces};
use crate::write::{Live, Tail, Use, backup_path, forget_old_backups, user_of};

/// What a repair of a store did.
#[derive(Debug)]
pub struct StoreRepaired {
    /// Where the store as it was is kept.
    pub backup: PathBuf,
    /// What is wrong now with the sessions that were changed, by their ids.
    pub left: HashMap<String, Vec<Finding>>,
    /// How much was changed.
    pub changes: Changes,
}

/// Repairs every session of a store in one transaction. `Ok(None)` when there is nothing that the
/// strategy would change.
pub fn repair_store(
    path: &Path,
    strategy: Strategy,
    tail: Tail,
    now_ms: u64,
) -> Result<Option<StoreRepaired>, StoreError> {
    let shown = path.to_owned();
    let path = path.canonicalize()?;
    let is_needed = {
        let store = Store::open(&path)?;
        if store.format == Format::Goose {
            return Err(StoreError::OnlyRead);
        }
        let mut is_needed = false;
        for id in store.sessions()? {
            let session = store.session(&id)?.ending(tail);
            is_needed |= !session.plan(strategy).is_empty();
        }
        is_needed
    };
    if !is_needed {
        return Ok(None);
    }
    refuse_in_use(&path)?;
    let mut store = open_alone(&path)?;
    let backup = backup_path(&path, now_ms);
    back_up(&store.connection, &path, &backup)?;
    let mut left = HashMap::new();
    let mut changes = Changes::default();
    let ids = store.sessions()?;
    let mut plans = Vec::new();
    for id in ids {
        let session = store.session(&id)?.ending(tail);
        let plan = session.plan(strategy);
        if !plan.is_empty() {
            plans.push((session, plan));
        }
    }
    let has_compression = store.has_compression;
    let transaction = store.connection.transaction()?;
    for (session, plan) in plans {
        changes += Changes::of(&plan, &session.index);
        let after = rewrite(&transaction, has_compression, &session, &plan, now_ms)?.ending(tail);
        let findings = after.findings(&shown)?;
        let is_left = |found: &Found| strategy.leaves(found.fault, found.is_compacted);
        if !after.check().iter().all(is_left) {
            return Err(StoreError::NotMended(session.id));
        }
        left.insert(session.id, findings);
    }
    transaction.commit()?;
    forget_old_backups(&path);
    Ok(Some(StoreRepaired {
        backup,
        left,
        changes,
    }))
}

/// Whether some process has the database open, as far as that can be seen from outside.
fn refuse_in_use(path: &Path) -> Result<(), StoreError> {
    if user_of(&fs::metadata(path)?, Use::Any).is_some() {
        return Err(Live::StoreInUse.into());
    }
    Ok(())
}

/// Opens a store that nobody else has open: every connection to a database in WAL mode holds a
/// shared lock on it, so that an exclusive one is only given when there is no other.
fn open_alone(path: &Path) -> Result<Store, StoreError> {
    let store = Store::with(Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?)?;
    store.connection.busy_timeout(Duration::ZERO)?;
    // Rows are renumbered below, and what refers to them with them.
    store
        .connection
        .pragma_update(None, "foreign_keys", false)?;
    store
        .connection
        .pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    let alone = store.connection.execute_batch("BEGIN EXCLUSIVE; COMMIT;");
    match alone {
        Ok(()) => Ok(store),
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            Err(Live::StoreInUse.into())
        }
        Err(error) => Err(error.into()),
    }
}

fn back_up(connection: &Connection, path: &Path, backup: &Path) -> Result<(), StoreError> {
    // Nobody else may read it, not even while it is made.
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(backup)?;
    let mut copy = Connection::open(backup)?;
    {
        let copying = rusqlite::backup::Backup::new(connection, &mut copy)?;
        copying.run_to_completion(1024, Duration::ZERO, None)?;
    }
    copy.close().map_err(|(_, error)| error)?;
    fs::set_permissions(backup, fs::metadata(path)?.permissions())?;
    fs::File::open(backup)?.sync_all()?;
    Ok(())
}

/// Rewrites the rows of a session from the first one that changes, and gives it back as it is then.
fn rewrite(
    transaction: &Transaction<'_>,
    has_compression: bool,
    session: &StoredSession,
    plan: &Plan,
    now_ms: u64,
) -> Result<StoredSession, StoreError> {
    let mut rows = Vec::new();
    pieces(
        session.format,
        &session.index,
        plan,
        &mut session.texts(),
        |piece| {
            rows.push(piece);
            Ok(())
        },
    )?;
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    if session.format == Format::Crush {
        return super::crush::rewrite(transaction, session, rows, now / 1000);
    }
    let writer = Rows {
        transaction,
        session: &session.id,
        has_compression,
        has_identities: has_table(transaction, "transcript_event_identities")?,
        now,
    };
    writer.set_aside()?;
    let mut after = StoredSession {
        id: session.id.clone(),
        key: None,
        format: session.format,
        index: Index::default(),
        texts: Vec::new(),
    };
    let first = session.index.entry(0).map_or(0, |entry| entry.offset);
    let mut seq = first;
    let mut add = |text: &[u8]| -> Result<u64, StoreError> {
        push(&mut after, seq, Ok(text.to_vec()))?;
        seq += 1;
        Ok(seq - 1)
    };
    let old_seq = |number: Number| session.index.entry(number).map_or(0, |entry| entry.offset);
    for piece in rows {
        match piece {
            Piece::Same(range) => {
                for number in range {
                    let seq = add(session.text(number))?;
                    writer.keep(old_seq(number), seq)?;
                }
            }
            Piece::Altered(number, text) | Piece::Moved(number, text) => {
                let seq = add(&text)?;
                writer.keep(old_seq(number), seq)?;
                writer.alter(seq, &text)?;
            }
            Piece::Made(text) => {
                let seq = add(&text)?;
                writer.insert(seq, &text)?;
            }
        }
    }
    writer.finish()?;
    Ok(after)
}

/// Writes the rows of one session.
struct Rows<'t> {
    transaction: &'t Transaction<'t>,
    session: &'t str,
    has_compression: bool,
    has_identities: bool,
    now: i64,
}

impl Rows<'_> {
    fn run(&self, sql: &str, values: impl rusqlite::Params) -> Result<(), rusqlite::Error> {
        self.transaction.prepare_cached(sql)?.execute(values)?;
        Ok(())
    }

    fn tables(&self) -> &'static [&'static str] {
        if self.has_identities {
            &["transcript_events", "transcript_event_identities"]
        } else {
            &["transcript_events"]
        }
    }

    /// Gives all rows negative numbers: what is not given a new one goes at the end.
    fn set_aside(&self) -> Result<(), rusqlite::Error> {
        for table in self.tables() {
            let sql = format!("UPDATE {table} SET seq = -1 - seq WHERE session_id = ?1");
            self.run(&sql, [self.session])?;
        }
        Ok(())
    }

    fn keep(&self, old: u64, new: u64) -> Result<(), rusqlite::Error> {
        for table in self.tables() {
            let sql =
                format!("UPDATE {table} SET seq = ?3 WHERE session_id = ?1 AND seq = -1 - ?2");
            let values = params![self.session, old.cast_signed(), new.cast_signed()];
            self.run(&sql, values)?;
        }
        Ok(())
    }

    fn alter(&self, seq: u64, text: &[u8]) -> Result<(), rusqlite::Error> {
        let text = String::from_utf8_lossy(text);
        let values = params![self.session, seq.cast_signed(), text];
        if self.has_compression {
            let sql = "UPDATE transcript_events SET event_json = ?3, event_zstd = NULL WHERE session_id = ?1 AND seq = ?2";
            self.run(sql, values)?;
            if has_column(self.transaction, "transcript_events", "event_utf8_bytes")? {
                let sql = "UPDATE transcript_events SET event_utf8_bytes = NULL WHERE session_id = ?1 AND seq = ?2";
                self.run(sql, params![self.session, seq.cast_signed()])?;
            }
        } else {
            let sql =
                "UPDATE transcript_events SET event_json = ?3 WHERE session_id = ?1 AND seq = ?2";
            self.run(sql, values)?;
        }
        if self.has_identities {
            let sql = "UPDATE transcript_event_identities SET parent_id = json_extract(?3, '$.parentId') WHERE session_id = ?1 AND seq = ?2";
            self.run(sql, params![self.session, seq.cast_signed(), text])?;
        }
        Ok(())
    }

    fn insert(&self, seq: u64, text: &[u8]) -> Result<(), rusqlite::Error> {
        let text = String::from_utf8_lossy(text);
        let values = params![self.session, seq.cast_signed(), text, self.now];
        let sql = "INSERT INTO transcript_events (session_id, seq, event_json, created_at) VALUES (?1, ?2, ?3, ?4)";
        self.run(sql, values)?;
        if self.has_identities {
            let sql = "INSERT INTO transcript_event_identities (session_id, event_id, seq, event_type, parent_id, created_at) SELECT ?1, json_extract(?3, '$.id'), ?2, json_extract(?3, '$.type'), json_extract(?3, '$.parentId'), ?4 WHERE json_extract(?3, '$.id') IS NOT NULL";
            self.run(
                sql,
                params![self.session, seq.cast_signed(), text, self.now],
            )?;
        }
        Ok(())
    }

    /// Forgets what got no new number, and has `OpenClaw` build its projections again.
    fn finish(&self) -> Result<(), rusqlite::Error> {
        for table in self.tables().iter().rev() {
            let sql = format!("DELETE FROM {table} WHERE session_id = ?1 AND seq < 0");
            self.run(&sql, [self.session])?;
        }
        if has_table(self.transaction, "session_transcript_active_events")? {
            let sql = "DELETE FROM session_transcript_active_events WHERE session_id = ?1";
            self.run(sql, [self.session])?;
        }
        if has_table(self.transaction, "session_transcript_index_state")? {
            let sql = "UPDATE session_transcript_index_state SET needs_rebuild = 1, updated_at = ?2 WHERE session_id = ?1";
            self.run(sql, params![self.session, self.now])?;
        }
        if has_table(self.transaction, "transcript_rewrite_watermarks")? {
            let sql = "UPDATE transcript_rewrite_watermarks SET generation = 'holdfast-' || ?2, updated_at = ?2 WHERE session_id = ?1";
            self.run(sql, params![self.session, self.now])?;
        }
        if has_table(self.transaction, "session_windows")?
            && has_column(self.transaction, "session_windows", "transcript_updated_at")?
        {
            let sql = "UPDATE session_windows SET transcript_updated_at = ?2 WHERE session_id = ?1";
            self.run(sql, params![self.session, self.now])?;
        }
        Ok(())
    }
}
