//! The databases of other agents than `OpenClaw`: Crush's is repaired, Goose's is read, others are named.

use std::fs;
use std::path::Path;

use crate::agents::goose;
use holdfast_contract::redact::Redactor;
use holdfast_transcript::discover::{Candidate, Claim};
use holdfast_transcript::scan::{Action, scan};
use holdfast_transcript::{Fault, Strategy, history};
use serde_json::{Value, json};

#[test]
fn the_database_of_goose_is_read_and_not_written() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("sessions.db");
    let database = rusqlite::Connection::open(&path).expect("opens");
    let table = "CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, \
         role TEXT NOT NULL, content_json TEXT NOT NULL, created_timestamp INTEGER NOT NULL, \
         timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP, tokens INTEGER, metadata_json TEXT)";
    database.execute_batch(table).expect("creates");
    let row = "INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) VALUES (?1, ?2, ?3, ?4, ?5)";
    for (session, results) in [("20251113_1", ["c1", "c2"]), ("20251113_2", ["c1", "c9"])] {
        for said in &goose(&results)[1..] {
            let values = rusqlite::params![
                session,
                said["role"].as_str(),
                said["content"].to_string(),
                1_763_000_000,
                "{}"
            ];
            database.execute(row, values).expect("inserts");
        }
    }
    drop(database);
    let before = fs::read(&path).expect("reads");
    let claim = Claim::Maybe;
    let candidate = Candidate {
        path: path.clone(),
        claim,
    };
    let repair = Action::Repair(Strategy::Reconstruct);
    let report = scan(&candidate, repair, 0, &Redactor::default());
    assert_eq!(report.error, None);
    assert_eq!((report.sessions, report.repaired), (2, 0));
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|it| (it.fault, it.id.as_deref()))
        .collect();
    let expected = [
        (Fault::MissingToolResult, Some("c2")),
        (Fault::OrphanedToolResult, Some("c9")),
    ];
    assert_eq!(found, expected);
    assert!(
        report.findings[0].file.ends_with("sessions.db#20251113_2"),
        "{:?}",
        report.findings
    );
    let why = report.left_alone.unwrap_or_default();
    assert!(why.contains("does not write Goose's database"), "{why}");
    assert_eq!(fs::read(&path).expect("reads"), before);
    let mut calls = 0;
    let mut count = |found: history::Found| calls += found.session.calls().count();
    history::each(&candidate, &mut count).expect("reads");
    assert_eq!(calls, 4);
}

/// Crush's tables, as far as they matter here.
const CRUSH: &str = "
    CREATE TABLE sessions (id TEXT PRIMARY KEY, message_count INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE messages (
        id TEXT PRIMARY KEY, session_id TEXT NOT NULL, role TEXT NOT NULL, parts TEXT NOT NULL default '[]',
        model TEXT, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, finished_at INTEGER, provider TEXT,
        FOREIGN KEY (session_id) REFERENCES sessions (id) ON DELETE CASCADE
    );
    CREATE TRIGGER update_messages_updated_at AFTER UPDATE ON messages BEGIN
        UPDATE messages SET updated_at = strftime('%s', 'now') WHERE id = new.id;
    END;
    CREATE TRIGGER update_session_message_count_on_insert AFTER INSERT ON messages BEGIN
        UPDATE sessions SET message_count = message_count + 1 WHERE id = new.session_id;
    END;
    CREATE TRIGGER update_session_message_count_on_delete AFTER DELETE ON messages BEGIN
        UPDATE sessions SET message_count = message_count - 1 WHERE id = old.session_id;
    END;";

/// One message of Crush's: its id, its second, and what is in it.
type CrushRow = (&'static str, i64, &'static str, Value);

fn part(kind: &str, data: &Value) -> Value {
    json!({"type": kind, "data": data})
}

fn crush_said(id: &'static str, at: i64, role: &'static str) -> CrushRow {
    (
        id,
        at,
        role,
        json!([
            part("text", &json!({"text": "so"})),
            part("finish", &json!({"reason": "stop", "time": 0}))
        ]),
    )
}

fn crush_calls(id: &'static str, at: i64, calls: &[&str]) -> CrushRow {
    let calls = calls.iter().map(|call| {
        part("tool_call", &json!({"id": call, "name": "view", "input": "{\"file_path\":\"a\"}", "type": "function", "finished": true}))
    });
    (id, at, "assistant", calls.collect())
}

fn crush_results(id: &'static str, at: i64, calls: &[&str]) -> CrushRow {
    let results = calls.iter().map(|call| {
        part("tool_result", &json!({"tool_call_id": call, "name": "", "content": format!("real {call}"), "metadata": "", "is_error": false}))
    });
    let finish = part("finish", &json!({"reason": "stop", "time": 0}));
    (id, at, "tool", results.chain([finish]).collect())
}

fn crush_database(path: &Path, rows: &[CrushRow]) {
    let database = rusqlite::Connection::open(path).expect("opens");
    database.execute_batch(CRUSH).expect("creates");
    database
        .execute("INSERT INTO sessions (id) VALUES ('s1'), ('s2')", [])
        .expect("inserts");
    let sql = "INSERT INTO messages (id, session_id, role, parts, created_at, updated_at) VALUES (?1, ?2, ?3, ?4, ?5, ?5)";
    // Another session's messages stand between them.
    for (number, (id, at, role, parts)) in rows.iter().enumerate() {
        let values = rusqlite::params![id, "s1", role, parts.to_string(), at];
        database.execute(sql, values).expect("inserts");
        let other = crush_said("", *at, "user").3.to_string();
        let values = rusqlite::params![format!("other-{number}"), "s2", "user", other, at];
        database.execute(sql, values).expect("inserts");
    }
}

/// The messages of the first session as Crush reads them: ids and parts.
fn crush_messages(path: &Path) -> Vec<(String, String)> {
    let database = rusqlite::Connection::open(path).expect("opens");
    let sql = "SELECT id, parts FROM messages WHERE session_id = 's1' ORDER BY created_at ASC";
    let mut statement = database.prepare(sql).expect("prepares");
    let rows = statement
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .expect("reads");
    rows.map(|row| row.expect("a row")).collect()
}

#[test]
fn the_database_of_crush_is_read_and_repaired_in_place() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("crush.db");
    // All in one second, where only the order of the rows says what came first.
    let rows = [
        crush_said("m1", 7, "user"),
        crush_calls("m2", 7, &["c1", "c2"]),
        crush_results("m3", 7, &["c2", "c9"]),
        crush_calls("m4", 7, &["c3"]),
        crush_said("m5", 7, "user"),
        crush_results("m6", 7, &["c3"]),
        crush_results("m7", 8, &["c3"]),
        crush_calls("m8", 9, &["c4"]),
        crush_results("m9", 9, &["c4", "c4"]),
        crush_said("m10", 9, "assistant"),
    ];
    crush_database(&path, &rows);
    let candidate = Candidate {
        path: path.clone(),
        claim: Claim::Maybe,
    };
    let run = |action| scan(&candidate, action, 1_763_000_000_000, &Redactor::default());
    let report = run(Action::Report);
    assert_eq!((report.sessions, report.error), (2, None));
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|it| (it.fault, it.id.as_deref().unwrap_or_default()))
        .collect();
    let expected = [
        (Fault::MissingToolResult, "c1"),
        (Fault::OrphanedToolResult, "c9"),
        (Fault::MisplacedToolResult, "c3"),
        (Fault::DuplicateToolResult, "c3"),
        (Fault::DuplicateToolResult, "c4"),
    ];
    assert_eq!(found, expected);
    // Removing loses nothing: the orphan goes, and the copy of a result that is in its place.
    let report = run(Action::Repair(Strategy::RemoveOrphans));
    assert_eq!(
        (report.repaired, report.error, report.left_alone),
        (2, None, None)
    );
    let ids: Vec<String> = crush_messages(&path).into_iter().map(|it| it.0).collect();
    let kept = ["m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9", "m10"];
    assert_eq!(ids, kept);
    let report = run(Action::Repair(Strategy::Reconstruct));
    assert_eq!(
        (report.repaired, report.left.len(), report.error),
        (3, 0, None)
    );
    let after = crush_messages(&path);
    let ids: Vec<&str> = after.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(ids.len(), 10);
    assert_eq!(
        (&ids[..2], &ids[3..]),
        (
            &["m1", "m2"][..],
            &["m3", "m4", "m6", "m5", "m8", "m9", "m10"][..]
        )
    );
    let made: Value = serde_json::from_str(&after[2].1).expect("JSON");
    assert_eq!(made[0]["data"]["tool_call_id"], "c1");
    assert_eq!(made[0]["data"]["is_error"], true);
    for (id, _, _, parts) in [&rows[0], &rows[1], &rows[3], &rows[4], &rows[5], &rows[7]] {
        let kept = after.iter().find(|it| it.0 == *id).expect("is kept");
        assert_eq!(kept.1, parts.to_string(), "{id}: its bytes stay");
    }
    // Once more changes nothing, and the counts and the other session are as they were.
    let before = fs::read(&path).expect("reads");
    assert_eq!(run(Action::Repair(Strategy::Reconstruct)).findings, []);
    assert_eq!(fs::read(&path).expect("reads"), before);
    let database = rusqlite::Connection::open(&path).expect("opens");
    let sql = "SELECT message_count FROM sessions ORDER BY id";
    let mut statement = database.prepare(sql).expect("prepares");
    let counts = statement
        .query_map([], |row| row.get::<_, i64>(0))
        .expect("reads");
    assert_eq!(
        counts.map(|it| it.expect("a count")).collect::<Vec<_>>(),
        [10, 10]
    );
    let mut calls = Vec::new();
    let mut take = |found: history::Found| {
        let all = found
            .session
            .calls()
            .map(|(_, call)| (call.tool.clone(), call.result.is_some()));
        calls.extend(all);
    };
    history::each(&candidate, &mut take).expect("reads");
    assert_eq!(calls, vec![("view".to_owned(), true); 4]);
}

#[test]
fn databases_of_other_agents_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases = [
        ("CREATE TABLE part (id, message_id, data)", "OpenCode"),
        ("CREATE TABLE cursorDiskKV (key, value)", "Cursor"),
    ];
    for (number, (sql, name)) in cases.into_iter().enumerate() {
        let path = dir.path().join(format!("{number}.sqlite"));
        let database = rusqlite::Connection::open(&path).expect("opens");
        database.execute_batch(sql).expect("creates");
        drop(database);
        let claim = Claim::Maybe;
        let report = scan(
            &Candidate { path, claim },
            Action::Report,
            0,
            &Redactor::default(),
        );
        let error = report.error.unwrap_or_default();
        assert!(
            error.contains("is not understood") && error.contains(name),
            "{error}"
        );
    }
}
