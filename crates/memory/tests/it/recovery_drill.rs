//! The recovery drill at full size, for the embedded store.

use std::sync::Arc;

use holdfast_memory::conformance::drill::{DRILL_RECORDS, export_delete_import_is_identical};
use holdfast_memory::{SqliteMemory, SqliteMemoryOptions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_delete_import_is_identical_at_100_000_records() {
    let dir = tempfile::tempdir().unwrap();
    export_delete_import_is_identical(dir.path(), DRILL_RECORDS, |dir| {
        Arc::new(SqliteMemory::new(dir, SqliteMemoryOptions::default()))
    })
    .await;
}
