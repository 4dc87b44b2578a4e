//! The recovery drill for `LanceDB`. `HOLDFAST_DRILL_RECORDS` says how large; 5,000 without it.

use std::sync::Arc;

use holdfast_lancedb::LanceMemory;
use holdfast_memory::conformance::drill::export_delete_import_is_identical;

const RECORDS_DEFAULT: usize = 5_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn export_delete_import_is_identical_in_lancedb() {
    let asked = std::env::var("HOLDFAST_DRILL_RECORDS").ok();
    let records = asked.map_or(RECORDS_DEFAULT, |text| text.parse().expect("a number"));
    let dir = tempfile::tempdir().expect("a directory");
    export_delete_import_is_identical(dir.path(), records, |dir| {
        Arc::new(LanceMemory::new(dir, 1_000_000))
    })
    .await;
}
