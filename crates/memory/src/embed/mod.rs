//! From texts to vectors.

use async_trait::async_trait;

#[cfg(feature = "http")]
mod config;
#[cfg(feature = "http")]
mod openai;

#[cfg(feature = "http")]
pub use config::EmbeddingConfig;
#[cfg(feature = "http")]
pub use openai::OpenAiEmbedder;

/// How long one request may take unless configuration says otherwise.
pub const EMBEDDING_TIMEOUT_MS: u64 = 10_000;
/// Texts in one request unless configuration says otherwise.
pub const EMBEDDING_BATCH_DEFAULT: usize = 64;
/// Texts in one request at most.
pub const EMBEDDING_BATCH_MAX: usize = 2048;
/// Size of an answer.
pub const EMBEDDING_RESPONSE_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Why there are no vectors. Nothing depends on them: records are kept and found without.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EmbedError {
    /// Nobody answered.
    #[error("the embedding endpoint can not be reached ({0})")]
    Unreachable(String),
    /// It took too long.
    #[error("the embedding endpoint did not answer within {0} ms")]
    TimedOut(u64),
    /// It said no.
    #[error("the embedding endpoint answered with status {status}{}", said(.message))]
    Refused {
        /// The HTTP status.
        status: u16,
        /// Its words, cut short.
        message: String,
    },
    /// It was never asked: something is missing on our side.
    #[error("the embedding model can not be used: {0}")]
    Unusable(String),
    /// Its answer can not be used.
    #[error("the embedding endpoint's answer can not be used: {0}")]
    Nonsense(String),
}

fn said(message: &str) -> String {
    if message.is_empty() {
        String::new()
    } else {
        format!(": {message}")
    }
}

/// What a text is embedded for. Some models want to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be found.
    Record,
    /// To find.
    Query,
}

/// An embedding model.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// Its name. Vectors are compared with those of the same name only.
    fn model(&self) -> &str;

    /// Texts that it takes at once.
    fn batch_max(&self) -> usize;

    /// One vector a text, in their order.
    async fn embed(&self, texts: &[String], purpose: Purpose) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// Stands in for a model that is configured and can not be used: what is stored without a vector is
/// told why, and everything else goes on.
#[derive(Debug, Clone)]
pub struct UnusableEmbedder {
    model: String,
    reason: String,
}

impl UnusableEmbedder {
    /// The model of this name, and what is wrong.
    pub fn new(model: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            model: model.into(),
            reason: reason.into(),
        }
    }
}

#[async_trait]
impl Embedder for UnusableEmbedder {
    fn model(&self) -> &str {
        &self.model
    }

    fn batch_max(&self) -> usize {
        EMBEDDING_BATCH_DEFAULT
    }

    async fn embed(
        &self,
        _texts: &[String],
        _purpose: Purpose,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        Err(EmbedError::Unusable(self.reason.clone()))
    }
}
