//! Every check of the memory conformance suite, for `LanceDB`.

use std::sync::Arc;

use holdfast_lancedb::LanceMemory;
use holdfast_memory::conformance::{self, Made, MemoryFactory};
use holdfast_memory::for_each_memory_check;
use holdfast_testkit::tests_of_checks;

struct Lance;

#[async_trait::async_trait]
impl MemoryFactory for Lance {
    async fn make(&self) -> Made {
        let dir = tempfile::tempdir().expect("a directory");
        Made {
            backend: Arc::new(LanceMemory::new(&dir.path().join("state"), 1_000_000)),
            keep: Box::new(dir),
        }
    }
}

for_each_memory_check!(tests_of_checks, conformance, Lance);
