//! `holdfast dedupe`: looking at records and clearing them.

use serde_json::{Value, json};

use crate::common::{House, Ran, eventually};

fn list(house: &House, filter: &[&str]) -> Vec<Value> {
    let ran = house.run(&[&["dedupe", "list", "--json"], filter].concat());
    serde_json::from_value(ran.json()).expect("a list")
}

/// Two sessions, two tools, two states.
fn some_records() -> House {
    let house = House::new();
    house.exec("a", "echo one", &[]).success();
    house
        .exec("b", "echo two", &["--session", "other"])
        .success();
    let args = r#"{"path":"note","content":"x"}"#;
    let write = ["call", "write", "--json", "--key", "c", "--args", args];
    house.run(&write).success();
    let slow = ["--timeout-ms", "50"];
    house
        .exec("d", "sleep 1000", &slow)
        .error("outcome_unknown");
    house
}

fn keys(records: &[Value]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record["idempotencyKey"].as_str().expect("a key"))
        .collect()
}

#[track_caller]
fn fails(ran: &Ran, code: i32, says: &str) {
    assert_eq!(ran.code, Some(code), "{ran:#?}");
    assert!(ran.stderr.contains(says), "not {says:?}: {ran:#?}");
}

#[test]
fn list_filters() {
    let house = some_records();
    assert_eq!(keys(&list(&house, &[])), ["d", "c", "b", "a"]);
    assert_eq!(keys(&list(&house, &["--session", "other"])), ["b"]);
    assert_eq!(keys(&list(&house, &["--tool", "write"])), ["c"]);
    assert_eq!(keys(&list(&house, &["--state-is", "unknown"])), ["d"]);
    assert_eq!(keys(&list(&house, &["--state-is", "failed"])), [""; 0]);
    assert_eq!(keys(&list(&house, &["--limit", "2"])), ["d", "c"]);
    let text = house.run(&["dedupe", "list", "--tool", "write"]).stdout;
    assert!(text.contains("write") && !text.contains("exec"), "{text}");
    let none = house.run(&["dedupe", "list", "--tool", "nothing"]);
    assert_eq!(none.stdout, "No records.\n");
}

/// Records of calls that are only watched answer for nobody, and say so.
#[test]
fn records_of_calls_that_are_only_watched_are_marked() {
    let house = House::new();
    let config = house.file("shadow.yaml", "reliability: {mode: shadow}\n");
    house
        .exec("a", "echo one", &["--config", &config])
        .success();
    house.exec("b", "echo two", &[]).success();
    let shown = house.run(&["dedupe", "list"]).stdout;
    assert_eq!(shown.matches("done (shadow)").count(), 1, "{shown}");
    let listed = list(&house, &[]);
    let marked = listed.iter().filter(|it| it["request"]["shadow"] == true);
    assert_eq!(marked.count(), 1, "{listed:?}");
}

#[test]
fn a_list_that_is_cut_off_says_so() {
    let house = some_records();
    let text = |limit: &str| house.run(&["dedupe", "list", "--limit", limit]);
    let cut = text("3").stdout;
    let says = "These are the newest 3; there are more (--limit).";
    assert!(cut.trim_end().ends_with(says), "{cut}");
    assert!(!text("4").stdout.contains("there are more"));
    text("0").bad_usage("--limit");
}

/// Writes another word of the same length into the body of a record, as a later version might.
fn rewrite(house: &House, from: &str, to: &str) {
    assert_eq!(from.len(), to.len());
    let mut bytes = std::fs::read(house.database()).expect("reads");
    let places: Vec<usize> = (0..bytes.len() - from.len())
        .filter(|at| bytes[*at..].starts_with(from.as_bytes()))
        .collect();
    assert!(!places.is_empty(), "{from} is not in the file");
    for at in places {
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    std::fs::write(house.database(), bytes).expect("writes");
}

#[test]
fn a_record_that_can_not_be_read_hides_no_other_and_can_be_cleared() {
    let house = House::new();
    for key in ["a", "b", "c"] {
        house.exec(key, "echo x >> effect", &[]).success();
    }
    let stored = |key: &str| {
        let all = list(&house, &[]);
        let found = all.iter().find(|record| record["idempotencyKey"] == key);
        found.expect("is there")["key"]
            .as_str()
            .expect("a key")
            .to_owned()
    };
    let (a, b) = (stored("a"), stored("b"));
    for key in ["a", "b"] {
        let named = |state: &str| format!(r#""idempotencyKey":"{key}","state":"{state}""#);
        rewrite(&house, &named("done"), &named("dune"));
    }
    let again = house.exec("a", "echo x >> effect", &[]);
    again.error("store_unavailable");
    // All are listed, by what can be read of them.
    let listed = list(&house, &[]);
    assert_eq!(listed.len(), 3, "{listed:#?}");
    assert_eq!(listed[0]["idempotencyKey"], "c");
    for unread in &listed[1..] {
        assert_eq!(
            (&unread["tool"], &unread["state"]),
            (&json!("exec"), &json!("done"))
        );
        let why = unread["unreadable"].as_str().expect("a reason");
        assert!(why.contains("dune"), "{why}");
    }
    let text = house.run(&["dedupe", "list"]).stdout;
    assert!(
        text.contains(&a) && text.contains("can not be read"),
        "{text}"
    );
    // Each is found by each of its names, and the others are what they were.
    for name in ["a", &a[..8], &a] {
        let shown = house.run(&["dedupe", "show", name, "--json"]).json();
        assert_eq!(
            (&shown["key"], &shown["state"]),
            (&json!(a), &json!("done"))
        );
    }
    let shown = house.run(&["dedupe", "show", "c", "--json"]).json();
    assert_eq!(shown["idempotencyKey"], "c");
    let export = house.run(&["dedupe", "export", "all.jsonl"]);
    fails(&export, 1, "not all of them can be exported");
    for (name, key) in [(a.as_str(), &a), ("b", &b)] {
        let cleared = house.run(&["dedupe", "clear", name, "--json"]).json();
        assert_eq!(cleared, json!({"cleared": true, "key": key}));
    }
    assert_eq!(keys(&list(&house, &[])), ["c"]);
    house.exec("a", "echo x >> effect", &[]).success();
    assert_eq!(house.lines("effect"), 4);
}

#[test]
fn records_name_their_workspace() {
    let house = House::new();
    let other = house.path("other");
    std::fs::create_dir(&other).expect("made");
    for dir in [".", "other"] {
        house.exec("k", "true", &["--workspace", dir]).success();
    }
    let place = |dir: &std::path::Path| json!(dir.canonicalize().expect("a path"));
    let places: Vec<Value> = list(&house, &[])
        .iter()
        .map(|record| record["request"]["workspaceId"].clone())
        .collect();
    assert_eq!(places, [place(&other), place(&house.workspace())]);
    let text = house.run(&["dedupe", "list"]).stdout;
    assert!(text.contains("/workspace/other"), "{text}");
    // Who has to choose between the two is told which is which.
    let both = house.run(&["dedupe", "show", "k"]);
    fails(&both, 1, "/workspace/other");
}

#[test]
fn abandoned_calls_can_be_listed_and_are_not_flushed() {
    let house = some_records();
    let deadly = house.deadly();
    let killed = house.exec("e", "kill -9 $PPID; sleep 1000", &["--config", &deadly]);
    assert_eq!(killed.code, None);
    let running = house.start_held("f", &[]);
    assert_eq!(keys(&list(&house, &["--state-is", "inflight"])), ["f", "e"]);
    let abandoned = ["--state-is", "abandoned", "--limit", "1"];
    assert_eq!(keys(&list(&house, &abandoned)), ["e"]);
    let flushed = house.run(&["dedupe", "flush", "--state-is", "abandoned"]);
    fails(&flushed, 2, "only ended records are flushed");
    fails(&flushed, 2, "dedupe clear");
    assert_eq!(keys(&list(&house, &abandoned)), ["e"]);
    house.let_go(running);
}

#[test]
fn show_finds_a_record_by_each_of_its_names() {
    let house = some_records();
    let record = &list(&house, &["--tool", "write"])[0];
    let stored = record["key"].as_str().expect("a key");
    for name in ["c", stored, &stored[..12], &stored[..6]] {
        let shown = house.run(&["dedupe", "show", name, "--json"]).json();
        assert_eq!(shown["key"], stored, "{name}");
        assert_eq!(shown["state"], "done");
        assert_eq!(shown["request"]["actorId"], "local");
        // The token of its holder would let anybody end a claim.
        assert_eq!(shown.get("owner"), None);
    }
    fails(
        &house.run(&["dedupe", "show", &stored[..5]]),
        1,
        "no record",
    );
    fails(
        &house.run(&["dedupe", "show", "zzz"]),
        1,
        "no record \"zzz\"",
    );
}

#[test]
fn a_name_that_fits_several_records_is_refused() {
    let house = House::new();
    house.exec("k", "echo x >> effect", &[]).success();
    let other = ["--session", "other"];
    house.exec("k", "echo x >> effect", &other).success();
    for command in ["show", "clear"] {
        let ran = house.run(&["dedupe", command, "k"]);
        fails(&ran, 1, "\"k\" fits several records");
    }
    assert_eq!(list(&house, &[]).len(), 2);
}

#[test]
fn clear_lets_a_call_run_again() {
    let house = House::new();
    house.exec("k", "echo x >> effect", &[]).success();
    let cleared = house.run(&["dedupe", "clear", "k", "--json"]).json();
    assert_eq!(cleared["cleared"], true);
    let again = house.exec("k", "echo x >> effect", &[]).success();
    assert_eq!(again["fromCache"], false);
    assert_eq!(house.lines("effect"), 2);
    fails(&house.run(&["dedupe", "clear", "nothing"]), 1, "no record");
}

#[test]
fn a_running_call_is_cleared_by_force_only() {
    let house = House::new();
    let call = house.start_held("k", &[]);
    fails(&house.run(&["dedupe", "clear", "k"]), 1, "is running");
    let flushed = house.run(&["dedupe", "flush", "--all", "--json"]).json();
    assert_eq!(flushed, json!({"flushed": 0}));
    assert_eq!(house.only_state().as_deref(), Some("inflight"));
    let forced = house.run(&["dedupe", "clear", "k", "--force"]);
    assert_eq!(forced.code, Some(0));
    assert_eq!(list(&house, &[]), Vec::<Value>::new());
    house.let_go(call);
}

#[test]
fn a_call_whose_process_died_is_not_running() {
    let house = House::new();
    let deadly = house.deadly();
    let command = "echo x >> effect; kill -9 $PPID; sleep 1000";
    let killed = house.exec("k", command, &["--config", &deadly]);
    assert_eq!(killed.code, None);
    // Nobody has asked for it since, and still it can be cleared without force. Its command ends a
    // moment after it.
    eventually("its command has ended", || {
        (list(&house, &[])[0]["abandoned"] == true).then_some(())
    });
    let text = house.run(&["dedupe", "list"]).stdout;
    assert!(text.contains("abandoned"), "{text}");
    let cleared = house.run(&["dedupe", "clear", "k"]);
    assert_eq!(cleared.code, Some(0), "{cleared:?}");
}

#[test]
fn flush_forgets_what_fits_and_needs_to_be_told_what() {
    let house = some_records();
    fails(&house.run(&["dedupe", "flush"]), 2, "every ended call");
    let flush = |filter: &[&str]| {
        let ran = house.run(&[&["dedupe", "flush", "--json"], filter].concat());
        ran.json()["flushed"].as_u64().expect("a number")
    };
    assert_eq!(flush(&["--session", "other"]), 1);
    assert_eq!(flush(&["--state-is", "unknown", "--tool", "exec"]), 1);
    assert_eq!(keys(&list(&house, &[])), ["c", "a"]);
    assert_eq!(flush(&["--all"]), 2);
    assert_eq!(flush(&["--all"]), 0);
}

#[test]
fn an_export_that_is_not_whole_is_not_imported() {
    let house = some_records();
    let file = house.path("records.ndjson");
    let path = file.to_str().expect("a path");
    assert_eq!(house.run(&["dedupe", "export", path]).code, Some(0));
    let whole = std::fs::read_to_string(&file).expect("written");
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let (heading, records, end) = (lines[0], &lines[1..lines.len() - 1], lines[lines.len() - 1]);
    assert!(records.len() > 1, "{whole}");
    let reordered = [&[heading], &records[1..], &records[..1], &[end]].concat();
    let shortened = [&[heading], &records[1..], &[end]].concat();
    for (text, says) in [
        (lines[..lines.len() - 1].concat(), "cut off"),
        (heading.to_owned(), "cut off"),
        (whole[..whole.len() - 3].to_owned(), "cut off"),
        (reordered.concat(), "changed"),
        (shortened.concat(), "changed"),
        (whole.replace("\"version\":2", "\"version\":3"), "no export"),
    ] {
        let other = House::new();
        let broken = other.file("broken.ndjson", &text);
        fails(&other.run(&["dedupe", "import", &broken]), 1, says);
        assert!(other.records().is_empty(), "nothing of it was taken over");
    }
    // The first version had no last line of its own.
    let older = [
        heading.replace("\"version\":2", "\"version\":1"),
        records.concat(),
    ]
    .concat();
    for text in [&whole, &older] {
        let other = House::new();
        let good = other.file("good.ndjson", text);
        let imported = other.run(&["dedupe", "import", &good, "--json"]).json();
        assert_eq!(imported["imported"], records.len());
    }
}
