//! What agents remember, as it is configured.

use std::sync::Arc;

use holdfast_memory::{
    Embedder, EmbeddingConfig, Memory, OpenAiEmbedder, SqliteMemory, SqliteMemoryOptions,
    UnusableEmbedder,
};

use crate::app::App;
use crate::environment;

impl App {
    /// What agents remember, in the state directory. Opened when it is first needed.
    pub(crate) fn memory(&self) -> Arc<Memory> {
        let options = SqliteMemoryOptions {
            records_max: self.config.memory.records_max,
            ..SqliteMemoryOptions::default()
        };
        let memory = Memory::new(Arc::new(SqliteMemory::new(&self.state_dir, options)));
        Arc::new(match &self.config.memory.embeddings {
            Some(config) => memory.with_embedder(embedder(config)),
            None => memory,
        })
    }
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
