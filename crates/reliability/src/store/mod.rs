//! Where records, breakers and turns are kept.
//!
//! One trait per thing that is kept ([`DedupeStore`] here; breakers and turns have theirs in the
//! folders of their layers), and one conformance suite that every implementation passes. The rules
//! themselves are pure functions ([`crate::idempotency::transition`]); a store only makes each
//! step atomic, and durable where that is asked for.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::Lifeline;

pub use future::StoreFuture;

use crate::canonical::Digest;
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::{DedupeRecord, SharedRecord};
use crate::idempotency::transition::{ClaimRequest, Finalisation, Refused};

#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
pub mod documents;
mod future;
pub mod memory;
#[cfg(feature = "redis")]
pub mod redis;
pub mod sqlite;
pub mod unavailable;

/// Why a store could not do its work. Nothing ran in consequence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// It has no room and nothing in it may be evicted.
    #[error("the record store is full: {0}")]
    Full(String),
    /// It can not be read or written.
    #[error("the record store is unavailable: {0}")]
    Unavailable(String),
}

/// A store that is not all there: what needs it is refused or goes on locally.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Degraded {
    /// Since when.
    pub since_ms: u64,
    /// What is wrong, for people.
    pub why: String,
}

/// The result of a store operation.
pub type StoreResult<T> = Result<T, StoreError>;

/// The answer to a claim.
#[derive(Debug, Clone)]
pub enum Claim {
    /// Execute it. The record is stored, durably where the store is durable.
    Granted {
        /// Ties the claim to child processes, where the store can.
        lifeline: Option<Lifeline>,
    },
    /// Somebody executes it.
    InFlight {
        /// What to pass to [`DedupeStore::changed`].
        ticket: WaitTicket,
    },
    /// It ended.
    Ended(SharedRecord),
    /// The key belongs to a call with other arguments.
    Conflict {
        /// The digest on record.
        recorded_digest: Digest,
    },
}

/// What a waiting duplicate waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitTicket {
    /// The record.
    pub key: StoredKey,
    /// The version that was seen.
    pub version: u64,
    /// When the holder's lease ends if it is not renewed.
    pub lock_until_ms: u64,
}

/// What a record has to be to be cleared.
#[derive(Debug, Clone, Copy)]
pub enum ClearIf<'a> {
    /// Anything. A running call's holder keeps running, but its last word is no longer taken.
    There,
    /// What was looked at: nobody has claimed, finished or cleared it since. A renewed lease is no
    /// change.
    Unchanged(&'a DedupeRecord),
}

impl ClearIf<'_> {
    /// Whether a record may go.
    pub fn fits(self, record: &DedupeRecord) -> bool {
        match self {
            Self::There => true,
            // By owner as well: a key that was cleared and claimed anew counts from the beginning.
            Self::Unchanged(seen) => seen.owner == record.owner && seen.version == record.version,
        }
    }
}

/// What became of a record that was to be cleared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cleared {
    /// It is forgotten.
    Forgotten,
    /// There was none.
    NotThere,
    /// It is another than the one that was looked at, and stays.
    Changed,
}

/// Which records to list or flush.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordFilter {
    /// Only of this session.
    pub session: Option<String>,
    /// Only of this tool.
    pub tool: Option<String>,
    /// Only in this state.
    pub state: Option<crate::idempotency::record::RecordState>,
    /// Only those whose key, written out, begins like this. The store takes any length; who asks
    /// on behalf of a person wants at least 6 digits.
    pub key_prefix: Option<String>,
    /// At most this many.
    pub limit: Option<usize>,
}

/// A record that this version can not read, by what its place in the store tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadRecord {
    /// Its key, which is all that clearing it takes.
    pub key: StoredKey,
    /// The state as it stands there: a word or a letter, perhaps of another version.
    pub state: String,
    /// The tool; empty where the store does not tell.
    pub tool: String,
    /// The session; empty where the store does not tell.
    pub session: String,
    /// When it last changed.
    pub updated_at_ms: u64,
    /// When it may be forgotten; 0 where the store does not tell.
    pub expires_at_ms: u64,
    /// Why it can not be read.
    pub why: String,
}

impl UnreadRecord {
    /// Whether it is the record of a running call, as far as can be seen.
    pub fn is_in_flight(&self) -> bool {
        let running = crate::idempotency::record::RecordState::Inflight.as_str();
        self.state == running || self.state == running[..1]
    }
}

/// What a store holds of what was asked for.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The records, newest first.
    pub records: Vec<SharedRecord>,
    /// Those that can not be read, newest first; they count toward the limit.
    pub unread: Vec<UnreadRecord>,
}

/// What the store holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreSize {
    /// Records.
    pub records: u64,
    /// Bytes, as far as the store knows.
    pub bytes: u64,
    /// Records in flight.
    pub in_flight: u64,
}

/// Keeps the records of intents.
pub trait DedupeStore: Send + Sync {
    /// Claims an intent, in one atomic step.
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim>;

    /// Waits until the record may have changed. May wake early; the caller claims again.
    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()>;

    /// Extends a holder's lease.
    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>>;

    /// Lets a held call start: durable, where the store is, before the first attempt. A refusal
    /// means that the claim is no longer the caller's, and that it must not run.
    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>>;

    /// Takes the holder's last word.
    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>>;

    /// Takes the holder's last word from a place that can not wait: the drop of a cancelled call.
    fn finalise_detached(&self, last_word: Finalisation);

    /// Takes a claim back because nothing ran; a waiting duplicate may then run.
    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>>;

    /// Looks a record up.
    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>>;

    /// Lists records, newest first. One that can not be read is left out: see
    /// [`DedupeStore::listing`].
    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>>;

    /// Lists records, also those that can not be read. A store in which there can be none need not
    /// say so.
    fn listing<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Listing> {
        async move {
            Ok(Listing {
                records: self.list(filter).await?,
                unread: Vec::new(),
            })
        }
        .boxed()
        .into()
    }

    /// The newest records for which the caller, or a hook, gave this key. It is no place in a store:
    /// all records are looked into. One that keeps more of them than memory should hold looks
    /// into one after the other.
    fn given<'a>(&'a self, caller_key: &'a str, limit: usize) -> StoreFuture<'a, Listing> {
        async move {
            let all = RecordFilter::default();
            let mut listing = self.listing(&all).await?;
            listing
                .records
                .retain(|record| record.idempotency_key == caller_key);
            listing.records.truncate(limit);
            listing.unread.clear();
            Ok(listing)
        }
        .boxed()
        .into()
    }

    /// Forgets one record if it is what it has to be, in one atomic step.
    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared>;

    /// Forgets the ended records that fit; says how many. Running calls stay.
    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64>;

    /// Takes over a record of another store as it is, unless the key is known here; says whether
    /// it did. One that is in flight keeps its holder: only the lease can end it here.
    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool>;

    /// Forgets what has expired; says how many. The janitor calls it.
    fn sweep(&self) -> StoreFuture<'_, u64>;

    /// What the store holds.
    fn size(&self) -> StoreFuture<'_, StoreSize>;
}
