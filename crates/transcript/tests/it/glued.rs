//! Whole entries that share a line with something broken, or with each other.

use holdfast_transcript::scan::scan_bytes;
use holdfast_transcript::write::repair_bytes;
use holdfast_transcript::{Fault, Strategy};

/// A session with a call and its result, in four formats.
fn sessions() -> Vec<Vec<String>> {
    let claw = |id: &str, parent: &str, message: &str| {
        format!(r#"{{"type":"message","id":"{id}","parentId":{parent},"message":{message}}}"#)
    };
    let claude = |kind: &str, id: &str, parent: &str, message: &str| {
        format!(
            r#"{{"parentUuid":{parent},"sessionId":"s","type":"{kind}","message":{message},"uuid":"{id}"}}"#
        )
    };
    let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c1","name":"read","arguments":{"path":"a"}}]}"#;
    let result = r#"{"role":"toolResult","toolCallId":"c1","toolName":"read","content":[{"type":"text","text":"x"}]}"#;
    let user = r#"{"role":"user","content":"hi {\"role\":\"user\"}"}"#;
    let asked = r#"{"id":"m","role":"assistant","content":[{"type":"tool_use","id":"c1","name":"read","input":{"path":"a"}}]}"#;
    let told =
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]}"#;
    let item = |payload: &str| {
        format!(
            r#"{{"timestamp":"2026-11-01T00:00:00Z","type":"response_item","payload":{payload}}}"#
        )
    };
    vec![
        vec![
            r#"{"type":"session","version":3,"id":"s"}"#.to_owned(),
            claw("a", "null", user),
            claw("b", "\"a\"", call),
            claw("c", "\"b\"", result),
            claw("d", "\"c\"", user),
        ],
        vec![
            claude("user", "a", "null", user),
            claude("assistant", "b", "\"a\"", asked),
            claude("user", "c", "\"b\"", told),
            claude("user", "d", "\"c\"", user),
        ],
        vec![
            item(r#"{"type":"message","role":"user","content":[]}"#),
            item(r#"{"type":"function_call","call_id":"c1","name":"read","arguments":"{}"}"#),
            item(r#"{"type":"function_call_output","call_id":"c1","output":"x"}"#),
            item(r#"{"type":"message","role":"user","content":[]}"#),
        ],
        vec![
            user.to_owned(),
            asked.to_owned(),
            told.to_owned(),
            user.to_owned(),
        ],
    ]
}

fn repaired(text: &str, strategy: Strategy) -> String {
    let report = scan_bytes("s.jsonl", text.as_bytes()).expect("a session");
    let faults: Vec<Fault> = report.findings.iter().map(|it| it.fault).collect();
    assert_eq!(faults, [Fault::InvalidLine], "{text}");
    let repaired = repair_bytes(text.as_bytes(), strategy).expect("repairs");
    String::from_utf8(repaired.expect("changes")).expect("UTF-8")
}

#[test]
fn two_entries_in_one_line_become_two_lines() {
    for lines in sessions() {
        let whole = lines.join("\n") + "\n";
        for at in 1..lines.len() {
            for between in ["", "  ", "\0\0\0", "tru"] {
                let text = [
                    &lines[..at].join("\n"),
                    between,
                    &lines[at..].join("\n"),
                    "\n",
                ]
                .concat();
                for strategy in Strategy::ALL {
                    assert_eq!(repaired(&text, strategy), whole, "{between:?} {text}");
                }
            }
        }
    }
}

#[test]
fn half_an_entry_costs_nothing_but_itself() {
    for lines in sessions() {
        let whole = lines.join("\n") + "\n";
        let extra = lines.last().expect("a line").replace("\"d\"", "\"e\"");
        for at in 1..lines.len() {
            for cut in (1..extra.len()).filter(|cut| extra.is_char_boundary(*cut)) {
                let half = &extra[..cut];
                // An agent appends behind the half that a crash left.
                let head = lines[..at].join("\n");
                let text = format!("{head}\n{half}{}\n", lines[at..].join("\n"));
                assert_eq!(repaired(&text, Strategy::RemoveOrphans), whole, "{text}");
            }
        }
    }
}

#[test]
fn a_session_of_one_line_is_still_told() {
    for lines in sessions() {
        let [.., call, result, last] = &lines[..] else {
            return;
        };
        let whole = format!("{call}\n{result}\n{last}\n");
        let text = format!("{call}{result}{last}\n");
        let repaired = repair_bytes(text.as_bytes(), Strategy::RemoveOrphans);
        let repaired = repaired.expect("a session").expect("changes");
        assert_eq!(String::from_utf8_lossy(&repaired), whole);
        let half = format!("{}{last}\n", &call[..call.len() / 2]);
        let repaired = repair_bytes(half.as_bytes(), Strategy::RemoveOrphans);
        let repaired = repaired.expect("a session").expect("changes");
        // Whom it continued is gone, so that it begins the session.
        let begins = last.replace("\"c\"", "null");
        let repaired = String::from_utf8_lossy(&repaired).replace("\"c\"", "null");
        assert_eq!(repaired, format!("{begins}\n"));
    }
}

#[test]
fn what_is_behind_the_last_entry_goes_and_its_line_ends() {
    for lines in sessions() {
        let whole = lines.join("\n");
        for rest in ["\0\0", "{\"type\":\"mess", "}"] {
            let text = format!("{whole}{rest}");
            let ended = format!("{whole}\n");
            assert_eq!(repaired(&text, Strategy::RemoveOrphans), ended, "{text}");
        }
    }
}

#[test]
fn a_piece_of_a_broken_entry_is_no_entry() {
    let [claw, claude, codex, _] = &sessions()[..] else {
        return;
    };
    // The envelope breaks off right behind the message in it.
    for (lines, lost) in [(claw, "}"), (claude, ",\"uuid\":\"d\"}"), (codex, "}")] {
        let last = lines.last().expect("a line");
        let half = last.strip_suffix(lost).expect("ends so");
        let kept = lines[..lines.len() - 1].join("\n") + "\n";
        let text = format!("{kept}{half}\n");
        assert_eq!(repaired(&text, Strategy::RemoveOrphans), kept, "{text}");
    }
}

#[test]
fn a_hostile_line_is_given_up_and_not_walked_for_ever() {
    let lines = &sessions()[0];
    let whole = lines.join("\n") + "\n";
    let text = format!("{whole}{}\n", "{\"a\":[".repeat(200_000));
    assert_eq!(repaired(&text, Strategy::RemoveOrphans), whole);
}
