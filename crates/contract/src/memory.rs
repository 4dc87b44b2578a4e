//! What an agent remembers, and the rights to read and write it.
//!
//! Reading and writing are two traits, so that a session can be given one without the other: a
//! worker searches what its agent knows and has no way to add to it. A store implements
//! [`MemoryStore`], which joins both.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::trust::Trust;

/// Text of one record.
pub const MEMORY_CONTENT_BYTES_MAX: usize = 32 * 1024;
/// Metadata of one record, written as JSON.
pub const MEMORY_METADATA_BYTES_MAX: usize = 8 * 1024;
/// Text of one search.
pub const MEMORY_QUERY_BYTES_MAX: usize = 8 * 1024;
/// Hits of a search that does not say how many.
pub const MEMORY_HITS_DEFAULT: usize = 10;
/// Hits of one search.
pub const MEMORY_HITS_MAX: usize = 100;
/// Length of an id, a session or an embedding model's name.
pub const MEMORY_NAME_BYTES_MAX: usize = 512;
/// Numbers in one embedding.
pub const MEMORY_DIMENSIONS_MAX: usize = 8192;

/// What kind of thing is remembered.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum MemoryType {
    /// Something that was decided, best with its reason.
    Decision,
    /// Something that is so.
    Fact,
    /// Who somebody is, the agent included.
    Identity,
    /// What somebody likes or wants.
    Preference,
}

impl MemoryType {
    /// All of them, in the order of their names.
    pub const ALL: [Self; 4] = [Self::Decision, Self::Fact, Self::Identity, Self::Preference];

    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Fact => "fact",
            Self::Identity => "identity",
            Self::Preference => "preference",
        }
    }

    /// The type with this name, however it is capitalised.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.as_str().eq_ignore_ascii_case(name.trim()))
    }
}

/// A text as a point in the space of one embedding model. Vectors of different models can not be
/// compared, so the model belongs to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedding {
    /// The model that made it.
    pub model: String,
    /// The numbers, as the model gave them.
    pub vector: Vec<f32>,
}

/// Something remembered.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryRecord {
    /// Its own name, unique in a store.
    pub id: String,
    /// What kind of thing it is.
    pub memory_type: MemoryType,
    /// The text.
    pub content: String,
    /// Whatever else belongs to it.
    pub metadata: Option<Map<String, Value>>,
    /// The session that stored it.
    pub session_id: String,
    /// When, in Unix milliseconds.
    pub created_at_ms: u64,
    /// How far the text was trusted when it was stored.
    pub trust: Trust,
    /// The text as a vector, once an embedding model has seen it.
    pub embedding: Option<Embedding>,
}

/// Something to be remembered. The store gives it an id and a time.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMemory {
    /// What kind of thing it is.
    pub memory_type: MemoryType,
    /// The text.
    pub content: String,
    /// Whatever else belongs to it.
    pub metadata: Option<Map<String, Value>>,
    /// The session that stores it.
    pub session_id: String,
    /// How far the text is trusted.
    pub trust: Trust,
}

/// What became of something to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The record's id.
    pub id: String,
    /// Whether it is new, or was known word for word.
    pub is_new: bool,
    /// Why the record has no embedding although a model is configured.
    pub embedding_missing: Option<String>,
}

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryQuery {
    /// In whatever words.
    pub text: String,
    /// Hits at most.
    pub limit: usize,
    /// Only of this type.
    pub memory_type: Option<MemoryType>,
}

impl MemoryQuery {
    /// A search over all types with the default number of hits.
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            limit: MEMORY_HITS_DEFAULT,
            memory_type: None,
        }
    }
}

/// A record that was found, and where each of the two searches had it.
#[derive(Debug, Clone, PartialEq)]
pub struct MemoryHit {
    /// The record, without its embedding.
    pub record: MemoryRecord,
    /// Reciprocal ranks, added up; higher is better, and it means nothing beyond this answer.
    pub score: f64,
    /// Its place among the full-text matches, from 1.
    pub text_rank: Option<usize>,
    /// Its place among the nearest vectors, from 1.
    pub vector_rank: Option<usize>,
}

/// The answer to a search.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Recall {
    /// Best first.
    pub hits: Vec<MemoryHit>,
    /// Whether vectors were searched as well.
    pub used_vectors: bool,
    /// What the caller should know: that the embedding model did not answer, or that some records
    /// have no embedding yet.
    pub note: Option<String>,
}

/// Where a listing goes on: behind this record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryCursor {
    /// Its time.
    pub created_at_ms: u64,
    /// Its id.
    pub id: String,
}

impl MemoryCursor {
    /// Behind this record.
    pub fn behind(record: &MemoryRecord) -> Self {
        Self {
            created_at_ms: record.created_at_ms,
            id: record.id.clone(),
        }
    }
}

/// Which way a listing goes. Records of one moment go by their ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MemoryOrder {
    /// From the beginning.
    #[default]
    OldestFirst,
    /// From the end.
    NewestFirst,
}

/// A part of a listing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MemoryPage {
    /// Behind this record; the beginning without it.
    pub after: Option<MemoryCursor>,
    /// Only of this type.
    pub memory_type: Option<MemoryType>,
    /// Which way.
    pub order: MemoryOrder,
    /// Records at most.
    pub limit: usize,
}

/// What became of whole records that were put in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inserted {
    /// New ones.
    pub added: u64,
    /// Ones that were there already, equal in everything.
    pub unchanged: u64,
    /// Ids that were there already with other content; what was there has stayed.
    pub conflicting: Vec<String>,
}

/// Why memory could not do what was asked. Nothing was changed in consequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// What was asked makes no sense.
    #[error("{reason}")]
    Invalid {
        /// The argument.
        field: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no room.
    #[error("the memory is full: {0}")]
    Full(String),
    /// It can not be read or written.
    #[error("the memory is unavailable: {0}")]
    Unavailable(String),
}

impl MemoryError {
    /// An argument that makes no sense.
    pub fn invalid(field: &'static str, reason: impl Into<String>) -> Self {
        Self::Invalid {
            field,
            reason: reason.into(),
        }
    }
}

/// The result of a memory operation.
pub type MemoryResult<T> = Result<T, MemoryError>;

/// The right to look at what is remembered.
#[async_trait]
pub trait MemoryRead: Send + Sync {
    /// Finds records by words and by meaning.
    async fn search(&self, query: &MemoryQuery) -> MemoryResult<Recall>;

    /// The record with this id, with its embedding.
    async fn get(&self, id: &str) -> MemoryResult<Option<MemoryRecord>>;

    /// Records with their embeddings, in order of time, those of one moment by id.
    async fn list(&self, page: &MemoryPage) -> MemoryResult<Vec<MemoryRecord>>;

    /// How many there are.
    async fn count(&self, memory_type: Option<MemoryType>) -> MemoryResult<u64>;
}

/// The right to change what is remembered.
#[async_trait]
pub trait MemoryWrite: Send + Sync {
    /// Remembers something. What is known word for word, with the same type, metadata and trust,
    /// is not remembered twice, so that repeating the call changes nothing.
    async fn remember(&self, new: NewMemory) -> MemoryResult<Remembered>;

    /// Forgets a record; says whether it was there.
    async fn delete(&self, id: &str) -> MemoryResult<bool>;
}

/// A place where records are kept.
#[async_trait]
pub trait MemoryStore: MemoryRead + MemoryWrite {
    /// Puts whole records in, as they are: all of them or, on an error, none.
    async fn insert(&self, records: Vec<MemoryRecord>) -> MemoryResult<Inserted>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_however_they_are_written() {
        for known in MemoryType::ALL {
            assert_eq!(MemoryType::from_name(known.as_str()), Some(known));
            assert_eq!(
                serde_json::to_value(known).unwrap(),
                Value::from(known.as_str())
            );
        }
        assert_eq!(MemoryType::from_name(" Fact "), Some(MemoryType::Fact));
        assert_eq!(MemoryType::from_name("rumour"), None);
        for known in Trust::ALL {
            assert_eq!(Trust::from_name(known.as_str()), Some(known));
            assert_eq!(
                serde_json::to_value(known).unwrap(),
                Value::from(known.as_str())
            );
        }
    }

    #[test]
    fn trust_is_ordered() {
        assert!(Trust::ALL.is_sorted());
        assert_eq!(Trust::default(), Trust::Untrusted);
    }
}
