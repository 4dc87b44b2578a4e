//! Documents: one row each, changed by compare-and-set.

use futures_util::FutureExt;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::SqliteState;
use super::errors::{StepError, StepResult};
use super::rows::{from_sql_int, sql_int};
use super::writer::{Durability, Step};
use crate::store::documents::{
    Created, DOCUMENTS_MAX, Document, DocumentFilter, DocumentStore, NewDocument, PageBytes,
    Replaced, Replacement, check_size,
};
use crate::store::{StoreError, StoreFuture};

const COLUMNS: &str =
    "kind, id, \"group\", version, body, created_at_ms, updated_at_ms, expires_at_ms";

fn read_row(row: &Row<'_>) -> rusqlite::Result<(Document, String)> {
    let document = Document {
        kind: row.get(0)?,
        id: row.get(1)?,
        group: row.get(2)?,
        version: from_sql_int(row.get(3)?),
        body: serde_json::Value::Null,
        created_at_ms: from_sql_int(row.get(5)?),
        updated_at_ms: from_sql_int(row.get(6)?),
        expires_at_ms: row.get::<_, Option<i64>>(7)?.map(from_sql_int),
    };
    Ok((document, row.get(4)?))
}

fn with_body((document, body): (Document, String)) -> StepResult<Document> {
    let body = serde_json::from_str(&body).map_err(|error| {
        StepError::Store(StoreError::Unavailable(format!(
            "the {} {:?} can not be read: {error}",
            document.kind, document.id
        )))
    })?;
    Ok(Document { body, ..document })
}

/// The document, unless its time is over.
fn find(conn: &Connection, kind: &str, id: &str, now_ms: u64) -> StepResult<Option<Document>> {
    conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM documents
         WHERE kind = ?1 AND id = ?2 AND (expires_at_ms IS NULL OR expires_at_ms > ?3)"
    ))?
    .query_row(params![kind, id, sql_int(now_ms)], read_row)
    .optional()?
    .map(with_body)
    .transpose()
}

fn create(step: &Step<'_>, new: &NewDocument) -> StepResult<Created> {
    if let Some(found) = find(step.conn, &new.kind, &new.id, step.now_ms)? {
        return Ok(Created::Exists(found));
    }
    make_room(step)?;
    let body = check_size(&new.body)?;
    step.conn
        .prepare_cached(
            "INSERT OR REPLACE INTO documents
                 (kind, id, \"group\", version, body, created_at_ms, updated_at_ms, expires_at_ms)
             VALUES (?1, ?2, ?3, 1, ?4, ?5, ?5, ?6)",
        )?
        .execute(params![
            new.kind,
            new.id,
            new.group,
            body,
            sql_int(step.now_ms),
            new.expires_at_ms.map(sql_int),
        ])?;
    Ok(Created::New(Document::first(new, step.now_ms)))
}

fn make_room(step: &Step<'_>) -> StepResult<()> {
    let count = || -> StepResult<u64> {
        let count = step
            .conn
            .prepare_cached("SELECT count(*) FROM documents")?
            .query_row([], |row| row.get(0))?;
        Ok(from_sql_int(count))
    };
    if count()? >= DOCUMENTS_MAX {
        sweep(step)?;
        if count()? >= DOCUMENTS_MAX {
            return Err(StoreError::Full(format!("{DOCUMENTS_MAX} documents")).into());
        }
    }
    Ok(())
}

fn replace(step: &Step<'_>, change: &Replacement) -> StepResult<Replaced> {
    let body = check_size(&change.body)?;
    let Some(found) = find(step.conn, &change.kind, &change.id, step.now_ms)? else {
        return Ok(Replaced::Gone);
    };
    if found.version != change.version {
        return Ok(Replaced::Changed(found));
    }
    step.conn
        .prepare_cached(
            "UPDATE documents SET version = version + 1, \"group\" = ?3, body = ?4,
                 updated_at_ms = ?5, expires_at_ms = ?6
             WHERE kind = ?1 AND id = ?2",
        )?
        .execute(params![
            change.kind,
            change.id,
            change.group,
            body,
            sql_int(step.now_ms),
            change.expires_at_ms.map(sql_int),
        ])?;
    Ok(Replaced::Done(Document {
        version: found.version + 1,
        group: change.group.clone(),
        body: change.body.clone(),
        updated_at_ms: step.now_ms,
        expires_at_ms: change.expires_at_ms,
        ..found
    }))
}

fn sweep(step: &Step<'_>) -> StepResult<u64> {
    let removed = step
        .conn
        .prepare_cached("DELETE FROM documents WHERE expires_at_ms <= ?1")?
        .execute([sql_int(step.now_ms)])?;
    Ok(removed as u64)
}

fn list(conn: &Connection, filter: &DocumentFilter, now_ms: u64) -> StepResult<Vec<Document>> {
    // Written out for each case: a condition that may be absent keeps SQLite from using an index.
    let of_group = match filter.group {
        Some(_) => "\"group\" = ?2",
        None => "?2 IS NULL",
    };
    let after = match filter.after {
        Some(_) => ">",
        None => ">=",
    };
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {COLUMNS} FROM documents
         WHERE kind = ?1 AND {of_group} AND id {after} ?3
             AND (expires_at_ms IS NULL OR expires_at_ms > ?4)
         ORDER BY id LIMIT ?5"
    ))?;
    let mut rows = statement.query(params![
        filter.kind,
        filter.group,
        filter.after.as_deref().unwrap_or_default(),
        sql_int(now_ms),
        sql_int(filter.page() as u64),
    ])?;
    let mut bytes = PageBytes::default();
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let (document, body) = read_row(row)?;
        let is_full = bytes.is_full(body.len());
        found.push(with_body((document, body))?);
        if is_full {
            break;
        }
    }
    Ok(found)
}

impl DocumentStore for SqliteState {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        self.write(Durability::Synced, move |step| create(step, &new))
            .boxed()
            .into()
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        let now_ms = self.shared.clock.now_ms();
        self.read(move |conn| find(conn, &kind, &id, now_ms))
            .boxed()
            .into()
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        self.write(Durability::Synced, move |step| replace(step, &change))
            .boxed()
            .into()
    }

    fn replace_detached(&self, change: Replacement) {
        self.write_detached(Durability::Synced, move |step| replace(step, &change));
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        let filter = filter.clone();
        let now_ms = self.shared.clock.now_ms();
        self.read(move |conn| list(conn, &filter, now_ms))
            .boxed()
            .into()
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        let (kind, id) = (kind.to_owned(), id.to_owned());
        self.write(Durability::Synced, move |step| {
            let removed = step
                .conn
                .prepare_cached(
                    "DELETE FROM documents WHERE kind = ?1 AND id = ?2
                     AND (expires_at_ms IS NULL OR expires_at_ms > ?3)",
                )?
                .execute(params![kind, id, sql_int(step.now_ms)])?;
            Ok(removed > 0)
        })
        .boxed()
        .into()
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        self.write(Durability::Relaxed, |step| sweep(step))
            .boxed()
            .into()
    }
}
