//! Damage that must not become a loss: what can not be read is kept, and what is not ours is left.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use holdfast_contract::redact::Redactor;
use holdfast_transcript::checkpoint::{
    CheckpointError, Operation, archive_and_reset, checkpoint, checkpoints, roll_back,
};
use holdfast_transcript::discover::{Candidate, Claim};
use holdfast_transcript::scan::{Action, scan, scan_bytes};
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{Fault, Strategy};

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    u64::try_from(since.expect("after 1970").as_millis()).expect("fits")
}

/// Writes a file that nobody has written for a while.
fn quiet(dir: &Path, name: &str, content: &[u8]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, content).expect("writes");
    let file = fs::File::options().write(true).open(&path).expect("opens");
    file.set_modified(SystemTime::now() - Duration::from_mins(1))
        .expect("sets the time");
    path
}

fn names(dir: &Path) -> usize {
    fs::read_dir(dir).expect("lists").count()
}

#[test]
fn what_is_no_session_is_not_reset() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[u8]); 5] = [
        ("store.sqlite", b"SQLite format 3\0 and pages"),
        ("notes.txt", b"buy milk\nand bread\n"),
        (
            "package.json",
            b"{\n \"name\": \"x\",\n \"scripts\": {}\n}\n",
        ),
        ("setting.json", b"{\n \"role\": {\n  \"a\": 1\n }\n}\n"),
        ("image.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"),
    ];
    for (name, content) in cases {
        let path = quiet(dir.path(), name, content);
        let before = names(dir.path());
        let reset = archive_and_reset(&path, now_ms());
        assert!(
            matches!(reset, Err(CheckpointError::NotASession(_))),
            "{name}: {reset:?}"
        );
        assert_eq!(fs::read(&path).expect("reads"), content, "{name}");
        assert_eq!(names(dir.path()), before, "{name}");
    }
}

#[test]
fn what_is_left_of_a_session_is_reset() {
    let dir = tempfile::tempdir().expect("a directory");
    let cases: [(&str, &[u8]); 3] = [
        ("zeros.jsonl", &[0; 4096]),
        (
            "half.jsonl",
            b"{\"type\":\"message\",\"parentId\":\"a\",\"messa",
        ),
        ("torn.jsonl", b"\xffxx\"parentUuid\":null}\n\0\0\0\0"),
    ];
    for (name, content) in cases {
        let path = quiet(dir.path(), name, content);
        let archive = archive_and_reset(&path, now_ms()).expect(name);
        assert_eq!(fs::read(archive).expect("reads"), content, "{name}");
        assert_eq!(fs::read(&path).expect("reads"), b"", "{name}");
    }
}

fn message(number: usize) -> String {
    let content =
        format!(r#"[{{"type":"text","text":"a]}},{{{number}"}},{{"type":"text","text":"b"}}]"#);
    let role = if number.is_multiple_of(2) {
        "user"
    } else {
        "assistant"
    };
    format!(r#"{{"role":"{role}","content":{content}}}"#)
}

/// A list of messages with these in it, on its own and in a request.
fn documents(items: &[String], separator: &str) -> [String; 3] {
    let list = items.join(separator);
    [
        format!("[{list}]"),
        format!(r#"{{"model":"m","messages":[{list}],"tools":[{{"name":"x"}}],"stream":true}}"#),
        format!("{{\n\"messages\": [\n{list}\n]\n}}\n"),
    ]
}

/// Ways to break one message.
const BREAKS: [fn(&str) -> String; 7] = [
    |item| item.replacen(':', " ", 1),
    |item| item.replacen('"', "", 1),
    |item| item.replacen("\"type\"", "type", 1),
    |item| item.replacen('[', "", 1),
    |item| item.replacen('{', "", 1),
    |item| item[..item.len() - 1].to_owned(),
    |item| item.replacen("\"b\"", "tru", 1),
];

#[test]
fn a_bad_byte_in_a_document_costs_one_message() {
    let all: Vec<String> = (0..6).map(message).collect();
    for (at, (how, broken)) in
        (0..all.len()).flat_map(|at| (0..).zip(BREAKS).map(move |it| (at, it)))
    {
        let mut items = all.clone();
        items[at] = broken(&items[at]);
        let kept = [&all[..at], &all[at + 1..]].concat();
        for separator in [",", " ,\n  "] {
            let whole = documents(&kept, separator);
            for (document, whole) in documents(&items, separator).iter().zip(&whole) {
                for strategy in [Strategy::RemoveOrphans, Strategy::Reconstruct] {
                    let repaired = repair_bytes(document.as_bytes(), strategy)
                        .expect("a transcript")
                        .expect("broken");
                    let value = |text: &[u8]| -> serde_json::Value {
                        serde_json::from_slice(text).expect("JSON")
                    };
                    assert_eq!(
                        value(&repaired),
                        value(whole.as_bytes()),
                        "message {at}, broken in way {how}: {document}"
                    );
                }
            }
        }
    }
}

#[test]
fn commas_too_many_or_too_few_cost_nothing() {
    let all: Vec<String> = (0..4).map(message).collect();
    for (at, comma) in [(0, ""), (1, "\n"), (2, ",,"), (3, ",")] {
        let mut list = String::new();
        for (number, item) in all.iter().enumerate() {
            let usual = if number + 1 < all.len() { ", " } else { "" };
            list += item;
            list += if number == at { comma } else { usual };
        }
        let whole = documents(&all, ",");
        for (document, whole) in documents(&[list.clone()], "").iter().zip(&whole) {
            let repaired = repair_bytes(document.as_bytes(), Strategy::RemoveOrphans)
                .expect("a transcript")
                .expect("broken");
            let value =
                |text: &[u8]| -> serde_json::Value { serde_json::from_slice(text).expect("JSON") };
            assert_eq!(value(&repaired), value(whole.as_bytes()), "{document}");
        }
    }
}

#[test]
fn a_document_that_breaks_off_is_closed_by_every_strategy() {
    let all: Vec<String> = (0..4).map(message).collect();
    let [list, ..] = documents(&all, ",");
    for cut in [1, 5, 20, 60] {
        let text = &list[..list.len() - cut];
        for strategy in Strategy::ALL {
            let repaired = repair_bytes(text.as_bytes(), strategy)
                .expect("a transcript")
                .expect("broken");
            let value: serde_json::Value = serde_json::from_slice(&repaired).expect("JSON");
            let kept = value.as_array().map(Vec::len);
            assert_eq!(
                kept,
                Some(if cut == 1 { 4 } else { 3 }),
                "{cut} {strategy:?}"
            );
        }
    }
}

#[test]
fn a_document_is_not_repaired_by_guessing() {
    let dir = tempfile::tempdir().expect("a directory");
    let list = (0..4).map(message).collect::<Vec<_>>().join(",");
    let cases = [
        // Behind the list, where nothing can be set aside.
        format!(r#"{{"messages":[{list}],"model":"m",}}"#),
        format!(r#"{{"messages":[{list}],"tools":[{{"name" "x"}}],"model":"m"}}"#),
        format!("[{list}] and more"),
        // In the list and behind it.
        format!(r#"{{"messages":[{list},{{"role" "user"}},{list}],"model":"m",}}"#),
    ];
    for (number, document) in cases.iter().enumerate() {
        let path = quiet(dir.path(), &format!("{number}.json"), document.as_bytes());
        let candidate = Candidate {
            path: path.clone(),
            claim: Claim::Named,
        };
        for action in [
            Action::DryRun(Strategy::RemoveOrphans),
            Action::Repair(Strategy::Reconstruct),
        ] {
            let report = scan(&candidate, action, now_ms(), &Redactor::default());
            let error = report.error.unwrap_or_default();
            assert!(error.contains("would have to guess"), "{error}: {document}");
            assert!(!report.findings.is_empty(), "{document}");
        }
        assert_eq!(fs::read(&path).expect("reads"), document.as_bytes());
    }
}

#[test]
fn a_checkpoint_holds_without_a_final_newline_and_through_a_link() {
    let dir = tempfile::tempdir().expect("a directory");
    let header = r#"{"type":"session","version":4,"id":"s1","cwd":"/"}"#;
    let first = r#"{"type":"custom","id":"a","parentId":null}"#;
    let second = r#"{"type":"custom","id":"b","parentId":"a"}"#;
    let begun = format!("{header}\n{first}");
    let path = quiet(dir.path(), "s.jsonl", begun.as_bytes());
    let elsewhere = tempfile::tempdir().expect("a directory");
    let link = elsewhere.path().join("link.jsonl");
    std::os::unix::fs::symlink(&path, &link).expect("links");
    let made = checkpoint(&link, Operation::Manual, "c1".to_owned(), now_ms()).expect("makes one");
    assert_eq!(checkpoints(&path).expect("lists"), [made]);
    quiet(
        dir.path(),
        "s.jsonl",
        format!("{begun}\n{second}\n").as_bytes(),
    );
    roll_back(&link, "c1", now_ms()).expect("goes back");
    assert_eq!(
        fs::read_to_string(&path).expect("reads"),
        format!("{begun}\n")
    );
}

/// A session whose compaction keeps this entry first.
fn compacted(kept: &str) -> String {
    let entry = |id: &str, parent: &str, message: &str| {
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
    };
    let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"t1","name":"x","arguments":{}}]}"#;
    let result = r#"{"role":"toolResult","toolCallId":"t1","content":[{"type":"text","text":"the only one"}]}"#;
    let user = r#"{"role":"user","content":"go on"}"#;
    let compaction = format!(
        r#"{{"type":"compaction","id":"k","parentId":"d","summary":"so far","firstKeptEntryId":"{kept}"}}"#
    );
    [
        r#"{"type":"session","version":4,"id":"s1","cwd":"/"}"#.to_owned(),
        entry("a", "null", user),
        entry("b", "\"a\"", call),
        entry("c", "\"b\"", result),
        entry("d", "\"c\"", user),
        compaction,
        entry("e", "\"k\"", user),
    ]
    .map(|line| line + "\n")
    .concat()
}

#[test]
fn a_compaction_that_parts_a_result_from_its_call_keeps_both() {
    let parted = compacted("c");
    let found = scan_bytes("-", parted.as_bytes())
        .expect("a session")
        .findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].fault, Fault::OrphanedToolResult);
    for strategy in [Strategy::RemoveOrphans, Strategy::Reconstruct] {
        let repaired = repair_bytes(parted.as_bytes(), strategy).expect("a session");
        let repaired = String::from_utf8(repaired.expect("broken")).expect("text");
        assert_eq!(repaired, compacted("b"));
        assert_eq!(
            repair_bytes(repaired.as_bytes(), strategy).expect("a session"),
            None
        );
    }
}

#[test]
fn a_compaction_that_keeps_what_is_not_there_is_a_broken_link() {
    let dangling = compacted("gone");
    let found = scan_bytes("-", dangling.as_bytes())
        .expect("a session")
        .findings;
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].fault, found[0].entry), (Fault::BrokenParent, 5));
    assert_eq!(found[0].id.as_deref(), Some("gone"));
    for strategy in [Strategy::RemoveOrphans, Strategy::Reconstruct] {
        let repaired = repair_bytes(dangling.as_bytes(), strategy).expect("a session");
        assert_eq!(repaired.expect("broken"), compacted("k").as_bytes());
    }
}

#[test]
fn a_compaction_follows_when_the_entry_it_keeps_goes() {
    // The entry it keeps first is a result that nobody called.
    let session = compacted("d").replace(
        r#""id":"d","parentId":"c","message":{"role":"user","content":"go on"}"#,
        r#""id":"d","parentId":"c","message":{"role":"toolResult","toolCallId":"t9","content":[]}"#,
    );
    for strategy in [Strategy::RemoveOrphans, Strategy::Reconstruct] {
        let repaired = repair_bytes(session.as_bytes(), strategy).expect("a session");
        let repaired = String::from_utf8(repaired.expect("broken")).expect("text");
        assert!(!repaired.contains("\"d\""), "{repaired}");
        assert_eq!(
            repair_bytes(repaired.as_bytes(), strategy).expect("a session"),
            None
        );
    }
}

#[test]
fn many_faults_in_one_message_are_cut_out_at_once() {
    let result =
        |id: usize| format!(r#"{{"type":"tool_result","tool_use_id":"t{id}","content":"lost"}}"#);
    let text = r#"{"type":"text","text":"mine"}"#;
    let orphans: Vec<String> = (0..20_000).map(result).collect();
    let orphans = orphans.join(" , ");
    // The person's words first, in the middle and last.
    for content in [
        format!("{text}, {orphans}"),
        format!("{orphans},{text}"),
        format!("{orphans}, {text} ,{orphans}"),
    ] {
        let session = format!("{{\"role\":\"user\",\"content\":[{content}]}}\n");
        let found = scan_bytes("-", session.as_bytes())
            .expect("a session")
            .findings;
        assert_eq!(found.len(), session.matches("lost").count());
        assert_eq!(found[7].id.as_deref(), Some("t7"));
        let repaired = repair_bytes(session.as_bytes(), Strategy::RemoveOrphans);
        let repaired = repaired.expect("a session").expect("broken");
        let value: serde_json::Value = serde_json::from_slice(&repaired).expect("JSON");
        assert_eq!(
            value["content"],
            serde_json::json!([{"type": "text", "text": "mine"}])
        );
    }
}

#[test]
fn what_was_read_before_does_not_decide_the_format() {
    let user = r#"{"role":"user","content":"a"}"#;
    let call = r#"{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"x","arguments":"{}"}}]}"#;
    let session = format!("{user}\n{call}\n{user}\n");
    for before in ["[]".to_owned(), format!("[{user}]")] {
        scan_bytes("-", before.as_bytes()).expect("a document");
        let (shape, _) = holdfast_transcript::read::index(session.as_bytes()).expect("a session");
        assert_eq!(shape.format, holdfast_transcript::Format::OpenAiChat);
    }
}

#[test]
fn what_a_removal_brings_together_is_judged_again() {
    let call =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"x","input":{}}]}"#;
    let result = |id: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"{id}","content":"a"}}]}}"#
        )
    };
    let more = r#"{"role":"assistant","content":[{"type":"text","text":"and"}]}"#;
    // Without the orphan, both messages of the model are one: the first result is in its place then, and
    // the second a copy of it.
    let session = [
        call.to_owned(),
        result("t9"),
        more.to_owned(),
        result("t1"),
        result("t1"),
    ];
    let text = session.join("\n");
    let repaired = repair_bytes(text.as_bytes(), Strategy::RemoveOrphans).expect("a session");
    let whole = [call.to_owned(), more.to_owned(), result("t1")].join("\n");
    assert_eq!(repaired, Some((whole.clone() + "\n").into_bytes()));
    let again = repair_bytes(whole.as_bytes(), Strategy::RemoveOrphans).expect("a session");
    assert_eq!(again, None);
}
