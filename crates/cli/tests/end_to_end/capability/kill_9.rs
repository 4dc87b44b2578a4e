//! `kill -9` at every point of a call: the effect is never repeated, and what can not be known is
//! said to be unknown until a person clears it.

use serde_json::Value;

use crate::common::{House, eventually, eventually_lines, is_alive, pid_in, writes_beside};

const KEY: &str = "order-17";
const EFFECT: &str = "echo x >> effect";

/// A configuration whose hook of that phase kills the process that runs it.
fn killer(house: &House, phase: &str) -> String {
    let yaml = format!("hooks:\n  {phase}:\n    - command: [sh, -c, 'kill -9 $PPID']\n");
    house.file(&format!("kill-{phase}.yaml"), &yaml)
}

/// The call ended as unknown: it says so however often it is asked, and runs nothing, until the
/// key is cleared. Then it runs.
fn unknown_until_cleared(house: &House, command: &str, effects: usize) {
    for _ in 0..2 {
        let answer = house.exec(KEY, command, &[]).error("outcome_unknown");
        assert_eq!(answer["error"]["terminal"], true);
        assert_eq!(answer["attempts"], 0);
        assert_eq!(house.lines("effect"), effects);
    }
    assert_eq!(house.only_state().as_deref(), Some("unknown"));
    let cleared = house.run(&["dedupe", "clear", KEY]);
    assert_eq!(cleared.code, Some(0), "{cleared:?}");
    let answer = house.exec(KEY, EFFECT, &[]).success();
    assert_eq!(answer["fromCache"], false);
    assert_eq!(house.lines("effect"), effects + 1);
}

#[test]
fn kill_9_before_the_claim_leaves_nothing_behind() {
    let house = House::new();
    let config = killer(&house, "admit");
    let killed = house.exec(KEY, EFFECT, &["--config", &config]);
    assert_eq!(killed.code, None);
    assert_eq!(house.records(), Vec::<Value>::new());
    assert_eq!(house.lines("effect"), 0);
    let answer = house.exec(KEY, EFFECT, &[]).success();
    assert_eq!(answer["fromCache"], false);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn kill_9_between_claim_and_tool_is_unknown_until_cleared() {
    let house = House::new();
    let config = killer(&house, "before");
    let killed = house.exec(KEY, EFFECT, &["--config", &config]);
    assert_eq!(killed.code, None);
    assert_eq!(house.lines("effect"), 0);
    unknown_until_cleared(&house, EFFECT, 0);
}

#[test]
fn kill_9_during_the_tool_is_unknown_until_cleared() {
    let house = House::new();
    let command = "echo x >> effect; kill -9 $PPID; sleep 1000";
    let deadly = house.deadly();
    let killed = house.exec(KEY, command, &["--config", &deadly]);
    assert_eq!(killed.code, None);
    assert_eq!(house.lines("effect"), 1);
    unknown_until_cleared(&house, command, 1);
}

/// What `explain` knows of the call with this request id, for programs and for people.
fn explained(house: &House, request: &str) -> (Value, String) {
    let json = house.run(&["explain", request, "--json"]);
    assert_eq!(json.code, Some(0), "{json:?}");
    (json.json(), house.run(&["explain", request]).stdout)
}

#[test]
fn a_call_that_was_killed_is_explained() {
    let house = House::new();
    let command = "echo x >> effect; kill -9 $PPID; sleep 1000";
    let deadly = house.deadly();
    let more = ["--config", &deadly, "--request", "killed-1"];
    assert_eq!(house.exec(KEY, command, &more).code, None);
    let key = house.records()[0]["key"].as_str().expect("a key")[..12].to_owned();
    // Nobody has asked since: its claim is all there is.
    let (json, text) = explained(&house, "killed");
    assert_eq!(
        (&json["status"], &json["errorCode"], &json["tool"]),
        (
            &"abandoned".into(),
            &"outcome_unknown".into(),
            &"exec".into()
        ),
        "{json}"
    );
    for says in ["its effect may have happened or not", "dedupe clear", &key] {
        assert!(text.contains(says), "not {says:?}: {text}");
    }
    let listed = house.run(&["explain"]).stdout;
    assert!(listed.contains("killed-1"), "{listed}");
    // Somebody asked: now it is on record as unknown, and the first call is still explained.
    house.exec(KEY, command, &[]).error("outcome_unknown");
    let (json, text) = explained(&house, "killed-1");
    assert_eq!(json["status"], "unknown", "{json}");
    assert!(text.contains("dedupe clear"), "{text}");
}

#[test]
fn a_call_that_runs_is_explained() {
    let house = House::new();
    let running = house.start_held(KEY, &["--request", "running-1"]);
    let (json, text) = explained(&house, "running-1");
    assert_eq!(json["status"], "running", "{json}");
    assert!(text.contains("its process is alive"), "{text}");
    house.let_go(running);
    assert_eq!(explained(&house, "running-1").0["status"], "success");
    let waiting = house.start_exec(
        "w",
        "git push --force victim || true",
        &["--request", "waiting-1"],
    );
    eventually("it waits", || {
        let listed = house.run(&["approvals", "list", "--json"]).json();
        (listed.as_array().map(Vec::len) == Some(1)).then_some(())
    });
    let (json, text) = explained(&house, "waiting-1");
    assert_eq!(json["status"], "waiting", "{json}");
    assert!(text.contains("nothing has run"), "{text}");
    waiting.kill_9();
    let (json, text) = explained(&house, "waiting-1");
    assert_eq!(json["status"], "abandoned", "{json}");
    assert!(text.contains("approvals resume"), "{text}");
}

#[test]
fn kill_9_during_the_tool_takes_its_grandchildren_along() {
    let house = House::new();
    let command = "echo x >> effect; (sh -c 'echo $$ > pid; exec sleep 1000'; true); true";
    let call = house.start_exec(KEY, command, &[]);
    let grandchild = pid_in(&house.path("pid"));
    assert!(is_alive(grandchild));
    call.kill_9();
    eventually("the grandchild is gone", || {
        (!is_alive(grandchild)).then_some(())
    });
    unknown_until_cleared(&house, command, 1);
}

#[test]
fn kill_9_between_tool_and_record_is_unknown_until_cleared() {
    let house = House::new();
    let config = killer(&house, "after");
    let killed = house.exec(KEY, EFFECT, &["--config", &config]);
    assert_eq!(killed.code, None);
    assert_eq!(house.lines("effect"), 1);
    unknown_until_cleared(&house, EFFECT, 1);
}

#[test]
fn kill_9_after_the_record_loses_nothing() {
    let house = House::new();
    // More than a pipe holds, and nobody reads it: the process hangs in printing its answer.
    let command = "echo x >> effect; yes out | head -c 60000; yes err | head -c 60000 >&2";
    let call = house.start_exec(KEY, command, &[]);
    eventually("the record is done", || {
        (house.only_state()? == "done").then_some(())
    });
    call.kill_9();
    let answer = house.exec(KEY, command, &[]).success();
    assert_eq!(answer["fromCache"], true);
    let stdout = answer["output"]["content"]["stdout"]
        .as_str()
        .expect("text");
    assert_eq!(stdout.len(), 60000);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn a_waiting_duplicate_is_answered_when_the_holder_is_killed() {
    let house = House::new();
    let command = "echo x >> effect; (sleep 1000; true); true";
    let holder = house.start_exec(KEY, command, &[]);
    eventually_lines(&house, "effect", 1);
    // Each in a turn of its own, so that together they are no loop.
    let mut duplicates =
        ["t1", "t2", "t3"].map(|turn| house.start_exec(KEY, command, &["--turn", turn]));
    for duplicate in &mut duplicates {
        duplicate.waits_for_another();
    }
    holder.kill_9();
    for duplicate in duplicates {
        let answer = duplicate.ended_in_time("long before the lease ends");
        answer.error("outcome_unknown");
    }
    unknown_until_cleared(&house, command, 1);
}

#[test]
fn a_read_that_was_killed_just_runs_again() {
    let house = House::new();
    std::fs::write(house.path("note"), "text\n").expect("writes");
    let args = r#"{"path":"note"}"#;
    let read = ["call", "read", "--json", "--key", KEY, "--args", args];
    for phase in ["before", "after"] {
        let config = killer(&house, phase);
        let killed = house.run(&[&read[..], &["--config", &config]].concat());
        assert_eq!(killed.code, None);
    }
    house.run(&read).success();
}

#[test]
fn a_process_that_left_the_group_keeps_the_call_alive() {
    let house = House::new();
    // It has a session of its own, so it outlives us with its effect still to come.
    let command = "setsid sh -c 'echo $$ > pid; until [ -e go ]; do sleep 0.01; done; \
                   echo x >> effect' > /dev/null 2>&1 & until [ -e pid ]; do sleep 0.01; done; \
                   until [ -e never ]; do sleep 0.01; done";
    let call = house.start_exec(KEY, command, &[]);
    let escaped = pid_in(&house.path("pid"));
    call.kill_9();
    let answer = house.exec(KEY, command, &["--dedupe", "bestEffort"]);
    answer.error("duplicate_in_flight");
    assert!(is_alive(escaped));
    std::fs::write(house.path("go"), "").expect("writes");
    eventually("the escaped process ends", || {
        (!is_alive(escaped)).then_some(())
    });
    unknown_until_cleared(&house, command, 1);
}

/// Content that shows when it is cut or mixed: one letter, and its length at the end.
fn whole(letter: char) -> String {
    format!("{}\nend {letter}\n", letter.to_string().repeat(90_000))
}

#[test]
fn kill_9_during_write_and_edit_leaves_the_old_file_or_the_new_one_whole() {
    let house = House::new();
    let path = house.path("file");
    let mut killed_writing = 0;
    for round in 0..60_usize {
        let (old, new) = if round % 2 == 0 {
            ('a', 'b')
        } else {
            ('b', 'a')
        };
        std::fs::write(&path, whole(old)).expect("writes");
        let args = if round % 4 < 2 {
            serde_json::json!({"path": "file", "content": whole(new)})
        } else {
            let (from, to) = (format!("end {old}"), format!("end {new}"));
            serde_json::json!({"path": "file", "old_string": from, "new_string": to})
        };
        let tool = if round % 4 < 2 { "write" } else { "edit" };
        let expected = match tool {
            "write" => whole(new),
            _ => whole(old).replace(&format!("end {old}"), &format!("end {new}")),
        };
        let turn = round.to_string();
        let arguments = args.to_string();
        let mut call = house.start(&[
            "call", tool, "--json", "--turn", &turn, "--args", &arguments,
        ]);
        // Killed when the new content is first seen beside the old, or a little later in each round.
        let (pid, mut seen) = (call.id(), 0);
        while call.is_running() && seen <= round % 20 {
            seen += usize::from(writes_beside(pid, &path));
            std::thread::yield_now();
        }
        if call.is_running() {
            call.signal(rustix::process::Signal::KILL);
        }
        killed_writing += usize::from(call.ended().code.is_none() && seen > 0);
        let found = std::fs::read_to_string(&path).expect("is there");
        assert!(
            found == whole(old) || found == expected,
            "round {round}: {} bytes",
            found.len()
        );
    }
    assert!(killed_writing > 0, "nothing was killed while it wrote");
}
