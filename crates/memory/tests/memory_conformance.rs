//! Every check of the conformance suite, for the embedded store.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can not be set up has failed"
)]

use std::sync::Arc;

use holdfast_memory::conformance::{self, Made, MemoryFactory};
use holdfast_memory::{SqliteMemory, SqliteMemoryOptions, for_each_memory_check};

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

macro_rules! tests {
    ([$factory:expr] $($check:ident)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $check() {
                conformance::$check(&$factory).await;
            }
        )*
    };
}

for_each_memory_check!(tests, Sqlite);
