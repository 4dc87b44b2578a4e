use holdfast_transcript::{Format, history};

use super::*;

/// One call a request, in one turn: tool, arguments, seconds since the first, what came back.
fn session(calls: &[(&str, Value, u64, Outcome)]) -> Session {
    let mut lines = Vec::new();
    let message = |at: u64, message: Value| json!({"type": "message", "timestamp": 1_700_000_000_000 + at * 1_000, "message": message});
    let mut read = |entry: Value| lines.push(entry.to_string());
    read(message(0, json!({"role": "user", "content": "go"})));
    for (number, (tool, arguments, at, outcome)) in calls.iter().enumerate() {
        let id = format!("c{number}");
        read(message(
            *at,
            json!({"role": "assistant", "content": [
            {"type": "toolCall", "id": id, "name": tool, "arguments": arguments}]}),
        ));
        read(message(
            *at,
            json!({"role": "toolResult", "toolCallId": id,
            "isError": outcome.failed, "details": {"exitCode": outcome.exit_code},
            "content": outcome.text}),
        ));
    }
    history::read(Format::OpenClaw, lines.join("\n").as_bytes()).expect("a transcript")
}

fn failed(text: &str) -> Outcome {
    Outcome {
        failed: true,
        text: text.to_owned(),
        ..Outcome::default()
    }
}

fn worked(text: &str) -> Outcome {
    Outcome {
        text: text.to_owned(),
        ..Outcome::default()
    }
}

fn exit(code: i32, text: &str) -> Outcome {
    Outcome {
        exit_code: Some(code),
        ..worked(text)
    }
}

fn judge(calls: &[(&str, Value, u64, Outcome)]) -> Vec<Verdict> {
    Replay::new(&GuardConfig::default())
        .expect("a judge")
        .judge(&session(calls))
}

#[test]
fn an_empty_read_in_a_loop_is_warned_of_and_then_stopped() {
    let missing = || failed("Validation failed for tool \"read\": path is required");
    let calls: Vec<_> = (0..6)
        .map(|at| ("read", json!({}), at, missing()))
        .collect();
    let verdicts = judge(&calls);
    assert_eq!(verdicts[..2], [Verdict::Fine, Verdict::Warned]);
    assert!(
        verdicts[2..]
            .iter()
            .all(|verdict| *verdict == Verdict::Stopped),
        "{verdicts:?}"
    );
}

#[test]
fn editing_between_two_failing_tests_is_work() {
    let test = || ("exec", json!({"command": "cargo test"}));
    let mut calls = Vec::new();
    for round in 0..6 {
        let (tool, arguments) = test();
        calls.push((tool, arguments, round * 2, exit(1, "1 failed")));
        let edit = json!({"path": "a.rs", "old": round, "new": round + 1});
        calls.push(("edit", edit, round * 2 + 1, worked("edited")));
    }
    let verdicts = judge(&calls);
    assert!(
        verdicts.iter().all(|verdict| *verdict == Verdict::Fine),
        "{verdicts:?}"
    );
}

#[test]
fn a_message_sent_again_within_the_window_is_a_duplicate() {
    let said = json!({"to": "anna", "text": "hello"});
    let verdicts = judge(&[
        ("message", said.clone(), 0, worked("sent")),
        ("message", said.clone(), 5, worked("sent")),
        ("message", said, 600, worked("sent")),
    ]);
    assert_eq!(verdicts, [Verdict::Fine, Verdict::Duplicate, Verdict::Fine]);
}

#[test]
fn whatever_sends_by_its_name_has_the_window_of_message() {
    for tool in [
        "post",
        "book",
        "email",
        "notify",
        "send_email",
        "post_message",
        "book_flight",
        "mcp__gmail__send_email",
        "sendEmail",
        "SendEmail",
        "slack.postMessage",
    ] {
        let said = json!({"to": "anna", "text": "hello"});
        let verdicts = judge(&[
            (tool, said.clone(), 0, worked("sent")),
            (tool, said.clone(), 5, worked("sent")),
            (tool, said, 600, worked("sent")),
        ]);
        let expected = [Verdict::Fine, Verdict::Duplicate, Verdict::Fine];
        assert_eq!(verdicts, expected, "{tool}");
    }
    // A word that only begins like one says nothing.
    let again = || ("bookmarks", json!({"page": 1}), 0, worked("saved"));
    assert_eq!(judge(&[again(), again()]), [Verdict::Fine, Verdict::Fine]);
}

#[test]
fn the_same_command_or_edit_twice_is_never_called_a_duplicate() {
    let command = json!({"command": "date"});
    let verdicts = judge(&[
        ("exec", command.clone(), 0, exit(0, "Mon")),
        ("exec", command.clone(), 1, exit(0, "Tue")),
        ("Bash", command.clone(), 2, exit(0, "Wed")),
        ("Bash", command, 3, exit(0, "Thu")),
    ]);
    assert!(
        verdicts.iter().all(|verdict| *verdict == Verdict::Fine),
        "{verdicts:?}"
    );
}

#[test]
fn what_a_guard_wrote_into_the_transcript_is_not_counted_as_ours() {
    let verdicts = judge(&[(
        "read",
        json!({"path": "a"}),
        0,
        failed("no such file [LOOP DETECTED] by the host"),
    )]);
    assert_eq!(verdicts, [Verdict::Fine]);
}

#[test]
fn arguments_that_are_no_object_and_names_that_are_none_are_judged_too() {
    let verdicts = judge(&[
        ("", json!({}), 0, failed("Unknown tool: ")),
        (
            "read",
            json!("not json"),
            1,
            failed("Expected object but received string"),
        ),
        ("read", Value::Null, 2, worked("x")),
    ]);
    assert_eq!(verdicts.len(), 3);
}
