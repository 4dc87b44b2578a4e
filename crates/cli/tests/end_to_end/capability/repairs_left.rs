//! What `scan` leaves alone, and what it says of that.

use std::fs;

use super::repairs::{calls, result, types, user, whole};
use super::sessions::session;
use crate::common::House;

#[test]
fn a_second_result_that_says_something_else_is_kept_and_a_copy_goes() {
    let second = |text: &str| {
        let other = result("d", "c", "t1").replace("real t1", text);
        whole(&[
            user("a", ""),
            calls("b", "a", &["t1"]),
            result("c", "b", "t1"),
            other,
            user("e", "d"),
        ])
    };
    let kept = ["duplicate_tool_result"].as_slice();
    for (text, left) in [("real t1", &[][..]), ("answered again", kept)] {
        let house = House::new();
        let path = session(&house, "s1.jsonl", &second(text));
        let said = house.run(&["scan", "--repair", "--json"]).json();
        assert_eq!(types(&said["left"]), left, "{said}");
        let after = fs::read_to_string(&path).expect("reads");
        assert_eq!(after.matches(text).count(), 1, "{after}");
    }
}

#[test]
fn files_in_use_are_named_with_the_reason_and_waited_for() {
    let house = House::new();
    let orphan = whole(&[user("a", ""), result("b", "a", "t9"), user("c", "b")]);
    let path = session(&house, "s1.jsonl", &orphan);
    let file = path.to_str().expect("UTF-8");
    let write = || fs::write(&path, &orphan).expect("writes");
    write();
    let ran = house.run(&["scan", "--repair", file]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stdout.contains("1 issue left:\n"), "{ran:#?}");
    assert!(
        ran.stdout.contains("left alone: it was written"),
        "{ran:#?}"
    );
    assert!(
        ran.stdout
            .contains(&format!("--strategy remove_orphans --wait '{file}'")),
        "{ran:#?}"
    );
    write();
    let said = house.run(&["scan", "--repair", "--json", file]).json();
    assert_eq!(said["leftAlone"][0]["inUse"], true, "{said}");
    assert_eq!(said["repaired"], 0, "{said}");
    // Nobody has written it for so long: that is enough for whoever says so.
    write();
    let now = [
        "scan",
        "--repair",
        "--include-live-after",
        "0s",
        "--json",
        file,
    ];
    assert_eq!(house.run(&now).json()["repaired"], 1);
    write();
    let wait = [
        "scan",
        "--repair",
        "--wait=1m",
        "--include-live-after=200ms",
        file,
    ];
    let ran = house.run(&wait);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // A lock counts all the same.
    write();
    let lock = path.with_extension("jsonl.lock");
    fs::write(&lock, format!("{{\"pid\": {}}}", std::process::id())).expect("writes");
    let said = house.run(&now).json();
    let why = said["leftAlone"][0]["why"].as_str().expect("a reason");
    assert!(why.contains("holds its lock"), "{said}");
    for wrong in [
        &["scan", "--wait", file][..],
        &["scan", "--repair", "--wait=5", file],
    ] {
        assert_eq!(house.run(wrong).code, Some(2), "{wrong:?}");
    }
}

#[test]
fn a_call_that_the_end_of_its_session_cut_off_is_found_when_the_session_is_over() {
    let cut_off = whole(&[
        user("a", ""),
        calls("b", "a", &["t1", "t2"]),
        result("c", "b", "t1"),
    ]);
    let house = House::new();
    let path = session(&house, "s1.jsonl", &cut_off);
    assert_eq!(
        types(&house.run(&["scan", "--json"]).json()["issues"]),
        [""; 0]
    );
    let found = house.run(&["scan", "--complete", "--json"]).json();
    assert_eq!(types(&found["issues"]), ["missing_tool_result"]);
    assert_eq!(found["issues"][0]["id"], "t2");
    let repair = [
        "scan",
        "--complete",
        "--repair",
        "--strategy",
        "reconstruct",
    ];
    assert_eq!(house.run(&repair).code, Some(0));
    let mended = fs::read_to_string(&path).expect("reads");
    assert_eq!(mended.matches("[holdfast]").count(), 1, "{mended}");
    assert_eq!(mended.matches("real t1").count(), 1, "{mended}");
    assert_eq!(house.run(&["scan", "--complete"]).code, Some(0));
}

#[test]
fn what_is_not_understood_is_never_clean() {
    let call = r#"{"role":"assistant","content":[{"type":"tool-call","toolCallId":"c","toolName":"x","input":{}}]}"#;
    let vercel = format!("{}\n{call}\n", r#"{"role":"user","content":"hi"}"#);
    let house = House::new();
    let path = session(&house, "vercel.jsonl", &vercel);
    let file = path.to_str().expect("UTF-8");
    for args in [&["scan"][..], &["scan", file]] {
        let ran = house.run(args);
        assert_eq!(ran.code, Some(2), "{ran:#?}");
        assert!(
            ran.stderr
                .contains("is not understood: it holds Vercel AI SDK messages"),
            "{ran:#?}"
        );
        assert!(
            ran.stdout
                .ends_with("0 sessions, 0 issues found, 0 repaired\n"),
            "{ran:#?}"
        );
    }
    let ran = house.run_with(&["scan", "-"], &vercel);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert!(ran.stderr.contains("Vercel AI SDK messages"), "{ran:#?}");
    // JSON that is whole is not broken line by line, and nothing in it has to be begun anew.
    let house = House::new();
    let pretty = "{\n  \"name\": \"x\",\n  \"list\": [\n    1,\n    2\n  ]\n}\n";
    session(&house, "pretty.jsonl", pretty);
    let ran = house.run(&["scan"]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    assert!(ran.stderr.contains("pretty.jsonl: passed over"), "{ran:#?}");
}
