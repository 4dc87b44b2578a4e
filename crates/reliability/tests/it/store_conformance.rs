//! Every check of the conformance suites, for every store that lives in this crate.

use std::sync::Arc;

use holdfast_reliability::store::conformance::documents::{
    self, DocumentStoreFactory, MadeDocuments,
};
use holdfast_reliability::store::conformance::{self, Made, ManualClock, StoreFactory};
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryDocumentStore, MemoryLimits};
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};
use holdfast_reliability::{for_each_document_check, for_each_store_check};
use holdfast_testkit::tests_of_checks;
use tempfile::TempDir;

struct Memory;

impl StoreFactory for Memory {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        let limits = MemoryLimits {
            keys_max,
            ..MemoryLimits::default()
        };
        Made {
            store: Arc::new(MemoryDedupeStore::new(clock, limits)),
            keep: Box::new(()),
        }
    }
}

impl DocumentStoreFactory for Memory {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        MadeDocuments {
            store: Arc::new(MemoryDocumentStore::new(clock)),
            keep: Box::new(()),
        }
    }
}

struct Sqlite;

impl Sqlite {
    fn open(clock: Arc<ManualClock>, options: SqliteOptions) -> (Arc<SqliteState>, TempDir) {
        let dir = tempfile::tempdir().unwrap();
        let store = SqliteState::open(&dir.path().join("state"), clock, options).unwrap();
        (store, dir)
    }
}

impl StoreFactory for Sqlite {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        let options = SqliteOptions {
            keys_max: keys_max as u64,
            ..SqliteOptions::default()
        };
        let (store, dir) = Self::open(clock, options);
        Made {
            store,
            keep: Box::new(dir),
        }
    }
}

impl DocumentStoreFactory for Sqlite {
    fn make_documents(&self, clock: Arc<ManualClock>) -> MadeDocuments {
        let (store, dir) = Self::open(clock, SqliteOptions::default());
        MadeDocuments {
            store,
            keep: Box::new(dir),
        }
    }
}

mod memory {
    use super::*;
    for_each_store_check!(tests_of_checks, conformance, Memory);
}

mod sqlite {
    use super::*;
    for_each_store_check!(tests_of_checks, conformance, Sqlite);
}

mod memory_documents {
    use super::*;
    for_each_document_check!(tests_of_checks, documents, Memory);
}

mod sqlite_documents {
    use super::*;
    for_each_document_check!(tests_of_checks, documents, Sqlite);
}
