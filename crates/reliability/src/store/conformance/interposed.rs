//! A store around another store, for tests that watch or break one of its steps.

use futures_util::future::BoxFuture;

use crate::idempotency::key::StoredKey;
use crate::idempotency::record::SharedRecord;
use crate::idempotency::transition::{ClaimRequest, Finalisation, Refused};
use crate::store::{
    Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreFuture, StoreSize, WaitTicket,
};

/// Hands every step on to another store, except for those that it has its own of.
pub trait Interposed: Send + Sync {
    /// The store behind it.
    fn behind(&self) -> &dyn DedupeStore;

    /// See [`DedupeStore::claim`].
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.behind().claim(wish)
    }

    /// See [`DedupeStore::changed`].
    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        self.behind().changed(ticket)
    }

    /// See [`DedupeStore::renew`].
    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.behind().renew(key, owner, lease_ms)
    }

    /// See [`DedupeStore::begin`].
    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.behind().begin(key, owner, lease_ms)
    }

    /// See [`DedupeStore::finalise`].
    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        self.behind().finalise(last_word)
    }

    /// See [`DedupeStore::finalise_detached`].
    fn finalise_detached(&self, last_word: Finalisation) {
        self.behind().finalise_detached(last_word);
    }

    /// See [`DedupeStore::release`].
    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.behind().release(key, owner)
    }
}

impl<T: Interposed> DedupeStore for T {
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        Interposed::claim(self, wish)
    }

    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        Interposed::changed(self, ticket)
    }

    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        Interposed::renew(self, key, owner, lease_ms)
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        Interposed::begin(self, key, owner, lease_ms)
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        Interposed::finalise(self, last_word)
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        Interposed::finalise_detached(self, last_word);
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        Interposed::release(self, key, owner)
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        self.behind().get(key)
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        self.behind().list(filter)
    }

    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        self.behind().clear(key, when)
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        self.behind().flush(filter)
    }

    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool> {
        self.behind().restore(record)
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.behind().sweep()
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        self.behind().size()
    }
}
