//! Ctrl-C and a polite request to end: the command is gone, and the record says what is known.

use rustix::process::Signal;

use crate::common::{HELD, House, eventually, eventually_lines, is_alive, pid_in};

fn cancelled_by(signal: Signal) {
    let house = House::new();
    let command = "trap 'echo bye >> goodbye; exit' TERM; \
                   setsid sh -c 'echo $$ > escaped; exec sleep 1000' > /dev/null 2>&1 & \
                   echo $$ > pid; echo x >> effect; while :; do sleep 0.01; done";
    let mut call = house.start_exec("k", command, &[]);
    let processes = ["pid", "escaped"].map(|name| pid_in(&house.path(name)));
    eventually_lines(&house, "effect", 1);
    call.signal(signal);
    let answer = call.ended_in_time("the call ends").error("outcome_unknown");
    assert_eq!(answer["attempts"], 1);
    // It was asked before it was killed, and what it started is gone as well.
    assert_eq!(house.lines("goodbye"), 1);
    for process in processes {
        eventually("a process of the command is gone", || {
            (!is_alive(process)).then_some(())
        });
    }
    assert_eq!(house.only_state().as_deref(), Some("unknown"));
    let again = house.exec("k", command, &[]).error("outcome_unknown");
    assert_eq!(again["fromCache"], true);
    assert_eq!(house.lines("effect"), 1);
    let request = answer["requestId"].as_str().expect("an id");
    let entry = house.run(&["explain", request, "--json"]).json();
    assert_eq!(entry["errorCode"], "outcome_unknown");
}

#[test]
fn ctrl_c_while_a_command_runs() {
    cancelled_by(Signal::INT);
}

#[test]
fn sigterm_while_a_command_runs() {
    cancelled_by(Signal::TERM);
}

#[test]
fn ctrl_c_while_waiting_for_another_process_changes_nothing() {
    let house = House::new();
    let holder = house.start_held("k", &[]);
    let mut duplicate = house.start_exec("k", HELD, &[]);
    duplicate.waits_for_another();
    duplicate.signal(Signal::INT);
    let answer = duplicate.ended_in_time("it gives up").error("cancelled");
    assert_eq!(answer["attempts"], 0);
    assert_eq!(house.only_state().as_deref(), Some("inflight"));
    house.let_go(holder);
}

#[test]
fn ctrl_c_before_the_tool_is_no_effect() {
    let house = House::new();
    let hook = r#"sh -c "echo \$\$ > pid; exec sleep 1000"; true"#;
    let yaml =
        format!("hooks:\n  before:\n    - command: [sh, -c, '{hook}']\n      timeoutMs: 600000\n");
    let config = house.file("slow-hook.yaml", &yaml);
    let mut call = house.start_exec("k", "echo x >> effect", &["--config", &config]);
    let started_by_hook = pid_in(&house.path("pid"));
    call.signal(Signal::INT);
    call.ended_in_time("the call ends").error("cancelled");
    eventually("what the hook started is gone", || {
        (!is_alive(started_by_hook)).then_some(())
    });
    assert_eq!(house.only_state().as_deref(), Some("cancelled"));
    house.exec("k", "echo x >> effect", &[]).success();
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn the_callers_deadline_wins_over_an_admit_hook() {
    let house = House::new();
    let config = house.file(
        "slow.yaml",
        "hooks:\n  admit:\n    - command: [sleep, '1000']\n      timeoutMs: 60000\n",
    );
    let more = ["--config", config.as_str(), "--deadline-ms", "100"];
    let answer = house.exec("k", "echo x >> effect", &more).error("timeout");
    assert_eq!(answer["status"], "timeout");
    assert_eq!(house.lines("effect"), 0);
}
