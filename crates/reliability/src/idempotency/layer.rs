//! The layer that makes an intent run at most once.

use std::sync::Arc;
use std::time::Duration;

use holdfast_contract::{CacheMatch, DedupeMode, ErrorCode, Status};
use tokio::time::Instant;

use super::claim_guard::ClaimGuard;
use super::derive::{Derived, DerivedKey, derive, parts_of};
use super::ending::ending_of;
use super::held::HeldClaim;
use super::key::{Identity, KeySource, StoredKey, stored_key};
use super::reconcile::Asked;
use super::record::{RecordState, SharedRecord};
use super::replay::replay;
use crate::call::{Call, Failure, Judged, Reply};
use crate::canonical::Digest;
use crate::config::WhenAway;
use crate::guard::RecordMark;
use crate::observe::Event;
use crate::policy::{Keep, Mode, OnKeyConflict};
use crate::runtime::Runtime;
use crate::service::Service;
use crate::store::{Claim, ClearIf, DedupeStore, StoreError, WaitTicket};

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

/// Runs an intent at most once.
pub struct Idempotency<S> {
    inner: S,
    stores: DedupeStores,
    pub(super) runtime: Arc<Runtime>,
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
        let Some(mut derived) = derive(call, Mode::Enforce, &self.runtime) else {
            return self.inner.call(call).await;
        };
        call.stored_key = Some(derived.wish.key);
        let store = self.stores.of(keep_of(call)).clone();
        let mut give_up_at: Option<Instant> = None;
        let mut waited = CacheMatch::Completed;
        loop {
            let guard = ClaimGuard::new(store.clone(), &derived.wish, call, &self.runtime);
            match store.claim(&derived.wish).await {
                Ok(Claim::Granted { lifeline }) => {
                    let params = &derived.wish.request.params_digest;
                    self.runtime.tell(&Event::Claimed { call, params });
                    call.lifeline = lifeline;
                    call.held_claim = HeldClaim::of(&store, &derived.wish, guard.lease());
                    return self.run_claimed(call, guard).await;
                }
                Ok(Claim::InFlight { ticket }) => {
                    guard.stand_down();
                    if call.envelope.transport.dedupe_mode == DedupeMode::BestEffort {
                        return self.in_flight(call, &ticket);
                    }
                    if waited != CacheMatch::Inflight {
                        let key = &ticket.key;
                        self.runtime.tell(&Event::Waits { call, key });
                    }
                    waited = CacheMatch::Inflight;
                    let give_up_at = *give_up_at.get_or_insert_with(|| {
                        Instant::now() + Duration::from_millis(DUPLICATE_WAIT_MS_MAX)
                    });
                    let joined = (ticket.key != derived.wish.key).then_some(ticket.key);
                    let change = store.changed(ticket);
                    if tokio::time::timeout_at(give_up_at, change).await.is_err() {
                        return waiter_gave_up().into();
                    }
                    if let Some(record) = done_meanwhile(&*store, joined).await {
                        return replay(call, &self.runtime, &record, CacheMatch::Inflight);
                    }
                }
                Ok(Claim::Ended(record)) => {
                    guard.stand_down();
                    if is_superseded(call, &record) {
                        call.explain(
                            "a call of this turn has changed something since the record was made",
                        );
                        // Once is enough: what is there the next time was made meanwhile.
                        call.superseded.clear();
                        let cleared = store.clear(&record.key, ClearIf::Unchanged(&record)).await;
                        if let Err(error) = cleared {
                            return self.store_failed(call, &error).await;
                        }
                        continue;
                    }
                    if record.state == RecordState::Unknown {
                        match self.reconcile(call, &*store, &record).await {
                            Asked::Answered(reply) => return reply,
                            Asked::ClaimAgain => continue,
                            Asked::StillUnknown => {}
                        }
                    }
                    return replay(call, &self.runtime, &record, waited);
                }
                Ok(Claim::Conflict { recorded_digest }) => {
                    guard.stand_down();
                    match self.on_conflict(call, &mut derived, recorded_digest) {
                        Some(reply) => return reply,
                        None => call.stored_key = Some(derived.wish.key),
                    }
                }
                Err(error) => {
                    // Only the answer may have been lost: what was granted is given back.
                    drop(guard);
                    return self.store_failed(call, &error).await;
                }
            }
        }
    }

    /// What a finished record answers, without claiming or running anything.
    async fn answer_from_record(&self, call: &mut Call) -> Reply {
        let nothing = || {
            let why = "there is no finished record of this call";
            Failure::before_start(ErrorCode::LoopDetected, why, Judged::Neutral).into()
        };
        if call.modes.idempotency != Mode::Enforce {
            return nothing();
        }
        let Some(derived) = derive(call, Mode::Enforce, &self.runtime) else {
            return nothing();
        };
        let record = self.stores.of(keep_of(call)).get(&derived.wish.key).await;
        match record {
            Ok(Some(record))
                if record.state == RecordState::Done
                    && !record.is_expired(self.runtime.clock.now_ms())
                    && record.request.params_digest == derived.wish.request.params_digest =>
            {
                call.stored_key = Some(derived.wish.key);
                replay(call, &self.runtime, &record, CacheMatch::Completed)
            }
            _ => nothing(),
        }
    }

    /// Runs a call whose claim is held, renewing the lease as long as it runs.
    async fn run_claimed(&self, call: &mut Call, mut guard: ClaimGuard) -> Reply {
        let held = call.held_claim.clone();
        // The call first: one that ends at once never touches a timer. Beside it and not in turns
        // with it: a store that is slow to renew must not hold the call up.
        let reply = tokio::select! {
            biased;
            reply = self.inner.call(call) => reply,
            never = guard.keep(held.as_ref(), &self.runtime) => match never {},
        };
        call.lifeline = None;
        call.held_claim = None;
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
        let mode = call.modes.idempotency;
        self.runtime.tell(&Event::Blocked {
            call,
            code: code.as_str(),
            why,
            mode,
        });
        call.explain(why);
        Failure::before_start(code, why, Judged::Neutral).into()
    }

    /// `None` when the call goes on under a key of its own.
    fn on_conflict(
        &self,
        call: &mut Call,
        derived: &mut Derived,
        recorded: Digest,
    ) -> Option<Reply> {
        let parts = parts_of(call, call.modes.idempotency);
        let params = derived.wish.request.params_digest;
        let (what, own) = match &derived.key {
            DerivedKey::Given(key) => {
                let own = format!("{key}\u{0}{params}");
                (
                    "idempotency key",
                    stored_key(&parts, &KeySource::Caller(&own)),
                )
            }
            DerivedKey::Request => {
                // No request has such an id.
                let own = format!("{}\u{0}{params}", call.envelope.request_id);
                let identity = Identity::Request(&own);
                let source = KeySource::Computed { identity, params };
                ("request id", stored_key(&parts, &source))
            }
            // A computed key holds the arguments. What differs does not matter to this tool (the
            // whitespace of a query), so the record is this call's, and the next claim finds it.
            DerivedKey::Computed => {
                let request = Arc::make_mut(&mut derived.wish.request);
                request.params_digest = recorded;
                return None;
            }
        };
        if call.policy.on_key_conflict == OnKeyConflict::Independent {
            call.explain(format!(
                "the {what} was used with other arguments; treated as one of its own"
            ));
            derived.wish.key = own;
            return None;
        }
        let why = format!(
            "the {what} was used before for a call with other arguments \
             (digest {} on record, {} now)",
            short(&recorded.to_string()),
            short(&params.to_string())
        );
        Some(self.block(call, ErrorCode::IdempotencyKeyConflict, &why))
    }

    /// Without a store a call with effects is not run; a read-only one goes on, said aloud.
    async fn store_failed(&self, call: &mut Call, error: &StoreError) -> Reply {
        self.runtime.tell(&Event::StoreTrouble {
            what: "claim",
            error,
        });
        let critical = call.envelope.hints().safety_critical == Some(true);
        // A full store refuses everybody: it is not away, it has decided.
        let away = matches!(error, StoreError::Unavailable(_));
        let may_go_on = call.policy.read_only_when_away == WhenAway::Run;
        if away && may_go_on && !call.policy.mutating && !critical {
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
        let Some(mut derived) = derive(call, Mode::Shadow, &self.runtime) else {
            return self.inner.call(call).await;
        };
        // The same store as in earnest, in a keyspace of its own: what another process has seen counts.
        let store = self.stores.of(keep_of(call)).clone();
        loop {
            return match store.claim(&derived.wish).await {
                Ok(Claim::Granted { .. }) => {
                    let guard = ClaimGuard::new(store, &derived.wish, call, &self.runtime);
                    self.run_claimed(call, guard).await
                }
                Ok(Claim::InFlight { .. }) => {
                    let state = RecordState::Inflight;
                    self.shadow_hit(call, derived.wish.key, state).await
                }
                Ok(Claim::Ended(record)) => self.shadow_hit(call, record.key, record.state).await,
                Ok(Claim::Conflict { recorded_digest }) => {
                    if self
                        .on_conflict(call, &mut derived, recorded_digest)
                        .is_none()
                    {
                        continue;
                    }
                    self.inner.call(call).await
                }
                Err(_) => {
                    // Only the answer may have been lost: what was granted is given back.
                    drop(ClaimGuard::new(store, &derived.wish, call, &self.runtime));
                    self.inner.call(call).await
                }
            };
        }
    }

    async fn shadow_hit(&self, call: &mut Call, key: StoredKey, state: RecordState) -> Reply {
        // The event names the record; the call itself runs as one that has none.
        call.stored_key = Some(key);
        self.runtime.tell(&Event::DedupeHit {
            call,
            state,
            mode: Mode::Shadow,
        });
        call.stored_key = None;
        call.explain(format!(
            "only watched: it would have been answered from the record {} ({})",
            key.fingerprint(),
            state.as_str()
        ));
        self.inner.call(call).await
    }
}

impl<S: Service> Service for Idempotency<S> {
    async fn call(&self, call: &mut Call) -> Reply {
        if call.only_from_record {
            return self.answer_from_record(call).await;
        }
        match call.modes.idempotency {
            Mode::Enforce => self.enforce(call).await,
            Mode::Shadow => self.shadow(call).await,
            Mode::Off => self.inner.call(call).await,
        }
    }
}

fn keep_of(call: &Call) -> Keep {
    // A request for a person's answer outlives its process, and others learn by the claim whether
    // its asker lives. Who names a call counts on its record, wherever it is asked for again.
    let is_kept = call.waits_for_approval() || !call.is_unnamed();
    if call.envelope.hints().safety_critical == Some(true) || is_kept {
        Keep::Durable
    } else {
        call.policy.keep
    }
}

/// Whether the call's own record answers no more: its id was given to another call of the turn, and
/// what it saw has changed since. What is in doubt stays in doubt.
fn is_superseded(call: &Call, record: &SharedRecord) -> bool {
    call.stored_key == Some(record.key)
        && matches!(record.state, RecordState::Done | RecordState::Failed)
        && call.superseded.contains(&RecordMark::of(&record.key))
}

/// The record of the call with equal content that was joined, if it worked. It answers for whoever
/// waited for it, however short the window is in which it answers for echoes of its own.
async fn done_meanwhile(
    store: &dyn DedupeStore,
    joined: Option<StoredKey>,
) -> Option<SharedRecord> {
    let record = store.get(&joined?).await.ok().flatten()?;
    (record.state == RecordState::Done).then_some(record)
}

fn waiter_gave_up() -> Failure {
    Failure::before_start(
        ErrorCode::Timeout,
        "gave up waiting for the first call with this key, which is still running",
        Judged::Neutral,
    )
    .with_status(Status::Timeout)
}

fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}
