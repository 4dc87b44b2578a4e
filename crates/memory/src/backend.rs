//! What a place for records has to offer. [`crate::Memory`] makes a whole memory of it: it asks the
//! embedding model, checks what comes in, and goes on without the model when it is away.

use std::collections::BTreeMap;

use async_trait::async_trait;
use holdfast_contract::memory::{Inserted, MemoryCursor, MemoryPage, MemoryResult};
use holdfast_contract::{Embedding, MemoryHit, MemoryRecord, MemoryType};
use sha2::{Digest as _, Sha256};

use crate::terms::Terms;

/// A search, prepared.
#[derive(Debug, Clone, PartialEq)]
pub struct RecallPlan {
    /// The query as it was typed, for an index with a parser of its own.
    pub text: String,
    /// The query's words.
    pub terms: Terms,
    /// The query as a vector.
    pub vector: Option<Embedding>,
    /// Only of this type.
    pub memory_type: Option<MemoryType>,
    /// Hits at most.
    pub limit: usize,
    /// How deep each ranking goes before the two are fused.
    pub depth: usize,
}

/// What a search found.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recalled {
    /// Best first.
    pub hits: Vec<MemoryHit>,
    /// Records that have a vector of the query's model and size: the ones it was compared with.
    pub embedded: u64,
    /// Records there are.
    pub total: u64,
}

/// What became of one record that was to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Put {
    /// It is in.
    Added,
    /// One that says the same is there under this id.
    Known(String),
}

/// What a record says, as a number: type, trust, text and metadata.
pub fn fingerprint(record: &MemoryRecord) -> [u8; 32] {
    let metadata = record.metadata.as_ref().map(metadata_json);
    let mut digest = Sha256::new();
    let parts = [
        record.memory_type.as_str(),
        record.trust.as_str(),
        &record.content,
        metadata.as_deref().unwrap_or_default(),
    ];
    for part in parts {
        // Lengths keep "ab" + "c" apart from "a" + "bc".
        digest.update((part.len() as u64).to_le_bytes());
        digest.update(part);
    }
    digest.finalize().into()
}

/// Metadata as it is stored and written out.
pub fn metadata_json(metadata: &serde_json::Map<String, serde_json::Value>) -> String {
    // Values that were read from JSON can be written as JSON.
    serde_json::to_string(metadata).unwrap_or_default()
}

/// All records as they were at one moment, whatever is written meanwhile.
pub trait Snapshot: Send {
    /// How many there are of each type; types without any are left out. Blocks.
    fn counts(&mut self) -> MemoryResult<BTreeMap<MemoryType, u64>>;

    /// The next ones with their embeddings, oldest first, those of one moment by id. Blocks.
    fn next(&mut self, limit: usize) -> MemoryResult<Vec<MemoryRecord>>;
}

/// A place for records.
#[async_trait]
pub trait Backend: Send + Sync {
    /// Searches.
    async fn recall(&self, plan: RecallPlan) -> MemoryResult<Recalled>;

    /// The record with this id, with its embedding.
    async fn get(&self, id: &str) -> MemoryResult<Option<MemoryRecord>>;

    /// Records with their embeddings, in order of time, those of one moment by id.
    async fn list(&self, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>>;

    /// How many there are.
    async fn count(&self, memory_type: Option<MemoryType>) -> MemoryResult<u64>;

    /// Adds a record unless one that says the same is there, in one step.
    async fn remember(&self, record: MemoryRecord) -> MemoryResult<Put>;

    /// Puts whole records in: all of them or, on an error, none. One that is there already only
    /// gains an embedding, if it had none.
    async fn insert(&self, records: Vec<MemoryRecord>) -> MemoryResult<Inserted>;

    /// Forgets a record; says whether it was there.
    async fn delete(&self, id: &str) -> MemoryResult<bool>;

    /// Records that have no vector of this model with so many numbers, without the vectors they
    /// have. A model can come to give others under its old name.
    async fn without_embedding(
        &self,
        model: &str,
        dimensions: usize,
        after: Option<MemoryCursor>,
        limit: usize,
    ) -> MemoryResult<Vec<MemoryRecord>>;

    /// Gives records their vectors in place of those they had; says how many were still there.
    async fn embed(&self, vectors: Vec<(String, Embedding)>) -> MemoryResult<u64>;

    /// A view of everything as it is now.
    async fn snapshot(&self) -> MemoryResult<Box<dyn Snapshot>>;
}

/// Whether two records say the same in everything but their embeddings.
pub fn is_equal(a: &MemoryRecord, b: &MemoryRecord) -> bool {
    a.id == b.id
        && a.memory_type == b.memory_type
        && a.content == b.content
        && a.metadata == b.metadata
        && a.session_id == b.session_id
        && a.created_at_ms == b.created_at_ms
        && a.trust == b.trust
}
