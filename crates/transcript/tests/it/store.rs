//! `OpenClaw`'s database: read, repaired in one transaction, and left alone while a gateway has it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{Said, What, lines, made_up};
use holdfast_contract::redact::Redactor;
use holdfast_transcript::discover::{Candidate, Claim};
use holdfast_transcript::scan::{Action, Report, scan};
use holdfast_transcript::store::Store;
use holdfast_transcript::{Fault, Format, Strategy};
use rusqlite::{Connection, params};

/// The tables that a repair touches, as in version 23 of the schema.
const SCHEMA: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA user_version = 23;
    CREATE TABLE session_windows (session_id TEXT NOT NULL PRIMARY KEY, session_key TEXT NOT NULL,
      transcript_updated_at INTEGER DEFAULT NULL) STRICT;
    CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,
      event_zstd BLOB, event_utf8_bytes INTEGER, created_at INTEGER NOT NULL,
      PRIMARY KEY (session_id, seq),
      FOREIGN KEY (session_id) REFERENCES session_windows(session_id) ON DELETE CASCADE) STRICT;
    CREATE TABLE transcript_event_identities (session_id TEXT NOT NULL, event_id TEXT NOT NULL,
      seq INTEGER NOT NULL, event_type TEXT, parent_id TEXT, message_idempotency_key TEXT,
      created_at INTEGER NOT NULL, PRIMARY KEY (session_id, event_id),
      FOREIGN KEY (session_id, seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE) STRICT;
    CREATE TABLE session_transcript_active_events (session_id TEXT NOT NULL, active_position INTEGER NOT NULL,
      event_seq INTEGER NOT NULL, PRIMARY KEY (session_id, active_position),
      FOREIGN KEY (session_id, event_seq) REFERENCES transcript_events(session_id, seq) ON DELETE CASCADE) STRICT;
    CREATE TABLE session_transcript_index_state (session_id TEXT NOT NULL PRIMARY KEY,
      indexed_seq INTEGER NOT NULL, needs_rebuild INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL) STRICT;
    CREATE TABLE transcript_rewrite_watermarks (session_id TEXT NOT NULL PRIMARY KEY,
      generation TEXT NOT NULL, updated_at INTEGER NOT NULL) STRICT;";

/// A store with a whole session and a broken one, every third row compressed.
fn store(dir: &Path) -> PathBuf {
    let path = dir.join("openclaw-agent.sqlite");
    let connection = Connection::open(&path).expect("opens");
    connection.execute_batch(SCHEMA).expect("makes the tables");
    let mut broken = made_up().remove(4);
    let ghost = What::Result {
        call: "ghost".to_owned(),
        text: "boo".to_owned(),
    };
    broken.insert(
        6,
        Said {
            id: "ghost".to_owned(),
            ..Said::new(0, ghost)
        },
    );
    broken.remove(2);
    for (session, said) in [("whole", made_up().remove(1)), ("broken", broken)] {
        let window = "INSERT INTO session_windows (session_id, session_key) VALUES (?1, 'agent:main:' || ?1)";
        connection.execute(window, [session]).expect("inserts");
        let state = "INSERT INTO session_transcript_index_state VALUES (?1, 99, 0, 1)";
        connection.execute(state, [session]).expect("inserts");
        let mark = "INSERT INTO transcript_rewrite_watermarks VALUES (?1, 'first', 1)";
        connection.execute(mark, [session]).expect("inserts");
        for (seq, (id, line)) in (0_i64..).zip(lines(Format::OpenClaw, &said)) {
            let packed =
                (seq % 3 == 2).then(|| zstd::encode_all(line.as_bytes(), 3).expect("packs"));
            let plain = packed.is_none().then_some(&line);
            let row = "INSERT INTO transcript_events VALUES (?1, ?2, ?3, ?4, ?5, 7)";
            let size = packed
                .as_ref()
                .map(|_| i64::try_from(line.len()).expect("fits"));
            connection
                .execute(row, params![session, seq, plain, packed, size])
                .expect("inserts");
            let identity = "INSERT INTO transcript_event_identities VALUES (?1, ?2, ?3, 'message', NULL, NULL, 7)";
            connection
                .execute(identity, params![session, id, seq])
                .expect("inserts");
            let active = "INSERT INTO session_transcript_active_events VALUES (?1, ?2, ?2)";
            connection
                .execute(active, params![session, seq])
                .expect("inserts");
        }
    }
    path
}

fn look(path: &Path, action: Action) -> Report {
    let candidate = Candidate {
        path: path.to_owned(),
        claim: Claim::Named,
    };
    scan(&candidate, action, 1_794_726_402_038, &Redactor::default())
}

fn faults(path: &Path) -> Vec<(String, Fault)> {
    let report = look(path, Action::Report);
    assert_eq!((report.sessions, report.error), (2, None));
    let session = |file: &str| file.rsplit_once('#').expect("a session").1.to_owned();
    report
        .findings
        .iter()
        .map(|found| (session(&found.file), found.fault))
        .collect()
}

#[test]
fn a_store_is_repaired_in_place_and_openclaw_is_told_to_rebuild() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = store(dir.path());
    let expected = [Fault::MissingToolResult, Fault::OrphanedToolResult]
        .map(|fault| ("broken".to_owned(), fault));
    assert_eq!(faults(&path), expected);
    let before = Store::open(&path)
        .expect("opens")
        .session("whole")
        .expect("reads");
    let report = look(&path, Action::Repair(Strategy::Reconstruct));
    assert_eq!(
        (report.repaired, &report.error, &report.left_alone),
        (2, &None, &None)
    );
    assert_eq!(faults(&path), []);
    assert_eq!(faults(&report.backup.expect("a backup")), expected);
    let opened = Store::open(&path).expect("opens");
    let after = opened.session("whole").expect("reads");
    assert_eq!(before.text(2), after.text(2));
    assert_eq!(after.key.as_deref(), Some("agent:main:whole"));

    let connection = Connection::open(&path).expect("opens");
    let one = |sql: &str| {
        connection
            .query_row(sql, [], |row| row.get::<_, i64>(0))
            .expect(sql)
    };
    assert_eq!(one("SELECT count(*) FROM pragma_foreign_key_check"), 0);
    assert_eq!(
        one("SELECT count(*) FROM transcript_events WHERE seq < 0"),
        0
    );
    assert_eq!(
        one("SELECT needs_rebuild FROM session_transcript_index_state WHERE session_id = 'broken'"),
        1
    );
    assert_eq!(
        one("SELECT needs_rebuild FROM session_transcript_index_state WHERE session_id = 'whole'"),
        0
    );
    assert_eq!(
        one("SELECT count(*) FROM transcript_rewrite_watermarks WHERE generation = 'first'"),
        1
    );
    // Every event has its identity, with the number of its row.
    let pairs = "SELECT count(*) FROM transcript_event_identities i JOIN transcript_events e USING (session_id, seq)";
    assert_eq!(one(pairs), one("SELECT count(*) FROM transcript_events"));
    assert_eq!(
        look(&path, Action::Repair(Strategy::Reconstruct)).findings,
        Vec::new()
    );
}

#[test]
fn a_store_in_use_is_left_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = store(dir.path());
    let bytes = fs::read(&path).expect("reads");
    let refused = || {
        let report = look(&path, Action::Repair(Strategy::Reconstruct));
        assert_eq!(report.repaired, 0);
        assert!(
            report
                .left_alone
                .is_some_and(|why| why.contains("has the store open"))
        );
        assert_eq!(fs::read(&path).expect("reads"), bytes);
    };
    // A connection of this process, which SQLite's own locks give away.
    let gateway = Connection::open(&path).expect("opens");
    let count = gateway.query_row("SELECT count(*) FROM transcript_events", [], |row| {
        row.get::<_, i64>(0)
    });
    assert!(count.is_ok());
    refused();
    drop(gateway);
    // Another process that only has the file open.
    let open = format!("exec 3<'{}'; echo ready; read wait", path.display());
    let mut other = Command::new("sh")
        .args(["-c", &open])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("starts");
    let mut ready = [0; 6];
    std::io::Read::read_exact(other.stdout.as_mut().expect("a pipe"), &mut ready)
        .expect("is ready");
    refused();
    drop(other.stdin.take());
    other.wait().expect("ends");
    assert_eq!(
        look(&path, Action::Repair(Strategy::Reconstruct)).repaired,
        2
    );
}

#[test]
fn rows_that_can_not_be_unpacked_are_set_aside() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = store(dir.path());
    let connection = Connection::open(&path).expect("opens");
    let spoil = "UPDATE transcript_events SET event_zstd = x'00010203' WHERE session_id = 'whole' AND event_zstd IS NOT NULL";
    assert!(connection.execute(spoil, []).expect("spoils") > 1);
    connection.close().expect("closes");
    assert!(faults(&path).contains(&("whole".to_owned(), Fault::InvalidLine)));
    let report = look(&path, Action::Repair(Strategy::Reconstruct));
    assert_eq!((report.error, report.left_alone), (None, None));
    assert_eq!(faults(&path), []);
}

#[test]
fn other_databases_are_no_transcripts() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("other.sqlite");
    Connection::open(&path)
        .expect("opens")
        .execute_batch("CREATE TABLE t (x)")
        .expect("makes a table");
    let error = look(&path, Action::Report).error.unwrap_or_default();
    assert!(error.contains("not a transcript"), "{error}");
}
