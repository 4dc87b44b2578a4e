//! Records as rows.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Params, Statement, params, params_from_iter};
use serde::Deserialize;

use super::errors::{StepError, StepResult};
use super::usage::Weight;
use super::writer::Step;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, RecordState};
use crate::idempotency::transition::ContentLookup;
use crate::store::{Cleared, Listing, RecordFilter, StoreError, UnreadRecord};

/// What a row takes beside its body: its other columns and its places in the indices.
const ROW_OVERHEAD_BYTES: usize = 512;

const INSERT: &str = "
    INSERT INTO records (state, updated_at_ms, expires_at_ms, lock_until_ms, version, owner, bytes,
        body, lock_file, key, session_key, tool, content_key)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)";
const REPLACE: &str = "
    UPDATE records SET state = ?1, updated_at_ms = ?2, expires_at_ms = ?3, lock_until_ms = ?4,
        version = ?5, owner = ?6, bytes = ?7, body = ?8, lock_file = coalesce(?9, lock_file),
        session_key = ?11, tool = ?12, content_key = ?13
    WHERE id = ?10";
const UPDATE: &str = "
    UPDATE records SET state = ?1, updated_at_ms = ?2, expires_at_ms = ?3, lock_until_ms = ?4,
        version = ?5, owner = ?6, bytes = ?7, body = ?8, lock_file = coalesce(?9, lock_file)
    WHERE id = ?10";

/// What the waiting need to know of a record.
pub(super) struct Glance {
    pub(super) in_flight: bool,
    pub(super) version: u64,
    pub(super) owner: String,
    pub(super) lock_file: Option<String>,
}

/// A record, and the file that its holder has locked while it runs.
pub(super) struct Row {
    id: i64,
    bytes: i64,
    pub(super) record: DedupeRecord,
    pub(super) lock_file: Option<String>,
}

impl Row {
    fn weight(&self) -> Weight {
        Weight {
            bytes: self.bytes,
            in_flight: self.record.state == RecordState::Inflight,
        }
    }
}

/// A number as `SQLite` can hold it. Cut at the far end, where it only means "never".
pub(super) fn sql_int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn from_sql_int(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

pub(super) fn find(conn: &Connection, key: &StoredKey) -> StepResult<Option<DedupeRecord>> {
    Ok(find_row(conn, key)?.map(|row| row.record))
}

pub(super) fn find_row(conn: &Connection, key: &StoredKey) -> StepResult<Option<Row>> {
    let mut statement =
        conn.prepare_cached("SELECT body, lock_file, id, bytes FROM records WHERE key = ?1")?;
    read_row(&mut statement, [key.as_bytes()])
}

/// The record with this content under another key that binds most: one that runs before one in
/// doubt before the newest finished one. Failed and cancelled ones never answer
/// for an echo, so they must not hide an older one that does; nor must one in doubt whose window is
/// over.
pub(super) fn find_same_content(
    conn: &Connection,
    lookup: &ContentLookup,
    other_than: &StoredKey,
    now_ms: u64,
) -> StepResult<Option<Row>> {
    let mut statement = conn.prepare_cached(
        "SELECT body, lock_file, id, bytes FROM records
         WHERE content_key = ?1 AND key <> ?2 AND state <> 'failed' AND state <> 'cancelled'
         ORDER BY state = 'inflight' DESC,
                  state = 'unknown' AND updated_at_ms > ?3 DESC,
                  updated_at_ms DESC LIMIT 1",
    )?;
    let doubted_since_ms = now_ms.saturating_sub(lookup.unknown_window_ms);
    let keys = params![
        lookup.key.as_bytes(),
        other_than.as_bytes(),
        sql_int(doubted_since_ms)
    ];
    read_row(&mut statement, keys)
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
        id: row.get(2)?,
        bytes: row.get(3)?,
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
    step: &Step<'_>,
    before: Option<&Row>,
    record: &DedupeRecord,
    lock_file: Option<&str>,
) -> StepResult<()> {
    let body = serde_json::to_string(record).map_err(|error| {
        StoreError::Unavailable(format!(
            "the record {} can not be written: {error}",
            record.key
        ))
    })?;
    let weight = Weight {
        bytes: sql_int((body.len() + ROW_OVERHEAD_BYTES) as u64),
        in_flight: record.state == RecordState::Inflight,
    };
    // Of one record these never change; setting them would cost their indices for nothing.
    let same_place = before.is_some_and(|row| {
        row.record.request.session_key == record.request.session_key
            && row.record.tool == record.tool
            && row.record.content_key == record.content_key
    });
    let mut statement = step.conn.prepare_cached(match (before, same_place) {
        (None, _) => INSERT,
        (Some(_), false) => REPLACE,
        (Some(_), true) => UPDATE,
    })?;
    statement.raw_bind_parameter(1, record.state.as_str())?;
    statement.raw_bind_parameter(2, sql_int(record.updated_at_ms))?;
    statement.raw_bind_parameter(3, sql_int(record.expires_at_ms))?;
    statement.raw_bind_parameter(4, record.lock_until_ms.map(sql_int))?;
    statement.raw_bind_parameter(5, sql_int(record.version))?;
    statement.raw_bind_parameter(6, &*record.owner)?;
    statement.raw_bind_parameter(7, weight.bytes)?;
    statement.raw_bind_parameter(8, body.as_str())?;
    statement.raw_bind_parameter(9, lock_file)?;
    match before {
        Some(row) => statement.raw_bind_parameter(10, row.id)?,
        None => statement.raw_bind_parameter(10, record.key.as_bytes())?,
    }
    if !same_place {
        let content = record.content_key.as_ref().map(StoredKey::as_bytes);
        statement.raw_bind_parameter(11, &*record.request.session_key)?;
        statement.raw_bind_parameter(12, &*record.tool)?;
        statement.raw_bind_parameter(13, content)?;
    }
    statement.raw_execute()?;
    if let Some(row) = before {
        step.usage.remove(row.weight());
    }
    step.usage.add(weight);
    Ok(())
}

/// Removes a record that was found before.
pub(super) fn remove_row(step: &Step<'_>, row: &Row) -> StepResult<()> {
    let removed = step
        .conn
        .prepare_cached("DELETE FROM records WHERE id = ?1")?
        .execute([row.id])?;
    if removed > 0 {
        step.usage.remove(row.weight());
    }
    Ok(())
}

/// Removes a record, where asked only with the owner and version that were seen. One that can not
/// be read can be removed all the same.
pub(super) fn clear(
    step: &Step<'_>,
    key: &StoredKey,
    seen: Option<&(Arc<str>, u64)>,
) -> StepResult<Cleared> {
    let removed = match seen {
        None => delete(step, "key = ?1", [key.as_bytes()])?,
        Some((owner, version)) => delete(
            step,
            "key = ?1 AND owner = ?2 AND version = ?3",
            params![key.as_bytes(), &**owner, sql_int(*version)],
        )?,
    };
    if removed > 0 {
        return Ok(Cleared::Forgotten);
    }
    let mut there = step
        .conn
        .prepare_cached("SELECT 1 FROM records WHERE key = ?1")?;
    Ok(if there.exists([key.as_bytes()])? {
        Cleared::Changed
    } else {
        Cleared::NotThere
    })
}

/// Removes the records that fit a condition; says how many there were.
fn delete(step: &Step<'_>, condition: &str, values: impl Params) -> StepResult<u64> {
    let mut statement = step.conn.prepare_cached(&format!(
        "DELETE FROM records WHERE {condition} RETURNING bytes, state = 'inflight'"
    ))?;
    let mut removed = statement.query(values)?;
    let mut count = 0;
    while let Some(row) = removed.next()? {
        step.usage.remove(Weight {
            bytes: row.get(0)?,
            in_flight: row.get(1)?,
        });
        count += 1;
    }
    Ok(count)
}

/// Lists records, newest first. One that can not be read is told apart and hides no other.
pub(super) fn list(conn: &Connection, filter: &RecordFilter) -> StepResult<Listing> {
    let (condition, mut values) = condition(filter);
    values.push(Value::Integer(limit_of(filter)));
    // Places only: to order whole records would take as much room as they do.
    let sql = format!(
        "SELECT id FROM records WHERE {condition} ORDER BY updated_at_ms DESC, key LIMIT ?"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let ids = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    let ids: Vec<i64> = ids.collect::<rusqlite::Result<_>>()?;
    read_all(conn, &ids)
}

/// The newest records with a key that the caller gave. Each is looked into where it lies, and only
/// what fits is read.
pub(super) fn given(conn: &Connection, caller_key: &str, limit: usize) -> StepResult<Listing> {
    let mut statement = conn.prepare_cached("SELECT body, updated_at_ms, id FROM records")?;
    let mut rows = statement.query([])?;
    let mut found: Vec<(Reverse<i64>, i64)> = Vec::new();
    while let Some(row) = rows.next()? {
        if is_given(body_of(row)?, caller_key) {
            found.push((Reverse(row.get(1)?), row.get(2)?));
        }
    }
    found.sort_unstable();
    found.truncate(limit);
    let ids: Vec<i64> = found.into_iter().map(|(_, id)| id).collect();
    read_all(conn, &ids)
}

fn read_all(conn: &Connection, ids: &[i64]) -> StepResult<Listing> {
    let mut listing = Listing::default();
    let mut statement = conn.prepare_cached(
        "SELECT body, key, state, tool, session_key, updated_at_ms, expires_at_ms
         FROM records WHERE id = ?1",
    )?;
    for id in ids {
        let mut rows = statement.query([id])?;
        // It may have been forgotten since.
        let Some(row) = rows.next()? else { continue };
        match record_of(body_of(row)?) {
            Ok(record) => listing.records.push(Arc::new(record)),
            Err(why) => listing.unread.push(UnreadRecord {
                key: StoredKey::from_bytes(row.get(1)?),
                state: row.get(2)?,
                tool: row.get(3)?,
                session: row.get(4)?,
                updated_at_ms: from_sql_int(row.get(5)?),
                expires_at_ms: from_sql_int(row.get(6)?),
                why: why.to_string(),
            }),
        }
    }
    Ok(listing)
}

fn body_of<'a>(row: &'a rusqlite::Row<'_>) -> StepResult<&'a str> {
    Ok(row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?)
}

/// Whether this is the key that the caller gave. The rest is passed over and need not make sense.
fn is_given(body: &str, caller_key: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Given<'a> {
        #[serde(borrow)]
        idempotency_key: Cow<'a, str>,
    }
    serde_json::from_str::<Given<'_>>(body).is_ok_and(|it| it.idempotency_key == caller_key)
}

/// Forgets ended records that fit; says how many.
pub(super) fn flush(step: &Step<'_>, filter: &RecordFilter) -> StepResult<u64> {
    let (condition, mut values) = condition(filter);
    values.push(Value::Integer(limit_of(filter)));
    let condition =
        format!("id IN (SELECT id FROM records WHERE state <> 'inflight' AND {condition} LIMIT ?)");
    delete(step, &condition, params_from_iter(values))
}

/// Forgets up to `at_most` expired records; says how many. The condition is
/// [`DedupeRecord::is_forgettable`] in SQL, and the conformance suite holds the two together.
pub(super) fn sweep(step: &Step<'_>, at_most: usize) -> StepResult<u64> {
    delete(
        step,
        "id IN (SELECT id FROM records WHERE expires_at_ms <= ?1
                    AND (state <> 'inflight'
                         OR ((lock_until_ms IS NULL OR lock_until_ms <= ?1)
                             AND expires_at_ms + json_extract(body, '$.ttlMs') <= ?1))
                LIMIT ?2)",
        params![sql_int(step.now_ms), sql_int(at_most as u64)],
    )
}

/// Forgets the record that ended first; says whether there was one. Running calls and unknown
/// outcomes stay: forgetting them could let an effect happen twice. The condition is that of the
/// index, word for word.
pub(super) fn evict_oldest(step: &Step<'_>) -> StepResult<bool> {
    let removed = delete(
        step,
        "id = (SELECT id FROM records
               WHERE state = 'done' OR state = 'failed' OR state = 'cancelled'
               ORDER BY updated_at_ms LIMIT 1)",
        [],
    )?;
    Ok(removed > 0)
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
    record_of(body).map_err(|error| {
        StepError::Store(StoreError::Unavailable(format!(
            "a record can not be read ({error}): clear it, or use the Holdfast that wrote it"
        )))
    })
}

fn record_of(body: &str) -> serde_json::Result<DedupeRecord> {
    let mut deserializer = serde_json::Deserializer::from_str(body);
    // A payload as deep as a reader takes sits a few levels deeper in its record; what this store
    // has written it must be able to read.
    deserializer.disable_recursion_limit();
    DedupeRecord::deserialize(&mut deserializer)
}
