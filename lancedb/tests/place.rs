//! Readers and writers of several processes on one dataset. Each store here opens files of its own,
//! as a process would, and locks belong to open files.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use holdfast_contract::{MemoryRecord, MemoryType, Trust};
use holdfast_lancedb::{LanceMemory, MEMORY_DIR, MEMORY_LOCK_FILE};
use holdfast_memory::Backend as _;
use holdfast_memory::backend::{Put, RecallPlan};
use holdfast_memory::terms::terms;
use lancedb::Table;
use rustix::fs::{FlockOperation, flock};

const TABLE: &str = "records";
/// Commits of a busy writer that another may have to wait for: the one under way, and one that
/// begins while the other looks.
const COMMITS_WAITED_FOR_MAX: u64 = 4;

fn memory(dir: &Path) -> LanceMemory {
    LanceMemory::new(dir, 1_000_000)
}

fn record(id: &str) -> MemoryRecord {
    MemoryRecord {
        id: id.to_owned(),
        memory_type: MemoryType::Fact,
        content: format!("the harbour number {id}"),
        metadata: None,
        session_id: "s1".to_owned(),
        created_at_ms: 1_700_000_000_000,
        trust: Trust::User,
        embedding: None,
    }
}

async fn remember(memory: &LanceMemory, id: &str) {
    let put = memory.remember(record(id)).await.expect("remembered");
    assert!(matches!(put, Put::Added), "{id} was there");
}

async fn recalled(memory: &LanceMemory) -> usize {
    let plan = RecallPlan {
        text: "harbour".to_owned(),
        terms: terms("harbour"),
        vector: None,
        memory_type: None,
        limit: 10,
        depth: 10,
    };
    let found = memory.recall(plan).await.expect("recalled");
    found.hits.len()
}

async fn table(dir: &Path) -> Table {
    let uri = dir.join(MEMORY_DIR);
    let connection = lancedb::connect(&uri.to_string_lossy());
    let connection = connection.execute().await.expect("connects");
    connection.open_table(TABLE).execute().await.expect("opens")
}

async fn indexed_columns(dir: &Path) -> Vec<String> {
    let indices = table(dir).await.list_indices().await.expect("lists");
    let mut columns: Vec<String> = indices.into_iter().flat_map(|it| it.columns).collect();
    columns.sort();
    columns
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_need_no_lock() {
    let dir = tempfile::tempdir().expect("a directory");
    remember(&memory(dir.path()), "a").await;
    let busy = File::open(dir.path().join(MEMORY_LOCK_FILE)).expect("a lock file");
    flock(&busy, FlockOperation::LockExclusive).expect("nobody else writes");
    let reader = memory(dir.path());
    assert_eq!(reader.count(None).await.expect("counted"), 1);
    assert_eq!(recalled(&reader).await, 1);
    assert!(reader.get("a").await.expect("looked up").is_some());
    let mut snapshot = reader.snapshot().await.expect("a snapshot");
    let all = tokio::task::spawn_blocking(move || snapshot.next(10));
    assert_eq!(all.await.expect("no panic").expect("read").len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_only_reads_creates_nothing() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = dir.path().join("state");
    let reader = memory(&state);
    assert_eq!(reader.count(None).await.expect("counted"), 0);
    assert_eq!(recalled(&reader).await, 0);
    let mut snapshot = reader.snapshot().await.expect("a snapshot");
    let nothing = tokio::task::spawn_blocking(move || (snapshot.counts(), snapshot.next(10)));
    let (counts, records) = nothing.await.expect("no panic");
    assert!(counts.expect("counted").is_empty() && records.expect("read").is_empty());
    assert!(!state.exists());
    // And it sees what another writes first.
    remember(&memory(&state), "a").await;
    assert_eq!(recalled(&reader).await, 1);
}

/// A table as a process leaves it that dies between its creation and its indices, with the given
/// records in it.
async fn without_indices(dir: &Path, ids: &[&str]) {
    let first = memory(dir);
    remember(&first, "first").await;
    for id in ids {
        remember(&first, id).await;
    }
    first.delete("first").await.expect("deleted");
    let table = table(dir).await;
    for index in table.list_indices().await.expect("lists") {
        table.drop_index(&index.name).await.expect("dropped");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_was_left_without_indices_gets_them() {
    for ids in [&[][..], &["a"]] {
        let dir = tempfile::tempdir().expect("a directory");
        without_indices(dir.path(), ids).await;
        let reader = memory(dir.path());
        assert_eq!(recalled(&reader).await, ids.len());
        remember(&memory(dir.path()), "b").await;
        let columns = indexed_columns(dir.path()).await;
        assert_eq!(columns, ["fingerprint", "id", "words"]);
        assert_eq!(recalled(&reader).await, ids.len() + 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_table_that_was_hardly_begun_is_created() {
    let dir = tempfile::tempdir().expect("a directory");
    let begun = dir.path().join(MEMORY_DIR).join(format!("{TABLE}.lance"));
    std::fs::create_dir_all(begun.join("_transactions")).expect("a directory");
    std::fs::write(begun.join("_transactions/0-begun.txn"), "").expect("a file");
    let reader = memory(dir.path());
    assert_eq!(recalled(&reader).await, 0);
    remember(&memory(dir.path()), "a").await;
    assert_eq!(recalled(&reader).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_writer_does_not_keep_others_out() {
    let dir = tempfile::tempdir().expect("a directory");
    let (busy, other) = (memory(dir.path()), memory(dir.path()));
    let (commits, ended) = (
        Arc::new(AtomicU64::new(0)),
        Arc::new(AtomicBool::new(false)),
    );
    remember(&other, "other").await;
    let writer = tokio::spawn({
        let (commits, ended) = (commits.clone(), ended.clone());
        async move {
            while !ended.load(Ordering::SeqCst) {
                let number = commits.load(Ordering::SeqCst);
                remember(&busy, &format!("busy-{number}")).await;
                commits.fetch_add(1, Ordering::SeqCst);
            }
        }
    });
    let mut waited_for = Vec::new();
    for turn in 0..5 {
        let before = commits.load(Ordering::SeqCst);
        while commits.load(Ordering::SeqCst) == before {
            tokio::task::yield_now().await;
        }
        let before = commits.load(Ordering::SeqCst);
        remember(&other, &format!("other-{turn}")).await;
        waited_for.push(commits.load(Ordering::SeqCst) - before);
    }
    ended.store(true, Ordering::SeqCst);
    writer.await.expect("no panic");
    assert!(
        waited_for.iter().all(|it| *it <= COMMITS_WAITED_FOR_MAX),
        "commits waited for: {waited_for:?}"
    );
}
