//! What is never said aloud, and who may read what is kept.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::House;

const SECRET: &str = "sk-abcdefghijklmnop1234";

#[test]
fn secrets_are_redacted_everywhere_but_where_they_are_asked_for() {
    let house = House::new();
    let log = house.file("events.jsonl", "");
    let command = format!("echo token {SECRET}");
    let session = format!("session-{SECRET}");
    let more = ["--log", &log, "--session", &session, "--turn", "t1"];
    let answer = house.exec("k", &command, &more).success();
    let request = answer["requestId"].as_str().expect("an id");
    // The caller gets what the tool said; a second caller gets the same.
    let stdout = format!("token {SECRET}\n");
    assert_eq!(answer["output"]["content"]["stdout"], stdout);
    let again = house.exec("k", &command, &more).success();
    assert_eq!(again["output"], answer["output"]);

    let failing = serde_json::json!({"path": SECRET, "password": "hunter2-hunter2"}).to_string();
    let read = [
        "call", "read", "--turn", "t1", "--log", &log, "--args", &failing,
    ];
    house.run(&read);
    for shown in [
        &["dedupe", "list"][..],
        &["dedupe", "list", "--json"],
        &["dedupe", "show", "k"],
        &["dedupe", "show", "k", "--json"],
        &["explain"],
        &["explain", "--json"],
        &["explain", request],
        &["explain", request, "--json"],
    ] {
        let ran = house.run(shown);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains(SECRET), "{shown:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains("hunter2"), "{shown:?}: {}", ran.stdout);
    }
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(logged.lines().count() >= 6, "{logged}");
    assert!(
        !logged.contains(SECRET) && !logged.contains("hunter2"),
        "{logged}"
    );

    let revealed = house
        .run(&["dedupe", "show", "k", "--reveal", "--json"])
        .json();
    assert_eq!(revealed["payload"]["content"]["stdout"], stdout);
}

#[test]
fn a_key_that_is_a_secret_is_not_shown() {
    let house = House::new();
    house.exec(SECRET, "true", &[]).success();
    for shown in [&["dedupe", "list"][..], &["dedupe", "show", SECRET]] {
        let ran = house.run(shown);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.stdout.contains(SECRET), "{}", ran.stdout);
    }
}

#[test]
fn what_is_kept_is_the_owners_alone() {
    let house = House::new();
    let log = house.home().join("events.jsonl");
    let more = ["--log", "~/events.jsonl", "--turn", "t1", "--model", "m1"];
    house.exec("k", "true", &more).success();
    let mut read = vec!["call", "read", "--args", "{}"];
    read.extend(more);
    house.run(&read);
    let attribution = attribution_log(&house.home()).expect("an attribution log");
    let text = fs::read_to_string(&attribution).expect("reads");
    assert!(text.contains("\"m1\"") && text.contains("read"), "{text}");
    for file in [&log, &attribution, &house.database()] {
        assert_eq!(mode(file), 0o600, "{}", file.display());
    }
    for dir in [house.state(), house.state().join("locks")] {
        assert_eq!(mode(&dir), 0o700, "{}", dir.display());
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").permissions().mode() & 0o777
}

/// The one log below the home directory that the test did not name.
fn attribution_log(dir: &Path) -> Option<std::path::PathBuf> {
    fs::read_dir(dir).ok()?.flatten().find_map(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return attribution_log(&path);
        }
        (path.file_name()? != "events.jsonl").then_some(path)
    })
}
