//! The four ways a tool fails, and why.

use std::borrow::Cow;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::tool::PermissionTier;

/// Why a tool says it failed. The kind decides what happens next: tell the model what to correct,
/// tell it that it failed, or try again.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolError {
    /// The arguments do not make sense. The model may correct them.
    #[error("{message}")]
    ValidationError {
        /// What is wrong, for the model.
        message: String,
        /// The offending field as a JSON pointer, when there is one.
        field: Option<String>,
    },
    /// It was tried and did not work.
    #[error("{message}")]
    ExecutionError {
        /// What went wrong, for the model.
        message: String,
        /// Why, as far as the tool knows; decides whether a retry makes sense and is safe.
        cause: Cause,
    },
    /// It is not allowed. Never retried.
    #[error("permission denied ({tier:?}): {reason}")]
    PermissionDenied {
        /// The tier the call would have needed.
        tier: PermissionTier,
        /// Which rule forbids it.
        reason: String,
    },
    /// The tool gave up waiting.
    #[error("timed out after {} ms", elapsed.as_millis())]
    Timeout {
        /// How long it waited.
        elapsed: Duration,
        /// What it had until then, for whoever wants to know how far it came.
        so_far: Option<Box<Value>>,
    },
}

/// The typed reason behind a [`ToolError::ExecutionError`].
///
/// Retryability is decided from this, never from the words of a message.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Cause {
    /// The tool's own logic says no; the same call would fail again.
    #[default]
    Deterministic,
    /// An HTTP server answered with this status.
    Http {
        /// The status code.
        status: u16,
        /// Its `Retry-After`, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The connection failed with a code such as `ECONNRESET`.
    Transport {
        /// The code as the operating system or the client library names it.
        code: Cow<'static, str>,
    },
    /// Nothing is to be found at the address that the caller gave. It may be there later, and it says
    /// nothing about what the tool depends on otherwise.
    NoSuchAddress {
        /// The code as the operating system or the client library names it.
        code: Cow<'static, str>,
    },
    /// The tool's own adapter says: not now.
    Throttled {
        /// When to come back, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// A code of the tool's own. Deterministic unless the tool's configuration lists it as one to
    /// retry on.
    Coded {
        /// The code that the caller sees.
        code: Cow<'static, str>,
    },
    /// The tool had begun and lost track of what it had begun: the effect may have happened.
    LostTrack,
}

impl ToolError {
    /// A failure of the tool's own logic.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::ExecutionError {
            message: message.into(),
            cause: Cause::Deterministic,
        }
    }

    /// A failure after the tool had begun, of which nobody knows how far it got.
    pub fn lost_track(message: impl Into<String>) -> Self {
        Self::ExecutionError {
            message: message.into(),
            cause: Cause::LostTrack,
        }
    }

    /// A failure with a code of the tool's own.
    pub fn coded(code: &'static str, message: impl Into<String>) -> Self {
        Self::ExecutionError {
            message: message.into(),
            cause: Cause::Coded {
                code: Cow::Borrowed(code),
            },
        }
    }

    /// An HTTP answer that is not a success.
    pub fn http(status: u16, retry_after_ms: Option<u64>, message: impl Into<String>) -> Self {
        Self::ExecutionError {
            message: message.into(),
            cause: Cause::Http {
                status,
                retry_after_ms,
            },
        }
    }

    /// A connection that failed.
    pub fn transport(code: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self::ExecutionError {
            message: message.into(),
            cause: Cause::Transport { code: code.into() },
        }
    }

    /// A tool that gave up waiting and has nothing to show for it.
    pub fn timed_out(elapsed: Duration) -> Self {
        Self::Timeout {
            elapsed,
            so_far: None,
        }
    }

    /// Arguments that passed the schema and still make no sense.
    pub fn invalid(field: Option<&str>, message: impl Into<String>) -> Self {
        Self::ValidationError {
            message: message.into(),
            field: field.map(str::to_owned),
        }
    }
}
