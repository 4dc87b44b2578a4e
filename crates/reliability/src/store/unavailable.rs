//! The store that is not there.
//!
//! When the state can not be opened, calls still go through the ordinary layers: they refuse what
//! needs a record and let the rest go on, and nobody has to decide that a second time.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use super::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
};
use super::{
    Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreError, StoreFuture, StoreSize,
    WaitTicket,
};
use crate::breaker::{
    BreakerKey, BreakerOp, BreakerPolicy, BreakerState, BreakerStore, StepOutcome, Told,
};
use crate::guard::{
    Advice, CallIdentity, Checked, GuardConfig, GuardStore, Observation, RecordMark, TurnKey,
};
use crate::idempotency::key::StoredKey;
use crate::idempotency::record::SharedRecord;
use crate::idempotency::transition::{ClaimRequest, Finalisation, Refused};

/// Answers everything with the reason why it is not there.
pub struct UnavailableStore {
    error: StoreError,
}

impl UnavailableStore {
    /// Not there for this reason.
    pub fn new(error: StoreError) -> Self {
        Self { error }
    }

    fn refuse<T: Send + 'static>(&self) -> StoreFuture<'_, T> {
        StoreFuture::ready(Err(self.error.clone()))
    }
}

impl DedupeStore for UnavailableStore {
    fn claim<'a>(&'a self, _: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        self.refuse()
    }

    fn changed(&self, _: WaitTicket) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }

    fn renew<'a>(
        &'a self,
        _: &'a StoredKey,
        _: &'a str,
        _: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.refuse()
    }

    fn begin<'a>(
        &'a self,
        _: &'a StoredKey,
        _: &'a str,
        _: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        self.refuse()
    }

    fn finalise(&self, _: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        self.refuse()
    }

    fn finalise_detached(&self, _: Finalisation) {}

    fn release<'a>(&'a self, _: &'a StoredKey, _: &'a str) -> StoreFuture<'a, Result<(), Refused>> {
        self.refuse()
    }

    fn get<'a>(&'a self, _: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        self.refuse()
    }

    fn list<'a>(&'a self, _: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        self.refuse()
    }

    fn clear<'a>(&'a self, _: &'a StoredKey, _: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        self.refuse()
    }

    fn flush<'a>(&'a self, _: &'a RecordFilter) -> StoreFuture<'a, u64> {
        self.refuse()
    }

    fn restore(&self, _: SharedRecord) -> StoreFuture<'_, bool> {
        self.refuse()
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        self.refuse()
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        self.refuse()
    }
}

impl DocumentStore for UnavailableStore {
    fn create(&self, _: NewDocument) -> StoreFuture<'_, Created> {
        self.refuse()
    }

    fn document<'a>(&'a self, _: &'a str, _: &'a str) -> StoreFuture<'a, Option<Document>> {
        self.refuse()
    }

    fn replace(&self, _: Replacement) -> StoreFuture<'_, Replaced> {
        self.refuse()
    }

    fn replace_detached(&self, _: Replacement) {}

    fn documents<'a>(&'a self, _: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        self.refuse()
    }

    fn remove<'a>(&'a self, _: &'a str, _: &'a str) -> StoreFuture<'a, bool> {
        self.refuse()
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        self.refuse()
    }
}

impl BreakerStore for UnavailableStore {
    fn apply<'a>(
        &'a self,
        _: &'a BreakerKey,
        _: BreakerOp,
        _: &'a BreakerPolicy,
    ) -> StoreFuture<'a, StepOutcome> {
        self.refuse()
    }

    fn apply_detached(&self, _: &BreakerKey, _: BreakerOp, _: &BreakerPolicy, _: Option<Told>) {}

    fn breakers(&self) -> StoreFuture<'_, Vec<(BreakerKey, BreakerState)>> {
        self.refuse()
    }
}

impl GuardStore for UnavailableStore {
    fn check<'a>(
        &'a self,
        _: &'a TurnKey,
        _: &'a CallIdentity<'a>,
        _: &'a GuardConfig,
    ) -> StoreFuture<'a, Checked> {
        self.refuse()
    }

    fn observe<'a>(
        &'a self,
        _: &'a TurnKey,
        _: &'a CallIdentity<'a>,
        _: Observation<'a>,
        _: u64,
        _: &'a GuardConfig,
    ) -> StoreFuture<'a, Advice> {
        self.refuse()
    }

    fn delivered<'a>(&'a self, _: &'a TurnKey, _: RecordMark) -> StoreFuture<'a, ()> {
        self.refuse()
    }

    fn end_turn<'a>(&'a self, _: &'a TurnKey) -> StoreFuture<'a, ()> {
        self.refuse()
    }
}
