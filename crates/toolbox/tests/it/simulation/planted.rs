//! Stores that break their promises on purpose, to see that the simulation notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, pending};
use holdfast_contract::Clock;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::{DedupeRecord, RecordState};
use holdfast_reliability::idempotency::transition::{ClaimRequest, Ending, Finalisation, Refused};
use holdfast_reliability::store::conformance::interposed::Interposed;
use holdfast_reliability::store::memory::MemoryDedupeStore;
use holdfast_reliability::store::{Claim, ClearIf, DedupeStore, StoreFuture, WaitTicket};

use super::handle::at_once;

/// A bug to plant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bug {
    /// An ended lease hands the claim to the next caller, although nobody knows what happened.
    LeaseHandsTheClaimOver,
    /// A finaliser that finds its claim gone opens the record again.
    FinaliserReopens,
    /// A finaliser that takes the claim back instead of recording a doubtful end.
    FinaliserReleases,
    /// A finaliser that says "stored" and stores nothing, now and then.
    FinaliserForgets,
    /// A drop that says "cancelled" of a call that had started.
    DropSaysCancelled,
    /// Two claims within a moment are both granted.
    ClaimIsNotAtomic,
    /// A record's end wakes nobody.
    NobodyIsWoken,
    /// A call that waited for a person starts, and its record says that it still waits.
    BeginningForgets,
    /// Doubt about a call keeps equal content from being sent for as long as it is on record.
    DoubtLasts,
    /// Places under a rate limit that all share are given away and not counted.
    PlacesAreNotCounted,
}

/// A store with a bug in it.
pub(crate) struct Planted {
    pub(crate) bug: Bug,
    pub(crate) store: Arc<MemoryDedupeStore>,
    pub(crate) clock: Arc<dyn Clock>,
    finalised: AtomicU64,
}

impl Planted {
    pub(crate) fn new(bug: Bug, store: Arc<MemoryDedupeStore>, clock: Arc<dyn Clock>) -> Self {
        Self {
            bug,
            store,
            clock,
            finalised: AtomicU64::new(0),
        }
    }

    fn forget(&self, key: &StoredKey) {
        let _ = at_once(self.store.clear(key, ClearIf::There));
    }

    fn is_wrongly_open(&self, record: &DedupeRecord) -> bool {
        let now_ms = self.clock.now_ms();
        if record.state != RecordState::Inflight {
            return false;
        }
        match self.bug {
            Bug::LeaseHandsTheClaimOver => record.lease_has_ended(now_ms),
            Bug::ClaimIsNotAtomic => now_ms.saturating_sub(record.created_at_ms) < 3,
            _ => false,
        }
    }
}

impl Interposed for Planted {
    fn behind(&self) -> &dyn DedupeStore {
        &*self.store
    }

    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        if let Ok(Some(record)) = at_once(self.store.get(&wish.key))
            && self.is_wrongly_open(&record)
        {
            self.forget(&wish.key);
        }
        if self.bug == Bug::DoubtLasts {
            let mut wish = wish.clone();
            if let Some(lookup) = &mut wish.content {
                lookup.unknown_window_ms = u64::MAX;
            }
            return StoreFuture::ready(at_once(self.store.claim(&wish)));
        }
        self.store.claim(wish)
    }

    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        if self.bug == Bug::NobodyIsWoken {
            return pending().boxed();
        }
        self.store.changed(ticket)
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        if self.bug == Bug::BeginningForgets {
            return self.store.renew(key, owner, lease_ms);
        }
        self.store.begin(key, owner, lease_ms)
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        let number = self.finalised.fetch_add(1, Ordering::Relaxed);
        if self.bug == Bug::FinaliserForgets && number % 2 == 1 {
            return StoreFuture::ready(Ok(Ok(())));
        }
        if self.bug == Bug::FinaliserReleases && matches!(last_word.ending, Ending::Unknown(_)) {
            let released = at_once(self.store.release(&last_word.key, &last_word.owner));
            return StoreFuture::ready(released);
        }
        let key = last_word.key;
        let answer = at_once(self.store.finalise(last_word));
        if self.bug == Bug::FinaliserReopens && matches!(answer, Ok(Err(Refused::NotTheHolder))) {
            self.forget(&key);
        }
        StoreFuture::ready(answer)
    }

    fn finalise_detached(&self, mut last_word: Finalisation) {
        if self.bug == Bug::DropSaysCancelled && matches!(last_word.ending, Ending::Unknown(_)) {
            last_word.ending = Ending::Cancelled;
        }
        self.store.finalise_detached(last_word);
    }
}
