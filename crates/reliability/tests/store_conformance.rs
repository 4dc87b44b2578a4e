//! Every check of the conformance suite, for every store that lives in this crate.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can not be set up has failed"
)]

use std::sync::Arc;

use holdfast_reliability::for_each_store_check;
use holdfast_reliability::store::conformance::{self, Made, ManualClock, StoreFactory};
use holdfast_reliability::store::memory::{MemoryDedupeStore, MemoryLimits};
use holdfast_reliability::store::sqlite::{SqliteOptions, SqliteState};

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

struct Sqlite;

impl StoreFactory for Sqlite {
    fn make(&self, clock: Arc<ManualClock>, keys_max: usize) -> Made {
        let dir = tempfile::tempdir().unwrap();
        let options = SqliteOptions {
            keys_max: keys_max as u64,
            ..SqliteOptions::default()
        };
        let store = SqliteState::open(&dir.path().join("state"), clock, options).unwrap();
        Made {
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
                conformance::$check(&$factory).await;
            }
        )*
    };
}

mod memory {
    use super::*;
    for_each_store_check!(tests, Memory);
}

mod sqlite {
    use super::*;
    for_each_store_check!(tests, Sqlite);
}
