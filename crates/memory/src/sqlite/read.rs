//! Search, listings and snapshots. Everything here sees one state of the database.

use std::collections::BTreeMap;

use holdfast_contract::memory::{MemoryCursor, MemoryOrder, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryHit, MemoryRecord, MemoryType};
use holdfast_database::Place;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rusqlite::{Connection, OptionalExtension, params};

use super::cache::Vectors;
use super::rows::{COLUMNS, EMBEDDING_COLUMNS, EMBEDDING_JOIN, record, time, whole_record};
use super::{StepResult, from_database};
use crate::backend::{RecallPlan, Recalled, Snapshot};
use crate::rank::{Fused, fuse};
use crate::vector::{Code, Near, cosine, from_bytes};

/// Vectors that are compared exactly, for each hit that is wanted, and at least. Rounding moves a
/// vector by a place or two; further down, places hardly count in the fusion.
const EXACT_PER_HIT: usize = 3;
const EXACT_MIN: usize = 32;

pub(super) fn recall(
    conn: &Connection,
    cached: &RwLock<Option<Vectors>>,
    plan: &RecallPlan,
) -> StepResult<Recalled> {
    let text = text_ranking(conn, plan)?;
    let mut found = Recalled {
        total: count(conn, None)?,
        ..Recalled::default()
    };
    let vectors = match &plan.vector {
        Some(query) => {
            let (ranking, embedded) = vector_ranking(conn, cached, plan, query)?;
            found.embedded = embedded;
            ranking
        }
        None => Vec::new(),
    };
    for fused in fuse(&text, &vectors).into_iter().take(plan.limit) {
        if let Some(hit) = hit(conn, &fused)? {
            found.hits.push(hit);
        }
    }
    Ok(found)
}

fn hit(conn: &Connection, fused: &Fused<i64>) -> StepResult<Option<MemoryHit>> {
    let sql = format!("SELECT {COLUMNS} FROM memories m WHERE m.seq = ?1");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([fused.key])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    Ok(Some(MemoryHit {
        record: record(row)?,
        score: fused.score,
        text_rank: fused.text_rank,
        vector_rank: fused.vector_rank,
    }))
}

/// Records by their words: those with whole words first, and when they are too few for an answer,
/// those with words that begin like them.
fn text_ranking(conn: &Connection, plan: &RecallPlan) -> StepResult<Vec<i64>> {
    let mut ranking = match &plan.terms.words {
        Some(words) => matching(conn, words, plan)?,
        None => return Ok(Vec::new()),
    };
    if ranking.len() < plan.limit
        && let Some(beginnings) = &plan.terms.beginnings
    {
        for seq in matching(conn, beginnings, plan)? {
            if !ranking.contains(&seq) {
                ranking.push(seq);
            }
        }
        ranking.truncate(plan.depth);
    }
    Ok(ranking)
}

fn matching(conn: &Connection, expression: &str, plan: &RecallPlan) -> StepResult<Vec<i64>> {
    let depth = i64::try_from(plan.depth).unwrap_or(i64::MAX);
    let found = match plan.memory_type {
        None => conn
            .prepare_cached(
                "SELECT rowid FROM memories_text WHERE memories_text MATCH ?1
                 ORDER BY rank LIMIT ?2",
            )?
            .query_map(params![expression, depth], |row| row.get(0))?
            .collect::<Result<_, _>>()?,
        // The join has to look each match up, in the order of their ranks, until there are enough.
        Some(wanted) => conn
            .prepare_cached(
                "SELECT t.rowid FROM memories_text t CROSS JOIN memories m ON m.seq = t.rowid
                 WHERE t.memories_text MATCH ?1 AND m.memory_type = ?3
                 ORDER BY t.rank LIMIT ?2",
            )?
            .query_map(params![expression, depth, wanted.as_str()], |row| {
                row.get(0)
            })?
            .collect::<Result<_, _>>()?,
    };
    Ok(found)
}

/// Records by their vectors, nearest first, and how many have one at all.
fn vector_ranking(
    conn: &Connection,
    cached: &RwLock<Option<Vectors>>,
    plan: &RecallPlan,
    query: &Embedding,
) -> StepResult<(Vec<i64>, u64)> {
    let size = query.vector.len();
    let dimensions = i64::try_from(size).unwrap_or(i64::MAX);
    let model = model_number(conn, &query.model, dimensions)?;
    let (Some(model), Some(code)) = (model, Code::of(&query.vector)) else {
        return Ok((Vec::new(), 0));
    };
    let vectors = up_to_date(conn, cached, model, size)?;
    let Some(vectors) = &*vectors else {
        return Ok((Vec::new(), 0));
    };
    let near = vectors.index.nearest(&code, plan.memory_type, plan.depth);
    let exact = near.len().min((plan.limit * EXACT_PER_HIT).max(EXACT_MIN));
    let (best, rest) = near.split_at(exact);
    let mut ranking = exactly(conn, best, &query.vector)?;
    ranking.extend(rest.iter().map(|near| near.record));
    Ok((ranking, vectors.index.len() as u64))
}

/// The records of these vectors in their exact order.
fn exactly(conn: &Connection, best: &[Near], query: &[f32]) -> StepResult<Vec<i64>> {
    let mut statement =
        conn.prepare_cached("SELECT numbers FROM vectors_exact WHERE vector_id = ?1")?;
    let mut exact = Vec::with_capacity(best.len());
    for near in best {
        let mut rows = statement.query([near.vector_id])?;
        // The cache may be newer than what this connection sees.
        if let Some(row) = rows.next()?
            && let Some(vector) = row.get_ref(0)?.as_blob().ok().and_then(from_bytes)
        {
            exact.push((cosine(&vector, query), near.record));
        }
    }
    exact.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    Ok(exact.into_iter().map(|(_, record)| record).collect())
}

/// The cached vectors, as new as what this connection sees.
fn up_to_date<'a>(
    conn: &Connection,
    cached: &'a RwLock<Option<Vectors>>,
    model: i64,
    dimensions: usize,
) -> StepResult<RwLockReadGuard<'a, Option<Vectors>>> {
    let held = cached.read();
    if let Some(vectors) = &*held
        && vectors.is_current(conn, model)?
    {
        return Ok(held);
    }
    drop(held);
    let mut held = cached.write();
    // Taken out, so that an error in between leaves nothing half read behind.
    let old = held.take();
    *held = Some(Vectors::refreshed(old, conn, model, dimensions)?);
    Ok(RwLockWriteGuard::downgrade(held))
}

pub(super) fn model_number(
    conn: &Connection,
    name: &str,
    dimensions: i64,
) -> StepResult<Option<i64>> {
    Ok(conn
        .prepare_cached("SELECT model FROM models WHERE name = ?1 AND dimensions = ?2")?
        .query_row(params![name, dimensions], |row| row.get(0))
        .optional()?)
}

pub(super) fn get(conn: &Connection, id: &str) -> StepResult<Option<MemoryRecord>> {
    let sql = format!(
        "SELECT {COLUMNS}, {EMBEDDING_COLUMNS} FROM memories m {EMBEDDING_JOIN} WHERE m.id = ?1"
    );
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([id])?;
    rows.next()?.map(whole_record).transpose()
}

pub(super) fn list(conn: &Connection, page: &MemoryPage) -> StepResult<Vec<MemoryRecord>> {
    let (behind, direction) = match page.order {
        MemoryOrder::OldestFirst => (">", "ASC"),
        MemoryOrder::NewestFirst => ("<", "DESC"),
    };
    let sql = format!(
        "SELECT {COLUMNS}, {EMBEDDING_COLUMNS} FROM memories m {EMBEDDING_JOIN}
         WHERE (m.created_at_ms, m.id) {behind} (?1, ?2) AND (?3 IS NULL OR m.memory_type = ?3)
         ORDER BY m.created_at_ms {direction}, m.id {direction} LIMIT ?4"
    );
    let (after_ms, after_id) = match (&page.after, page.order) {
        (None, MemoryOrder::NewestFirst) => (i64::MAX, ""),
        (after, _) => position(after.as_ref()),
    };
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![
        after_ms,
        after_id,
        page.memory_type.map(MemoryType::as_str),
        i64::try_from(page.limit).unwrap_or(i64::MAX),
    ])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(whole_record(row)?);
    }
    Ok(found)
}

/// Where a listing goes on; ahead of everything without a cursor.
fn position(after: Option<&MemoryCursor>) -> (i64, &str) {
    after.map_or((-1, ""), |cursor| (time(cursor.created_at_ms), &cursor.id))
}

pub(super) fn count(conn: &Connection, memory_type: Option<MemoryType>) -> StepResult<u64> {
    let records: i64 = conn
        .prepare_cached(
            "SELECT coalesce(sum(records), 0) FROM memories_count
             WHERE ?1 IS NULL OR memory_type = ?1",
        )?
        .query_row([memory_type.map(MemoryType::as_str)], |row| row.get(0))?;
    Ok(records.unsigned_abs())
}

pub(super) fn without_embedding(
    conn: &Connection,
    model: &str,
    dimensions: usize,
    after: Option<&MemoryCursor>,
    limit: usize,
) -> StepResult<Vec<MemoryRecord>> {
    // Without a number nobody has one: no vector's model equals NULL.
    let dimensions = i64::try_from(dimensions).unwrap_or(i64::MAX);
    let model = model_number(conn, model, dimensions)?;
    let sql = format!(
        "SELECT {COLUMNS} FROM memories m
         WHERE (m.created_at_ms, m.id) > (?1, ?2)
           AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.seq = m.seq AND v.model = ?3)
         ORDER BY m.created_at_ms, m.id LIMIT ?4"
    );
    let (after_ms, after_id) = position(after);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![after_ms, after_id, model, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(record(row)?);
    }
    Ok(found)
}

/// A connection inside a read transaction: it goes on seeing what it saw first.
pub(super) struct SqliteSnapshot {
    conn: Connection,
    place: Place,
    after: Option<MemoryCursor>,
}

impl SqliteSnapshot {
    pub(super) fn begin(conn: Connection, place: Place) -> MemoryResult<Self> {
        // A transaction begins with its first look.
        conn.execute_batch("BEGIN; SELECT 1 FROM memories LIMIT 1;")
            .map_err(|error| from_database(place.explain(&error)))?;
        Ok(Self {
            conn,
            place,
            after: None,
        })
    }

    fn look<T>(&self, look: impl FnOnce(&Connection) -> StepResult<T>) -> MemoryResult<T> {
        look(&self.conn).map_err(|error| match error {
            super::StepError::Sql(error) => from_database(self.place.explain(&error)),
            super::StepError::Memory(error) => error,
        })
    }
}

impl Snapshot for SqliteSnapshot {
    fn counts(&mut self) -> MemoryResult<BTreeMap<MemoryType, u64>> {
        let mut counts = BTreeMap::new();
        for known in MemoryType::ALL {
            let records = self.look(|conn| count(conn, Some(known)))?;
            if records > 0 {
                counts.insert(known, records);
            }
        }
        Ok(counts)
    }

    fn next(&mut self, limit: usize) -> MemoryResult<Vec<MemoryRecord>> {
        let page = MemoryPage {
            after: self.after.take(),
            limit,
            ..MemoryPage::default()
        };
        let found = self.look(|conn| list(conn, &page))?;
        self.after = found.last().map(MemoryCursor::behind).or(page.after);
        Ok(found)
    }
}
