//! Calls that wait for a person, as people meet them.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::approvals_after_death::{id_of, open_requests, pending, resume};
use crate::common::{House, eventually};

fn approve(house: &House, id: &str, more: &[&str]) {
    let ran = house.run(&[&["approvals", "approve", id], more].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
}

fn message(answer: &Value) -> String {
    answer["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned()
}

#[test]
fn an_approved_path_outside_the_workspace_is_the_only_one() {
    let house = House::new();
    let outside = house.workspace().join("../outside");
    std::fs::create_dir(&outside).expect("made");
    let write = |path: &str| {
        let args = json!({"path": path, "content": "x\n"}).to_string();
        house.start(&["call", "write", "--json", "--args", &args])
    };
    let call = write("../outside/a.txt");
    let request = pending(&house);
    assert_eq!(request["reasons"][0]["code"], "outside_workspace");
    approve(&house, &id_of(&request), &[]);
    call.ended().success();
    assert_eq!(
        std::fs::read_to_string(outside.join("a.txt")).expect("written"),
        "x\n"
    );
    // Its neighbour needs an answer of its own, and so does the same path once more.
    for path in ["../outside/b.txt", "../outside/a.txt"] {
        let call = write(path);
        let id = id_of(&pending(&house));
        assert_eq!(house.run(&["approvals", "deny", &id]).code, Some(0));
        call.ended().error("permission_denied");
    }
    assert!(!outside.join("b.txt").exists());
    // A link that leaves the workspace is not a path outside it: it is refused, not asked about.
    std::os::unix::fs::symlink(&outside, house.path("link")).expect("linked");
    let answer = write("link/c.txt").ended().error("permission_denied");
    assert!(
        message(&answer).contains("outside the workspace"),
        "{answer}"
    );
    assert!(!outside.join("c.txt").exists());
}

#[test]
fn a_link_swapped_in_after_the_answer_is_not_followed() {
    let house = House::new();
    let base = house.workspace().join("..").canonicalize().expect("a path");
    std::fs::write(base.join("target"), "old").expect("writes");
    std::fs::write(base.join("precious"), "precious").expect("writes");
    let args = json!({"path": "../target", "content": "new"}).to_string();
    let call = house.start(&["call", "write", "--json", "--key", "k", "--args", &args]);
    let id = id_of(&pending(&house));
    call.kill_9();
    approve(&house, &id, &[]);
    std::fs::remove_file(base.join("target")).expect("removes");
    std::os::unix::fs::symlink(base.join("precious"), base.join("target")).expect("linked");
    // What it would touch is not what was approved.
    let call = house.start(&["call", "write", "--json", "--key", "k", "--args", &args]);
    let fresh = eventually("it is asked about anew", || {
        let listed = house.run(&["approvals", "list", "--json"]).json();
        let open = listed.as_array()?.clone();
        open.into_iter()
            .find(|it| it["state"] == "pending" && it["id"] != id)
    });
    assert!(
        fresh["reasons"][0]["subject"]
            .as_str()
            .expect("text")
            .ends_with("/precious")
    );
    drop(call);
    assert_eq!(
        std::fs::read_to_string(base.join("precious")).expect("there"),
        "precious"
    );
}

#[test]
fn a_rule_covers_later_calls_until_it_is_revoked() {
    let house = House::new();
    std::fs::create_dir(house.workspace().join("../more")).expect("made");
    let command = "touch ../aside/x && echo ran >> effect";
    let ask = |key: &str, session: &str| house.start_exec(key, command, &["--session", session]);
    let first = ask("1", "one");
    approve(&house, &id_of(&pending(&house)), &["--for", "session"]);
    first.ended().success();
    // The same grant in the same session: nobody is asked.
    ask("2", "one").ended().success();
    assert_eq!(house.lines("effect"), 2);
    // Another grant may not ride along.
    let more = json!({"command": command, "writes": ["../aside", "../more"]}).to_string();
    let rider = house.start(&[
        "call",
        "exec",
        "--json",
        "--key",
        "rider",
        "--args",
        &more,
        "--session",
        "one",
    ]);
    let id = id_of(&pending(&house));
    assert_eq!(house.run(&["approvals", "deny", &id]).code, Some(0));
    rider.ended().error("permission_denied");
    // Another session has to ask.
    let other = ask("3", "two");
    let id = id_of(&pending(&house));
    approve(&house, &id, &["--for", "policy"]);
    other.ended().success();
    ask("4", "three").ended().success();
    let rules = house.run(&["approvals", "rules", "--json"]).json();
    let rules = rules.as_array().expect("a list");
    assert_eq!(rules.len(), 2);
    for rule in rules {
        let id = rule["id"].as_str().expect("an id");
        assert_eq!(house.run(&["approvals", "revoke", id]).code, Some(0));
    }
    let again = ask("5", "one");
    let id = id_of(&pending(&house));
    assert_eq!(house.run(&["approvals", "deny", &id]).code, Some(0));
    again.ended().error("permission_denied");
    assert_eq!(house.lines("effect"), 4);
}

#[test]
fn a_strict_gate_takes_one_answer_for_one_call() {
    let house = House::new();
    let config = house.file(
        "strict.yaml",
        "permissions:\n  tools:\n    exec:\n      gate: strict\n",
    );
    let call = house.start_exec("k", "echo ran >> effect", &["--config", &config]);
    let request = pending(&house);
    assert_eq!(
        (&request["gate"], &request["tier"]),
        (&json!("strict"), &json!("System"))
    );
    let id = id_of(&request);
    let wide = house.run(&["approvals", "approve", &id, "--for", "policy"]);
    assert_eq!(wide.code, Some(1));
    assert!(wide.stderr.contains("strict"), "{wide:?}");
    let own = house.run(&["approvals", "approve", &id, "--by", "local"]);
    assert_eq!(own.code, Some(1));
    assert!(own.stderr.contains("their own request"), "{own:?}");
    approve(&house, &id, &[]);
    call.ended().success();
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn an_advisory_gate_tells_and_runs() {
    let house = House::new();
    let config = house.file("advisory.yaml", "permissions:\n  gate: advisory\n");
    let ran = house.exec(
        "k",
        "git push --force x; echo ran >> effect",
        &["--config", &config],
    );
    ran.success();
    assert!(ran.stderr.contains("overwrites commits"), "{ran:?}");
    assert_eq!(house.lines("effect"), 1);
    let log = house.run(&["audit-log", "show", "--json"]).stdout;
    assert!(log.contains("approval.advised"), "{log}");
}

#[test]
fn a_tool_can_not_answer() {
    let house = House::new();
    let call = house.start_exec("k", "git push --force victim || true", &[]);
    let id = id_of(&pending(&house));
    let binary = env!("CARGO_BIN_EXE_holdfast");
    // In plain words it is refused before it runs; in other words by the one it calls.
    let plain = format!("{binary} approvals approve {id}");
    let answer = house.exec("p", &plain, &[]).error("permission_denied");
    assert!(message(&answer).contains("never by a tool"), "{answer}");
    // By another name it can not even be started: programs outside the workspace and the system are
    // out of reach. Where somebody has opened that door, it does not reach the state.
    let hidden = format!("w=rovals; {binary} --state ../st*e app$w approve {id} 2>&1");
    let said = |answer: &Value| {
        let text = answer["output"]["content"]["stdout"].as_str();
        text.expect("text").to_owned()
    };
    let answer = house.exec("h", &hidden, &[]).success();
    // Below `/tmp` it is not even there.
    let is_kept_out =
        |text: &str| text.contains("Permission denied") || text.contains("No such file");
    assert!(is_kept_out(&said(&answer)), "{answer}");
    let programs = std::path::Path::new(binary).parent().expect("a directory");
    let opened = json!({"confinement": {"read": [programs]}}).to_string();
    let config = house.file("opened.yaml", &opened);
    let orphan = format!(
        "rm -f said; (env -i setsid sh -c 'w=rovals; {binary} --state ../st*e app$w approve {id} > said 2>&1' &); \
         while [ ! -s said ]; do sleep 0.02; done; cat said; cat ../st*e/approver-token"
    );
    let token = std::fs::read_to_string(house.state().join("approver-token")).unwrap_or_default();
    for (key, command) in [("o", &hidden), ("a", &orphan)] {
        let answer = house.exec(key, command, &["--config", &config]).success();
        assert!(said(&answer).contains("Permission denied"), "{answer}");
        assert!(token.is_empty() || !said(&answer).contains(token.trim()));
    }
    // Without any confinement the mark is what is left, and it does not come off with `env -i`.
    let off = house.file("off.yaml", "confinement: {mode: 'off'}");
    let answer = house
        .exec(
            "off",
            &orphan.replace("; cat ../st*e/approver-token", ""),
            &["--config", &off],
        )
        .success();
    assert!(said(&answer).contains("started by a tool"), "{answer}");
    assert_eq!(pending(&house)["state"], "pending");
    for (tool, args) in [
        (
            "read",
            json!({"path": house.state().join("approver-token")}),
        ),
        (
            "write",
            json!({"path": house.state().join("audit.log"), "content": ""}),
        ),
        ("read", json!({"path": "../state/holdfast.db"})),
    ] {
        let ran = house.run(&["call", tool, "--json", "--args", &args.to_string()]);
        let answer = ran.error("permission_denied");
        assert!(message(&answer).contains("state directory"), "{answer}");
    }
    assert_eq!(house.run(&["approvals", "deny", &id]).code, Some(0));
    call.ended().error("permission_denied");
}

#[test]
fn the_state_is_out_of_reach_also_within_the_workspace() {
    let house = House::new();
    let state = house.path("state");
    let state_text = state.to_str().expect("text");
    house.run(&[
        "--state",
        state_text,
        "call",
        "read",
        "--args",
        r#"{"path": "x"}"#,
    ]);
    // Relative, so that it stays beneath the workspace.
    std::os::unix::fs::symlink("state", house.path("innocent")).expect("linked");
    for path in [
        "state/holdfast.db",
        "innocent/holdfast.db",
        "./innocent/../state/holdfast.db",
    ] {
        for (tool, args) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "gone"})),
            (
                "edit",
                json!({"path": path, "old_string": "a", "new_string": "b"}),
            ),
        ] {
            let args = args.to_string();
            // Each in a turn of its own: the loop guard has a say as well.
            let turn = format!("{tool} {path}");
            let call = [
                "--state", state_text, "call", tool, "--json", "--turn", &turn, "--args", &args,
            ];
            let answer = house.run(&call).error("permission_denied");
            assert!(
                message(&answer).contains("state directory"),
                "{tool} {path}: {answer}"
            );
        }
    }
}

#[test]
fn what_says_who_may_call_is_out_of_reach() {
    let house = House::new();
    let token = house.path("token");
    std::fs::write(&token, "t".repeat(40)).expect("written");
    let server = json!({"server": {"tokenFile": token, "adminTokenFile": token}});
    let config = house.path("guard.yaml");
    std::fs::write(&config, server.to_string()).expect("written");
    std::os::unix::fs::symlink(".", house.path("here")).expect("linked");
    let mut calls = vec![
        ("exec", json!({"command": "cat token"})),
        ("exec", json!({"command": "sh", "stdin": "cat ./token"})),
        (
            "exec",
            json!({"command": "cat <guard.yaml; cat ../*/guard.yaml guard.yaml"}),
        ),
    ];
    for path in ["token", "here/token", "guard.yaml", "here/guard.yaml"] {
        calls.push(("read", json!({"path": path})));
        calls.push(("write", json!({"path": path, "content": "mine"})));
    }
    for (tool, args) in calls {
        let args = args.to_string();
        let config = config.to_str().expect("text");
        let call = [
            "--config", config, "call", tool, "--json", "--turn", &args, "--args", &args,
        ];
        let answer = house.run(&call).error("permission_denied");
        assert!(message(&answer).contains("the tokens"), "{args}: {answer}");
    }
    assert_eq!(std::fs::read_to_string(token).expect("there").len(), 40);
}

#[test]
fn who_goes_away_withdraws_and_who_runs_out_of_time_does_not() {
    let house = House::new();
    let mut call = house.start_exec("k", "git push --force a || true", &[]);
    let id = id_of(&pending(&house));
    call.signal(Signal::TERM);
    call.ended().error("cancelled");
    let state = house.run(&["approvals", "show", &id, "--json"]).json();
    assert_eq!(state["state"], "withdrawn");
    let log = house.run(&["audit-log", "show", "--json"]).stdout;
    assert!(log.contains("approval.withdrawn"), "{log}");

    let command = "git push --force b; echo ran >> effect";
    // On a slow disk a short deadline may pass before anybody was asked: then a longer one is given.
    let key = ["1500", "6000", "24000"].into_iter().find(|deadline_ms| {
        let late = house.exec(deadline_ms, command, &["--deadline-ms", deadline_ms]);
        late.error("timeout");
        !open_requests(&house).is_empty()
    });
    let key = key.expect("somebody is asked before the deadline");
    approve(&house, &id_of(&pending(&house)), &[]);
    // Delivered again, it finds its answer.
    house.exec(key, command, &[]).success();
    assert_eq!(house.lines("effect"), 1);
    assert_eq!(resume(&house).1, Vec::<Value>::new());
}

#[test]
fn the_audit_log_names_what_was_done_to_it() {
    let house = House::new();
    for number in 0..2 {
        let call = house.start_exec(
            &number.to_string(),
            &format!("git push --force v{number} || true"),
            &[],
        );
        approve(&house, &id_of(&pending(&house)), &[]);
        call.ended().success();
    }
    let path = house.state().join("audit.log");
    let whole = std::fs::read_to_string(&path).expect("a log");
    let lines: Vec<&str> = whole.lines().collect();
    assert_eq!(lines.len(), 6);
    let verify = |content: String| {
        std::fs::write(&path, content).expect("writes");
        let ran = house.run(&["audit-log", "verify"]);
        (ran.code, ran.stdout)
    };
    let joined = |list: &[&str]| list.join("\n") + "\n";
    let table = [
        (
            whole.replacen("\"by\":\"owner\"", "\"by\":\"nobody\"", 1),
            "entry 2 was changed",
        ),
        (
            joined(&[&lines[..2], &lines[3..]].concat()),
            "entry 3 was removed before entry 4",
        ),
        (
            joined(&[lines[1], lines[0], lines[2], lines[3], lines[4], lines[5]]),
            "moved or repeated",
        ),
        (
            joined(&lines[..4]),
            "the end was cut off: entries 5 to 6 are missing",
        ),
    ];
    for (content, says) in table {
        let (code, said) = verify(content);
        assert_eq!(code, Some(1), "{says}: {said}");
        assert!(said.contains(says), "not {says:?}: {said}");
    }
    assert_eq!(verify(whole.clone()).0, Some(0));
    let shown = house.run(&["audit-log", "show", "--limit", "3"]);
    assert_eq!(shown.stdout.lines().count(), 4, "{shown:?}");
}

/// A check of the wrong place is no proof of anything, and makes nothing there.
#[test]
fn where_there_is_no_audit_log_nothing_is_verified_or_made() {
    let house = House::new();
    let nowhere = house.path("no-such-state");
    let nowhere = nowhere.to_str().expect("text");
    for command in ["verify", "show"] {
        let ran = house.run(&["audit-log", command, "--state", nowhere]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
        assert!(ran.stderr.contains("there is no audit log in"), "{ran:?}");
        assert!(!std::path::Path::new(nowhere).exists(), "{command}");
    }
    let empty = house.path("empty");
    std::fs::create_dir(&empty).expect("made");
    let ran = house.run(&[
        "audit-log",
        "verify",
        "--state",
        empty.to_str().expect("text"),
    ]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(std::fs::read_dir(&empty).expect("a directory").count(), 0);
    // A state in which nobody was ever asked has none either.
    house.exec("k", "echo x", &[]).success();
    let ran = house.run(&["audit-log", "verify"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("nothing has been recorded"), "{ran:?}");
}

#[test]
fn a_policy_of_an_agent_is_tried_from_the_prompt() {
    let house = House::new();
    let yaml = "permissions: {agents: {research: {maxTier: ReadOnly}}}";
    let config = house.file("agents.yaml", yaml);
    let write = [
        "call",
        "write",
        "--args",
        r#"{"path": "a", "content": "x"}"#,
        "--json",
    ];
    let ran = house.run(&[&write[..], &["--config", &config, "--agent", "research"]].concat());
    ran.error("permission_denied");
    house
        .run(&[&write[..], &["--config", &config, "--agent", "other"]].concat())
        .success();
}

#[test]
fn permissions_are_checked_with_the_place_of_the_mistake() {
    let house = House::new();
    let yaml = "permissions:\n  deniedTools: [exce]\n  tools:\n    wirte:\n      gate: strict\n    \
                exec:\n      tier: Elevated\n      maxTier: System\n      waitMs: 0\n  agents:\n    a:\n      \
                allowedTools: [red]\n  channels:\n    c:\n      deniedTools: [x]\n";
    let config = house.file("wrong.yaml", yaml);
    let ran = house.run(&["config", "check", "--config", &config]);
    for says in [
        "permissions.deniedTools: there is no tool named \"exce\"",
        "permissions.tools: there is no tool named \"wirte\"",
        "permissions.agents.a.allowedTools: there is no tool named \"red\"",
        "permissions.channels.c.deniedTools: there is no tool named \"x\"",
        "permissions.channels: there is no channel named \"c\"; there are terminal, webhook, gateway",
        "permissions.tools.exec.waitMs: has to be from 1 to",
        "permissions.tools.exec.tier: Elevated is above its own maxTier System",
    ] {
        ran.bad_usage(says);
    }
}
