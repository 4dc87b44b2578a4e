//! Every check of documents, for every store that lives in this crate.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can not be set up has failed"
)]

use std::sync::Arc;

use holdfast_reliability::for_each_document_check;
use holdfast_reliability::store::conformance::ManualClock;
use holdfast_reliability::store::conformance::documents::{
    self, DocumentStoreFactory, MadeDocuments,
};
use holdfast_reliability::store::memory::MemoryDocumentStore;
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};

struct Memory;

impl DocumentStoreFactory for Memory {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        MadeDocuments {
            store: Arc::new(MemoryDocumentStore::new(clock)),
            keep: Box::new(()),
        }
    }
}

struct Sqlite;

impl DocumentStoreFactory for Sqlite {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        let dir = tempfile::tempdir().unwrap();
        let options = SqliteOptions::default();
        let store = SqliteState::open(&dir.path().join("state"), clock, options).unwrap();
        MadeDocuments {
            store,
            keep: Box::new(dir),
        }
    }
}

macro_rules! tests {
    ([$factory:expr] $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                documents::$check(&$factory).await;
            }
        )*
    };
}

mod memory {
    use super::*;
    for_each_document_check!(tests, Memory);
}

mod sqlite {
    use super::*;
    for_each_document_check!(tests, Sqlite);
}
