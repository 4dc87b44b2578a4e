//! Records as rows.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Params, Statement, params, params_from_iter};
use serde::Deserialize;

use super::errors::{StepError, StepResult};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState};
use crate::store::{RecordFilter, StoreError, StoreSize};

/// What a row takes beside its body: its other columns and its places in the indices.
const ROW_OVERHEAD_BYTES: usize = 512;

/// What the waiting need to know of a record.
pub(super) struct Glance {
    pub(super) in_flight: bool,
    pub(super) version: u64,
    pub(super) owner: String,
    pub(super) lock_file: Option<String>,
}

/// A record, and the file that its holder has locked while it runs.
pub(super) struct Row {
    pub(super) record: DedupeRecord,
    pub(super) lock_file: Option<String>,
}

/// A number as `SQLite` can hold it. Cut at the far end, where it only means "never".
pub(super) fn sql_int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_sql_int(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn find(conn: &Connection, key: &StoredKey) -> StepResult<Option<DedupeRecord>> {
    Ok(find_row(conn, key)?.map(|row| row.record))
}

pub(super) fn find_row(conn: &Connection, key: &StoredKey) -> StepResult<Option<Row>> {
    let mut statement =
        conn.prepare_cached("SELECT body, lock_file FROM records WHERE key = ?1")?;
    read_row(&mut statement, [key.as_bytes()])
}

/// The record with this content under another key that binds most: one that runs before one in
/// doubt before the newest finished one. Failed and cancelled ones never answer
/// for an echo, so they must not hide an older one that does.
pub(super) fn find_same_content(
    conn: &Connection,
    content: &StoredKey,
    other_than: &StoredKey,
) -> StepResult<Option<Row>> {
    let mut statement = conn.prepare_cached(
        "SELECT body, lock_file FROM records
         WHERE content_key = ?1 AND key <> ?2 AND state IN ('inflight', 'done', 'unknown')
         ORDER BY state = 'inflight' DESC, state = 'unknown' DESC, updated_at_ms DESC LIMIT 1",
    )?;
    read_row(&mut statement, [content.as_bytes(), other_than.as_bytes()])
}

fn read_row(statement: &mut Statement<'_>, keys: impl Params) -> StepResult<Option<Row>> {
    let mut rows = statement.query(keys)?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let body = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
    Ok(Some(Row {
        record: parse(body)?,
        lock_file: row.get(1)?,
    }))
}

pub(super) fn glance(conn: &Connection, key: &StoredKey) -> StepResult<Option<Glance>> {
    Ok(conn
        .prepare_cached("SELECT state, version, owner, lock_file FROM records WHERE key = ?1")?
        .query_row([key.as_bytes()], |row| {
            Ok(Glance {
                in_flight: row.get_ref(0)?.as_str()? == RecordState::Inflight.as_str(),
                version: from_sql_int(row.get(1)?),
                owner: row.get(2)?,
                lock_file: row.get(3)?,
            })
        })
        .optional()?)
}

/// Stores a record in the place of what was there. Without a lock file the row keeps the one it has.
pub(super) fn put(
    conn: &Connection,
    record: &DedupeRecord,
    lock_file: Option<&str>,
) -> StepResult<()> {
    let body = serde_json::to_string(record).map_err(|error| {
        StoreError::Unavailable(format!(
            "the record {} can not be written: {error}",
            record.key
        ))
    })?;
    conn.prepare_cached(
        "INSERT INTO records (key, state, updated_at_ms, expires_at_ms, lock_until_ms, version,
             owner, session_key, tool, content_key, bytes, body, lock_file)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
         ON CONFLICT (key) DO UPDATE SET
             state = excluded.state, updated_at_ms = excluded.updated_at_ms,
             expires_at_ms = excluded.expires_at_ms, lock_until_ms = excluded.lock_until_ms,
             version = excluded.version, owner = excluded.owner,
             session_key = excluded.session_key, tool = excluded.tool,
             content_key = excluded.content_key, bytes = excluded.bytes, body = excluded.body,
             lock_file = coalesce(excluded.lock_file, lock_file)",
    )?
    .execute(params![
        record.key.as_bytes(),
        record.state.as_str(),
        sql_int(record.updated_at_ms),
        sql_int(record.expires_at_ms),
        record.lock_until_ms.map(sql_int),
        sql_int(record.version),
        record.owner,
        record.request.session_key,
        record.tool,
        record.content_key.as_ref().map(StoredKey::as_bytes),
        sql_int((body.len() + ROW_OVERHEAD_BYTES) as u64),
        body,
        lock_file,
    ])?;
    Ok(())
}

/// Removes a record; says whether it was there.
pub(super) fn remove(conn: &Connection, key: &StoredKey) -> StepResult<bool> {
    let removed = conn
        .prepare_cached("DELETE FROM records WHERE key = ?1")?
        .execute([key.as_bytes()])?;
    Ok(removed > 0)
}

/// Lists records, newest first.
pub(super) fn list(conn: &Connection, filter: &RecordFilter) -> StepResult<Vec<DedupeRecord>> {
    let (condition, mut values) = condition(filter);
    values.push(Value::Integer(limit_of(filter)));
    let sql = format!(
        "SELECT body FROM records WHERE {condition} ORDER BY updated_at_ms DESC, key LIMIT ?"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(parse(
            row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?,
        )?);
    }
    Ok(found)
}

/// Forgets ended records that fit; says how many.
pub(super) fn flush(conn: &Connection, filter: &RecordFilter) -> StepResult<u64> {
    let (condition, mut values) = condition(filter);
    values.push(Value::Integer(limit_of(filter)));
    let sql = format!(
        "DELETE FROM records WHERE id IN
             (SELECT id FROM records WHERE state <> 'inflight' AND {condition} LIMIT ?)"
    );
    Ok(conn
        .prepare_cached(&sql)?
        .execute(params_from_iter(values))? as u64)
}

/// Forgets up to `at_most` expired records; says how many. The condition is
/// [`DedupeRecord::is_forgettable`] in SQL, and the conformance suite holds the two together.
pub(super) fn sweep(conn: &Connection, now_ms: u64, at_most: usize) -> StepResult<u64> {
    let removed = conn
        .prepare_cached(
            "DELETE FROM records WHERE id IN
                 (SELECT id FROM records WHERE expires_at_ms <= ?1
                      AND (state <> 'inflight'
                           OR ((lock_until_ms IS NULL OR lock_until_ms <= ?1)
                               AND expires_at_ms + json_extract(body, '$.ttlMs') <= ?1))
                  LIMIT ?2)",
        )?
        .execute(params![sql_int(now_ms), sql_int(at_most as u64)])?;
    Ok(removed as u64)
}

/// Forgets the record that ended first; says whether there was one. Running calls and unknown
/// outcomes stay: forgetting them could let an effect happen twice.
pub(super) fn evict_oldest(conn: &Connection) -> StepResult<bool> {
    let removed = conn
        .prepare_cached(
            "DELETE FROM records WHERE id =
                 (SELECT id FROM records WHERE state IN ('done', 'failed', 'cancelled')
                  ORDER BY updated_at_ms LIMIT 1)",
        )?
        .execute([])?;
    Ok(removed > 0)
}

/// Records and bytes.
pub(super) fn usage(conn: &Connection) -> StepResult<(u64, u64)> {
    Ok(conn
        .prepare_cached("SELECT records, bytes FROM records_usage")?
        .query_row([], |row| {
            Ok((from_sql_int(row.get(0)?), from_sql_int(row.get(1)?)))
        })?)
}

pub(super) fn size(conn: &Connection) -> StepResult<StoreSize> {
    let (records, bytes) = usage(conn)?;
    let in_flight = conn
        .prepare_cached("SELECT count(*) FROM records WHERE state = 'inflight'")?
        .query_row([], |row| Ok(from_sql_int(row.get(0)?)))?;
    Ok(StoreSize {
        records,
        bytes,
        in_flight,
    })
}

fn condition(filter: &RecordFilter) -> (String, Vec<Value>) {
    let mut parts = vec!["true"];
    let mut values = Vec::new();
    if let Some(session) = &filter.session {
        parts.push("session_key = ?");
        values.push(Value::Text(session.clone()));
    }
    if let Some(tool) = &filter.tool {
        parts.push("tool = ?");
        values.push(Value::Text(tool.clone()));
    }
    if let Some(state) = filter.state {
        parts.push("state = ?");
        values.push(Value::Text(state.as_str().to_owned()));
    }
    if let Some(prefix) = &filter.key_prefix {
        // A prefix is a handful of rows at most by nature, and asked for by a person.
        parts.push("substr(lower(hex(key)), 1, length(?)) = ?");
        values.push(Value::Text(prefix.clone()));
        values.push(Value::Text(prefix.to_ascii_lowercase()));
    }
    (parts.join(" AND "), values)
}

fn limit_of(filter: &RecordFilter) -> i64 {
    filter
        .limit
        .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

fn parse(body: &str) -> StepResult<DedupeRecord> {
    let mut deserializer = serde_json::Deserializer::from_str(body);
    // A payload as deep as a reader takes sits a few levels deeper in its record; what this store
    // has written it must be able to read.
    deserializer.disable_recursion_limit();
    DedupeRecord::deserialize(&mut deserializer).map_err(|error| {
        StepError::Store(StoreError::Unavailable(format!(
            "a record can not be read ({error}): clear it, or use the Holdfast that wrote it"
        )))
    })
}
