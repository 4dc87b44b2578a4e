//! One key, one effect, however many processes ask at once.

use crate::common::{HELD, House, command_json, eventually_lines};

const PROCESSES: usize = 20;
const ROUNDS: usize = 3;

#[test]
fn twenty_processes_one_effect() {
    let house = House::new();
    for round in 0..ROUNDS {
        let (key, file) = (format!("order-{round}"), format!("effect-{round}"));
        let command = command_json(&format!(
            "echo x >> {file}; sleep 0.3; echo paid by $$; echo careful >&2"
        ));
        let args = ["call", "exec", "--json", "--key", &key, "--args", "-"];
        // Each waits for its arguments, so all of them have started before the first begins.
        let mut processes: Vec<_> = (0..PROCESSES)
            .map(|_| house.start_with_stdin(&args))
            .collect();
        for process in &mut processes {
            process.feed(&command);
        }
        let answers: Vec<_> = processes
            .into_iter()
            .map(|process| process.ended().success())
            .collect();
        assert_eq!(house.lines(&file), 1, "round {round}");
        let contents: Vec<_> = answers
            .iter()
            .map(|answer| &answer["output"]["content"])
            .collect();
        assert!(contents.iter().all(|content| *content == contents[0]));
        let cached = |answer: &&serde_json::Value| answer["fromCache"] == true;
        assert_eq!(answers.iter().filter(cached).count(), PROCESSES - 1);
        let ran = answers.iter().find(|answer| !cached(answer)).expect("one");
        assert_eq!(ran["attempts"], 1);
    }
    assert_eq!(house.records().len(), ROUNDS);
}

#[test]
fn a_duplicate_waits_for_the_answer_of_another_process() {
    let house = House::new();
    let holder = house.start_held("k", &[]);
    let mut duplicate = house.start_exec("k", HELD, &[]);
    duplicate.waits_for_another();
    assert!(duplicate.is_running());
    let first = house.let_go(holder);
    let second = duplicate
        .ended_in_time("the duplicate is answered")
        .success();
    assert_eq!(first["output"]["content"], second["output"]["content"]);
    assert_eq!(second["fromCache"], true);
    assert_eq!(house.lines("effect"), 1);
}

/// A command inherits a lock, and whoever has a lock can release it. It has to be one of its own.
#[test]
fn a_command_can_not_make_its_own_call_look_dead() {
    let house = House::new();
    let command = "for fd in $(seq 3 63); do flock -u $fd; done; echo x >> effect; \
                   until [ -e go ]; do sleep 0.01; done";
    let holder = house.start_exec("k", command, &[]);
    eventually_lines(&house, "effect", 1);
    let mut duplicate = house.start_exec("k", command, &[]);
    duplicate.waits_for_another();
    assert!(duplicate.is_running());
    house.let_go(holder);
    let second = duplicate.ended_in_time("the duplicate is answered");
    assert_eq!(second.success()["fromCache"], true);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn best_effort_does_not_wait() {
    let house = House::new();
    let holder = house.start_held("k", &[]);
    let answer = house
        .exec("k", HELD, &["--dedupe", "bestEffort"])
        .error("duplicate_in_flight");
    assert_eq!(answer["error"]["retriable"], true);
    assert_eq!(answer["attempts"], 0);
    house.let_go(holder);
    let later = house.exec("k", HELD, &["--dedupe", "best-effort"]);
    assert_eq!(later.success()["fromCache"], true);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn a_waiting_duplicate_gives_up_at_its_own_deadline() {
    let house = House::new();
    let holder = house.start_held("k", &[]);
    let answer = house.exec("k", HELD, &["--deadline-ms", "50"]).json();
    assert_eq!(answer["status"], "timeout");
    assert_eq!(answer["attempts"], 0);
    // It gave up alone: the first call is not disturbed.
    house.let_go(holder);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn one_key_does_not_fit_two_intents() {
    let house = House::new();
    house.exec("k", "echo a >> effect", &[]).success();
    let answer = house
        .exec("k", "echo b >> effect", &[])
        .error("idempotency_key_conflict");
    assert_eq!(answer["attempts"], 0);
    assert_eq!(house.lines("effect"), 1);
    // Another session's key is another key.
    house
        .exec("k", "echo b >> effect", &["--session", "other"])
        .success();
    assert_eq!(house.lines("effect"), 2);
}

#[test]
fn without_a_key_each_call_is_an_intent_of_its_own() {
    let house = House::new();
    let command = command_json("echo x >> effect");
    for _ in 0..2 {
        let answer = house.run(&["call", "exec", "--json", "--args", &command]);
        assert_eq!(answer.success()["fromCache"], false);
    }
    assert_eq!(house.lines("effect"), 2);
    // The same request, delivered again, is the same intent.
    for _ in 0..2 {
        let args = [
            "call",
            "exec",
            "--request",
            "r-1",
            "--json",
            "--args",
            &command,
        ];
        house.run(&args).success();
    }
    assert_eq!(house.lines("effect"), 3);
    // With another command it is none.
    let other = command_json("echo y >> effect");
    let again = ["call", "exec", "--request", "r-1", "--json", "--args"];
    let again = [&again[..], &[&other]].concat();
    house.run(&again).error("idempotency_key_conflict");
    assert_eq!(house.lines("effect"), 3);
}

#[test]
fn second_look_under_a_reused_id_sees_the_write_in_between() {
    let house = House::new();
    std::fs::write(house.path("note"), "first\n").expect("writes");
    let run = |command: &str| {
        let command = command_json(command);
        let place = ["--turn", "t", "--call-id", "call_0"];
        let call = ["call", "exec", "--json", "--args", command.as_str()];
        house.run(&[&call[..], &place].concat()).success()
    };
    assert_eq!(run("cat note")["output"]["content"]["stdout"], "first\n");
    assert_eq!(run("cat note")["fromCache"], true);
    run("echo second > note");
    let again = run("cat note");
    assert_eq!(again["output"]["content"]["stdout"], "second\n", "{again}");
}

#[test]
fn named_read_is_answered_from_its_record_by_another_process() {
    let house = House::new();
    std::fs::write(house.path("note"), "first\n").expect("writes");
    let args = r#"{"path":"note","limit":"5","offset":null}"#;
    let read = |key: &str| {
        let call = ["call", "read", "--key", key, "--json", "--args", args];
        house.run(&call).success()
    };
    assert_eq!(read("k")["fromCache"], false);
    std::fs::write(house.path("note"), "second\n").expect("writes");
    let again = read("k");
    assert_eq!(again["fromCache"], true, "{again}");
    assert_eq!(again["output"]["content"]["content"], "first\n");
    assert_eq!(read("l")["output"]["content"]["content"], "second\n");
}

#[test]
fn one_key_in_two_directories_is_two_intents() {
    let house = House::new();
    let other = house.path("other");
    std::fs::create_dir(&other).expect("a directory");
    let write = r#"{"path": "hello.txt", "content": "hi"}"#;
    let call = ["call", "write", "--key", "init", "--args", write, "--json"];
    house.run(&call).success();
    let there = other.display().to_string();
    let answer = house
        .run(&[&call[..], &["--workspace", &there]].concat())
        .success();
    assert_eq!(answer["fromCache"], false);
    assert!(other.join("hello.txt").exists());
}

#[test]
fn a_turn_that_is_over_still_tells_what_a_key_stands_for() {
    let house = House::new();
    let turn = ["--turn", "t"];
    let paid = house.exec("paid", "echo x >> effect", &turn).success();
    for number in 0..5 {
        let args = format!(r#"{{"path": "missing-{number}"}}"#);
        house.run(&["call", "read", "--args", &args, "--turn", "t"]);
    }
    house
        .exec("other", "echo x >> effect", &turn)
        .error("tool_error_limit");
    let again = house.exec("paid", "echo x >> effect", &turn).success();
    assert_eq!(again["output"]["content"], paid["output"]["content"]);
    assert_eq!(again["fromCache"], true);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn a_parent_that_ignores_its_children_does_not_hide_how_commands_end() {
    let house = House::new();
    let binary = env!("CARGO_BIN_EXE_holdfast");
    let script = format!(
        "trap '' CHLD; exec {binary} call exec --key k --json --args '{}'",
        r#"{"command": "echo x >> effect; exit 3"}"#
    );
    let ran = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("HOME", house.home())
        .env("HOLDFAST_STATE", house.state())
        .current_dir(house.workspace())
        .output()
        .expect("runs");
    let answer: serde_json::Value = serde_json::from_slice(&ran.stdout).expect("an answer");
    assert_eq!(answer["output"]["content"]["exit_code"], 3, "{answer}");
    assert_eq!(house.lines("effect"), 1);
}
