//! From configuration to what agents remember.

use std::sync::Arc;

use holdfast_memory::{
    Backend, Embedder, EmbeddingConfig, Memory, MemoryStoreKind, OpenAiEmbedder, SqliteMemory,
    SqliteMemoryOptions, UnusableEmbedder,
};
use holdfast_reliability::config::ConfigProblem;

use crate::app::App;
use crate::config::Config;
use crate::environment;
use crate::extras::{Extras, MemoryPlace};

impl App {
    /// What agents remember, in the state directory. Opened when it is first needed.
    pub(crate) fn memory(&self) -> Arc<Memory> {
        let memory = Memory::new(self.backend());
        Arc::new(match &self.config.memory.embeddings {
            Some(config) => memory.with_embedder(embedder(config)),
            None => memory,
        })
    }

    fn backend(&self) -> Arc<dyn Backend> {
        let records_max = self.config.memory.records_max;
        if self.config.memory.store == MemoryStoreKind::Lancedb
            && let Some(open) = Extras::installed().lancedb
        {
            return open(MemoryPlace {
                state_dir: &self.state_dir,
                records_max,
            });
        }
        let options = SqliteMemoryOptions {
            records_max,
            ..SqliteMemoryOptions::default()
        };
        Arc::new(SqliteMemory::new(&self.state_dir, options))
    }
}

/// A store that this binary does not have is refused before anything is kept elsewhere.
pub(crate) fn problem(config: &Config) -> Option<ConfigProblem> {
    let wanted = config.memory.store == MemoryStoreKind::Lancedb;
    (wanted && Extras::installed().lancedb.is_none()).then(|| {
        ConfigProblem::new(
            "memory.store",
            "this binary has no LanceDB; docs/lancedb.md says how to build one that has",
        )
    })
}

/// The embedding model that is configured. One that can not be used is no reason to do without the
/// memory: what is stored and searched without it says why.
fn embedder(config: &EmbeddingConfig) -> Arc<dyn Embedder> {
    let unusable = |reason: String| Arc::new(UnusableEmbedder::new(config.model.clone(), reason));
    let key = match &config.api_key_env {
        None => None,
        Some(name) => match environment::named(name) {
            Some(key) => Some(key),
            None => return unusable(format!("the variable {name} is not set")),
        },
    };
    match OpenAiEmbedder::new(config.clone(), key.as_deref()) {
        Ok(client) => Arc::new(client),
        Err(reason) => unusable(reason),
    }
}
