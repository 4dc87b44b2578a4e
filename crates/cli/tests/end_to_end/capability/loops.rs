//! A model that repeats itself is told, then stopped: also when every call is another process.

use serde_json::Value;

use crate::common::{House, Ran};

const LOOP_DETECTED: &str = "[LOOP DETECTED] Tool \"read\" failed 2 times with identical arguments.\n\
                             This is a non-retryable error. Do NOT retry this call.\n\
                             Try a different approach or report the issue.";

fn read(house: &House, args: Option<&str>, turn: &str) -> Ran {
    let mut typed = vec!["call", "read", "--json", "--turn", turn];
    typed.extend(args.into_iter().flat_map(|args| ["--args", args]));
    house.run(&typed)
}

fn message(answer: &Value) -> &str {
    answer["error"]["message"].as_str().expect("a message")
}

#[test]
fn read_without_a_path_is_told_at_two_and_blocked_at_three() {
    let house = House::new();
    let first = read(&house, Some("{}"), "t1").error("invalid_arguments");
    assert!(message(&first).contains("Missing required parameter: path"));
    assert!(!message(&first).contains("LOOP DETECTED"));
    let second = read(&house, Some("{}"), "t1").error("invalid_arguments");
    assert!(message(&second).ends_with(LOOP_DETECTED), "{second}");
    let third = read(&house, Some("{}"), "t1").error("loop_detected");
    assert!(message(&third).contains(LOOP_DETECTED), "{third}");
    assert_eq!(third["attempts"], 0);
    assert_eq!(third["error"]["terminal"], true);
    // Another turn starts afresh.
    let other = read(&house, Some("{}"), "t2").error("invalid_arguments");
    assert!(!message(&other).contains("LOOP DETECTED"));
    assert_eq!(house.records(), Vec::<Value>::new());
}

#[test]
fn no_arguments_are_the_same_however_they_are_written() {
    let house = House::new();
    read(&house, Some("{}"), "t1").error("invalid_arguments");
    let second = read(&house, Some("null"), "t1").error("invalid_arguments");
    assert!(message(&second).ends_with(LOOP_DETECTED));
    read(&house, None, "t1").error("loop_detected");
    read(&house, Some(" { } "), "t1").error("loop_detected");
}

#[test]
fn five_failures_end_the_turn() {
    let house = House::new();
    for number in 0..4 {
        let args = format!(r#"{{"path":"missing-{number}"}}"#);
        read(&house, Some(&args), "t1").error("not_found");
    }
    let fifth = read(&house, Some(r#"{"path":"missing-4"}"#), "t1").json();
    assert!(message(&fifth).contains("[TOOL ERROR LIMIT]"), "{fifth}");
    let args = r#"{"command":"echo x >> effect"}"#;
    let blocked = house.run(&["call", "exec", "--json", "--turn", "t1", "--args", args]);
    blocked.error("tool_error_limit");
    assert_eq!(house.lines("effect"), 0);
}

#[test]
fn a_request_that_came_twice_is_one_request() {
    let house = House::new();
    let deliver = |request: &str| {
        let args = r#"{"path":"missing"}"#;
        let call = ["call", "read", "--json", "--args", args, "--request"];
        house.run(&[&call[..], &[request]].concat());
    };
    for request in ["rq-100", "rq-100", "rq-200", "rq-201", "rq-201"] {
        deliver(request);
    }
    let explained = house.run(&["explain", "rq-1", "--json"]);
    assert_eq!(explained.code, Some(0), "{explained:?}");
    assert_eq!(explained.json()["requestId"], "rq-100");
    // However often one of them came, two are two.
    let several = house.run(&["explain", "rq-2"]);
    assert_eq!(several.code, Some(1), "{several:?}");
    assert!(several.stderr.contains("several request ids"));
    let all = house.run(&["explain", "--json"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(5), "each delivery");
}

#[test]
fn explain_says_why_a_call_was_blocked() {
    let house = House::new();
    let mut answers = Vec::new();
    for _ in 0..3 {
        answers.push(read(&house, Some("{}"), "t1").json());
    }
    let request = answers[2]["requestId"].as_str().expect("an id");
    let text = house.run(&["explain", request]);
    assert_eq!(text.code, Some(0));
    for part in [
        "read {}",
        "loop_detected",
        request,
        "turn t1",
        "0 attempts",
        "identical",
    ] {
        assert!(text.stdout.contains(part), "not {part:?}: {}", text.stdout);
    }
    let entry = house.run(&["explain", request, "--json"]).json();
    assert_eq!(entry["requestId"], request);
    assert_eq!(entry["errorCode"], "loop_detected");
    assert_eq!(entry["turn"], "t1");
    assert_eq!(entry["attempts"], 0);
    assert!(!entry["why"].as_array().expect("a list").is_empty());
    let all = house.run(&["explain", "--json"]).json();
    let listed: Vec<_> = all.as_array().expect("a list").iter().collect();
    assert_eq!(listed.len(), 3);
    assert_eq!(listed[0]["requestId"], request, "the newest is first");
    assert_eq!(
        house
            .run(&["explain", "--limit", "1", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    let none = house.run(&["explain", "no-such-request"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("no-such-request"));
}

#[test]
fn an_edit_in_between_is_progress() {
    let house = House::new();
    let fails = || read(&house, Some(r#"{"path":"note"}"#), "t1");
    fails().error("not_found");
    let args = r#"{"path":"other","content":"x"}"#;
    let write = ["call", "write", "--json", "--turn", "t1", "--args", args];
    house.run(&write).success();
    let again = fails().error("not_found");
    assert!(!message(&again).contains("LOOP DETECTED"));
}

#[test]
fn a_call_that_its_caller_cuts_off_again_and_again_is_a_loop() {
    let house = House::new();
    let more = ["--turn", "t", "--deadline-ms", "250"];
    // On a busy machine the time may be up before the guard has seen the call: then it does not
    // count, and one more is needed.
    let mut codes = Vec::new();
    while codes.last().is_none_or(|code| code != "tool_error_limit") {
        assert!(codes.len() < 40, "{codes:?}");
        let number = codes.len();
        let ran = house.exec(&format!("k{number}"), &format!("sleep 10{number}"), &more);
        let code = ran.json()["error"]["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        codes.push(code);
    }
    assert!(codes.len() > 5, "{codes:?}");
}
