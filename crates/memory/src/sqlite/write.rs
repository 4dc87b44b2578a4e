//! Records and vectors in, and out again. Everything here runs inside a transaction.

use holdfast_contract::memory::Inserted;
use holdfast_contract::{Embedding, MemoryError, MemoryRecord, MemoryType};
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::time;
use super::{SqliteMemoryOptions, StepResult, read};
use crate::backend::{Put, fingerprint, is_equal, metadata_json};
use crate::terms::indexable;
use crate::vector::{Code, to_bytes};

/// Removed vectors that are remembered for other processes. One that has seen fewer reads all
/// vectors again.
pub const REMOVED_VECTORS_MAX: i64 = 10_000;

pub(super) fn remember(
    conn: &Connection,
    options: &SqliteMemoryOptions,
    record: &MemoryRecord,
) -> StepResult<Put> {
    let known: Option<String> = conn
        .prepare_cached("SELECT id FROM memories WHERE fingerprint = ?1 ORDER BY seq LIMIT 1")?
        .query_row([fingerprint(record)], |row| row.get(0))
        .optional()?;
    if let Some(id) = known {
        return Ok(Put::Known(id));
    }
    make_room(conn, options, 1)?;
    add(conn, record)?;
    Ok(Put::Added)
}

pub(super) fn insert(
    conn: &Connection,
    options: &SqliteMemoryOptions,
    records: &[MemoryRecord],
) -> StepResult<Inserted> {
    let mut done = Inserted::default();
    for record in records {
        match read::get(conn, &record.id)? {
            None => {
                add(conn, record)?;
                done.added += 1;
            }
            Some(known) if is_equal(&known, record) => {
                if let (None, Some(vector)) = (&known.embedding, &record.embedding) {
                    embed_one(conn, &record.id, vector)?;
                }
                done.unchanged += 1;
            }
            Some(_) => done.conflicting.push(record.id.clone()),
        }
    }
    make_room(conn, options, 0)?;
    Ok(done)
}

/// Refuses what would be too many.
fn make_room(conn: &Connection, options: &SqliteMemoryOptions, more: u64) -> StepResult<()> {
    let records = read::count(conn, None)?;
    if records + more <= options.records_max {
        return Ok(());
    }
    let reason = format!(
        "there are {} records at most; delete some that are no longer needed",
        options.records_max
    );
    Err(MemoryError::Full(reason).into())
}

fn add(conn: &Connection, record: &MemoryRecord) -> StepResult<()> {
    conn.prepare_cached(
        "INSERT INTO memories (id, memory_type, content, metadata, session_id, created_at_ms,
         trust, fingerprint) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        record.id,
        record.memory_type.as_str(),
        record.content,
        record.metadata.as_ref().map(metadata_json),
        record.session_id,
        time(record.created_at_ms),
        record.trust.as_str(),
        fingerprint(record),
    ])?;
    let seq = conn.last_insert_rowid();
    conn.prepare_cached("INSERT INTO memories_text (rowid, content) VALUES (?1, ?2)")?
        .execute(params![seq, indexable(&record.content)])?;
    match &record.embedding {
        Some(vector) => add_vector(conn, seq, record.memory_type, vector),
        None => Ok(()),
    }
}

pub(super) fn delete(conn: &Connection, id: &str) -> StepResult<bool> {
    let Some((seq, _)) = place_of(conn, id)? else {
        return Ok(false);
    };
    remove_vector(conn, seq)?;
    conn.prepare_cached("DELETE FROM memories_text WHERE rowid = ?1")?
        .execute([seq])?;
    conn.prepare_cached("DELETE FROM memories WHERE seq = ?1")?
        .execute([seq])?;
    Ok(true)
}

pub(super) fn embed(conn: &Connection, vectors: &[(String, Embedding)]) -> StepResult<u64> {
    let mut done = 0;
    for (id, vector) in vectors {
        if embed_one(conn, id, vector)? {
            done += 1;
        }
    }
    Ok(done)
}

fn embed_one(conn: &Connection, id: &str, vector: &Embedding) -> StepResult<bool> {
    let Some((seq, memory_type)) = place_of(conn, id)? else {
        return Ok(false);
    };
    remove_vector(conn, seq)?;
    add_vector(conn, seq, memory_type, vector)?;
    Ok(true)
}

fn place_of(conn: &Connection, id: &str) -> StepResult<Option<(i64, MemoryType)>> {
    let found: Option<(i64, String)> = conn
        .prepare_cached("SELECT seq, memory_type FROM memories WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(seq, name)| Some((seq, MemoryType::from_name(&name)?))))
}

fn add_vector(
    conn: &Connection,
    seq: i64,
    memory_type: MemoryType,
    embedding: &Embedding,
) -> StepResult<()> {
    let code = Code::of(&embedding.vector)
        .ok_or_else(|| MemoryError::invalid("embedding", "it has no direction"))?;
    let model = model_number(conn, embedding)?;
    let steps: Vec<u8> = code.steps.iter().map(|step| step.cast_unsigned()).collect();
    conn.prepare_cached(
        "INSERT INTO vectors (seq, model, memory_type, factor, steps) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        seq,
        model,
        memory_type.as_str(),
        f64::from(code.factor),
        steps
    ])?;
    conn.prepare_cached("INSERT INTO vectors_exact (vector_id, numbers) VALUES (?1, ?2)")?
        .execute(params![
            conn.last_insert_rowid(),
            to_bytes(&embedding.vector)
        ])?;
    Ok(())
}

/// The number of a model with vectors of this size, given out when it is first seen.
fn model_number(conn: &Connection, embedding: &Embedding) -> StepResult<i64> {
    let dimensions = i64::try_from(embedding.vector.len()).unwrap_or(i64::MAX);
    if let Some(number) = read::model_number(conn, &embedding.model, dimensions)? {
        return Ok(number);
    }
    conn.prepare_cached("INSERT INTO models (name, dimensions) VALUES (?1, ?2)")?
        .execute(params![embedding.model, dimensions])?;
    Ok(conn.last_insert_rowid())
}

/// Takes a record's vector out, and lets the caches of other processes know.
fn remove_vector(conn: &Connection, seq: i64) -> StepResult<()> {
    let vector_id: Option<i64> = conn
        .prepare_cached("DELETE FROM vectors WHERE seq = ?1 RETURNING vector_id")?
        .query_row([seq], |row| row.get(0))
        .optional()?;
    let Some(vector_id) = vector_id else {
        return Ok(());
    };
    conn.prepare_cached("DELETE FROM vectors_exact WHERE vector_id = ?1")?
        .execute([vector_id])?;
    conn.prepare_cached("INSERT INTO vectors_removed (vector_id) VALUES (?1)")?
        .execute([vector_id])?;
    let newest = conn.last_insert_rowid();
    conn.prepare_cached("DELETE FROM vectors_removed WHERE n <= ?1")?
        .execute([newest - REMOVED_VECTORS_MAX])?;
    Ok(())
}
