//! What happens, told once and to everybody who wants to know.
//!
//! Layers report typed [`Event`]s. Logs, metrics, spans and the journal are [`Observer`]s of the
//! same events, so no layer formats, counts or redacts anything itself.

pub mod http;
pub mod log;
mod metric_table;
pub mod metrics;
pub mod queued;
pub mod repeats;
pub mod runs;
mod shut;

use std::sync::Arc;

use holdfast_contract::ToolResultEnvelope;

use self::runs::RunEvent;
use crate::breaker::{BreakerKey, Transition};
use crate::call::Call;
use crate::canonical::Digest;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::RecordState;
use crate::policy::Mode;
use crate::store::{Degraded, StoreError};

/// Something that happened to a call, to a breaker or to a run.
#[derive(Clone, Copy)]
pub enum Event<'a> {
    /// A call was admitted.
    Start {
        /// The call.
        call: &'a Call,
    },
    /// A call was answered.
    End {
        /// The call.
        call: &'a Call,
        /// The answer.
        result: &'a ToolResultEnvelope,
    },
    /// A layer refused a call, or would have.
    Blocked {
        /// The call.
        call: &'a Call,
        /// The error code.
        code: &'a str,
        /// Why, for people.
        why: &'a str,
        /// Whether it was really refused.
        mode: Mode,
    },
    /// What came back speaks for an attack on the agent.
    Signals {
        /// The call.
        call: &'a Call,
        /// What was found, without its words.
        summary: &'a str,
    },
    /// A failed attempt is followed by another, or would have been.
    Retry {
        /// The call.
        call: &'a Call,
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The wait.
        delay_ms: u64,
        /// Why it failed.
        reason_code: &'a str,
        /// Whether it is really retried.
        mode: Mode,
    },
    /// A call has a record of its own and is about to run.
    Claimed {
        /// The call.
        call: &'a Call,
        /// The digest of its arguments.
        params: &'a Digest,
    },
    /// A duplicate met a record.
    DedupeHit {
        /// The call.
        call: &'a Call,
        /// The record's state.
        state: RecordState,
        /// Whether the record really answered.
        mode: Mode,
    },
    /// A duplicate begins to wait for the call that runs.
    Waits {
        /// The call.
        call: &'a Call,
        /// The record of the one that runs.
        key: &'a StoredKey,
    },
    /// Nobody could be shown a request for approval; it waits all the same.
    Undelivered {
        /// The request.
        approval: &'a str,
        /// The tool.
        tool: &'a str,
        /// Where it should have been shown.
        channel: &'a str,
        /// Why it was not.
        error: &'a str,
    },
    /// A breaker changed its state.
    Circuit {
        /// Which breaker.
        key: &'a BreakerKey,
        /// What the call needed of its tool, where each part has a breaker: a host.
        part: Option<&'a str>,
        /// The change.
        transition: &'a Transition,
        /// Who brought it about.
        cause: CircuitCause<'a>,
    },
    /// A shared store went away, or (without a reason) came back.
    Degraded {
        /// Since when and why.
        degraded: Option<&'a Degraded>,
    },
    /// A store failed; what it was needed for is refused or goes on unprotected, as said.
    StoreTrouble {
        /// What was attempted.
        what: &'static str,
        /// Why it failed.
        error: &'a StoreError,
    },
    /// Something happened to a run, or to a model that it asks.
    Run(RunEvent<'a>),
}

/// Who brought a breaker's change about.
#[derive(Clone, Copy)]
pub enum CircuitCause<'a> {
    /// This call's attempt.
    Call(&'a Call),
    /// The attempt of a call that was cut off by its caller's deadline.
    CutOff(&'a CutOff),
    /// An operator.
    Operator,
}

/// What is left of a call that is gone.
#[derive(Debug, Clone)]
pub struct CutOff {
    /// `requestId`.
    pub request_id: String,
    /// The tool.
    pub tool: String,
    /// `target.sessionKey`.
    pub session_key: String,
    /// `target.correlationId`.
    pub correlation_id: Option<String>,
}

/// Wants to know what happens. Called on the call's own path: it must not block.
pub trait Observer: Send + Sync {
    /// Takes one event.
    fn observe(&self, event: &Event<'_>);
}

/// Several observers, told in order.
#[derive(Default, Clone)]
pub struct Observers(Vec<Arc<dyn Observer>>);

impl Observers {
    /// Nobody yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more.
    #[must_use]
    pub fn with(mut self, observer: Arc<dyn Observer>) -> Self {
        self.0.push(observer);
        self
    }
}

impl Observer for Observers {
    fn observe(&self, event: &Event<'_>) {
        for observer in &self.0 {
            observer.observe(event);
        }
    }
}
