//! State that can not be used: the call is answered, and not run without protection.

use std::fs;
use std::io::{Seek, SeekFrom, Write};
use std::process::Command;

use crate::common::{House, Ran, command_json};

const COMMAND: &str = "echo x >> effect";
/// Where `SQLite` keeps the schema's version in a database.
const USER_VERSION_OFFSET: u64 = 60;

/// Both ways of calling are refused with the code, and nothing runs.
#[track_caller]
fn refused(house: &House, more: &[&str], code: &str, says: &str) -> Ran {
    let ran = house.exec("k", COMMAND, more);
    let answer = ran.error(code);
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.contains(says), "not {says:?}: {message}");
    assert_eq!(answer["error"]["retriable"], true);
    assert_eq!(answer["toolName"], "exec");
    assert_eq!(answer["attempts"], 0);
    assert_ne!(answer["requestId"], "");
    let arguments = command_json(COMMAND);
    let typed = ["call", "exec", "--key", "k", "--args", &arguments];
    let text = house.run(&[&typed[..], more].concat());
    assert_eq!(text.code, Some(1));
    assert!(text.stdout.contains(code), "{}", text.stdout);
    assert_eq!(house.lines("effect"), 0, "it ran");
    ran
}

/// A house whose database has been written, with a record in it.
fn used() -> House {
    let house = House::new();
    house.exec("first", "true", &[]).success();
    house
}

#[test]
fn a_file_that_is_no_database_is_left_alone() {
    let house = House::new();
    fs::create_dir(house.state()).expect("creates");
    let text = "my shopping list\n".repeat(1000);
    fs::write(house.database(), &text).expect("writes");
    refused(&house, &[], "store_unavailable", "is not a database");
    assert_eq!(fs::read_to_string(house.database()).expect("reads"), text);
    for command in [&["dedupe", "list"][..], &["breaker", "list"], &["explain"]] {
        let ran = house.run(command);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("is not a database"), "{}", ran.stderr);
    }
}

#[test]
fn a_damaged_database_is_left_alone() {
    let house = used();
    let mut bytes = fs::read(house.database()).expect("reads");
    // Everything behind the header of the first page.
    for byte in &mut bytes[100..] {
        *byte = 0xa5;
    }
    fs::write(house.database(), &bytes).expect("writes");
    refused(&house, &[], "store_unavailable", "is damaged");
}

#[test]
fn a_database_of_a_newer_version_is_left_alone() {
    let house = used();
    let mut file = fs::OpenOptions::new()
        .write(true)
        .open(house.database())
        .expect("opens");
    file.seek(SeekFrom::Start(USER_VERSION_OFFSET))
        .expect("seeks");
    file.write_all(&9999_u32.to_be_bytes()).expect("writes");
    drop(file);
    refused(&house, &[], "store_unavailable", "newer");
}

#[test]
fn a_state_directory_that_can_not_be_is_said() {
    let house = House::new();
    let file = house.file("a-file", "");
    for place in [&file, "/proc/no-such-place", &format!("{file}/below")] {
        refused(&house, &["--state", place], "store_unavailable", place);
    }
}

#[test]
fn a_read_only_state_directory_is_said() {
    // The administrator may write anywhere, so permissions show nothing there.
    if rustix::process::geteuid().is_root() {
        return;
    }
    let house = used();
    let chmod = |mode: &str| {
        let done = Command::new("chmod")
            .args(["-R", mode])
            .arg(house.state())
            .status();
        assert!(done.expect("runs").success());
    };
    chmod("a-w");
    refused(&house, &[], "store_unavailable", "may write");
    chmod("u+w");
}

#[test]
fn a_full_store_refuses_rather_than_forget_what_is_unknown() {
    let house = House::new();
    let config = house.file("small.yaml", "reliability:\n  store:\n    diskKeysMax: 1\n");
    let more = ["--config", &config];
    let slow = ["--config", &config, "--timeout-ms", "50"];
    house
        .exec("slow", "sleep 1000", &slow)
        .error("outcome_unknown");
    refused(&house, &more, "store_full", "unknown outcome");
    house.run(&["dedupe", "flush", "--state-is", "unknown"]);
    house.exec("k", COMMAND, &more).success();
}

/// An envelope for `exec`, whole.
fn envelope() -> String {
    serde_json::json!({
        "contractVersion": "1.1", "requestId": "r-1", "toolName": "exec",
        "toolNamespace": "holdfast.tools",
        "target": {"sessionKey": "s", "actorId": "a"},
        "payload": {"version": "1.0", "params": {"command": COMMAND}},
        "transport": {"dedupeMode": "enforced",
                      "retryBudget": {"maxAttempts": 1, "maxElapsedMs": 0}}
    })
    .to_string()
}

#[test]
fn an_envelope_is_refused_under_its_own_name() {
    let house = House::new();
    let file = house.file("a-file", "");
    let args = ["call", "--envelope", "-", "--json", "--state", &file];
    let answer = house
        .run_with(&args, &envelope())
        .error("store_unavailable");
    assert_eq!(answer["requestId"], "r-1");
    assert_eq!(answer["toolName"], "exec");
    // What is wrong with it does not depend on the store.
    house
        .run_with(&args, r#"{"requestId": "r-2"}"#)
        .error("invalid_envelope");
}

#[test]
fn without_a_store_reading_goes_on_and_the_kill_switch_lets_everything_pass() {
    let house = House::new();
    let file = house.file("a-file", "");
    fs::write(house.workspace().join("seen.txt"), "text").expect("writes");
    let read = [
        "call",
        "read",
        "--args",
        r#"{"path": "seen.txt"}"#,
        "--json",
        "--state",
        &file,
    ];
    house.run(&read).success();
    let arguments = command_json(COMMAND);
    let call = [
        "call", "exec", "--args", &arguments, "--json", "--state", &file,
    ];
    let ran = house
        .command(&call)
        .env("TOOL_RELIABILITY_ENABLED", "false")
        .status();
    assert!(ran.expect("runs").success());
    assert_eq!(house.lines("effect"), 1);
}
