//! The layer that makes an intent run at most once.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{CacheHit, CacheMatch, DedupeMode, ErrorCode, Status, ToolContext};
use tokio::time::Instant;

use super::claim_guard::ClaimGuard;
use super::key::{Identity, KeyParts, KeySource, Scope, content_key, identity_of, stored_key};
use super::record::{DedupeRecord, RecordRequest, RecordState, SharedRecord};
use super::transition::{ClaimRequest, ContentLookup, Ending, OnRetriableFailure};
use crate::call::{Call, Failure, Judged, Reply};
use crate::canonical::{CanonicalOptions, Digest, Whitespace, is_collapsed, write_canonical};
use crate::execute::{output_of, tool_context};
use crate::guard::FailureKind;
use crate::observe::Event;
use crate::policy::{DeriveKeys, Keep, Mode, OnKeyConflict};
use crate::retry::{Evidence, RepeatSafety};
use crate::runtime::Runtime;
use crate::scratch::with_buffer;
use crate::service::Service;
use crate::store::{Claim, DedupeStore, StoreError, WaitTicket};

/// A duplicate without a deadline of its own waits at most this long for the first call.
pub const DUPLICATE_WAIT_MS_MAX: u64 = 10 * 60 * 1000;

/// The stores records are kept in.
#[derive(Clone)]
pub struct DedupeStores {
    /// For calls with effects.
    pub durable: Arc<dyn DedupeStore>,
    /// For read-only calls, unless configured otherwise.
    pub memory: Arc<dyn DedupeStore>,
}

impl DedupeStores {
    /// The same store for everything.
    pub fn single(store: Arc<dyn DedupeStore>) -> Self {
        Self {
            durable: store.clone(),
            memory: store,
        }
    }

    fn of(&self, keep: Keep) -> &Arc<dyn DedupeStore> {
        match keep {
            Keep::Durable => &self.durable,
            Keep::Memory => &self.memory,
        }
    }
}

/// See the [module](self).
pub struct Idempotency<S> {
    inner: S,
    stores: DedupeStores,
    runtime: Arc<Runtime>,
}

/// What is known about a call's key before it is claimed.
struct Derived {
    wish: ClaimRequest,
    parts_key: DerivedKey,
}

enum DerivedKey {
    Given(String),
    Computed,
}

impl<S: Service> Idempotency<S> {
    /// Wraps the layers that execute.
    pub fn new(inner: S, stores: DedupeStores, runtime: Arc<Runtime>) -> Self {
        Self {
            inner,
            stores,
            runtime,
        }
    }

    async fn enforce(&self, call: &mut Call) -> Reply {
        let Some(mut derived) = self.derive(call, Mode::Enforce) else {
            return self.inner.call(call).await;
        };
        call.stored_key = Some(derived.wish.key);
        let store = self.stores.of(keep_of(call)).clone();
        let mut give_up_at: Option<Instant> = None;
        let mut waited = CacheMatch::Completed;
        loop {
            match store.claim(&derived.wish).await {
                Ok(Claim::Granted { lifeline }) => {
                    call.lifeline = lifeline;
                    return self.run_claimed(call, store, &derived.wish).await;
                }
                Ok(Claim::InFlight { ticket }) => {
                    if call.envelope.transport.dedupe_mode == DedupeMode::BestEffort {
                        return self.in_flight(call, &ticket);
                    }
                    waited = CacheMatch::Inflight;
                    let give_up_at = *give_up_at.get_or_insert_with(|| {
                        Instant::now() + Duration::from_millis(DUPLICATE_WAIT_MS_MAX)
                    });
                    if tokio::time::timeout_at(give_up_at, store.changed(ticket))
                        .await
                        .is_err()
                    {
                        return waiter_gave_up().into();
                    }
                }
                Ok(Claim::Ended(record)) => {
                    if record.state == RecordState::Unknown
                        && let Some(reply) = self.reconcile(call, &*store, &record).await
                    {
                        return reply;
                    }
                    // Reconciling may have released the key: then the next claim is granted.
                    if record.state == RecordState::Unknown
                        && self.was_released(&*store, &record).await
                    {
                        continue;
                    }
                    return self.replay(call, &record, waited);
                }
                Ok(Claim::Conflict { recorded_digest }) => {
                    match self.on_conflict(call, &mut derived, &recorded_digest) {
                        Some(reply) => return reply,
                        None => call.stored_key = Some(derived.wish.key),
                    }
                }
                Err(error) => return self.store_failed(call, &error).await,
            }
        }
    }

    /// Runs a call whose claim is held, renewing the lease as long as it runs.
    async fn run_claimed(
        &self,
        call: &mut Call,
        store: Arc<dyn DedupeStore>,
        wish: &ClaimRequest,
    ) -> Reply {
        let mut guard = ClaimGuard::new(store, wish, call.started.clone());
        let lease_third = Duration::from_millis((wish.lifetimes.lease_ms / 3).max(1));
        let reply = {
            let running = self.inner.call(call);
            tokio::pin!(running);
            loop {
                // The call first: one that ends at once never touches a timer.
                tokio::select! {
                    biased;
                    reply = &mut running => break reply,
                    () = tokio::time::sleep(lease_third) => guard.renew(&self.runtime).await,
                }
            }
        };
        call.lifeline = None;
        match ending_of(call, &reply) {
            None => guard.release(&self.runtime).await,
            Some(ending) => {
                guard
                    .finalise(ending, call.execution(), &self.runtime)
                    .await;
            }
        }
        reply
    }

    /// What the record says, as an answer to this duplicate.
    fn replay(&self, call: &mut Call, record: &DedupeRecord, matched_on: CacheMatch) -> Reply {
        self.runtime.tell(&Event::DedupeHit {
            call,
            state: record.state,
            mode: Mode::Enforce,
        });
        call.explain(format!(
            "answered from the record {} of request {} ({})",
            record.key.fingerprint(),
            record.request.request_id,
            record.state.as_str()
        ));
        call.redelivered = is_same_delivery(call, record);
        let cache = Some(CacheHit {
            matched_on,
            age_ms: self
                .runtime
                .clock
                .now_ms()
                .saturating_sub(record.updated_at_ms),
            key_fingerprint: record.key.fingerprint().to_string(),
        });
        let outcome = match (&record.payload, &record.error) {
            (Some(payload), _) => Ok(payload.clone()),
            (None, Some(error)) => Err(Failure {
                status: error.status,
                code: error.code.clone().into(),
                message: error.message.clone(),
                hint: hint_for(&error.code),
                retriable: error.should_retriable,
                terminal: error.terminal,
                evidence: if record.state == RecordState::Unknown {
                    Evidence::MayHaveHappened
                } else {
                    Evidence::NoEffect
                },
                counts_for_breaker: false,
                retry_after_ms: None,
                judged: Judged::Counts(if error.should_retriable {
                    FailureKind::Retryable
                } else {
                    FailureKind::Deterministic
                }),
                breaker_state: None,
            }),
            (None, None) => Err(Failure::before_start(
                ErrorCode::OutputTooLarge,
                "the call was done before; its output was too large to be recorded",
                Judged::Neutral,
            )),
        };
        Reply { outcome, cache }
    }

    fn in_flight(&self, call: &mut Call, ticket: &WaitTicket) -> Reply {
        let why = format!(
            "a call with the same key ({}) is still running",
            ticket.key.fingerprint()
        );
        self.runtime.tell(&Event::DedupeHit {
            call,
            state: RecordState::Inflight,
            mode: Mode::Enforce,
        });
        self.block(call, ErrorCode::DuplicateInFlight, &why)
    }

    fn block(&self, call: &mut Call, code: ErrorCode, why: &str) -> Reply {
        self.runtime.tell(&Event::Blocked {
            call,
            code: code.as_str(),
            why,
            mode: Mode::Enforce,
        });
        call.explain(why);
        Failure::before_start(code, why, Judged::Neutral).into()
    }

    /// `None` when the call goes on under a key of its own.
    fn on_conflict(&self, call: &mut Call, derived: &mut Derived, recorded: &str) -> Option<Reply> {
        let given = match &derived.parts_key {
            DerivedKey::Given(key) => key.clone(),
            // Computed keys hold the arguments, so they can not conflict.
            DerivedKey::Computed => String::new(),
        };
        if call.policy.on_key_conflict == OnKeyConflict::Independent {
            call.explain("the key was used with other arguments; treated as a key of its own");
            let own = format!("{given}\u{0}{}", derived.wish.request.params_digest);
            derived.wish.key = stored_key(&parts_of(call, Mode::Enforce), &KeySource::Caller(&own));
            return None;
        }
        let why = format!(
            "the idempotency key was used before for a call with other arguments \
             (digest {} on record, {} now)",
            short(recorded),
            short(&derived.wish.request.params_digest)
        );
        Some(self.block(call, ErrorCode::IdempotencyKeyConflict, &why))
    }

    /// Asks the tool whether an unknown call took effect. `None`: it can not tell, or it did not.
    async fn reconcile(
        &self,
        call: &mut Call,
        store: &dyn DedupeStore,
        record: &SharedRecord,
    ) -> Option<Reply> {
        let tool = call.tool.clone()?;
        let context: ToolContext = tool_context(call, 0, None);
        match tool
            .reconcile(&call.envelope.payload.params, &context)
            .await
        {
            holdfast_contract::Reconciled::Done(result) => {
                call.explain("the tool says that the unknown call took effect");
                let output = output_of(result);
                self.settle(store, record, Ending::Done(output.clone()), call)
                    .await;
                Some(Reply::done(output))
            }
            holdfast_contract::Reconciled::NotDone => {
                call.explain("the tool says that the unknown call did not take effect: it may run");
                if let Err(error) = store.clear(&record.key).await {
                    self.runtime.tell(&Event::StoreTrouble {
                        what: "clear",
                        error: &error,
                    });
                }
                None
            }
            holdfast_contract::Reconciled::CanNotTell => None,
        }
    }

    async fn settle(
        &self,
        store: &dyn DedupeStore,
        record: &SharedRecord,
        ending: Ending,
        call: &Call,
    ) {
        let last_word = super::transition::Finalisation {
            key: record.key,
            owner: record.owner.clone(),
            ending,
            execution: record.execution.clone().unwrap_or_default(),
            lifetimes: call.policy.lifetimes,
        };
        // Refused: somebody else settled it first, which is as good.
        if let Err(error) = store.finalise(last_word).await {
            self.runtime.tell(&Event::StoreTrouble {
                what: "finalise",
                error: &error,
            });
        }
    }

    async fn was_released(&self, store: &dyn DedupeStore, record: &SharedRecord) -> bool {
        matches!(store.get(&record.key).await, Ok(None))
    }

    /// Without a store a call with effects is not run; a read-only one goes on, said aloud.
    async fn store_failed(&self, call: &mut Call, error: &StoreError) -> Reply {
        self.runtime.tell(&Event::StoreTrouble {
            what: "claim",
            error,
        });
        let critical = call.envelope.hints().safety_critical == Some(true);
        if !call.policy.mutating && !critical {
            call.explain(format!("ran without a record: {error}"));
            call.stored_key = None;
            return self.inner.call(call).await;
        }
        let code = match error {
            StoreError::Full(_) => ErrorCode::StoreFull,
            StoreError::Unavailable(_) => ErrorCode::StoreUnavailable,
        };
        self.block(call, code, &error.to_string())
    }

    /// Says what would have happened, in a keyspace of its own, and changes nothing.
    async fn shadow(&self, call: &mut Call) -> Reply {
        let Some(derived) = self.derive(call, Mode::Shadow) else {
            return self.inner.call(call).await;
        };
        // Never the durable store: watching must not cost a sync per call.
        let store = self.stores.memory.clone();
        match store.claim(&derived.wish).await {
            Ok(Claim::Granted { .. }) => {
                let mut guard = ClaimGuard::new(store, &derived.wish, call.started.clone());
                let reply = self.inner.call(call).await;
                match ending_of(call, &reply) {
                    None => guard.release(&self.runtime).await,
                    Some(ending) => {
                        guard
                            .finalise(ending, call.execution(), &self.runtime)
                            .await;
                    }
                }
                reply
            }
            Ok(Claim::InFlight { .. }) => self.shadow_hit(call, RecordState::Inflight).await,
            Ok(Claim::Ended(record)) => self.shadow_hit(call, record.state).await,
            Ok(Claim::Conflict { .. }) => {
                let (code, why) = (ErrorCode::IdempotencyKeyConflict.as_str(), "key conflict");
                self.runtime.tell(&Event::Blocked {
                    call,
                    code,
                    why,
                    mode: Mode::Shadow,
                });
                self.inner.call(call).await
            }
            Err(_) => self.inner.call(call).await,
        }
    }

    async fn shadow_hit(&self, call: &mut Call, state: RecordState) -> Reply {
        self.runtime.tell(&Event::DedupeHit {
            call,
            state,
            mode: Mode::Shadow,
        });
        self.inner.call(call).await
    }

    /// The call's key and claim, or `None` when it is not deduplicated.
    fn derive(&self, call: &Call, mode: Mode) -> Option<Derived> {
        let envelope = &call.envelope;
        if envelope.transport.dedupe_mode == DedupeMode::Disabled {
            return None;
        }
        let given = envelope.payload.idempotency_key.as_deref();
        let hook = call.hook_key.as_deref();
        if given.is_none()
            && hook.is_none()
            && self.runtime.switches.derive_keys() == DeriveKeys::Off
        {
            return None;
        }
        let policy = &call.policy;
        let parts = parts_of(call, mode);
        let exact = params_digest(call, CanonicalOptions::params(&policy.volatile_fields));
        let is_computed = given.is_none() && hook.is_none();
        // A caller's key is compared with the exact arguments only.
        let identifying = if is_computed && policy.whitespace == Whitespace::Collapse {
            collapsed_digest(call).unwrap_or(exact)
        } else {
            exact
        };
        let source = KeySource::choose(given, hook, identity(call), identifying);
        // A caller that names its intents means each of them; only unnamed ones can be echoes.
        let content = match (&source, policy.content_windows) {
            (KeySource::Computed { .. }, Some(windows)) => Some(ContentLookup {
                key: content_key(&parts, identifying),
                unknown_window_ms: windows.unknown_ms,
                echo_window_ms: windows.echo_ms,
            }),
            _ => None,
        };
        let parts_key = match given.or(hook) {
            Some(key) => DerivedKey::Given(key.to_owned()),
            None => DerivedKey::Computed,
        };
        let wish = ClaimRequest {
            key: stored_key(&parts, &source),
            content,
            tool: envelope.tool_name.clone(),
            idempotency_key: given.or(hook).unwrap_or("computed").to_owned(),
            request: RecordRequest {
                session_key: envelope.target.session_key.clone(),
                actor_id: envelope.target.actor_id.clone(),
                request_id: envelope.request_id.clone(),
                tool_call_id: envelope.tool_call_id.clone(),
                params_digest: exact.to_string(),
            },
            owner: self.runtime.token(),
            lifetimes: policy.lifetimes,
            repeat: repeat_safety(call),
            on_retriable_failure: if envelope.transport.dedupe_mode == DedupeMode::BestEffort {
                OnRetriableFailure::RunAgain
            } else {
                OnRetriableFailure::Replay
            },
        };
        Some(Derived { wish, parts_key })
    }
}

impl<S: Service> Service for Idempotency<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        match call.modes.idempotency {
            Mode::Enforce => self.enforce(call).await,
            Mode::Shadow => self.shadow(call).await,
            Mode::Off => self.inner.call(call).await,
        }
    }
}

/// Whether the record was made by this very request, delivered again by a transport.
fn is_same_delivery(call: &Call, record: &DedupeRecord) -> bool {
    record.request.request_id == call.envelope.request_id
        || (record.request.tool_call_id.is_some()
            && record.request.tool_call_id == call.envelope.tool_call_id)
}

fn keep_of(call: &Call) -> Keep {
    if call.envelope.hints().safety_critical == Some(true) {
        Keep::Durable
    } else {
        call.policy.keep
    }
}

/// Whether a call may be repeated when nobody knows how it ended.
pub(crate) fn repeat_safety(call: &Call) -> RepeatSafety {
    let vouched = call.envelope.hints().expected_retry_safe == Some(true);
    if call.policy.repeat_safe || vouched {
        RepeatSafety::Safe
    } else {
        RepeatSafety::Unsafe
    }
}

fn params_digest(call: &Call, options: CanonicalOptions<'_>) -> Digest {
    with_buffer(|canonical| {
        write_canonical(&call.envelope.payload.params, &options, canonical);
        Digest::of(canonical)
    })
}

/// The digest without regard to whitespace; `None` when there is none to disregard, so that the
/// exact one is the same.
fn collapsed_digest(call: &Call) -> Option<Digest> {
    if is_collapsed(&call.envelope.payload.params) {
        return None;
    }
    let options = CanonicalOptions {
        volatile_fields: &call.policy.volatile_fields,
        whitespace: Whitespace::Collapse,
        ..CanonicalOptions::EXACT
    };
    Some(params_digest(call, options))
}

fn parts_of(call: &Call, mode: Mode) -> KeyParts<'_> {
    let envelope = &call.envelope;
    KeyParts {
        scope: if mode == Mode::Shadow {
            Scope::SHADOW
        } else {
            call.policy.scope
        },
        tenant: envelope.target.tenant_id.as_deref(),
        workspace: envelope.target.workspace_id.as_deref(),
        namespace: &envelope.tool_namespace,
        tool: &envelope.tool_name,
        session: &envelope.target.session_key,
        actor: &envelope.target.actor_id,
    }
}

fn identity(call: &Call) -> Identity<'_> {
    let envelope = &call.envelope;
    identity_of(
        envelope.target.run_id.as_deref(),
        envelope.target.turn_id.as_deref(),
        envelope.payload.tool_step,
        envelope.tool_call_id.as_deref(),
        &envelope.request_id,
    )
}

/// How the call goes on record; `None` when nothing ran, so that the claim is taken back.
fn ending_of(call: &Call, reply: &Reply) -> Option<Ending> {
    match &reply.outcome {
        Ok(output) if payload_bytes(output) > call.policy.payload_bytes_max => {
            let failure = Failure::before_start(
                ErrorCode::OutputTooLarge,
                "the call was done before; its output was too large to be recorded",
                Judged::Neutral,
            );
            // Kept like an unknown outcome, for as long as a success: never run again.
            Some(Ending::Unknown(record_error(&failure)))
        }
        Ok(output) => Some(Ending::Done(output.clone())),
        Err(failure) if failure.is(ErrorCode::OutcomeUnknown) => {
            Some(Ending::Unknown(record_error(failure)))
        }
        Err(failure) if !call.started.is_set() || ended_before_any_effect(failure) => None,
        Err(failure) => Some(Ending::Failed(record_error(failure))),
    }
}

/// A tool that finds its arguments or its rights wanting did nothing, and a corrected call has to
/// be able to run.
fn ended_before_any_effect(failure: &Failure) -> bool {
    failure.is(ErrorCode::InvalidArguments) || failure.is(ErrorCode::PermissionDenied)
}

fn payload_bytes(output: &holdfast_contract::ResultOutput) -> usize {
    crate::idempotency::record::output_bytes(output)
}

fn record_error(failure: &Failure) -> super::record::RecordError {
    super::record::RecordError {
        code: failure.code.to_string(),
        message: failure.message.clone(),
        terminal: failure.terminal,
        should_retriable: failure.retriable,
        status: failure.status,
    }
}

fn waiter_gave_up() -> Failure {
    Failure::before_start(
        ErrorCode::Timeout,
        "gave up waiting for the first call with this key, which is still running",
        Judged::Neutral,
    )
    .with_status(Status::Timeout)
}

fn hint_for(code: &str) -> Option<String> {
    holdfast_contract::code::CODES
        .iter()
        .find(|row| row.code.as_str() == code)
        .map(|row| row.next.to_owned())
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
