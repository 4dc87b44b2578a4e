//! A row becomes a record.

use holdfast_contract::{Embedding, MemoryError, MemoryRecord, MemoryType, Trust};
use rusqlite::Row;

use super::{StepError, StepResult};
use crate::vector::from_bytes;

/// The columns of a record without its embedding, in the order that [`record`] reads them.
pub(super) const COLUMNS: &str =
    "m.id, m.memory_type, m.content, m.metadata, m.session_id, m.created_at_ms, m.trust";

/// The columns of its embedding behind them, and where they come from.
pub(super) const EMBEDDING_COLUMNS: &str = "models.name, e.numbers";
pub(super) const EMBEDDING_JOIN: &str = "LEFT JOIN vectors v ON v.seq = m.seq
     LEFT JOIN vectors_exact e ON e.vector_id = v.vector_id
     LEFT JOIN models ON models.model = v.model";

/// The record of a row that has [`COLUMNS`].
pub(super) fn record(row: &Row<'_>) -> StepResult<MemoryRecord> {
    let id: String = row.get(0)?;
    let memory_type: String = row.get(1)?;
    let metadata: Option<String> = row.get(3)?;
    let trust: String = row.get(6)?;
    let memory_type = MemoryType::from_name(&memory_type).ok_or_else(|| strange(&id, "type"))?;
    let metadata = metadata
        .map(|text| serde_json::from_str(&text).map_err(|_| strange(&id, "metadata")))
        .transpose()?;
    let trust = Trust::from_name(&trust).ok_or_else(|| strange(&id, "trust"))?;
    let created_at_ms: i64 = row.get(5)?;
    Ok(MemoryRecord {
        memory_type,
        content: row.get(2)?,
        metadata,
        session_id: row.get(4)?,
        created_at_ms: u64::try_from(created_at_ms).map_err(|_| strange(&id, "time"))?,
        trust,
        embedding: None,
        id,
    })
}

/// The record of a row that has [`COLUMNS`] and [`EMBEDDING_COLUMNS`].
pub(super) fn whole_record(row: &Row<'_>) -> StepResult<MemoryRecord> {
    let mut found = record(row)?;
    let model: Option<String> = row.get(7)?;
    let numbers: Option<Vec<u8>> = row.get(8)?;
    if let (Some(model), Some(numbers)) = (model, numbers) {
        let vector = from_bytes(&numbers).ok_or_else(|| strange(&found.id, "embedding"))?;
        found.embedding = Some(Embedding { model, vector });
    }
    Ok(found)
}

/// A time as the database keeps it; what comes in was checked to fit.
pub(super) fn time(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn strange(id: &str, what: &str) -> StepError {
    StepError::Memory(MemoryError::Unavailable(format!(
        "the {what} of the record {id:?} can not be read; the database was changed by something \
         else, or is damaged"
    )))
}
