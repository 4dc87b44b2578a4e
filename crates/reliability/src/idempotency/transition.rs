//! The life of a record as pure functions.
//!
//! Every store applies these same functions inside its own atomic section (a mutex, a
//! transaction, a script), so that "run at most once" is decided in one place and can be tested
//! without any store at all.

use std::borrow::Cow;
use std::sync::Arc;

use holdfast_contract::ResultOutput;

use super::key::StoredKey;
pub(crate) use super::lost::is_lost;
#[cfg(feature = "redis")]
pub(crate) use super::lost::lost;
use super::lost::{doubted_since_ms, is_lost_before_start, passed_over, turned_unknown};
use super::record::{
    DedupeRecord, Execution, RecordError, RecordRequest, RecordState, SharedRecord,
};
use crate::canonical::Digest;
use crate::retry::RepeatSafety;

/// How long each kind of record is kept, and how long a holder may be silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// A success.
    pub done_ms: u64,
    /// A failure.
    pub failed_ms: u64,
    /// A cancelled call.
    pub cancelled_ms: u64,
    /// An unknown outcome.
    pub unknown_ms: u64,
    /// A holder's lease; renewed at a third of it.
    pub lease_ms: u64,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Self {
            done_ms: 24 * 60 * 60 * 1000,
            failed_ms: 5 * 60 * 1000,
            cancelled_ms: 5 * 60 * 1000,
            unknown_ms: 24 * 60 * 60 * 1000,
            lease_ms: 120_000,
        }
    }
}

/// The second look-up of tools whose repeated content within a window is an echo, not an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentLookup {
    /// The content's key.
    pub key: StoredKey,
    /// An unknown or running call this young answers for its echo.
    pub unknown_window_ms: u64,
    /// A finished call this young answers for its echo; 0 for never.
    pub echo_window_ms: u64,
}

/// What a recorded failure that could be retried means for this caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRetriableFailure {
    /// The recorded failure is the answer.
    Replay,
    /// `bestEffort`: run again.
    RunAgain,
}

/// Whether the call starts right after its claim, or something has to happen first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hold {
    /// It starts at once: a lost holder may have had its effect.
    #[default]
    None,
    /// It waits, for a person's answer: until [`begin`] a lost holder certainly ran nothing.
    Held,
}

/// A wish to execute an intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimRequest {
    /// The intent.
    pub key: StoredKey,
    /// The second look-up.
    pub content: Option<ContentLookup>,
    /// The tool.
    pub tool: Arc<str>,
    /// The key as given, or `computed`.
    pub idempotency_key: Cow<'static, str>,
    /// Who asks.
    pub request: Arc<RecordRequest>,
    /// A token nobody else has.
    pub owner: Arc<str>,
    /// How long things are kept.
    pub lifetimes: Lifetimes,
    /// Whether a lost holder's call may simply run again.
    pub repeat: RepeatSafety,
    /// What a recorded retriable failure means.
    pub on_retriable_failure: OnRetriableFailure,
    /// Whether the call waits before it starts.
    pub hold: Hold,
}

/// Whether the process behind a claim is known to be gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Holder {
    /// It lives, or nothing is known about it: only its lease counts.
    MayLive,
    /// The operating system says that it and all its children are gone.
    Dead,
}

/// The answer to a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum ClaimDecision {
    /// Execute it: `record` has to be stored first.
    Grant {
        /// The record to store, replacing what was there.
        record: SharedRecord,
        /// The record of a call with equal content that was lost, and answers for it no more: to be
        /// stored in the same step. One that waited may then not begin on it any more, should its holder
        /// come back and not be granted it anew, and one that ran does not stand before what is sent now.
        passed_over: Option<SharedRecord>,
    },
    /// Somebody executes it.
    InFlight {
        /// Which record to wait for: the intent's own, or the one with equal content.
        wait_for: StoredKey,
        /// The version seen, to notice a change.
        version: u64,
        /// When the holder's lease ends if it is not renewed.
        lock_until_ms: u64,
    },
    /// It ended; this is how.
    Ended {
        /// The record that answers.
        record: SharedRecord,
        /// Whether the record was changed by this step and has to be stored.
        store: bool,
    },
    /// The key belongs to another call.
    Conflict {
        /// The digest on record.
        recorded_digest: Digest,
    },
}

/// Decides a claim.
///
/// `existing` is the record under the key, `same_content` the newest record with the same content
/// key (another key), each with what is known about its holder.
pub fn claim(
    existing: Option<(&DedupeRecord, Holder)>,
    same_content: Option<(&DedupeRecord, Holder)>,
    wish: &ClaimRequest,
    now_ms: u64,
) -> ClaimDecision {
    let live = existing.filter(|(record, _)| !record.is_expired(now_ms));
    if let Some((record, holder)) = live {
        if record.request.params_digest != wish.request.params_digest
            && record.state != RecordState::Cancelled
            && !is_lost_before_start(record, holder, now_ms)
        {
            return ClaimDecision::Conflict {
                recorded_digest: record.request.params_digest,
            };
        }
        if let Some(answer) = answer_from_record(record, holder, wish, now_ms) {
            return answer;
        }
    }
    // Also for a call that may run again: its content may have been sent under another key since.
    if let Some(answer) = answer_from_content(same_content, wish, now_ms) {
        return answer;
    }
    let others = same_content.filter(|(record, _)| record.key != wish.key);
    ClaimDecision::Grant {
        record: Arc::new(granted(wish, existing.map(|(record, _)| record), now_ms)),
        passed_over: others
            .and_then(|(record, holder)| passed_over(record, holder, wish, now_ms))
            .map(Arc::new),
    }
}

/// What the intent's own record says; `None` when it may run, or run again.
fn answer_from_record(
    record: &DedupeRecord,
    holder: Holder,
    wish: &ClaimRequest,
    now_ms: u64,
) -> Option<ClaimDecision> {
    match record.state {
        // It was still waiting for a person when it was lost: nothing ran.
        RecordState::Inflight if is_lost_before_start(record, holder, now_ms) => None,
        RecordState::Inflight if is_lost(record, holder, now_ms) => {
            let may_run_again = record.repeat_safe && wish.repeat == RepeatSafety::Safe;
            (!may_run_again).then(|| ClaimDecision::Ended {
                record: Arc::new(turned_unknown(record, wish, now_ms)),
                store: true,
            })
        }
        RecordState::Inflight => Some(in_flight(record)),
        RecordState::Cancelled => None,
        RecordState::Failed
            if wish.on_retriable_failure == OnRetriableFailure::RunAgain
                && record
                    .error
                    .as_ref()
                    .is_some_and(|error| error.should_retriable) =>
        {
            None
        }
        // Two flags say so: the caller vouches for the repeat, and asks for it.
        RecordState::Unknown
            if wish.repeat == RepeatSafety::Safe
                && wish.on_retriable_failure == OnRetriableFailure::RunAgain =>
        {
            None
        }
        RecordState::Done | RecordState::Failed | RecordState::Unknown => Some(ended(record)),
    }
}

/// An echo: the same content under a new id, shortly after.
fn answer_from_content(
    same_content: Option<(&DedupeRecord, Holder)>,
    wish: &ClaimRequest,
    now_ms: u64,
) -> Option<ClaimDecision> {
    let lookup = wish.content.as_ref()?;
    let (record, holder) = same_content?;
    if record.is_expired(now_ms) || record.key == wish.key {
        return None;
    }
    let age_ms = now_ms.saturating_sub(record.updated_at_ms);
    match record.state {
        RecordState::Inflight if is_lost_before_start(record, holder, now_ms) => None,
        // A running call is joined while it is renewed, whatever its age; a lost one is unknown,
        // and its window has run since it was lost, not since somebody asked.
        RecordState::Inflight if is_lost(record, holder, now_ms) => {
            let in_doubt_ms = now_ms.saturating_sub(doubted_since_ms(record, now_ms));
            (in_doubt_ms < lookup.unknown_window_ms).then(|| ClaimDecision::Ended {
                record: Arc::new(turned_unknown(record, wish, now_ms)),
                store: true,
            })
        }
        RecordState::Inflight => Some(in_flight(record)),
        RecordState::Unknown if age_ms < lookup.unknown_window_ms => Some(ended(record)),
        RecordState::Done if age_ms < lookup.echo_window_ms => Some(ended(record)),
        _ => None,
    }
}

fn in_flight(record: &DedupeRecord) -> ClaimDecision {
    ClaimDecision::InFlight {
        wait_for: record.key,
        version: record.version,
        lock_until_ms: record.lock_until_ms.unwrap_or_default(),
    }
}

fn ended(record: &DedupeRecord) -> ClaimDecision {
    ClaimDecision::Ended {
        record: Arc::new(record.clone()),
        store: false,
    }
}

fn granted(wish: &ClaimRequest, before: Option<&DedupeRecord>, now_ms: u64) -> DedupeRecord {
    let ttl_ms = wish.lifetimes.unknown_ms.max(wish.lifetimes.done_ms);
    DedupeRecord {
        key: wish.key,
        tool: wish.tool.clone(),
        idempotency_key: wish.idempotency_key.clone(),
        state: RecordState::Inflight,
        created_at_ms: now_ms,
        updated_at_ms: now_ms,
        expires_at_ms: now_ms.saturating_add(ttl_ms),
        ttl_ms,
        request: wish.request.clone(),
        execution: None,
        payload: None,
        error: None,
        lock_until_ms: Some(now_ms.saturating_add(wish.lifetimes.lease_ms)),
        // Continuing the count keeps a former holder's version from ever fitting again.
        version: before.map_or(0, |record| record.version) + 1,
        owner: wish.owner.clone(),
        content_key: wish.content.as_ref().map(|lookup| lookup.key),
        repeat_safe: wish.repeat == RepeatSafety::Safe,
        held: wish.hold == Hold::Held,
    }
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It worked.
    Done(ResultOutput),
    /// It worked, and its output is too large to be kept.
    DoneWithoutOutput,
    /// It failed and left no effect that matters.
    Failed(RecordError),
    /// The caller went away before anything ran.
    Cancelled,
    /// It was started and nobody knows.
    Unknown(RecordError),
}

/// The holder's last word on its claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Finalisation {
    /// The intent.
    pub key: StoredKey,
    /// The claim's token.
    pub owner: Arc<str>,
    /// How it ended.
    pub ending: Ending,
    /// The attempts.
    pub execution: Execution,
    /// How long the record is kept.
    pub lifetimes: Lifetimes,
}

/// Why a holder's word was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// There is no such record: it was cleared.
    Gone,
    /// The claim belongs to somebody else now, or has ended with certainty.
    NotTheHolder,
}

/// Decides a holder's last word: the new record, or why not.
///
/// The owner's token takes the place of a bare version check: a holder whose record was turned to
/// unknown behind its back did change versions, and is still the one who knows the truth.
pub fn finalise(
    existing: Option<&DedupeRecord>,
    last_word: &Finalisation,
    now_ms: u64,
) -> Result<DedupeRecord, Refused> {
    let mut record = may_finalise(existing, last_word)?.clone();
    take_last_word(&mut record, last_word.clone(), now_ms);
    Ok(record)
}

/// The first half of [`finalise`]: whether the holder's word is taken.
pub fn may_finalise<'a>(
    existing: Option<&'a DedupeRecord>,
    last_word: &Finalisation,
) -> Result<&'a DedupeRecord, Refused> {
    let record = existing.ok_or(Refused::Gone)?;
    if record.owner != last_word.owner {
        return Err(Refused::NotTheHolder);
    }
    let knows = !matches!(last_word.ending, Ending::Unknown(_));
    let open = match record.state {
        RecordState::Inflight => true,
        // The holder was given up on, and comes back with the truth.
        RecordState::Unknown => knows,
        RecordState::Done | RecordState::Failed | RecordState::Cancelled => false,
    };
    if open {
        Ok(record)
    } else {
        Err(Refused::NotTheHolder)
    }
}

/// The second half of [`finalise`], for a store that can change its record in place.
pub fn take_last_word(record: &mut DedupeRecord, last_word: Finalisation, now_ms: u64) {
    let lifetimes = &last_word.lifetimes;
    let (state, ttl_ms, payload, error) = match last_word.ending {
        Ending::Done(output) => (RecordState::Done, lifetimes.done_ms, Some(output), None),
        Ending::DoneWithoutOutput => (RecordState::Done, lifetimes.done_ms, None, None),
        Ending::Failed(error) => (RecordState::Failed, lifetimes.failed_ms, None, Some(error)),
        Ending::Cancelled => (RecordState::Cancelled, lifetimes.cancelled_ms, None, None),
        Ending::Unknown(error) => (
            RecordState::Unknown,
            lifetimes.unknown_ms,
            None,
            Some(error),
        ),
    };
    record.state = state;
    record.updated_at_ms = now_ms;
    record.expires_at_ms = now_ms.saturating_add(ttl_ms);
    record.ttl_ms = ttl_ms;
    record.execution = Some(last_word.execution);
    record.payload = payload;
    record.error = error;
    record.lock_until_ms = None;
    record.held = false;
    record.version += 1;
}

/// Decides a renewal: the new record, or why the claim is lost.
pub fn renew(
    existing: Option<&DedupeRecord>,
    owner: &str,
    lease_ms: u64,
    now_ms: u64,
) -> Result<DedupeRecord, Refused> {
    let record = existing.ok_or(Refused::Gone)?;
    if *record.owner != *owner || record.state != RecordState::Inflight {
        return Err(Refused::NotTheHolder);
    }
    Ok(DedupeRecord {
        lock_until_ms: Some(now_ms.saturating_add(lease_ms)),
        updated_at_ms: now_ms,
        // A call that ran for longer than its record is kept must not be forgotten the moment its
        // holder is lost.
        expires_at_ms: record
            .expires_at_ms
            .max(now_ms.saturating_add(record.ttl_ms)),
        ..record.clone()
    })
}

/// Decides whether a held call may start: the new record, or why not. From here on a lost holder
/// may have had its effect.
///
/// A holder that stalled while it waited may find its claim given to another, and must not start.
pub fn begin(
    existing: Option<&DedupeRecord>,
    owner: &str,
    lease_ms: u64,
    now_ms: u64,
) -> Result<DedupeRecord, Refused> {
    renew(existing, owner, lease_ms, now_ms).map(|record| DedupeRecord {
        // Who saw it wait must not take it for what it was.
        version: record.version + u64::from(record.held),
        held: false,
        ..record
    })
}

/// Decides whether a claim may be taken back because nothing ran.
///
/// Also after the holder was given up on: it comes back with the truth, as in [`finalise`].
pub fn release(existing: Option<&DedupeRecord>, owner: &str) -> Result<(), Refused> {
    let record = existing.ok_or(Refused::Gone)?;
    let open = matches!(record.state, RecordState::Inflight | RecordState::Unknown);
    if *record.owner == *owner && open {
        Ok(())
    } else {
        Err(Refused::NotTheHolder)
    }
}

#[cfg(test)]
#[path = "transition_tests.rs"]
mod tests;
