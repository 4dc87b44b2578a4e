//! What only a database in a file can get wrong.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use holdfast_contract::{
    MemoryError, MemoryQuery, MemoryRead, MemoryStore, MemoryType, MemoryWrite, NewMemory, Trust,
};

use super::*;
use crate::conformance::Meaning;
use crate::memory::Memory;

fn open(dir: &Path) -> Memory {
    open_with(dir, SqliteMemoryOptions::default())
}

/// As another process would: with connections and a cache of its own.
fn open_with(dir: &Path, options: SqliteMemoryOptions) -> Memory {
    Memory::new(Arc::new(SqliteMemory::new(dir, options))).with_embedder(Meaning::new("meaning-1"))
}

fn new(content: &str) -> NewMemory {
    NewMemory {
        memory_type: MemoryType::Fact,
        content: content.to_owned(),
        metadata: None,
        session_id: "s".to_owned(),
        trust: Trust::User,
    }
}

async fn found(memory: &Memory, query: &str) -> Vec<String> {
    let found = memory.search(&MemoryQuery::new(query)).await.unwrap();
    let mut contents: Vec<String> = found
        .hits
        .into_iter()
        .map(|hit| hit.record.content)
        .collect();
    contents.sort_unstable();
    contents
}

#[track_caller]
fn unavailable<T: std::fmt::Debug>(result: Result<T, MemoryError>, says: &str) {
    match result {
        Err(MemoryError::Unavailable(message)) => {
            assert!(message.contains(says), "not {says:?}: {message}");
        }
        other => panic!("not unavailable: {other:?}"),
    }
}

#[tokio::test]
async fn nothing_is_created_before_it_is_needed() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let memory = open(&state);
    assert!(!state.exists());
    memory.remember(new("one")).await.unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&state), 0o700);
    for file in fs::read_dir(&state).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[tokio::test]
async fn a_file_that_others_may_read_is_closed_to_them() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).remember(new("one")).await.unwrap();
    let file = dir.path().join(MEMORY_FILE);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(open(dir.path()).count(None).await.unwrap(), 1);
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[tokio::test]
async fn another_process_s_writes_are_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()), open(dir.path()));
    one.remember(new("The kitten sleeps.")).await.unwrap();
    // Both have their vectors in memory from here on.
    assert_eq!(found(&one, "feline").await, ["The kitten sleeps."]);
    assert_eq!(found(&two, "feline").await, ["The kitten sleeps."]);
    let stored = two.remember(new("A cat hunts.")).await.unwrap();
    assert_eq!(
        found(&one, "feline").await,
        ["A cat hunts.", "The kitten sleeps."]
    );
    one.delete(&stored.id).await.unwrap();
    assert_eq!(found(&two, "feline").await, ["The kitten sleeps."]);
    // Deleted and stored again between two looks of the other.
    for _ in 0..3 {
        let again = two.remember(new("A cat hunts.")).await.unwrap();
        two.delete(&again.id).await.unwrap();
    }
    two.remember(new("Felines rest.")).await.unwrap();
    assert_eq!(
        found(&one, "cat").await,
        ["Felines rest.", "The kitten sleeps."]
    );
}

#[tokio::test]
async fn a_cache_that_missed_too_much_is_read_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (open(dir.path()), open(dir.path()));
    let gone = one.remember(new("The kitten sleeps.")).await.unwrap();
    one.remember(new("A cat hunts.")).await.unwrap();
    assert_eq!(found(&two, "feline").await.len(), 2);
    one.delete(&gone.id).await.unwrap();
    // As if so many others had been removed since that this one is no longer in the list.
    let conn = Connection::open(dir.path().join(MEMORY_FILE)).unwrap();
    conn.execute_batch(
        "DELETE FROM vectors_removed;
         UPDATE sqlite_sequence SET seq = 50000 WHERE name = 'vectors_removed';
         INSERT INTO vectors_removed (vector_id) VALUES (999);",
    )
    .unwrap();
    assert_eq!(found(&two, "feline").await, ["A cat hunts."]);
}

#[tokio::test]
async fn the_list_of_removed_vectors_is_bounded() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    let first = memory.remember(new("A cat.")).await.unwrap();
    let conn = Connection::open(dir.path().join(MEMORY_FILE)).unwrap();
    conn.execute_batch(&format!(
        "INSERT INTO vectors_removed (n, vector_id) VALUES (1, 900), ({REMOVED_VECTORS_MAX}, 901);"
    ))
    .unwrap();
    memory.delete(&first.id).await.unwrap();
    let oldest: i64 = conn
        .query_row("SELECT min(n) FROM vectors_removed", [], |row| row.get(0))
        .unwrap();
    assert_eq!(oldest, REMOVED_VECTORS_MAX);
}

#[tokio::test]
async fn what_is_no_database_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(MEMORY_FILE);
    let content = "not a database at all, but somebody's notes ".repeat(100);
    fs::write(&file, &content).unwrap();
    let memory = open(dir.path());
    unavailable(memory.remember(new("one")).await, "is not a database");
    unavailable(
        memory.search(&MemoryQuery::new("one")).await,
        "is not a database",
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), content);
}

#[tokio::test]
async fn a_damaged_database_says_so_and_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(MEMORY_FILE);
    {
        let memory = open(dir.path());
        for number in 0..300 {
            memory
                .remember(new(&format!("Number {number} about a cat.")))
                .await
                .unwrap();
        }
    }
    // Connections are closed when their memory is dropped, so the log is in the file.
    let mut bytes = fs::read(&file).unwrap();
    let half = bytes.len() / 2;
    bytes[4096..half].fill(0xAB);
    fs::write(&file, &bytes).unwrap();
    let memory = open(dir.path());
    let failed = memory.search(&MemoryQuery::new("cat")).await;
    unavailable(failed, "damaged");
    assert!(memory.remember(new("another")).await.is_err());
    let after = fs::read(&file).unwrap();
    assert_eq!(after[4096..half], bytes[4096..half]);
}

#[tokio::test]
async fn another_program_s_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join(MEMORY_FILE);
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("CREATE TABLE contacts (name)").unwrap();
    drop(conn);
    unavailable(open(dir.path()).count(None).await, "another program");
}

#[tokio::test]
async fn a_newer_memory_is_refused_with_what_to_do() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).remember(new("one")).await.unwrap();
    let conn = Connection::open(dir.path().join(MEMORY_FILE)).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    drop(conn);
    unavailable(open(dir.path()).count(None).await, "newer Holdfast");
}

#[tokio::test]
async fn a_full_database_refuses_and_keeps_what_it_has() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteMemoryOptions {
        pages_max: Some(60),
        ..SqliteMemoryOptions::default()
    };
    let memory = open_with(dir.path(), options);
    let mut kept = 0;
    let full = loop {
        let content = format!("{kept} {}", "many words about a cat ".repeat(100));
        match memory.remember(new(&content)).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 1000, "it never fills up");
    };
    assert!(matches!(&full, MemoryError::Full(_)), "{full:?}");
    // What was told to be in is in, and what was refused is not.
    assert_eq!(open(dir.path()).count(None).await.unwrap(), kept);
    assert!(!found(&open(dir.path()), "cat").await.is_empty());
}

#[tokio::test]
async fn there_is_a_most_of_records() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteMemoryOptions {
        records_max: 2,
        ..SqliteMemoryOptions::default()
    };
    let memory = open_with(dir.path(), options);
    memory.remember(new("one")).await.unwrap();
    memory.remember(new("two")).await.unwrap();
    let refused = memory.remember(new("three")).await;
    assert!(matches!(refused, Err(MemoryError::Full(_))), "{refused:?}");
    // What is known already needs no room.
    assert!(!memory.remember(new("one")).await.unwrap().is_new);
    let page = MemoryPage {
        limit: 9,
        ..Default::default()
    };
    let mut more = memory.list(&page).await.unwrap();
    more[0].id = "other".to_owned();
    let refused = memory.insert(more).await;
    assert!(matches!(refused, Err(MemoryError::Full(_))), "{refused:?}");
    assert_eq!(memory.count(None).await.unwrap(), 2);
}

#[tokio::test]
async fn a_directory_that_can_not_be_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    unavailable(
        open(&file.join("state")).count(None).await,
        "could not create",
    );
    // A directory where the database should be.
    fs::create_dir(dir.path().join(MEMORY_FILE)).unwrap();
    unavailable(open(dir.path()).count(None).await, "can not be opened");
}

#[tokio::test]
async fn a_database_that_is_moved_away_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let memory = open(dir.path());
    memory.remember(new("one")).await.unwrap();
    let file = dir.path().join(MEMORY_FILE);
    fs::rename(&file, dir.path().join("elsewhere.db")).unwrap();
    open(dir.path()).remember(new("two")).await.unwrap();
    unavailable(memory.count(None).await, "was replaced");
    unavailable(memory.remember(new("three")).await, "was replaced");
}

#[tokio::test]
async fn a_held_database_is_waited_for_and_then_named() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteMemoryOptions {
        busy_wait_ms: 20,
        ..SqliteMemoryOptions::default()
    };
    let memory = open_with(dir.path(), options);
    memory.remember(new("A cat.")).await.unwrap();
    let conn = Connection::open(dir.path().join(MEMORY_FILE)).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    unavailable(memory.remember(new("two")).await, "held by another process");
    // A search never waits for a writer.
    assert_eq!(found(&memory, "feline").await, ["A cat."]);
    conn.execute_batch("ROLLBACK").unwrap();
    assert!(memory.remember(new("two")).await.unwrap().is_new);
}
