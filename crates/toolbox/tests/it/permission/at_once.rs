//! Stores on a disk or behind a network whose steps are answered at once: a story says who goes on
//! when, and a step that waits for another thread would go on by itself.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{Thread, ThreadId};

use futures_util::future::BoxFuture;
use holdfast_contract::Clock;
use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::SharedRecord;
use holdfast_reliability::idempotency::transition::{ClaimRequest, Finalisation, Refused};
use holdfast_reliability::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
};
use holdfast_reliability::store::{
    Claim, ClearIf, Cleared, DedupeStore, RecordFilter, StoreFuture, StoreSize, WaitTicket,
};
use holdfast_testkit::TokioClock;

/// The test's time, also for threads of a store, which have no part in it.
pub(crate) struct Followed {
    clock: TokioClock,
    of: ThreadId,
    last_ms: AtomicU64,
}

impl Followed {
    pub(crate) fn new() -> Self {
        let clock = TokioClock::new();
        Self {
            last_ms: AtomicU64::new(clock.now_ms()),
            of: std::thread::current().id(),
            clock,
        }
    }
}

impl Clock for Followed {
    fn now_ms(&self) -> u64 {
        if std::thread::current().id() == self.of {
            self.last_ms.store(self.clock.now_ms(), Ordering::SeqCst);
        }
        self.last_ms.load(Ordering::SeqCst)
    }
}

struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits for a step, whatever else would go on.
fn done<T>(step: StoreFuture<'_, T>) -> StoreFuture<'static, T> {
    // Without a budget: nobody else is to have a turn.
    let mut step = pin!(tokio::task::unconstrained(step));
    let waker = Waker::from(Arc::new(Parked(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    loop {
        match step.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return StoreFuture::ready(answer),
            Poll::Pending => std::thread::park(),
        }
    }
}

/// A store whose steps are done when they are asked for.
pub(crate) struct AtOnce<S>(pub(crate) Arc<S>);

impl<S: DocumentStore> DocumentStore for AtOnce<S> {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        done(self.0.create(new))
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        done(self.0.document(kind, id))
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        done(self.0.replace(change))
    }

    fn replace_detached(&self, change: Replacement) {
        self.0.replace_detached(change);
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        done(self.0.documents(filter))
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        done(self.0.remove(kind, id))
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        done(self.0.sweep_documents())
    }

    fn time_ms(&self) -> Option<u64> {
        self.0.time_ms()
    }
}

impl<S: DedupeStore> DedupeStore for AtOnce<S> {
    fn claim<'a>(&'a self, wish: &'a ClaimRequest) -> StoreFuture<'a, Claim> {
        done(self.0.claim(wish))
    }

    fn changed(&self, ticket: WaitTicket) -> BoxFuture<'_, ()> {
        self.0.changed(ticket)
    }

    fn renew<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        done(self.0.renew(key, owner, lease_ms))
    }

    fn begin<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
        lease_ms: u64,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        done(self.0.begin(key, owner, lease_ms))
    }

    fn finalise(&self, last_word: Finalisation) -> StoreFuture<'_, Result<(), Refused>> {
        done(self.0.finalise(last_word))
    }

    fn finalise_detached(&self, last_word: Finalisation) {
        self.0.finalise_detached(last_word);
    }

    fn release<'a>(
        &'a self,
        key: &'a StoredKey,
        owner: &'a str,
    ) -> StoreFuture<'a, Result<(), Refused>> {
        done(self.0.release(key, owner))
    }

    fn get<'a>(&'a self, key: &'a StoredKey) -> StoreFuture<'a, Option<SharedRecord>> {
        done(self.0.get(key))
    }

    fn list<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, Vec<SharedRecord>> {
        done(self.0.list(filter))
    }

    fn clear<'a>(&'a self, key: &'a StoredKey, when: ClearIf<'a>) -> StoreFuture<'a, Cleared> {
        done(self.0.clear(key, when))
    }

    fn flush<'a>(&'a self, filter: &'a RecordFilter) -> StoreFuture<'a, u64> {
        done(self.0.flush(filter))
    }

    fn restore(&self, record: SharedRecord) -> StoreFuture<'_, bool> {
        done(self.0.restore(record))
    }

    fn sweep(&self) -> StoreFuture<'_, u64> {
        done(self.0.sweep())
    }

    fn size(&self) -> StoreFuture<'_, StoreSize> {
        done(self.0.size())
    }
}
