//! A person at a terminal is asked in place.

use std::io::{Read, Write};

use crate::common::{House, Ran, command_json, eventually_lines};
use crate::pty::at_a_terminal;

/// Runs a call on a terminal of its own and types these lines, one at each question.
fn typed(house: &House, arguments: &str, lines: &[&str]) -> (Ran, String) {
    let args = ["call", "exec", "--json", "--args", arguments];
    let (child, mut master) = at_a_terminal(house, &args);
    let mut shown = String::new();
    for line in lines {
        let asked_before = shown.matches("Run it?").count();
        while shown.matches("Run it?").count() == asked_before {
            let mut bytes = [0; 1024];
            let count = master.read(&mut bytes).expect("it asks");
            shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        master
            .write_all(format!("{line}\n").as_bytes())
            .expect("types");
    }
    let output = child.wait_with_output().expect("ends");
    (Ran::of(&output), shown)
}

#[test]
fn a_person_at_the_terminal_is_asked_in_place() {
    let house = House::new();
    let arguments = command_json("git push --force victim; echo ran >> effect");
    // A slip is no answer: the question comes again.
    let (ran, shown) = typed(&house, &arguments, &["yep", "y"]);
    ran.success();
    assert_eq!(house.lines("effect"), 1);
    for said in [
        "exec (Elevated) asks for approval",
        "overwrites commits",
        // It can not be taken back, so the answer is for this call only.
        "Run it? [y]es, [n]o: ",
    ] {
        assert!(shown.contains(said), "not {said:?}: {shown}");
    }
    let (ran, _) = typed(
        &house,
        &command_json("git push --force other; echo ran >> effect"),
        &["n"],
    );
    ran.error("permission_denied");
    assert_eq!(house.lines("effect"), 1);
    let log = house.run(&["audit-log", "show", "--json"]).stdout;
    assert_eq!(log.matches("\"by\":\"terminal\"").count(), 2, "{log}");
}

#[test]
fn what_was_typed_before_the_question_is_no_answer() {
    let house = House::new();
    let arguments = command_json("git push --force victim; echo ran >> effect");
    let args = ["call", "exec", "--json", "--args", &arguments];
    let (child, mut master) = at_a_terminal(&house, &args);
    // Meant for whatever ran before, and one more that is not ended yet.
    master.write_all(b"y\ny\ny").expect("types");
    let mut shown = String::new();
    while !shown.contains("Run it?") {
        let mut bytes = [0; 1024];
        let count = master.read(&mut bytes).expect("it asks");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    master.write_all(b"n\n").expect("types");
    let ran = Ran::of(&child.wait_with_output().expect("ends"));
    ran.error("permission_denied");
    assert_eq!(house.lines("effect"), 0);
}

#[test]
fn a_duplicate_at_the_terminal_says_what_it_waits_for() {
    let house = House::new();
    let command = "echo ran >> effect; while [ ! -e go ]; do sleep 0.05; done";
    let first = house.start_exec("k", command, &["--request", "the-first"]);
    eventually_lines(&house, "effect", 1);
    let arguments = command_json(command);
    let args = ["call", "exec", "--json", "--key", "k", "--args", &arguments];
    let (second, mut master) = at_a_terminal(&house, &args);
    let mut shown = String::new();
    while !shown.contains("the-first") {
        let mut bytes = [0; 1024];
        let count = master.read(&mut bytes).expect("it says something");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(
        shown.contains("waiting for the call with this key"),
        "{shown}"
    );
    std::fs::write(house.path("go"), "").expect("writes");
    let second = Ran::of(&second.wait_with_output().expect("ends")).success();
    assert_eq!(second["fromCache"], true);
    first.ended().success();
    assert_eq!(house.lines("effect"), 1);
}

/// Commands whose worst part looks like a secret, or like nothing at all.
const ATTACKS: &[&str] = &[
    "git push --force old # -----BEGIN PRIVATE KEY-----\necho pwned >> effect",
    "CACHE_TOKEN=\"$(echo pwned >> effect)\" git push --force old || true",
    "git push --force old; mail ann@example.org --password \"$(echo pwned >> effect)\"",
    "git push --force old; echo \u{202e}dewp\u{202c} \u{200b}pwned >> effect\u{9b}2K",
];

#[test]
fn a_person_sees_all_that_would_run() {
    let house = House::new();
    for attack in ATTACKS {
        let (ran, shown) = typed(&house, &command_json(attack), &["n"]);
        ran.error("permission_denied");
        let line = shown
            .lines()
            .find_map(|line| line.trim().strip_prefix("arguments: "));
        let read: serde_json::Value = serde_json::from_str(line.expect("a line")).expect("JSON");
        assert_eq!(read["command"], *attack, "{shown}");
        for hidden in ['\u{202e}', '\u{200b}', '\u{9b}'] {
            assert!(!shown.contains(hidden), "{shown:?}");
        }
        // Whoever looks from elsewhere sees the same.
        let all = house.run(&["approvals", "list", "--all", "--json"]).json();
        let newest = &all[0];
        let id = newest["id"].as_str().expect("an id");
        let as_text = house.run(&["approvals", "show", id]).stdout;
        let as_json = house.run(&["approvals", "show", id, "--json"]).json();
        let line = as_text
            .lines()
            .find_map(|line| line.strip_prefix("arguments  "));
        for arguments in [&newest["arguments"], &as_json["arguments"], &line.into()] {
            let arguments = arguments.as_str().expect("a text");
            let read: serde_json::Value = serde_json::from_str(arguments).expect("JSON");
            assert_eq!(read["command"], *attack);
        }
    }
    assert_eq!(house.lines("effect"), 0);
    let log = house.run(&["audit-log", "show", "--json"]).stdout;
    assert!(
        log.contains("[redacted]") && log.contains("\"digest\""),
        "{log}"
    );
}
