//! The recovery drill for the embedded store. `HOLDFAST_DRILL_RECORDS` says how large; 5,000 without it.

use std::sync::Arc;

use holdfast_memory::conformance::drill::export_delete_import_is_identical;
use holdfast_memory::{SqliteMemory, SqliteMemoryOptions};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_delete_import_is_identical_at_scale() {
    let asked = std::env::var("HOLDFAST_DRILL_RECORDS").ok();
    let records = asked.map_or(5_000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    export_delete_import_is_identical(dir.path(), records, |dir| {
        Arc::new(SqliteMemory::new(dir, SqliteMemoryOptions::default()))
    })
    .await;
}
