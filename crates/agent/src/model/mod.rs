//! Asks a model server, and reads whatever comes back.

#[cfg(feature = "http")]
mod events;
#[cfg(feature = "http")]
mod http;
mod named;
pub mod upstreams;
mod wire;

use async_trait::async_trait;
use holdfast_intent::FinishReason;
use serde_json::Value;

use crate::run::TokensUsed;

#[cfg(feature = "http")]
pub use http::{HttpModel, HttpModelConfig};
pub use named::ByName;
pub use upstreams::Upstreams;
pub use wire::{MODEL_ERROR_CHARS_MAX, read_error, read_reply};

/// Size of one reply of a model server.
pub const MODEL_REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a model server may take to say that it is there.
pub const MODEL_REACH_MS_MAX: u64 = 5_000;

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The body of a chat completion. The model in it is the one that the client named.
    pub body: Value,
    /// How long the answer may take.
    pub timeout_ms: u64,
}

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ModelReply {
    /// What it said.
    pub content: String,
    /// What it thought.
    pub reasoning: String,
    /// The message as the server wrote it, when it has native calls.
    pub calls: Value,
    /// Why it stopped.
    pub finish: FinishReason,
    /// What it took.
    pub tokens: TokensUsed,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Nobody answers, or too late, or with an error of its own: it may help to ask again.
    #[error("{0}")]
    Unavailable(String),
    /// The server does not want this request.
    #[error("{0}")]
    Refused(String),
    /// The history does not fit.
    #[error("{0}")]
    TooLong(String),
    /// The server will not take the calls and results of the history.
    #[error("{0}")]
    History(String),
}

/// A piece of an answer that is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Of what the model says.
    Content(&'a str),
    /// Of what it thinks.
    Reasoning(&'a str),
    /// Of a native call.
    Call,
}

/// Hears the pieces of an answer.
pub type Hear<'a> = &'a mut (dyn FnMut(Piece<'_>) + Send);

/// A model.
#[async_trait]
pub trait Model: Send + Sync {
    /// Asks it once.
    async fn complete(&self, request: &ModelRequest) -> Result<ModelReply, ModelError>;

    /// Asks it once, and tells the answer as it comes. One that can not says it at the end.
    async fn stream(
        &self,
        request: &ModelRequest,
        _hear: Hear<'_>,
    ) -> Result<ModelReply, ModelError> {
        self.complete(request).await
    }

    /// Whether its server is there. One that can not be asked is taken to be.
    async fn reach(&self) -> Result<(), ModelError> {
        Ok(())
    }
}
