//! Asks a model server, and reads whatever comes back.

#[cfg(feature = "http")]
mod events;
#[cfg(feature = "http")]
mod http;
mod named;
mod report;
pub mod upstreams;
mod wire;

use async_trait::async_trait;
use holdfast_intent::FinishReason;
use serde_json::Value;

use crate::run::TokensUsed;

#[cfg(feature = "http")]
pub use http::{HttpModel, HttpModelConfig};
pub use named::ByName;
pub use report::Reports;
pub use upstreams::Upstreams;
pub use wire::{MODEL_ERROR_CHARS_MAX, read_error, read_reply};

/// Size of one reply of a model server.
pub const MODEL_REPLY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// How long a model server may take to say that it is there.
pub const MODEL_REACH_MS_MAX: u64 = 5_000;

/// When HTTP/2 is spoken with a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Http2 {
    /// Where the server says over TLS that it has it; else HTTP/1.1.
    #[default]
    Negotiated,
    /// From the first byte on, also without TLS, where nobody can ask first.
    Always,
    /// Not at all, also where the server has it: some have it and break off in it.
    Never,
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The body of a chat completion. The model in it is the one that the client named.
    pub body: Value,
    /// How long the answer may take; of one that comes in pieces, how long each of them.
    pub timeout_ms: u64,
    /// Who hears which servers were asked.
    pub reports: Reports,
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
    /// Whether a filter of its server stopped it, and no limit.
    pub filtered: bool,
    /// Whether it was cut off before its thought had ended: what is in `reasoning` was its text, in which
    /// nothing was decided yet.
    pub cut_in_thought: bool,
    /// Whether it may have been, of which only other replies of its model speak.
    pub perhaps_in_thought: bool,
    /// What it took.
    pub tokens: TokensUsed,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// Nobody answers, or too late, or with an error of its own: it may help to ask again.
    #[error("{0}")]
    Unavailable(String),
    /// The same, and the server says when.
    #[error("{why}")]
    Busy {
        /// What it said.
        why: String,
        /// How long it wants to be left alone.
        retry_after_ms: u64,
    },
    /// This server does not let us in, or does not have the model; another may.
    #[error("{0}")]
    Barred(String),
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

impl ModelError {
    /// Whether the same server may answer when it is asked again.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Busy { .. })
    }

    /// Whether another server of the same model may answer.
    pub fn is_of_one_server(&self) -> bool {
        self.may_pass() || matches!(self, Self::Barred(_))
    }

    /// What it is, in a word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "unavailable",
            Self::Busy { .. } => "busy",
            Self::Barred(_) => "barred",
            Self::Refused(_) => "refused",
            Self::TooLong(_) => "too_long",
            Self::History(_) => "history",
        }
    }

    /// How long the server wants to be left alone.
    pub fn retry_after_ms(&self) -> Option<u64> {
        match self {
            Self::Busy { retry_after_ms, .. } => Some(*retry_after_ms),
            _ => None,
        }
    }

    /// The same, in other words.
    #[must_use]
    pub fn in_words(self, change: impl FnOnce(String) -> String) -> Self {
        match self {
            Self::Unavailable(why) => Self::Unavailable(change(why)),
            Self::Busy {
                why,
                retry_after_ms,
            } => Self::Busy {
                why: change(why),
                retry_after_ms,
            },
            Self::Barred(why) => Self::Barred(change(why)),
            Self::Refused(why) => Self::Refused(change(why)),
            Self::TooLong(why) => Self::TooLong(change(why)),
            Self::History(why) => Self::History(change(why)),
        }
    }
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

    /// What its server is called, without anything that could be a secret.
    fn name(&self) -> &str {
        "model"
    }

    /// Whether its server is there. One that can not be asked is taken to be.
    async fn reach(&self) -> Result<(), ModelError> {
        Ok(())
    }

    /// The same of each of its servers, by its name.
    async fn reach_each(&self) -> Vec<(String, Result<(), ModelError>)> {
        vec![(self.name().to_owned(), self.reach().await)]
    }
}
