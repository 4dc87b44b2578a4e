//! What a person sees, to the letter.

use crate::common::{House, Ran};

/// The text with what differs from run to run taken out.
fn screen(ran: &Ran) -> String {
    let lines = ran.stdout.lines().map(|line| {
        let mut words: Vec<String> = line.split(' ').map(steady).collect();
        for index in 1..words.len() {
            let unit = words[index].trim_end_matches([',', ')']);
            let is_duration = ["ms", "s"].contains(&unit)
                && words[index - 1]
                    .chars()
                    .all(|c| c.is_ascii_digit() || ['(', '.'].contains(&c));
            if is_duration {
                // A busy machine takes seconds.
                words[index] = words[index].replacen(unit, "ms", 1);
                "[n]".clone_into(&mut words[index - 1]);
            }
        }
        words.join(" ").trim_end().to_owned()
    });
    format!(
        "{}\n[exit {:?}]",
        lines.collect::<Vec<_>>().join("\n"),
        ran.code.unwrap_or(-1)
    )
}

/// A request id becomes a mark, and so does the name of a record.
fn steady(word: &str) -> String {
    let bare = word.trim_end_matches([')', '`']);
    if bare.len() == 12 && bare.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return word.replace(bare, "[record]");
    }
    let is_id = bare.len() == 36 && bare.bytes().filter(|byte| *byte == b'-').count() == 4;
    if is_id {
        word.replace(bare, "[id]")
    } else {
        word.to_owned()
    }
}

#[test]
fn help() {
    let house = House::new();
    insta::assert_snapshot!("help", screen(&house.run(&["--help"])));
    insta::assert_snapshot!("call_help", screen(&house.run(&["call", "--help"])));
}

#[test]
fn a_success_and_its_duplicate() {
    let house = House::new();
    let args = r#"{"command":"echo one; echo two; echo careful >&2; exit 3"}"#;
    let call = ["call", "exec", "--key", "k", "--args", args];
    insta::assert_snapshot!("success", screen(&house.run(&call)));
    insta::assert_snapshot!("duplicate", screen(&house.run(&call)));
}

#[test]
fn a_validation_error_that_becomes_a_loop() {
    let house = House::new();
    let call = || screen(&house.run(&["call", "read", "--turn", "t1", "--request", "r"]));
    insta::assert_snapshot!("validation_error", call());
    insta::assert_snapshot!("loop_told", call());
    insta::assert_snapshot!("loop_blocked", call());
    let explained = screen(&house.run(&["explain", "--limit", "1"]));
    assert!(explained.contains("loop_detected"), "{explained}");
}

#[test]
fn a_call_that_can_not_be_known() {
    let house = House::new();
    let deadly = house.deadly();
    let killed = house.exec("k", "kill -9 $PPID; sleep 1000", &["--config", &deadly]);
    assert_eq!(killed.code, None);
    let args = r#"{"command":"kill -9 $PPID; sleep 1000"}"#;
    let call = ["call", "exec", "--key", "k", "--args", args];
    insta::assert_snapshot!("unknown", screen(&house.run(&call)));
}
