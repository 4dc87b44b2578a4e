//! Documents around other documents, for tests that delay, lose or refuse one of their steps.

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, ready};

use crate::store::documents::{
    Created, Document, DocumentFilter, DocumentStore, NewDocument, Replaced, Replacement,
};
use crate::store::{StoreFuture, StoreResult};

/// A step of a document store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentStep<'a> {
    /// One of this kind is made.
    Create(&'a str),
    /// One is looked up.
    Look,
    /// One is changed.
    Replace,
    /// Some are listed.
    List,
    /// One is removed.
    Remove,
    /// What has expired is forgotten.
    Sweep,
}

/// Hands every step on to other documents, and has a word before and after it.
pub trait InterposedDocuments: Send + Sync {
    /// The documents behind it.
    fn behind(&self) -> &dyn DocumentStore;

    /// See [`DocumentStore::time_ms`].
    fn time_ms(&self) -> Option<u64> {
        self.behind().time_ms()
    }

    /// What is an error here is not done.
    fn before(&self, _step: DocumentStep<'_>) -> StoreResult<()> {
        Ok(())
    }

    /// What was done is answered when this is ready.
    fn after(&self, _step: DocumentStep<'_>) -> BoxFuture<'_, ()> {
        ready(()).boxed()
    }
}

async fn around<S: InterposedDocuments, T>(
    store: &S,
    step: DocumentStep<'_>,
    done: impl Future<Output = StoreResult<T>>,
) -> StoreResult<T> {
    store.before(step)?;
    let answer = done.await;
    store.after(step).await;
    answer
}

impl<S: InterposedDocuments> DocumentStore for S {
    fn create(&self, new: NewDocument) -> StoreFuture<'_, Created> {
        async move {
            let kind = new.kind.clone();
            let done = async { self.behind().create(new).await };
            around(self, DocumentStep::Create(&kind), done).await
        }
        .boxed()
        .into()
    }

    fn document<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, Option<Document>> {
        let done = async move { self.behind().document(kind, id).await };
        around(self, DocumentStep::Look, done).boxed().into()
    }

    fn replace(&self, change: Replacement) -> StoreFuture<'_, Replaced> {
        let done = async move { self.behind().replace(change).await };
        around(self, DocumentStep::Replace, done).boxed().into()
    }

    fn replace_detached(&self, change: Replacement) {
        self.behind().replace_detached(change);
    }

    fn documents<'a>(&'a self, filter: &'a DocumentFilter) -> StoreFuture<'a, Vec<Document>> {
        let done = async move { self.behind().documents(filter).await };
        around(self, DocumentStep::List, done).boxed().into()
    }

    fn remove<'a>(&'a self, kind: &'a str, id: &'a str) -> StoreFuture<'a, bool> {
        let done = async move { self.behind().remove(kind, id).await };
        around(self, DocumentStep::Remove, done).boxed().into()
    }

    fn sweep_documents(&self) -> StoreFuture<'_, u64> {
        let done = async move { self.behind().sweep_documents().await };
        around(self, DocumentStep::Sweep, done).boxed().into()
    }

    fn time_ms(&self) -> Option<u64> {
        InterposedDocuments::time_ms(self)
    }
}
