//! `memory:` in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::embed::EmbeddingConfig;
use crate::sqlite::MEMORY_RECORDS_MAX;

/// Which store keeps the records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum MemoryStoreKind {
    /// A file in the state directory.
    #[default]
    Sqlite,
    /// A `LanceDB` dataset in the state directory. Only in a binary that has it: see
    /// docs/lancedb.md.
    Lancedb,
}

/// What an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Which store keeps the records: `sqlite`, or `lancedb` in a binary that has it.
    pub store: MemoryStoreKind,
    /// Records in one memory; one more is refused.
    pub records_max: u64,
    /// The embedding model. Without it, records are found by their words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingConfig>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            store: MemoryStoreKind::default(),
            records_max: MEMORY_RECORDS_MAX,
            embeddings: None,
        }
    }
}

impl MemoryConfig {
    /// What is wrong with the settings: which one, and why.
    pub fn problems(&self) -> Vec<(String, String)> {
        let mut problems = Vec::new();
        if self.records_max == 0 {
            let reason = "it has to be from 1 up".to_owned();
            problems.push(("recordsMax".to_owned(), reason));
        }
        for (field, reason) in self.embeddings.iter().flat_map(EmbeddingConfig::problems) {
            problems.push((format!("embeddings.{field}"), reason));
        }
        problems
    }
}
