//! Files that are missing, damaged, foreign, in the way, or out of room.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rusqlite::Connection;

use super::*;
use crate::idempotency::record::RecordState;
use crate::store::conformance::{done, key, last_word};
use crate::store::sqlite::DATABASE_FILE;
use crate::store::{ClearIf, Cleared};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The store can not be opened, says so with the path, and leaves the file as it is.
fn refused(dir: &Path) -> String {
    let db = dir.join(DATABASE_FILE);
    let before = fs::read(&db).ok();
    let error = open_with(
        dir,
        SqliteOptions {
            busy_wait_ms: 50,
            ..SqliteOptions::default()
        },
    )
    .err()
    .expect("it was opened");
    assert_eq!(fs::read(&db).ok(), before, "the file was changed");
    let StoreError::Unavailable(message) = error else {
        panic!("not unavailable: {error:?}");
    };
    assert!(
        message.contains(&*dir.to_string_lossy()),
        "no path in: {message}"
    );
    message
}

/// A directory with a closed store that holds `records` finished records.
async fn filled(records: u16) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for number in 0..records {
        let owner = format!("owner-{number}");
        granted(&store, number, &owner).await;
        let last_word = last_word(&wish(number, &owner), done());
        assert_eq!(store.finalise(last_word).await, Ok(Ok(())));
    }
    drop(store);
    let db = dir.path().join(DATABASE_FILE);
    (dir, db)
}

#[tokio::test]
async fn everything_is_for_its_owner_alone() {
    let parent = tempfile::tempdir().unwrap();
    let dir = parent.path().join("deep/state");
    let store = open(&dir);
    granted(&store, 1, "a").await;
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(&dir.join("locks")), 0o700);
    let lock = format!("locks/{}", lock_files(&dir)[0]);
    for file in ["holdfast.db", "holdfast.db-wal", "holdfast.db-shm", &lock] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn a_database_that_others_may_read_is_closed_to_them() {
    let (dir, db) = filled(1).await;
    fs::set_permissions(&db, fs::Permissions::from_mode(0o644)).unwrap();
    drop(open(dir.path()));
    assert_eq!(mode(&db), 0o600);
}

#[tokio::test]
async fn records_survive_a_restart_and_running_calls_are_lost() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    granted(&store, 1, "a").await;
    granted(&store, 2, "b").await;
    assert_eq!(
        store.finalise(last_word(&wish(1, "a"), done())).await,
        Ok(Ok(()))
    );
    let before = store.get(&key(1)).await.unwrap();
    drop(store);
    let store = open(dir.path());
    assert_eq!(store.get(&key(1)).await.unwrap(), before);
    // Nobody is left who could finish it.
    let Claim::Ended(record) = claim(&store, wish(2, "c")).await else {
        panic!("the holder's store is gone");
    };
    assert_eq!(record.state, RecordState::Unknown);
}

#[test]
fn something_that_is_no_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join(DATABASE_FILE), "dear diary, ".repeat(1_000)).unwrap();
    assert!(refused(dir.path()).contains("not a database"));
}

#[test]
fn another_programs_database_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let conn = Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE contacts (name)")
        .unwrap();
    drop(conn);
    assert!(refused(dir.path()).contains("another program"));
}

#[tokio::test]
async fn a_newer_schema_is_left_alone() {
    let (dir, db) = filled(1).await;
    let conn = Connection::open(&db).unwrap();
    conn.pragma_update(None, "user_version", 1_000).unwrap();
    drop(conn);
    let message = refused(dir.path());
    assert!(
        message.contains("newer Holdfast") && message.contains("1000"),
        "{message}"
    );
}

/// Opening may still work; whatever is asked then is an error or a true answer, never a grant of
/// what has already run.
async fn never_grants(dir: &Path, records: u16) -> usize {
    let store = match open_with(dir, SqliteOptions::default()) {
        Ok(store) => store,
        Err(StoreError::Unavailable(message)) => {
            assert!(message.contains(DATABASE_FILE), "{message}");
            return usize::from(records);
        }
        Err(other) => panic!("not unavailable: {other:?}"),
    };
    let mut errors = 0;
    for number in 0..records {
        match store.claim(&wish(number, &format!("again-{number}"))).await {
            Ok(Claim::Ended(record)) => assert_eq!(record.state, RecordState::Done),
            Ok(other) => panic!("{number} would run again: {other:?}"),
            Err(StoreError::Unavailable(message)) => {
                assert!(
                    message.contains(DATABASE_FILE) && message.contains("damaged"),
                    "{message}"
                );
                errors += 1;
            }
            Err(other) => panic!("not unavailable: {other:?}"),
        }
    }
    errors
}

#[tokio::test]
async fn a_damaged_database_grants_nothing() {
    let (dir, db) = filled(200).await;
    let mut bytes = fs::read(&db).unwrap();
    // Everything but the header and the schema.
    let from = bytes.len() / 4;
    for byte in &mut bytes[from..] {
        *byte = 0x5A;
    }
    fs::write(&db, &bytes).unwrap();
    assert!(
        never_grants(dir.path(), 200).await > 0,
        "the damage was not noticed"
    );
}

#[tokio::test]
async fn a_truncated_database_grants_nothing() {
    for part in [2, 3, 10] {
        let (dir, db) = filled(200).await;
        let length = fs::metadata(&db).unwrap().len();
        fs::OpenOptions::new()
            .write(true)
            .open(&db)
            .unwrap()
            .set_len(length / part)
            .unwrap();
        assert!(
            never_grants(dir.path(), 200).await > 0,
            "the damage was not noticed"
        );
    }
}

#[test]
fn what_stands_in_the_way_is_named() {
    // Permissions would not stop a test that runs as root, so these use what stops everybody.
    let dir = tempfile::tempdir().unwrap();
    let in_place_of_db = dir.path().join("a");
    fs::create_dir_all(in_place_of_db.join(DATABASE_FILE)).unwrap();
    refused(&in_place_of_db);

    let below_a_file = dir.path().join("b");
    fs::write(&below_a_file, "a file").unwrap();
    refused(&below_a_file.join("state"));

    let in_place_of_locks = dir.path().join("c");
    fs::create_dir(&in_place_of_locks).unwrap();
    fs::write(in_place_of_locks.join("locks"), "a file").unwrap();
    let error = open_with(&in_place_of_locks, SqliteOptions::default())
        .err()
        .unwrap();
    assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");

    refused(Path::new("/proc/holdfast-test"));
}

#[tokio::test]
async fn without_a_lock_nothing_is_granted() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    fs::remove_dir(dir.path().join("locks")).unwrap();
    let refused = store.claim(&wish(1, "a")).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    assert_eq!(store.get(&key(1)).await.unwrap(), None);
}

#[tokio::test]
async fn lock_files_are_used_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    for number in 0..20 {
        let owner = format!("owner-{number}");
        granted(&store, number, &owner).await;
        let last_word = last_word(&wish(number, &owner), done());
        assert_eq!(store.finalise(last_word).await, Ok(Ok(())));
    }
    assert_eq!(lock_files(dir.path()).len(), 1);
    // Somebody tidied up by hand: a lock that others can not find protects nothing.
    fs::remove_file(dir.path().join("locks").join(&lock_files(dir.path())[0])).unwrap();
    granted(&store, 20, "owner-20").await;
    let elsewhere = open(dir.path());
    assert!(matches!(
        claim(&elsewhere, wish(20, "other")).await,
        Claim::InFlight { .. }
    ));
}

#[tokio::test]
async fn a_child_of_an_ended_call_does_not_keep_the_next_one_alive() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    let Claim::Granted {
        lifeline: Some(lifeline),
    } = claim(&store, wish(1, "first")).await
    else {
        panic!("not granted with a lifeline");
    };
    // As a child would have it that outlives its call.
    let inherited = lifeline.lend().unwrap();
    assert_eq!(
        store.finalise(last_word(&wish(1, "first"), done())).await,
        Ok(Ok(()))
    );
    granted(&store, 2, "second").await;
    assert_eq!(lock_files(dir.path()).len(), 1, "the file was used again");
    drop(store);
    let store = open(dir.path());
    assert!(matches!(
        claim(&store, wish(2, "third")).await,
        Claim::Ended(_)
    ));
    drop(inherited);
}

/// Whoever has a lock can release it, so a child must not have the lock of its call.
#[tokio::test]
async fn a_child_that_lets_go_does_not_make_its_call_look_dead() {
    let dir = tempfile::tempdir().unwrap();
    let (store, elsewhere) = (open(dir.path()), open(dir.path()));
    let Claim::Granted {
        lifeline: Some(lifeline),
    } = claim(&store, wish(1, "holder")).await
    else {
        panic!("not granted with a lifeline");
    };
    for _ in 0..2 {
        let inherited = lifeline.lend().unwrap();
        inherited.unlock().unwrap();
        assert!(matches!(
            claim(&elsewhere, wish(1, "other")).await,
            Claim::InFlight { .. }
        ));
        // What it let go of is swept, and the next child of the same call has a lock again.
        assert_eq!(elsewhere.sweep().await, Ok(0));
        assert_eq!(lock_files(dir.path()).len(), 1);
    }
    let ended = last_word(&wish(1, "holder"), done());
    assert_eq!(store.finalise(ended).await, Ok(Ok(())));
    store.sweep().await.unwrap();
    assert!(lifeline.lend().is_err(), "a command would come too late");
}

#[tokio::test]
async fn a_spare_lock_protects_the_next_claim_also_when_its_file_is_gone() {
    let dir = tempfile::tempdir().unwrap();
    let (store, elsewhere) = (open(dir.path()), open(dir.path()));
    for (number, remove) in [(1, false), (2, false), (3, true), (4, false)] {
        let holder = wish(number, "holder");
        assert!(matches!(
            claim(&store, holder.clone()).await,
            Claim::Granted { .. }
        ));
        assert_eq!(lock_files(dir.path()).len(), 1, "one file does for all");
        // Asked by another process, as it were: the lock is held, whoever had it before.
        assert!(matches!(
            claim(&elsewhere, wish(number, "other")).await,
            Claim::InFlight { .. }
        ));
        let ended = store.finalise(last_word(&holder, done())).await;
        assert_eq!(ended, Ok(Ok(())));
        if remove {
            // By somebody who tidies up; the next claim must not rely on it.
            for file in lock_files(dir.path()) {
                fs::remove_file(dir.path().join("locks").join(file)).unwrap();
            }
        }
    }
    drop((store, elsewhere));
    assert_eq!(lock_files(dir.path()).len(), 0, "nothing is left behind");
}

#[tokio::test]
async fn a_database_that_is_moved_away_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    granted(&store, 1, "a").await;
    let db = dir.path().join(DATABASE_FILE);
    fs::rename(&db, dir.path().join("backup")).unwrap();
    let refused = store.claim(&wish(2, "b")).await;
    assert!(
        matches!(refused, Err(StoreError::Unavailable(_))),
        "{refused:?}"
    );
    fs::write(&db, "").unwrap();
    let Err(StoreError::Unavailable(message)) = store.claim(&wish(3, "c")).await else {
        panic!("two processes would protect the same effects in two files");
    };
    assert!(message.contains("replaced"), "{message}");
}

#[tokio::test]
async fn a_database_that_another_holds_is_waited_for_within_bounds() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        busy_wait_ms: 50,
        ..SqliteOptions::default()
    };
    let store = open_with(dir.path(), options).unwrap();
    let other = Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let Err(StoreError::Unavailable(message)) = store.claim(&wish(1, "a")).await else {
        panic!("it is held");
    };
    assert!(message.contains("another process"), "{message}");
    // Reading goes on.
    assert_eq!(store.get(&key(1)).await, Ok(None));
    other.execute_batch("ROLLBACK").unwrap();
    granted(&store, 1, "a").await;
}

/// Claims until there is no room.
async fn fill(store: &SqliteState) -> u16 {
    for number in 0..u16::MAX {
        match store.claim(&wish(number, &format!("owner-{number}"))).await {
            Ok(Claim::Granted { .. }) => {}
            Ok(other) => panic!("not granted: {other:?}"),
            Err(StoreError::Full(_)) => {
                assert_eq!(
                    store.get(&key(number)).await.unwrap(),
                    None,
                    "refused and yet stored"
                );
                return number;
            }
            Err(other) => panic!("not full: {other:?}"),
        }
    }
    panic!("it is never full");
}

#[tokio::test]
async fn a_database_that_can_not_grow_refuses_and_recovers() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        pages_max: Some(60),
        ..SqliteOptions::default()
    };
    let store = open_with(dir.path(), options).unwrap();
    let stored = fill(&store).await;
    assert!(stored > 10);
    assert_eq!(store.size().await.unwrap().records, u64::from(stored));
    for number in 0..stored / 2 {
        assert_eq!(
            store.clear(&key(number), ClearIf::There).await,
            Ok(Cleared::Forgotten)
        );
    }
    granted(&store, 60_000, "after").await;
}

#[tokio::test]
async fn a_byte_cap_evicts_and_refuses() {
    let dir = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        bytes_max: 20_000,
        ..SqliteOptions::default()
    };
    let store = open_with(dir.path(), options).unwrap();
    granted(&store, 0, "done").await;
    assert_eq!(
        store.finalise(last_word(&wish(0, "done"), done())).await,
        Ok(Ok(()))
    );
    for number in 1..1_000 {
        match store.claim(&wish(number, &format!("owner-{number}"))).await {
            Ok(Claim::Granted { .. }) => assert!(number < 100, "the cap is not kept"),
            Err(StoreError::Full(_)) => break,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        store.get(&key(0)).await.unwrap(),
        None,
        "what has ended goes first"
    );
}

#[tokio::test]
async fn files_of_dead_holders_are_swept_and_those_of_the_living_are_not() {
    let dir = tempfile::tempdir().unwrap();
    let store = open(dir.path());
    granted(&store, 1, "living").await;
    fs::write(dir.path().join("locks/dead"), "").unwrap();
    let elsewhere = open(dir.path());
    granted(&elsewhere, 2, "living-elsewhere").await;
    assert_eq!(store.sweep().await, Ok(0));
    let left = lock_files(dir.path());
    assert!(
        left.len() == 2 && !left.contains(&"dead".to_owned()),
        "{left:?}"
    );
}
