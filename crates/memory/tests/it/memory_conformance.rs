//! Every check of the conformance suite, for the embedded store.

use std::sync::Arc;

use holdfast_memory::conformance::{self, Made, MemoryFactory};
use holdfast_memory::{SqliteMemory, SqliteMemoryOptions, for_each_memory_check};
use holdfast_testkit::tests_of_checks;

struct Sqlite;

#[async_trait::async_trait]
impl MemoryFactory for Sqlite {
    async fn make(&self) -> Made {
        let dir = tempfile::tempdir().unwrap();
        Made {
            backend: Arc::new(SqliteMemory::new(
                &dir.path().join("state"),
                SqliteMemoryOptions::default(),
            )),
            keep: Box::new(dir),
        }
    }
}

for_each_memory_check!(tests_of_checks, conformance, Sqlite);
