//! What a failed attempt means: is it worth another one, can it have had an effect, and does it
//! speak against the tool?

use std::borrow::Cow;
use std::io;

use super::policy::RetryPolicy;
use super::transport::{RequestSent, TransportCode};
use super::{http, transport};
use crate::breaker::AttemptResult;

/// The code of a tool that was asked too often.
pub const THROTTLED: &str = "throttled";

/// Whether the failed attempt can have had its effect all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Evidence {
    /// There is proof that nothing happened.
    NoEffect,
    /// There is no such proof.
    MayHaveHappened,
}

/// A failed attempt, understood.
///
/// The three answers are independent. A refused connection is retriable, proves that nothing
/// happened and counts against the tool; a bad argument is none of the first, but proves it
/// too, and never counts.
///
/// ```
/// use holdfast_reliability::retry::{Classified, Evidence, RequestSent, TransportCode};
///
/// let lost = Classified::transport(TransportCode::ConnReset, RequestSent::Maybe);
/// assert!(lost.retriable);
/// assert_eq!(lost.evidence, Evidence::MayHaveHappened);
///
/// let bad = Classified::http(422, None);
/// assert!(!bad.retriable && !bad.counts_for_breaker);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classified {
    /// A stable code: `http_503`, `ECONNRESET`, `timeout`, or the tool's own.
    pub code: Cow<'static, str>,
    /// Whether another attempt may succeed where this one failed.
    pub retriable: bool,
    /// Whether this one can have had its effect.
    pub evidence: Evidence,
    /// Whether it speaks against the tool or dependency. The caller's own mistakes do not.
    pub counts_for_breaker: bool,
    /// The wait that the other side asked for.
    pub retry_after_ms: Option<u64>,
}

impl Classified {
    /// Classifies an HTTP status of a failed request.
    ///
    /// | status | retriable | effect | breaker |
    /// |---|---|---|---|
    /// | 429, 503 | yes | none | counts |
    /// | 408, 500, 502, 504, other 5xx | yes | may have happened | counts |
    /// | 501, 505, 511 | no | none | counts |
    /// | 425 | yes | none | – |
    /// | 499 | no | may have happened | – |
    /// | other 4xx | no | none | – |
    /// | not a failure, or not a status | no | may have happened | – |
    pub fn http(status: u16, retry_after_ms: Option<u64>) -> Self {
        http::classify(status, retry_after_ms)
    }

    /// Classifies a failed connection.
    ///
    /// Refused connections and failed look-ups prove that nothing was sent. Everything else
    /// does so only when it is known to have failed while connecting.
    pub fn transport(code: TransportCode, sent: RequestSent) -> Self {
        let unsent = sent == RequestSent::No || code.only_before_sending();
        let own = code.is_our_own_doing();
        Self {
            code: Cow::Borrowed(code.as_str()),
            retriable: !own,
            evidence: if unsent {
                Evidence::NoEffect
            } else {
                Evidence::MayHaveHappened
            },
            counts_for_breaker: !own,
            retry_after_ms: None,
        }
    }

    /// Classifies a failure by the code that another runtime reported, for example Node.
    ///
    /// An unknown code is kept as it is and proves nothing: see [`Classified::unknown`].
    pub fn named(code: &str, sent: RequestSent) -> Self {
        match code.parse() {
            Ok(known) => Self::transport(known, sent),
            Err(transport::UnknownTransportCode(unknown)) => Self::unknown(unknown),
        }
    }

    /// Classifies an I/O error, of a connection or of a file.
    pub fn io(kind: io::ErrorKind, sent: RequestSent) -> Self {
        use io::ErrorKind as Kind;
        if let Some(code) = TransportCode::from_io_kind(kind) {
            return Self::transport(code, sent);
        }
        match kind {
            // The caller named something that is not there, not allowed, or of the wrong kind.
            Kind::NotFound => Self::caller_mistake("not_found"),
            Kind::PermissionDenied => Self::caller_mistake("permission_denied"),
            Kind::AlreadyExists => Self::caller_mistake("already_exists"),
            Kind::InvalidInput
            | Kind::InvalidFilename
            | Kind::IsADirectory
            | Kind::NotADirectory
            | Kind::DirectoryNotEmpty
            | Kind::ArgumentListTooLong => Self::caller_mistake("invalid_input"),
            // Interrupted or busy: the same again can work.
            Kind::Interrupted | Kind::WouldBlock | Kind::ResourceBusy => Self {
                code: Cow::Borrowed("io_busy"),
                retriable: true,
                evidence: Evidence::MayHaveHappened,
                counts_for_breaker: true,
                retry_after_ms: None,
            },
            _ => Self::unknown("io_error"),
        }
    }

    /// An attempt that was cut off by its time limit.
    pub fn timeout() -> Self {
        Self {
            code: Cow::Borrowed("timeout"),
            retriable: true,
            evidence: Evidence::MayHaveHappened,
            counts_for_breaker: true,
            retry_after_ms: None,
        }
    }

    /// A tool that said "too fast" in its own way; the same as a 429.
    pub fn throttled(code: impl Into<Cow<'static, str>>, retry_after_ms: Option<u64>) -> Self {
        Self {
            code: code.into(),
            retriable: true,
            evidence: Evidence::NoEffect,
            counts_for_breaker: true,
            retry_after_ms,
        }
    }

    /// A call that was refused because of what was asked: validation, permission, loop guard.
    pub fn caller_mistake(code: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: code.into(),
            retriable: false,
            evidence: Evidence::NoEffect,
            counts_for_breaker: false,
            retry_after_ms: None,
        }
    }

    /// A call that its caller gave up.
    pub fn cancelled(sent: RequestSent) -> Self {
        let evidence = match sent {
            RequestSent::No => Evidence::NoEffect,
            RequestSent::Maybe => Evidence::MayHaveHappened,
        };
        Self {
            evidence,
            ..Self::caller_mistake("cancelled")
        }
    }

    /// An attempt that the breaker refused. Not retried here: the breaker says when to ask.
    pub fn circuit_open(retry_after_ms: Option<u64>) -> Self {
        Self {
            retry_after_ms,
            ..Self::caller_mistake("circuit_open")
        }
    }

    /// A failure that nobody described: not retried, without proof, and counted.
    ///
    /// A tool's `retryOn` can name its code, which is then worth another attempt where repeating
    /// is safe.
    pub fn unknown(code: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code: code.into(),
            retriable: false,
            evidence: Evidence::MayHaveHappened,
            counts_for_breaker: true,
            retry_after_ms: None,
        }
    }

    /// This failure under a tool's own lists; `neverRetryOn` is stronger than `retryOn`.
    ///
    /// The lists say what is worth another attempt. They change nothing about what happened:
    /// neither the evidence nor what the breaker counts.
    #[must_use]
    pub fn under(mut self, policy: &RetryPolicy) -> Self {
        if policy.never_retry_on().contains(&self.code) {
            self.retriable = false;
        } else if policy.retry_on().contains(&self.code) {
            self.retriable = true;
        }
        self
    }

    /// What the breaker is told about it.
    pub fn attempt_result(&self) -> AttemptResult {
        if self.counts_for_breaker {
            AttemptResult::Failure
        } else {
            AttemptResult::Neutral
        }
    }
}

#[cfg(test)]
mod tests;
