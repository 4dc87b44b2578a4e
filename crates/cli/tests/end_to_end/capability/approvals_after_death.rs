//! A call that waits for a person, its process killed with -9: nothing is lost, nothing runs twice,
//! and nothing runs that nobody approved.

use serde_json::Value;

use crate::common::{House, Process, Ran, command_json, eventually};

const KEY: &str = "clean-up-7";
/// Reaches outside the workspace, so it needs a person. Each run leaves a line.
const COMMAND: &str = "rm -f ../aside/victim; echo ran >> effect";

/// The requests that nobody has answered.
pub(super) fn open_requests(house: &House) -> Vec<Value> {
    let listed = house.run(&["approvals", "list", "--json"]).json();
    listed.as_array().expect("a list").clone()
}

/// The only open request; waits for it.
pub(super) fn pending(house: &House) -> Value {
    eventually("a request is pending", || {
        match open_requests(house).as_slice() {
            [only] => Some(only.clone()),
            _ => None,
        }
    })
}

pub(super) fn id_of(request: &Value) -> String {
    request["id"].as_str().expect("an id").to_owned()
}

/// Starts the call, waits until it waits, and kills it.
fn killed_while_waiting(house: &House, more: &[&str]) -> String {
    let call = house.start_exec(KEY, COMMAND, more);
    let request = pending(house);
    call.kill_9();
    assert_eq!(request["state"], "pending");
    assert_eq!(request["arguments"], command_json(COMMAND));
    assert_eq!(house.lines("effect"), 0);
    id_of(&request)
}

pub(super) fn resume(house: &House) -> (Option<i32>, Vec<Value>) {
    let ran = house.run(&["approvals", "resume", "--json"]);
    let list = ran.json().as_array().expect("a list").clone();
    (ran.code, list)
}

fn state_of(house: &House, id: &str) -> String {
    let shown = house.run(&["approvals", "show", id, "--json"]).json();
    shown["state"].as_str().expect("a state").to_owned()
}

#[test]
fn approved_after_death_runs_once_with_the_captured_arguments() {
    let house = House::new();
    // Not beside the state, where nothing can be removed.
    std::fs::write(house.workspace().join("../aside/victim"), "x").expect("writes");
    let id = killed_while_waiting(&house, &[]);
    // Nothing runs before the answer, however often it is resumed.
    assert_eq!(resume(&house), (Some(0), vec![]));
    assert_eq!(house.lines("effect"), 0);
    let approved = house.run(&["approvals", "approve", &id, "--json"]);
    assert_eq!(
        (approved.code, &approved.json()["state"]),
        (Some(0), &"approved".into())
    );
    assert_eq!(house.lines("effect"), 0, "an answer by itself runs nothing");

    // Several at once, as after a restart of everything.
    let resumers: Vec<Process> = (0..4)
        .map(|_| house.start(&["approvals", "resume", "--json"]))
        .collect();
    for resumer in resumers {
        let ran = resumer.ended();
        for done in ran.json().as_array().expect("a list") {
            assert_eq!(done["result"]["status"], "success", "{ran:?}");
        }
    }
    assert_eq!(house.lines("effect"), 1);
    assert!(!house.workspace().join("../aside/victim").exists());
    assert_eq!(state_of(&house, &id), "used");
    // Who asks again under the same key gets the answer of that run.
    let again = house.exec(KEY, COMMAND, &[]).success();
    assert_eq!(again["fromCache"], true);
    assert_eq!(resume(&house), (Some(0), vec![]));
    assert_eq!(house.lines("effect"), 1);
    let verified = house.run(&["audit-log", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
}

#[test]
fn what_was_run_is_told_also_where_another_workspace_is_gone() {
    let house = House::new();
    // Behind the workspace in the order in which they are resumed.
    let gone = house.workspace().with_file_name("zz-gone");
    std::fs::create_dir(&gone).expect("made");
    let there = gone.display().to_string();
    let id = killed_while_waiting(&house, &[]);
    let call = house.start_exec("elsewhere", COMMAND, &["--workspace", &there]);
    let other = eventually("both wait", || {
        let mut open = open_requests(&house);
        open.retain(|request| id_of(request) != id);
        Some(id_of(&open.pop()?))
    });
    call.kill_9();
    for id in [&id, &other] {
        assert_eq!(house.run(&["approvals", "approve", id]).code, Some(0));
    }
    std::fs::remove_dir_all(&gone).expect("removed");
    let (code, told) = resume(&house);
    assert_eq!((code, told.len()), (Some(1), 2), "{told:?}");
    assert_eq!(told[0]["result"]["status"], "success", "{told:?}");
    assert_eq!(told[1]["workspace"], Value::from(there), "{told:?}");
    assert!(told[1]["trouble"].is_string(), "{told:?}");
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn the_same_call_delivered_again_joins_its_request() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let call = house.start_exec(KEY, COMMAND, &[]);
    assert_eq!(house.run(&["approvals", "approve", &id]).code, Some(0));
    let answer = call.ended().success();
    assert_eq!(answer["attempts"], 1);
    assert_eq!(house.lines("effect"), 1);
    let all = house.run(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(
        all.as_array().map(Vec::len),
        Some(1),
        "nobody was asked twice"
    );
}

#[test]
fn denied_after_death_never_runs_and_nobody_is_asked_again() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    let denied = house.run(&["approvals", "deny", &id, "--reason", "not on a Friday"]);
    assert_eq!(denied.code, Some(0), "{denied:?}");
    assert_eq!(resume(&house), (Some(0), vec![]));
    // The model asks again, in the same words and under a new key.
    for key in [KEY, "another-key"] {
        let answer = house.exec(key, COMMAND, &[]).error("permission_denied");
        let message = answer["error"]["message"]
            .as_str()
            .expect("a message")
            .to_owned();
        assert!(message.contains("nobody was asked again"), "{message}");
        assert_eq!(answer["error"]["terminal"], true);
    }
    assert_eq!(house.lines("effect"), 0);
    let all = house.run(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(1));
    let late = house.run(&["approvals", "approve", &id]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.stderr.contains("it is denied already"), "{late:?}");
}

#[test]
fn silence_means_no_also_after_death() {
    let house = House::new();
    let yaml = "permissions:\n  approvals:\n    waitMs: 4000\n";
    let config = house.file("short.yaml", yaml);
    let call = house.start_exec(KEY, COMMAND, &["--config", &config]);
    let id = eventually("it asks", || {
        let listed = house.run(&["approvals", "list", "--all", "--json"]).json();
        Some(id_of(listed.as_array()?.first()?))
    });
    call.kill_9();
    eventually("it expires", || {
        (state_of(&house, &id) == "expired").then_some(())
    });
    let late = house.run(&["approvals", "approve", &id]);
    assert_eq!(late.code, Some(1), "{late:?}");
    assert!(late.stderr.contains("silence means no"), "{late:?}");
    assert_eq!(resume(&house), (Some(0), vec![]));
    assert_eq!(house.lines("effect"), 0);
    // One that lives notices by itself.
    let answer = house.exec("other", COMMAND, &["--config", &config]);
    let answer = answer.error("permission_denied");
    let message = answer["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert!(message.contains("nobody approved it in time"), "{message}");
    assert_eq!(house.lines("effect"), 0);
}

#[test]
fn changed_arguments_do_not_run_on_an_approval() {
    let house = House::new();
    let id = killed_while_waiting(&house, &[]);
    assert_eq!(house.run(&["approvals", "approve", &id]).code, Some(0));
    // Same key, same session, one more word.
    let other = "rm -f ../aside/victim; echo ran >> effect; echo more >> effect";
    let call = house.start_exec(KEY, other, &[]);
    let fresh = eventually("the changed call asks for itself", || {
        let listed = house.run(&["approvals", "list", "--json"]).json();
        let mut open = listed.as_array()?.clone();
        open.retain(|request| request["state"] == "pending");
        open.pop()
    });
    assert_ne!(id_of(&fresh), id);
    assert_eq!(house.lines("effect"), 0);
    assert_eq!(
        house.run(&["approvals", "deny", &id_of(&fresh)]).code,
        Some(0)
    );
    call.ended().error("permission_denied");
    assert_eq!(house.lines("effect"), 0);
    // What was approved runs as it was approved.
    let (code, resumed) = resume(&house);
    assert_eq!((code, resumed.len()), (Some(0), 1));
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn of_many_answers_at_once_one_counts() {
    let house = House::new();
    for round in 0..3 {
        let key = format!("round-{round}");
        // Another call each time: a "no" is remembered.
        let command = format!("git push --force victim-{round}; echo ran >> effect-{round}");
        let call = house.start_exec(&key, &command, &[]);
        let id = id_of(&pending(&house));
        let answers: Vec<Process> = (0..8)
            .map(|number| {
                let word = if number % 2 == 0 { "approve" } else { "deny" };
                let by = format!("person-{number}");
                house.start(&["approvals", word, &id, "--by", &by, "--json"])
            })
            .collect();
        let answers: Vec<Ran> = answers.into_iter().map(Process::ended).collect();
        let taken: Vec<&Ran> = answers.iter().filter(|ran| ran.code == Some(0)).collect();
        assert_eq!(taken.len(), 1, "{answers:#?}");
        let said_yes = taken[0].json()["state"] == "approved";
        let answer = call.ended();
        if said_yes {
            answer.success();
        } else {
            answer.error("permission_denied");
        }
        let ran = house.lines(&format!("effect-{round}"));
        assert_eq!(ran, usize::from(said_yes));
    }
    let verified = house.run(&["audit-log", "verify", "--json"]).json();
    assert_eq!(verified["intact"], true, "{verified}");
}

/// `holdfast call exec` without a key.
fn start_unnamed(house: &House, command: &str) -> Process {
    house.start(&["call", "exec", "--json", "--args", &command_json(command)])
}

/// The request of a call without a key, killed while it waited.
fn orphan(house: &House, command: &str) -> String {
    let call = start_unnamed(house, command);
    let id = id_of(&pending(house));
    call.kill_9();
    id
}

fn approve(house: &House, id: &str) {
    assert_eq!(house.run(&["approvals", "approve", id]).code, Some(0));
}

#[test]
fn who_asks_the_same_again_goes_on_with_the_request_of_the_dead() {
    for is_approved_first in [true, false] {
        let house = House::new();
        let id = orphan(&house, COMMAND);
        if is_approved_first {
            approve(&house, &id);
        }
        let call = start_unnamed(&house, COMMAND);
        if !is_approved_first {
            eventually("the second call has it", || {
                let log = std::fs::read_to_string(house.state().join("audit.log")).ok()?;
                log.contains("approval.handed_over").then_some(())
            });
            approve(&house, &id);
        }
        assert_eq!(call.ended().success()["fromCache"], false);
        assert_eq!(resume(&house), (Some(0), vec![]));
        assert_eq!(house.lines("effect"), 1);
        let all = house.run(&["approvals", "list", "--all", "--json"]).json();
        assert_eq!(all.as_array().map(Vec::len), Some(1));
        let verified = house.run(&["audit-log", "verify"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
    }
}

#[test]
fn who_asks_the_same_after_it_was_resumed_is_asked_about() {
    let house = House::new();
    let id = orphan(&house, COMMAND);
    approve(&house, &id);
    assert_eq!(resume(&house).0, Some(0));
    assert_eq!(house.lines("effect"), 1);
    let again = start_unnamed(&house, COMMAND);
    let other = id_of(&pending(&house));
    assert_ne!(other, id);
    approve(&house, &other);
    assert_eq!(again.ended().success()["fromCache"], false);
    assert_eq!(house.lines("effect"), 2);
}

#[test]
fn one_approval_is_run_by_who_resumes_or_by_who_asks_again() {
    let house = House::new();
    let id = orphan(&house, COMMAND);
    approve(&house, &id);
    let resumer = house.start(&["approvals", "resume", "--json"]);
    let mut call = start_unnamed(&house, COMMAND);
    // That the other was faster is no failure.
    assert_eq!(resumer.ended().code, Some(0));
    eventually("the call ends, asked about if it came second", || {
        for request in open_requests(&house) {
            if request["state"] == "pending" {
                approve(&house, &id_of(&request));
            }
        }
        (!call.is_running()).then_some(())
    });
    assert_eq!(call.ended().success()["fromCache"], false);
    let all = house.run(&["approvals", "list", "--all", "--json"]).json();
    assert_eq!(all.as_array().map(Vec::len), Some(house.lines("effect")));
}

#[test]
fn two_who_live_and_ask_the_same_are_asked_about_each() {
    let house = House::new();
    let calls: Vec<Process> = (0..2).map(|_| start_unnamed(&house, COMMAND)).collect();
    let both = eventually("both ask", || {
        let open = open_requests(&house);
        (open.len() == 2).then_some(open)
    });
    for request in &both {
        approve(&house, &id_of(request));
    }
    for call in calls {
        assert_eq!(call.ended().success()["fromCache"], false);
    }
    assert_eq!(house.lines("effect"), 2);
}

#[test]
fn what_was_resumed_is_shown() {
    let house = House::new();
    let id = orphan(&house, "rm -f ../aside/victim; echo what it printed");
    approve(&house, &id);
    let ran = house.run(&["approvals", "resume"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("what it printed"), "{ran:?}");
    assert!(ran.stdout.contains(&id), "{ran:?}");

    let missing = house.file("missing", "x");
    let arguments = serde_json::json!({ "path": missing }).to_string();
    let call = house.start(&["call", "read", "--json", "--args", &arguments]);
    let id = id_of(&pending(&house));
    call.kill_9();
    approve(&house, &id);
    std::fs::remove_file(&missing).expect("removes");
    let failed = house.run(&["approvals", "resume"]);
    assert_eq!(failed.code, Some(1), "{failed:?}");
    assert!(failed.stdout.contains("✗ read"), "{failed:?}");
}

#[test]
fn the_doctor_tells_what_waits_from_what_runs() {
    let house = House::new();
    let found = || {
        let report = house.run(&["doctor", "--json"]).json();
        let checks = report["checks"].as_array().expect("a list").clone();
        let state = checks.into_iter().find(|check| check["name"] == "state");
        state.expect("a check")["found"]
            .as_str()
            .expect("a text")
            .to_owned()
    };
    let call = start_unnamed(&house, COMMAND);
    pending(&house);
    assert!(
        found().contains("0 in flight, 1 waiting for a person"),
        "{}",
        found()
    );
    call.kill_9();
    assert!(
        found().contains("0 in flight, 1 left waiting for a person"),
        "{}",
        found()
    );
}
