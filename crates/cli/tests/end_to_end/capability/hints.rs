//! What an answer tells its reader to do next can be done as it stands there.

use serde_json::Value;

use crate::common::House;

fn hint(answer: &Value) -> &str {
    answer["error"]["hint"].as_str().expect("a hint")
}

#[test]
fn an_unknown_outcome_names_its_record() {
    let house = House::new();
    let args = r#"{"command":"echo x >> effect; sleep 1000"}"#;
    let limit = ["--timeout-ms", "500", "--json", "--request", "r-1"];
    let call = [&["call", "exec", "--args", args][..], &limit].concat();
    // The key is computed, so the caller never saw it; the second answer comes from the record.
    for _ in 0..2 {
        let answer = house.run(&call).error("outcome_unknown");
        let record = house.records()[0]["key"].as_str().expect("a key")[..12].to_owned();
        let clear = format!("`holdfast dedupe clear {record}`");
        assert!(hint(&answer).contains(&clear), "{answer}");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains("within 500 ms"), "{message}");
    }
    assert_eq!(house.lines("effect"), 1);
    let record = house.records()[0]["key"].as_str().expect("a key")[..12].to_owned();
    assert_eq!(house.run(&["dedupe", "clear", &record]).code, Some(0));
    house.run(&call).error("outcome_unknown");
    assert_eq!(house.lines("effect"), 2);

    let unkept = [&call[..], &["--dedupe", "disabled"]].concat();
    let answer = house.run(&unkept).error("outcome_unknown");
    assert!(!hint(&answer).contains("dedupe clear"), "{answer}");
    assert!(hint(&answer).contains("no record"), "{answer}");
}

#[test]
fn wrong_arguments_name_their_tool() {
    let house = House::new();
    let call = ["call", "read", "--json", "--args", "{}"];
    let answer = house.run(&call).error("invalid_arguments");
    assert!(hint(&answer).contains("`holdfast tools read`"), "{answer}");
}

#[test]
fn a_deadline_that_passes_while_a_person_thinks_names_the_approval() {
    let house = House::new();
    let yaml = "permissions: {tools: {exec: {gate: required}}}\n";
    let config = house.file("ask.yaml", yaml);
    let more = ["--config", &config, "--deadline-ms", "4000"];
    let answer = house.exec("k", "echo x >> effect", &more).json();
    assert_eq!(answer["status"], "timeout", "{answer}");
    let list = ["approvals", "list", "--json", "--config", &config];
    let waiting = house.run(&list).json();
    let id = waiting[0]["id"].as_str().expect("an approval");
    assert!(
        hint(&answer).contains(&format!("`holdfast approvals approve {id}`")),
        "{answer}"
    );
    assert_eq!(house.lines("effect"), 0);
}

#[test]
fn a_switch_in_the_environment_says_what_it_takes() {
    let house = House::new();
    let call = |name: &str, value: &str| {
        let mut command = house.command(&["tools"]);
        let output = command.env(name, value).output().expect("runs");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        (output.status.code(), stderr)
    };
    for value in ["enforce", "on", "Shadow", "off"] {
        assert_eq!(call("TOOL_RELIABILITY_OPEN_MODE", value).0, Some(0));
    }
    let (code, said) = call("TOOL_RELIABILITY_OPEN_MODE", "bogus");
    assert_eq!(code, Some(2));
    assert!(said.contains("shadow"), "{said}");
    let (code, said) = call("TOOL_RELIABILITY_ENABLED", "bogus");
    assert_eq!(code, Some(2));
    assert!(said.contains("true or false"), "{said}");
}

/// A duplicate that only would have been answered from a record says so where people look.
#[test]
fn a_watched_duplicate_can_be_found() {
    let house = House::new();
    let config = house.file("shadow.yaml", "reliability: {mode: shadow}\n");
    let log = house.file("events.jsonl", "");
    let more = ["--config", &config, "--log", &log];
    house.exec("k", "echo x >> effect", &more).success();
    let second = house.exec("k", "echo x >> effect", &more).success();
    assert_eq!(
        (second["fromCache"].as_bool(), house.lines("effect")),
        (Some(false), 2)
    );
    let record = house.records()[0]["key"].as_str().expect("a key")[..12].to_owned();
    let request = second["requestId"].as_str().expect("an id");
    let explained = house.run(&["explain", request]).stdout;
    let says = format!("would have been answered from the record {record}");
    assert!(explained.contains(&says), "{explained}");
    let text = std::fs::read_to_string(&log).expect("a log");
    let hit = text.lines().find(|line| line.contains("tool_call_dedupe"));
    let hit: Value = serde_json::from_str(hit.expect("a hit")).expect("JSON");
    assert_eq!(
        (&hit["shadow"], &hit["idempotencyKeyHash"]),
        (&true.into(), &record.into())
    );
}

#[test]
fn what_a_call_leaves_behind_ends_with_it() {
    let house = House::new();
    let seconds = format!("1{}", std::process::id());
    let ran = house.exec("k", &format!("sleep {seconds} & echo left"), &[]);
    let answer = ran.success();
    let content = &answer["output"]["content"];
    assert_eq!(content["still_running"], false, "{content}");
    let told = content["hint"].as_str().expect("a hint");
    assert!(told.contains("ended with this call"), "{told}");
    // Why it failed is told as before.
    let outside = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let command = format!("sleep {seconds} & touch {}/x", outside.path().display());
    let answer = house.exec("denied", &command, &[]).success();
    let told = answer["output"]["content"]["hint"].to_string();
    assert!(
        told.contains("ended with this call") && told.contains("confine"),
        "{told}"
    );
    let processes = std::fs::read_dir("/proc").expect("there").flatten();
    let mut lines = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    let left = format!("sleep\0{seconds}\0");
    assert!(!lines.any(|line| line == left.as_bytes()), "it still runs");
}
