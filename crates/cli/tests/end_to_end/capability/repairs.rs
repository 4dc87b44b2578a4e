//! What `scan --repair` and `watch` say is what is so.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::process::Signal;
use serde_json::Value;

use super::sessions::{make_quiet, session};
use crate::common::{House, eventually};

const HEADER: &str = r#"{"type":"session","version":4,"id":"s1","cwd":"/"}"#;

fn entry(id: &str, parent: &str, message: &str) -> String {
    format!(r#"{{"type":"message","id":"{id}","parentId":"{parent}","message":{message}}}"#)
}

pub(super) fn user(id: &str, parent: &str) -> String {
    entry(id, parent, r#"{"role":"user","content":"go on"}"#)
}

pub(super) fn calls(id: &str, parent: &str, calls: &[&str]) -> String {
    let block = |call: &&str| {
        format!(r#"{{"type":"toolCall","id":"{call}","name":"exec","arguments":{{}}}}"#)
    };
    let blocks: Vec<String> = calls.iter().map(block).collect();
    let content = blocks.join(",");
    entry(
        id,
        parent,
        &format!(r#"{{"role":"assistant","content":[{content}]}}"#),
    )
}

pub(super) fn result(id: &str, parent: &str, call: &str) -> String {
    entry(
        id,
        parent,
        &format!(
            r#"{{"role":"toolResult","toolCallId":"{call}","toolName":"exec","content":[{{"type":"text","text":"real {call}"}}]}}"#
        ),
    )
}

pub(super) fn whole(lines: &[String]) -> String {
    [&[HEADER.to_owned()], lines]
        .concat()
        .iter()
        .flat_map(|line| [line, "\n"])
        .collect()
}

const USE: &str = concat!(
    r#"{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"exec","input":{}}]}"#,
    "\n"
);
const GIVEN: &str = concat!(
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"real t1"}]}"#,
    "\n"
);

/// A session with each fault, and what each strategy mends and leaves of it.
struct Case {
    fault: &'static str,
    text: String,
    /// By strategy: what is left, and how much is repaired.
    after: [(&'static [&'static str], u64); 3],
}

const STRATEGIES: [&str; 3] = ["remove_orphans", "reconstruct", "truncate"];
const MENDED: (&[&str], u64) = (&[], 1);

fn cases() -> Vec<Case> {
    let late = format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"so"}},{}]}}"#,
        r#"{"type":"tool_result","tool_use_id":"t1","content":"real t1"}"#
    );
    let missing = ["missing_tool_result"].as_slice();
    // A result whose call is there is not removed: only `reconstruct` knows where it belongs.
    let misplaced = ["misplaced_tool_result"].as_slice();
    let case = |fault, lines: &[String], after| Case {
        fault,
        text: whole(lines),
        after,
    };
    vec![
        case(
            "orphaned_tool_result",
            &[user("a", ""), result("b", "a", "t9"), user("c", "b")],
            [MENDED, MENDED, MENDED],
        ),
        case(
            "missing_tool_result",
            &[user("a", ""), calls("b", "a", &["t1"]), user("c", "b")],
            [(missing, 0), MENDED, MENDED],
        ),
        case(
            "misplaced_tool_result",
            &[
                user("a", ""),
                calls("b", "a", &["t1"]),
                user("c", "b"),
                result("d", "c", "t1"),
                user("e", "d"),
            ],
            [(misplaced, 0), MENDED, MENDED],
        ),
        case(
            "misplaced_tool_result",
            &[
                user("a", ""),
                calls("b", "a", &["t1"]),
                entry("c", "b", &late),
                user("d", "c"),
            ],
            [(misplaced, 0), MENDED, MENDED],
        ),
        case(
            "duplicate_tool_result",
            &[
                user("a", ""),
                calls("b", "a", &["t1"]),
                result("c", "b", "t1"),
                result("d", "c", "t1"),
                user("e", "d"),
            ],
            [MENDED, MENDED, MENDED],
        ),
        Case {
            fault: "duplicate_tool_call_id",
            // Messages that go to a provider as they are.
            text: [USE, GIVEN, USE, GIVEN].concat(),
            after: [(&["duplicate_tool_call_id"], 0), MENDED, MENDED],
        },
        case(
            "invalid_line",
            &[user("a", ""), "{\"type\":\"mess".to_owned(), user("b", "a")],
            [MENDED, MENDED, MENDED],
        ),
        case(
            "broken_parent",
            &[user("a", ""), user("b", "gone")],
            [MENDED, MENDED, MENDED],
        ),
    ]
}

pub(super) fn types(findings: &Value) -> Vec<&str> {
    let list = findings.as_array().expect("a list");
    let of = |finding: &'_ Value| finding["type"].as_str().map(|_| ());
    assert!(list.iter().all(|finding| of(finding).is_some()));
    list.iter()
        .filter_map(|finding| finding["type"].as_str())
        .collect()
}

#[test]
fn every_repair_says_what_it_mended_and_what_it_left() {
    for case in cases() {
        for (strategy, (left, repaired)) in STRATEGIES.iter().zip(case.after) {
            let what = format!("{} {strategy}", case.fault);
            let house = House::new();
            let path = session(&house, "s1.jsonl", &case.text);
            let repair = ["scan", "--repair", "--strategy", strategy];
            let ran = house.run(&[repair.as_slice(), &["--json"]].concat());
            let said = ran.json();
            assert_eq!(types(&said["issues"]), [case.fault], "{what}");
            assert_eq!(said["repaired"], repaired, "{what}: {said}");
            assert_eq!(types(&said["left"]), left, "{what}: {said}");
            let is_changed = fs::read_to_string(&path).expect("reads") != case.text;
            let repairs = said["repairs"].as_array().expect("a list");
            assert_eq!(repairs.len(), usize::from(is_changed), "{what}: {said}");
            assert_eq!(ran.code, Some(i32::from(!left.is_empty())), "{what}");
            // Another scan agrees, to the byte.
            let again = house.run(&["scan", "--json"]).json();
            assert_eq!(again["issues"], said["left"], "{what}");

            // And so does what people read.
            fs::write(&path, &case.text).expect("writes");
            make_quiet(&path);
            let ran = house.run(&repair);
            let summary = format!("1 sessions, 1 issues found, {repaired} repaired\n");
            assert!(ran.stdout.ends_with(&summary), "{what}: {ran:#?}");
            assert_eq!(
                ran.stdout.contains("  entries: "),
                is_changed,
                "{what}: {ran:#?}"
            );
            // At the end stands what is left, and what to do.
            let end = format!(
                "    move results to their calls, and answer calls that have none: holdfast scan --repair --strategy reconstruct '{}'\n{summary}",
                path.display()
            );
            assert_eq!(
                ran.stdout.ends_with(&end),
                !left.is_empty(),
                "{what}: {ran:#?}"
            );
            assert_eq!(
                ran.stdout.contains("1 issue left:\n"),
                !left.is_empty(),
                "{what}"
            );
            let told = ran.stdout.matches("  left: ").count();
            assert_eq!(told, if is_changed { left.len() } else { 0 }, "{what}");
        }
    }
}

#[test]
fn an_id_that_openclaw_uses_again_is_no_fault_and_costs_no_call() {
    let again = whole(&[
        user("a", ""),
        calls("b", "a", &["t1"]),
        result("c", "b", "t1"),
        calls("d", "c", &["t1", "t1"]),
        result("e", "d", "t1"),
        result("f", "e", "t1"),
        user("g", "f"),
    ]);
    let house = House::new();
    let path = session(&house, "s1.jsonl", &again);
    for strategy in STRATEGIES {
        let ran = house.run(&["scan", "--repair", "--strategy", strategy, "--json"]);
        assert_eq!(types(&ran.json()["issues"]), [""; 0], "{strategy}");
        assert_eq!(fs::read_to_string(&path).expect("reads"), again);
    }
}

#[test]
fn a_misplaced_result_is_never_removed_and_the_command_that_moves_it_is_told() {
    let house = House::new();
    let mut all = cases().into_iter();
    let case = all
        .find(|it| it.fault == "misplaced_tool_result")
        .expect("a case");
    let path = session(&house, "o'neil.jsonl", &case.text);
    let file = path.to_str().expect("UTF-8");
    for before in [&["scan", file][..], &["scan", "--dry-run", file]] {
        let ran = house.run(before);
        let hint = "`--strategy reconstruct` moves a misplaced result to its call";
        assert!(ran.stdout.contains(hint), "{ran:#?}");
    }
    let dry = house.run(&["scan", "--dry-run", "--json", file]).json();
    assert_eq!(types(&dry["left"]), ["misplaced_tool_result"], "{dry}");
    let ran = house.run(&["scan", "--repair", file]);
    assert_eq!(fs::read_to_string(&path).expect("reads"), case.text);
    let told = ran
        .stdout
        .lines()
        .find_map(|line| line.split_once(": holdfast "));
    let (_, again) = told.expect("says how");
    let words = std::process::Command::new("sh")
        .args(["-c", &format!("printf '%s\\n' {again}")])
        .output();
    let words = String::from_utf8(words.expect("runs").stdout).expect("UTF-8");
    assert_eq!(house.run(&words.lines().collect::<Vec<_>>()).code, Some(0));
    let mended = fs::read_to_string(&path).expect("reads");
    assert!(mended.contains("real t1"), "{mended}");
    assert!(!mended.contains("lost"), "{mended}");
}

#[test]
fn a_reset_keeps_what_is_around_the_messages() {
    let house = House::new();
    let text = r#"{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"}],"tools":[]}"#;
    let path = session(&house, "request.json", text);
    let file = path.to_str().expect("UTF-8");
    assert_eq!(house.run(&["session", "reset", file]).code, Some(0));
    let left = fs::read_to_string(&path).expect("reads");
    assert_eq!(left, r#"{"model":"m","messages":[],"tools":[]}"#);
}

#[test]
fn sessions_of_which_nothing_can_be_read_are_not_passed_over() {
    let house = House::new();
    let half = session(&house, "half.jsonl", "{\"type\":\"session\",\"ver");
    session(&house, "zeros.jsonl", &"\0".repeat(4096));
    session(&house, "blank.jsonl", "\n\n");
    session(&house, "other.jsonl", "{\"colour\": \"red\"}\n");
    session(&house, "rest.json", "{\"messages\": [{\"role\": \"us");
    session(&house, "settings.json", "{\"theme\": \"dark\"}");
    session(&house, "agent.sqlite", "was a database");
    let ran = house.run(&["scan", "--json"]);
    let said = ran.json();
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_eq!(types(&said["issues"]), ["invalid_line", "invalid_line"]);
    assert_eq!(said["sessions"], 3, "{said}");
    let passed_over = said["passedOver"].as_array().expect("a list");
    assert_eq!(passed_over.len(), 1, "{said}");
    for line in [
        "other.jsonl: passed over: is not a transcript in a known format",
        "rest.json: is the rest of a transcript",
        "agent.sqlite: is not a database",
    ] {
        assert!(ran.stderr.contains(line), "{line}: {ran:#?}");
    }
    assert!(!ran.stderr.contains("settings"), "{ran:#?}");
    // A repair does not empty what it can not read: that is the last rung of the ladder.
    let file = half.to_str().expect("UTF-8");
    let ran = house.run(&["scan", "--repair", file]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("holdfast session reset"), "{ran:#?}");
    assert!(
        ran.stdout
            .ends_with("1 sessions, 1 issues found, 0 repaired\n"),
        "{ran:#?}"
    );
    assert_eq!(house.run(&["session", "reset", file]).code, Some(0));
    assert_eq!(house.run(&["scan", file]).code, Some(0));
}

#[test]
fn the_ladder_goes_on_right_after_a_repair() {
    let house = House::new();
    let broken = whole(&[
        user("a", ""),
        calls("b", "a", &["t1"]),
        user("c", "b"),
        result("d", "c", "t9"),
        user("e", "d"),
    ]);
    let path = session(&house, "s1.jsonl", &broken);
    let file = path.to_str().expect("UTF-8");
    house.run(&["session", "checkpoint", file]);
    // It removes the orphan and leaves the call.
    assert_eq!(house.run(&["scan", "--repair", file]).code, Some(1));
    let again = house.run(&["scan", "--repair", "--strategy", "reconstruct", file]);
    assert_eq!(again.code, Some(0), "{again:#?}");
    let back = house.run(&["session", "rollback", file]);
    assert_eq!(back.code, Some(0), "{back:#?}");
    assert_eq!(fs::read_to_string(&path).expect("reads"), broken);
    // What somebody else writes is still left alone.
    fs::write(&path, &broken).expect("writes");
    let live = house.run(&["session", "reset", file]);
    assert!(live.stderr.contains("it was written"), "{live:#?}");
}

fn is_mended(path: &Path, broken: &str) -> Option<()> {
    (fs::read_to_string(path).expect("reads") != broken).then_some(())
}

#[test]
fn watch_invents_nothing_for_a_call_that_still_runs() {
    let house = House::new();
    let running = whole(&[
        user("a", ""),
        calls("b", "a", &["t1", "t2"]),
        result("c", "b", "t1"),
    ]);
    // In one round files are looked at by their names: when the second is mended, the first was seen.
    let first = session(&house, "1-running.jsonl", &running);
    let second = session(&house, "2-broken.jsonl", &cases()[1].text);
    let watch = [
        "watch",
        "--repair",
        "--strategy",
        "reconstruct",
        "--interval-ms",
        "10",
    ];
    let process = house.start(&watch);
    eventually("the broken one is mended", || {
        is_mended(&second, &cases()[1].text)
    });
    assert_eq!(fs::read_to_string(&first).expect("reads"), running);
    process.kill_9();
    // The person goes on, so that the call is lost; and then its result comes after all.
    let lost = running.clone() + &user("d", "c") + "\n";
    fs::write(&first, &lost).expect("writes");
    make_quiet(&first);
    let repair = ["scan", "--repair", "--strategy", "reconstruct"];
    assert_eq!(house.run(&repair).code, Some(0));
    let mended = fs::read_to_string(&first).expect("reads");
    assert_eq!(mended.matches("[holdfast]").count(), 1, "{mended}");
    let late = mended + &result("e", "d", "t2") + "\n";
    fs::write(&first, &late).expect("writes");
    make_quiet(&first);
    assert_eq!(house.run(&repair).code, Some(0));
    let whole = fs::read_to_string(&first).expect("reads");
    assert_eq!(whole.matches("[holdfast]").count(), 0, "{whole}");
    assert_eq!(whole.matches("real t2").count(), 1, "{whole}");
}

#[test]
fn watch_says_what_it_watches_and_tells_each_finding_once() {
    let house = House::new();
    let broken = &cases()[1].text;
    let path = session(&house, "1.jsonl", broken);
    let mut process = house.start(&["watch", "--json", "--interval-ms", "10"]);
    let logs = house.home().join(".openclaw/logs");
    // Beside an incident that is being written stands what it is written to first.
    let is_incident = |path: &PathBuf| path.extension().is_some_and(|it| it == "json");
    let logged = |count| {
        move |logs: &Path| {
            let files = fs::read_dir(logs).into_iter().flatten().flatten();
            let files = files.map(|it| it.path());
            files.filter(is_incident).count() >= count
        }
    };
    eventually("the first is told", || logged(1)(&logs).then_some(()));
    // It goes on, and is as broken as before.
    fs::write(&path, broken.clone() + &user("d", "c") + "\n").expect("writes");
    make_quiet(&path);
    session(&house, "2.jsonl", &cases()[0].text);
    eventually("the second is told", || logged(2)(&logs).then_some(()));
    process.signal(Signal::KILL);
    let ran = process.ended();
    let told: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let types: Vec<&str> = told.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(types, ["missing_tool_result", "orphaned_tool_result"]);
    assert!(ran.stderr.contains("watching "), "{ran:#?}");
    assert!(ran.stderr.contains(".openclaw/agents"), "{ran:#?}");
    assert!(ran.stderr.contains("changing nothing"), "{ran:#?}");
}
