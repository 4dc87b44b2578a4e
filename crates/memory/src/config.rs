//! `memory:` in the configuration.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::embed::EmbeddingConfig;
use crate::sqlite::MEMORY_RECORDS_MAX;

/// What an agent remembers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct MemoryConfig {
    /// Records in one memory; one more is refused.
    pub records_max: u64,
    /// The embedding model. Without it, records are found by their words alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embeddings: Option<EmbeddingConfig>,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
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
