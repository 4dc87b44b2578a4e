//! What an agent remembers.
//!
//! [`Memory`] joins a place for records (a [`Backend`]; [`SqliteMemory`] is the embedded one) with
//! an embedding model, if there is one, and speaks the contract's `MemoryRead`, `MemoryWrite` and
//! `MemoryStore`. A search looks for words and for meaning and fuses the two rankings; without a
//! model, or while it is away, words alone do.
//!
//! | module | what it does |
//! |---|---|
//! | [`terms`] | from whatever a model writes to what the full-text index understands |
//! | [`vector`] | nearest vectors: coarse codes in memory, exact numbers on disk |
//! | [`rank`] | two rankings become one |
//! | [`sqlite`] | the embedded store, shared by any number of processes |
//! | [`embed`] | from texts to vectors, over `OpenAI`'s `/v1/embeddings` |
//! | [`transfer`] | out to a file and back in, over all versions of the format |

pub mod backend;
pub mod check;
#[cfg(feature = "http")]
mod config;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod embed;
pub mod limits;
mod memory;
pub mod rank;
pub mod reindex;
pub mod sqlite;
pub mod terms;
pub mod transfer;
pub mod vector;

pub use backend::Backend;
#[cfg(feature = "http")]
pub use config::{MemoryConfig, MemoryStoreKind};
pub use embed::{EmbedError, Embedder, UnusableEmbedder};
#[cfg(feature = "http")]
pub use embed::{EmbeddingConfig, OpenAiEmbedder};
pub use memory::Memory;
pub use sqlite::{SqliteMemory, SqliteMemoryOptions};
