//! What may come in.

use holdfast_contract::memory::{
    MEMORY_CONTENT_BYTES_MAX, MEMORY_DIMENSIONS_MAX, MEMORY_HITS_MAX, MEMORY_METADATA_BYTES_MAX,
    MEMORY_NAME_BYTES_MAX, MEMORY_QUERY_BYTES_MAX, MemoryResult,
};
use holdfast_contract::{Embedding, MemoryError, MemoryQuery, MemoryRecord};

use crate::backend::metadata_json;

/// The end of the year 9999: later times can not be written with four digits.
const TIME_MS_MAX: u64 = 253_402_300_799_999;

/// Whether a record can be kept.
pub fn check_record(record: &MemoryRecord) -> MemoryResult<()> {
    name("id", &record.id)?;
    name("session_id", &record.session_id)?;
    if record.content.trim().is_empty() {
        return Err(MemoryError::invalid(
            "content",
            "there is no text to remember",
        ));
    }
    no_longer_than("content", record.content.len(), MEMORY_CONTENT_BYTES_MAX)?;
    if let Some(metadata) = &record.metadata {
        let size = metadata_json(metadata).len();
        no_longer_than("metadata", size, MEMORY_METADATA_BYTES_MAX)?;
    }
    if record.created_at_ms > TIME_MS_MAX {
        return Err(MemoryError::invalid(
            "created_at",
            "the time is after the year 9999",
        ));
    }
    record.embedding.as_ref().map_or(Ok(()), check_embedding)
}

/// Whether a vector can be compared with others.
pub fn check_embedding(embedding: &Embedding) -> MemoryResult<()> {
    name("embedding.model", &embedding.model)?;
    let size = embedding.vector.len();
    if size > MEMORY_DIMENSIONS_MAX {
        return Err(MemoryError::invalid(
            "embedding",
            format!("it has {size} numbers, and {MEMORY_DIMENSIONS_MAX} is the most"),
        ));
    }
    if crate::vector::Code::of(&embedding.vector).is_none() {
        return Err(MemoryError::invalid(
            "embedding",
            "it has no direction: it is empty, all zeros, or not made of finite numbers",
        ));
    }
    Ok(())
}

/// Whether a search can be made.
pub fn check_query(query: &MemoryQuery) -> MemoryResult<()> {
    no_longer_than("query", query.text.len(), MEMORY_QUERY_BYTES_MAX)?;
    if query.text.trim().is_empty() {
        return Err(MemoryError::invalid(
            "query",
            "there is nothing to look for",
        ));
    }
    if !(1..=MEMORY_HITS_MAX).contains(&query.limit) {
        return Err(MemoryError::invalid(
            "limit",
            format!("it has to be from 1 to {MEMORY_HITS_MAX}"),
        ));
    }
    Ok(())
}

fn name(field: &'static str, text: &str) -> MemoryResult<()> {
    if text.is_empty() {
        return Err(MemoryError::invalid(field, "it is empty"));
    }
    no_longer_than(field, text.len(), MEMORY_NAME_BYTES_MAX)
}

fn no_longer_than(field: &'static str, bytes: usize, bytes_max: usize) -> MemoryResult<()> {
    if bytes <= bytes_max {
        return Ok(());
    }
    Err(MemoryError::invalid(
        field,
        format!("it has {bytes} bytes, and {bytes_max} is the most"),
    ))
}
