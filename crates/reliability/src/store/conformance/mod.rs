//! What every record store has to do, as named checks.
//!
//! A store's tests bring a [`StoreFactory`] and run every check of `for_each_store_check`, one
//! test each, so that a failure has a name. Time is a [`ManualClock`]; only what waits uses real
//! time, and no check depends on how long anything takes.

#![expect(
    clippy::missing_panics_doc,
    reason = "a check says what is wrong by panicking"
)]
#![expect(clippy::panic, reason = "a check says what is wrong by panicking")]
#![expect(
    clippy::expect_used,
    reason = "a check says what is wrong by panicking"
)]

use std::any::Any;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_contract::{Clock, ResultOutput, Status};
use serde_json::json;

use super::{Claim, ClearIf, Cleared, DedupeStore, StoreResult, WaitTicket};
use smallvec::smallvec;

use crate::canonical::Digest;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{
    AttemptNote, AttemptStatus, DedupeRecord, Execution, RecordError, RecordRequest, RecordState,
    SharedRecord,
};
use crate::idempotency::transition::{
    ClaimRequest, ContentLookup, Ending, Finalisation, Hold, Lifetimes, OnRetriableFailure, Refused,
};
use crate::retry::RepeatSafety;

mod claims;
mod concurrency;
mod content;
pub mod documents;
mod endings;
mod held;
pub mod interposed;
pub mod interposed_documents;
mod upkeep;
mod waiting;

pub use claims::*;
pub use concurrency::*;
pub use content::*;
pub use endings::*;
pub use held::*;
pub use upkeep::*;
pub use waiting::*;

/// Nothing in a check takes this long unless it hangs.
const HANG: Duration = Duration::from_mins(1);
/// When the checks begin.
const START_MS: u64 = 1_700_000_000_000;
/// A lease that is long in the store's time and never over in real time.
const LEASE_MS: u64 = 120_000;

/// Calls a macro with its own arguments and the name of every check.
#[macro_export]
macro_rules! for_each_store_check {
    ($apply:ident, $($argument:tt)*) => {
        $apply! {
            [$($argument)*]
            a_fresh_key_is_granted_and_recorded
            a_running_call_is_in_flight_for_others
            other_arguments_are_a_conflict
            a_cancelled_record_never_conflicts
            a_finished_call_answers_its_duplicates
            a_failure_is_replayed_or_run_again
            a_cancelled_call_may_run
            an_unknown_outcome_answers_its_duplicates
            an_expired_record_is_as_if_it_had_never_been
            a_lost_call_turns_unknown
            a_lost_safe_call_is_taken_over
            a_lost_safe_call_is_unknown_to_who_does_not_vouch
            a_renewed_call_is_not_lost
            a_renewed_call_is_not_forgotten
            renewal_is_for_the_holder_only
            the_owner_brings_the_truth_about_its_unknown
            nobody_else_upgrades_an_unknown
            a_certain_ending_is_final
            a_last_word_without_a_record_is_refused
            a_detached_last_word_is_taken
            a_released_claim_lets_the_next_run
            release_is_for_the_holder_only
            records_come_back_as_they_were_written
            deep_and_large_payloads_come_back
            equal_content_in_flight_is_joined
            an_echo_of_a_finished_call_is_answered_within_its_window
            an_unknown_outcome_answers_for_its_content_within_its_window
            an_old_unknown_does_not_hide_a_fresh_echo
            a_lost_call_with_equal_content_turns_unknown
            a_call_lost_long_ago_answers_for_its_content_no_more
            asking_for_a_lost_call_does_not_begin_its_window
            failed_and_cancelled_content_does_not_answer
            content_answers_before_a_cancelled_call_runs_again
            without_a_content_key_content_does_not_matter
            waiters_wake_on_every_kind_of_change
            a_change_before_the_wait_ends_it_at_once
            a_wait_ends_with_the_lease
            an_abandoned_wait_leaves_nothing_behind
            list_filters_and_orders
            given_keys_are_found
            flush_spares_running_calls
            clear_says_whether_it_was_there
            clear_spares_what_has_changed_since
            sweep_forgets_exactly_what_has_expired
            size_counts
            a_full_store_evicts_what_ended_first
            a_store_full_of_pinned_records_refuses
            what_has_expired_makes_room
            a_known_key_needs_no_room
            a_restored_record_is_as_it_was
            one_of_many_is_granted
            all_waiters_get_the_result
            many_keys_many_tasks_one_effect_each
            an_abandoned_claim_does_not_block_its_key
            a_call_lost_while_it_waited_is_granted_again
            a_call_that_began_is_unknown_when_lost
            beginning_is_for_the_holder_only
            a_call_whose_content_was_taken_over_may_not_begin
        }
    };
}

/// A clock that stands still until it is told.
#[derive(Debug)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// A clock that shows `now_ms`.
    pub fn new(now_ms: u64) -> Arc<Self> {
        Arc::new(Self(AtomicU64::new(now_ms)))
    }

    /// Moves it on.
    pub fn advance(&self, ms: u64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_ms(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A store, and what has to live as long as it.
pub struct Made {
    /// The store.
    pub store: Arc<dyn DedupeStore>,
    /// A directory, a server, a connection; dropped after the store.
    pub keep: Box<dyn Any + Send + Sync>,
}

/// Makes empty stores.
pub trait StoreFactory: Sync {
    /// An empty store that shows the time of `clock` and holds up to `keys_max` records.
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made;
}

/// An empty store with its clock.
pub struct Bench {
    store: Arc<dyn DedupeStore>,
    clock: Arc<ManualClock>,
    _keep: Box<dyn Any + Send + Sync>,
}

impl Bench {
    fn new(factory: &dyn StoreFactory) -> Self {
        Self::with_keys_max(factory, 1_000)
    }

    fn with_keys_max(factory: &dyn StoreFactory, keys_max: usize) -> Self {
        let clock = ManualClock::new(START_MS);
        let made = factory.make(clock.clone(), keys_max);
        Self {
            store: made.store,
            clock,
            _keep: made.keep,
        }
    }

    async fn claim(&self, wish: ClaimRequest) -> Claim {
        ok(self.store.claim(&wish)).await
    }

    async fn granted(&self, wish: ClaimRequest) {
        let claim = self.claim(wish).await;
        assert!(
            matches!(claim, Claim::Granted { .. }),
            "not granted: {claim:?}"
        );
    }

    async fn in_flight(&self, wish: ClaimRequest) -> WaitTicket {
        match self.claim(wish).await {
            Claim::InFlight { ticket } => ticket,
            other => panic!("not in flight: {other:?}"),
        }
    }

    async fn ended(&self, wish: ClaimRequest, state: RecordState) -> SharedRecord {
        match self.claim(wish).await {
            Claim::Ended(record) => {
                assert_eq!(record.state, state);
                record
            }
            other => panic!("not ended: {other:?}"),
        }
    }

    async fn finalise(&self, wish: &ClaimRequest, ending: Ending) -> Result<(), Refused> {
        ok(self.store.finalise(last_word(wish, ending))).await
    }

    /// Claims and ends in one go.
    async fn run(&self, wish: &ClaimRequest, ending: Ending) {
        self.granted(wish.clone()).await;
        assert_eq!(self.finalise(wish, ending).await, Ok(()));
    }

    async fn clear(&self, key: &StoredKey) -> Cleared {
        ok(self.store.clear(key, ClearIf::There)).await
    }

    async fn get(&self, wish: &ClaimRequest) -> Option<SharedRecord> {
        ok(self.store.get(&wish.key)).await
    }

    async fn state(&self, wish: &ClaimRequest) -> Option<RecordState> {
        self.get(wish).await.map(|record| record.state)
    }
}

/// The value of a store operation that must work, and must not hang.
async fn ok<T>(operation: impl Future<Output = StoreResult<T>>) -> T {
    in_time(operation).await.expect("the store works")
}

async fn in_time<T>(operation: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, operation)
        .await
        .expect("it hangs")
}

pub(crate) fn key(number: u16) -> StoredKey {
    let mut bytes = [0xA5; 32];
    bytes[..2].copy_from_slice(&number.to_be_bytes());
    // A few families, so that a store that keeps each in a place of its own has several places.
    bytes[30..].copy_from_slice(&(number / 4).to_be_bytes());
    StoredKey::from_bytes(bytes)
}

fn lifetimes() -> Lifetimes {
    Lifetimes {
        lease_ms: LEASE_MS,
        ..Lifetimes::default()
    }
}

/// A wish that must not be repeated, with its own owner.
pub(crate) fn wish(number: u16, owner: &str) -> ClaimRequest {
    ClaimRequest {
        key: key(number),
        content: None,
        tool: "message".into(),
        idempotency_key: "computed".into(),
        request: Arc::new(RecordRequest {
            session_key: "session-1".into(),
            workspace_id: None,
            actor_id: "actor-1".into(),
            request_id: format!("request-{owner}"),
            tool_call_id: None,
            params_digest: Digest::of(&number.to_le_bytes()),
            shadow: false,
        }),
        owner: owner.into(),
        lifetimes: lifetimes(),
        repeat: RepeatSafety::Unsafe,
        on_retriable_failure: OnRetriableFailure::Replay,
        hold: Hold::None,
    }
}

pub(crate) fn safe(wish: ClaimRequest) -> ClaimRequest {
    ClaimRequest {
        repeat: RepeatSafety::Safe,
        ..wish
    }
}

fn best_effort(wish: ClaimRequest) -> ClaimRequest {
    ClaimRequest {
        on_retriable_failure: OnRetriableFailure::RunAgain,
        ..wish
    }
}

/// A wish with a content key shared by all of them.
fn with_content(wish: ClaimRequest) -> ClaimRequest {
    let mut content = *key(60_000).as_bytes();
    // Equal content is of the same tool and session: it shares the family of its intents.
    content[30..].copy_from_slice(&wish.key.as_bytes()[30..]);
    let lookup = ContentLookup {
        key: StoredKey::from_bytes(content),
        unknown_window_ms: 600_000,
        echo_window_ms: 30_000,
    };
    ClaimRequest {
        content: Some(lookup),
        ..wish
    }
}

pub(crate) fn done() -> Ending {
    Ending::Done(ResultOutput {
        content: Arc::new(json!({"id": 7})),
        metadata: None,
    })
}

fn failed(should_retriable: bool) -> Ending {
    Ending::Failed(error(should_retriable))
}

fn unknown() -> Ending {
    Ending::Unknown(error(false))
}

fn error(should_retriable: bool) -> RecordError {
    RecordError {
        code: "timeout".to_owned(),
        message: "no answer within 5 s — «really»".to_owned(),
        terminal: !should_retriable,
        should_retriable,
        status: Status::Timeout,
    }
}

fn execution() -> Execution {
    Execution {
        attempt_count: 1,
        attempts: smallvec![AttemptNote {
            started_at_ms: START_MS,
            finished_at_ms: START_MS + 3,
            status: AttemptStatus::Success,
            retriable: false,
            error_code: None,
        }],
    }
}

pub(crate) fn last_word(wish: &ClaimRequest, ending: Ending) -> Finalisation {
    Finalisation {
        key: wish.key,
        owner: wish.owner.clone(),
        ending,
        execution: execution(),
        lifetimes: wish.lifetimes,
    }
}

/// A record as a store's own tests can use it.
#[cfg(test)]
pub(crate) fn example_record() -> DedupeRecord {
    fresh_record(&wish(1, "owner"), START_MS)
}

/// The record that a fresh claim leaves.
fn fresh_record(wish: &ClaimRequest, now_ms: u64) -> DedupeRecord {
    DedupeRecord {
        key: wish.key,
        tool: wish.tool.clone(),
        idempotency_key: wish.idempotency_key.clone(),
        state: RecordState::Inflight,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        expires_at_ms: now_ms + wish.lifetimes.done_ms,
        ttl_ms: wish.lifetimes.done_ms,
        request: wish.request.clone(),
        execution: None,
        payload: None,
        error: None,
        lock_until_ms: Some(now_ms + wish.lifetimes.lease_ms),
        version: 1,
        owner: wish.owner.clone(),
        content_key: wish.content.as_ref().map(|lookup| lookup.key),
        repeat_safe: wish.repeat == RepeatSafety::Safe,
        held: wish.hold == Hold::Held,
    }
}
