//! A call on its way through the stack, and what comes back.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use holdfast_contract::redact::Redactor;
use holdfast_contract::{
    CacheHit, CircuitBreakerState, ErrorCode, Escalation, HostRule, Lifeline, Need, Reason,
    ResultError, ResultOutput, RetryNote, SessionContext, Status, Tool, ToolCallEnvelope,
    ToolResultEnvelope, Trust, TurnStand,
};
use serde_json::Value;
use tokio::time::Instant;

use crate::arguments::CanonicalArguments;
use crate::guard::{CallIdentity, FailureKind, RecordMark};
use crate::idempotency::HeldClaim;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{Attempts, Execution};
use crate::policy::{LayerModes, ToolPolicy};
use crate::retry::Evidence;

mod resumes;

pub use resumes::{AtOnce, Resumes, Starts};

const NOT_STARTED: u8 = 0;
const RUNNING: u8 = 1;
const ENDED_WITHOUT_EFFECT: u8 = 2;

/// What has to be known about a call even while its future is being dropped.
#[derive(Debug, Default)]
pub struct Started {
    progress: AtomicU8,
    /// An attempt before this one ended without proof that nothing happened.
    in_doubt: AtomicBool,
    output: OnceLock<ResultOutput>,
}

impl Started {
    /// The tool is about to run: from here on its effect may happen.
    pub fn set(&self) {
        if self.progress.swap(RUNNING, Ordering::AcqRel) == RUNNING {
            self.in_doubt.store(true, Ordering::Release);
        }
    }

    /// The attempt has ended, with proof that it had no effect. Another one may follow.
    pub fn ended_without_effect(&self) {
        self.progress.store(ENDED_WITHOUT_EFFECT, Ordering::Release);
    }

    /// The tool has answered. Kept here, because hooks and breakers still come before the record.
    pub fn finished(&self, output: &ResultOutput) {
        // A call ends with its first success, so there is no second output to lose.
        let _ = self.output.set(output.clone());
    }

    /// Whether the tool was started.
    pub fn is_set(&self) -> bool {
        self.progress.load(Ordering::Acquire) != NOT_STARTED
    }

    /// Whether the tool runs, or its last attempt ended without proof that nothing happened.
    pub fn is_running(&self) -> bool {
        self.progress.load(Ordering::Acquire) == RUNNING && self.output.get().is_none()
    }

    /// Whether the tool runs, or an attempt ended without proof that nothing happened. What a later
    /// one proves is proved of itself alone.
    pub fn may_have_effect(&self) -> bool {
        self.progress.load(Ordering::Acquire) == RUNNING || self.in_doubt.load(Ordering::Acquire)
    }

    /// The tool's answer, once it is there.
    pub fn output(&self) -> Option<&ResultOutput> {
        self.output.get()
    }
}

/// How a call came to the stack.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Entry {
    /// From a caller.
    #[default]
    New,
    /// From the record of an approval whose process is gone: the hooks have seen it before, and
    /// what they made of it is what was approved.
    Resumed,
}

/// A call on its way.
pub struct Call {
    /// As admitted: hooks may have changed its arguments.
    pub envelope: ToolCallEnvelope,
    /// Settings of the tool, or the defaults for a name nobody knows.
    pub policy: Arc<ToolPolicy>,
    /// Which of the four reliability layers act, watch or stand aside.
    pub modes: LayerModes,
    /// What the session may do.
    pub session: Arc<SessionContext>,
    /// Found by the resolve layer.
    pub tool: Option<Arc<dyn Tool>>,
    /// A key that an admit hook supplied.
    pub hook_key: Option<String>,
    /// The key in the store, once derived.
    pub stored_key: Option<StoredKey>,
    /// What to hand to the tool's children.
    pub lifeline: Option<Lifeline>,
    /// How the call came here.
    pub entry: Entry,
    /// The approval from whose record it came, and who hears that it starts.
    pub resumes: Option<Resumes>,
    /// The least trusted text that the session has read, as far as it is known.
    pub input_trust: Trust,
    /// The hosts its tool may reach, where a manifest names them.
    pub hosts: Option<HostRule>,
    /// Why a person is to be asked whatever the policy says, from before the permission layer.
    pub concerns: Vec<Reason>,
    /// Whether its workspace is kept, as far as is known before it starts.
    pub keeps_undo: bool,
    /// What it needs before it may start, found by the permission layer.
    pub need: Option<Box<Need>>,
    /// The approval that it waits for.
    pub waiting_approval: Option<String>,
    /// The claim of a call that waits before it starts.
    pub held_claim: Option<HeldClaim>,
    /// Whether the tool was started, shared with the claim's drop guard.
    pub started: Arc<Started>,
    /// When the call was admitted.
    pub admitted_at: Instant,
    /// The same as wall time.
    pub admitted_at_ms: u64,
    /// Attempts so far.
    pub attempts: Attempts,
    /// Retries so far.
    pub retries: Vec<RetryNote>,
    /// The last breaker state seen.
    pub breaker_state: Option<CircuitBreakerState>,
    /// The answer went to an earlier delivery of this same request already.
    pub redelivered: bool,
    /// The attempt whose beginning the observing hooks know and whose end they do not.
    pub observed_attempt: Option<u32>,
    /// Nothing may run: the call is answered from a finished record or not at all.
    pub only_from_record: bool,
    /// Records of its turn that answer no more, as of when it came.
    pub superseded: Vec<RecordMark>,
    /// Why the call was answered as it was, for `holdfast explain`.
    pub why: Vec<String>,
    /// The arguments as they are compared, from the first who asks to the last.
    canonical: Option<CanonicalArguments>,
}

impl Call {
    /// A call that has just been admitted.
    pub fn new(
        envelope: ToolCallEnvelope,
        policy: Arc<ToolPolicy>,
        modes: LayerModes,
        session: Arc<SessionContext>,
        now_ms: u64,
    ) -> Self {
        Self {
            envelope,
            policy,
            modes,
            session,
            tool: None,
            hook_key: None,
            stored_key: None,
            lifeline: None,
            entry: Entry::New,
            resumes: None,
            input_trust: Trust::Tool,
            hosts: None,
            concerns: Vec::new(),
            need: None,
            waiting_approval: None,
            held_claim: None,
            started: Arc::default(),
            admitted_at: Instant::now(),
            admitted_at_ms: now_ms,
            attempts: Attempts::new(),
            retries: Vec::new(),
            breaker_state: None,
            redelivered: false,
            keeps_undo: false,
            only_from_record: false,
            observed_attempt: None,
            superseded: Vec::new(),
            why: Vec::new(),
            canonical: None,
        }
    }

    /// The arguments, to be changed.
    pub fn params_mut(&mut self) -> &mut Value {
        self.canonical = None;
        &mut self.envelope.payload.params
    }

    /// The call as the loop guard compares it, under the name the model used.
    pub(crate) fn identity<'a>(&mut self, name: &'a str) -> CallIdentity<'a> {
        let (params, policy) = (&self.envelope.payload.params, &self.policy);
        let canonical = self
            .canonical
            .get_or_insert_with(|| CanonicalArguments::of(params, &policy.volatile_fields));
        CallIdentity::with_canonical(name, params, canonical)
    }

    /// The arguments in canonical form, for whoever needs them last.
    pub(crate) fn take_canonical(&mut self) -> CanonicalArguments {
        let fresh =
            || CanonicalArguments::of(&self.envelope.payload.params, &self.policy.volatile_fields);
        match self.canonical.take() {
            Some(canonical) => {
                debug_assert_eq!(canonical.digest(), fresh().digest(), "params_mut was used");
                canonical
            }
            None => fresh(),
        }
    }

    /// Whether neither its caller nor a hook has given it a key.
    pub fn is_unnamed(&self) -> bool {
        self.envelope.payload.idempotency_key.is_none() && self.hook_key.is_none()
    }

    /// Whether it waits for a person before it starts.
    pub fn waits_for_approval(&self) -> bool {
        self.need.as_ref().is_some_and(|need| need.gate.waits())
    }

    /// Milliseconds since admission.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.admitted_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The number of attempts so far.
    pub fn attempt_count(&self) -> u32 {
        u32::try_from(self.attempts.len()).unwrap_or(u32::MAX)
    }

    /// The attempts as they go on record.
    pub fn execution(&self) -> Execution {
        Execution {
            attempt_count: self.attempt_count(),
            attempts: self.attempts.clone(),
        }
    }

    /// Adds a line to the explanation of this call.
    pub fn explain(&mut self, why: impl Into<String>) {
        self.why.push(why.into());
    }

    /// Turns a reply into the answer that leaves. The only place where that happens, and where
    /// errors lose their secrets; the record keeps what the tool said.
    pub fn answer(&mut self, mut reply: Reply, redactor: &Redactor) -> ToolResultEnvelope {
        crate::hint::fill_in(self, &mut reply);
        let (status, cache, output, error) = match reply.outcome {
            Ok(output) => (Status::Success, reply.cache, Some(output), None),
            Err(failure) => (
                failure.status,
                reply.cache,
                None,
                Some(failure.into_result_error(redactor)),
            ),
        };
        let mut retried_by = std::mem::take(&mut self.retries);
        for note in &mut retried_by {
            redact(&mut note.reason_code, redactor);
        }
        ToolResultEnvelope {
            request_id: self.envelope.request_id.clone(),
            status,
            from_cache: cache.is_some(),
            cache,
            tool_name: self.envelope.tool_name.clone(),
            duration_ms: self.elapsed_ms(),
            attempts: self.attempt_count(),
            output,
            error,
            retried_by,
        }
    }
}

/// What a layer answers.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The output, or why there is none.
    pub outcome: Result<ResultOutput, Failure>,
    /// Set when the answer comes from another call's record.
    pub cache: Option<CacheHit>,
}

impl Reply {
    /// A success.
    pub fn done(output: ResultOutput) -> Self {
        Self {
            outcome: Ok(output),
            cache: None,
        }
    }

    /// A failure.
    pub fn failed(failure: Failure) -> Self {
        Self {
            outcome: Err(failure),
            cache: None,
        }
    }

    /// The failure, when it is one.
    pub fn failure(&self) -> Option<&Failure> {
        self.outcome.as_ref().err()
    }
}

impl From<Failure> for Reply {
    fn from(failure: Failure) -> Self {
        Self::failed(failure)
    }
}

/// How the loop guard looks at a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judged {
    /// The call itself is at fault, or its target: it counts.
    Counts(FailureKind),
    /// The guard refused it: it counts toward the turn's limit, so that a model which ignores
    /// every text still ends.
    BlockedByGuard,
    /// Nothing can be said about the call (store away, breaker open, duplicate in flight).
    Neutral,
}

/// Whose word a failure's code is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Ours.
    Holdfast,
    /// The tool's, which may use our words for something else.
    Tool,
}

/// Why there is no output.
#[derive(Debug, Clone, PartialEq)]
pub struct Failure {
    /// What the caller is told.
    pub status: Status,
    /// A stable code.
    pub code: Cow<'static, str>,
    /// Whose code it is.
    pub origin: Origin,
    /// For the model and for people.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// Whether a later call with the same intent may succeed.
    pub retriable: bool,
    /// Whether repeating this call is pointless or dangerous.
    pub terminal: bool,
    /// Whether the effect may have happened.
    pub evidence: Evidence,
    /// Whether the attempt speaks against the dependency.
    pub counts_for_breaker: bool,
    /// What the dependency asked to wait.
    pub retry_after_ms: Option<u64>,
    /// How the loop guard looks at it.
    pub judged: Judged,
    /// The breaker's state, when a breaker had a say.
    pub breaker_state: Option<CircuitBreakerState>,
    /// What most failures do not have.
    pub besides: Option<Box<Besides>>,
}

/// What only some failures have.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Besides {
    /// The argument at fault, as a JSON pointer.
    pub field: Option<String>,
    /// Present when it is no longer the model's to correct.
    pub escalation: Option<Escalation>,
    /// What the tool had until it failed.
    pub details: Option<Value>,
    /// Whether tools still run in this turn.
    pub turn: TurnStand,
}

impl Failure {
    /// A failure of Holdfast's own that happened before anything ran.
    pub fn before_start(code: ErrorCode, message: impl Into<String>, judged: Judged) -> Self {
        Self {
            status: Status::Error,
            code: Cow::Borrowed(code.as_str()),
            origin: Origin::Holdfast,
            message: message.into(),
            hint: Some(code.doc().next.to_owned()),
            retriable: code.is_retriable(),
            terminal: code.is_terminal(),
            evidence: Evidence::NoEffect,
            counts_for_breaker: false,
            retry_after_ms: None,
            judged,
            breaker_state: None,
            besides: None,
        }
    }

    /// The same failure, with the argument that is at fault.
    #[must_use]
    pub fn with_field(mut self, field: Option<String>) -> Self {
        if field.is_some() {
            self.besides.get_or_insert_default().field = field;
        }
        self
    }

    /// The same failure under another status.
    #[must_use]
    pub fn with_status(mut self, status: Status) -> Self {
        self.status = status;
        self
    }

    /// Whether it carries one of our own codes.
    pub fn is(&self, code: ErrorCode) -> bool {
        self.origin == Origin::Holdfast && self.code == code.as_str()
    }

    fn into_result_error(self, redactor: &Redactor) -> ResultError {
        let mut message = self.message;
        redact(&mut message, redactor);
        let code = match self.code {
            Cow::Borrowed(own) => own.to_owned(),
            Cow::Owned(mut foreign) => {
                redact(&mut foreign, redactor);
                foreign
            }
        };
        let Besides {
            mut escalation,
            mut details,
            turn,
            ..
        } = self.besides.map(|it| *it).unwrap_or_default();
        if let Some(found) = &mut escalation {
            redact(&mut found.tool, redactor);
            redact(&mut found.reason, redactor);
            if let Some(field) = &mut found.field {
                redact(field, redactor);
            }
        }
        if let Some(found) = &mut details {
            redactor.redact_value_in_place(found);
        }
        ResultError {
            code,
            message,
            retriable: self.retriable,
            terminal: self.terminal,
            breaker_state: self.breaker_state,
            hint: self.hint,
            retry_after_ms: self.retry_after_ms,
            escalation,
            details,
            turn,
        }
    }
}

fn redact(text: &mut String, redactor: &Redactor) {
    if let Cow::Owned(clean) = redactor.redact_text(text) {
        *text = clean;
    }
}
