//! `holdfast run` and `holdfast resume`: the loop at the terminal.

use std::io::{Read, Write};

use holdfast_testkit::model::{ModelServer, Say, turns};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, Ran, eventually};
use crate::pty::at_a_terminal;

fn script() -> Vec<Say> {
    vec![
        Say::calls("exec", &json!({"command": "echo one >> log"})),
        Say::calls("exec", &json!({"command": "echo two >> log"})),
        Say::says("Final Answer: Both are logged."),
    ]
}

#[test]
fn a_task_is_done_at_the_terminal() {
    let (house, model) = (House::new(), ModelServer::says(script()).expect("starts"));
    let ran = house.run(&["run", "Log one and two", "--model-url", &model.url()]);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    // The answer alone is on standard output; what happens is beside it.
    assert_eq!(ran.stdout, "Both are logged.\n");
    for said in [
        "asking the model (1)",
        "→ exec {\"command\":\"echo one >> log\"}",
        "✓ exec",
        "100 tokens read",
    ] {
        assert!(ran.stderr.contains(said), "not {said:?}: {}", ran.stderr);
    }
    assert_eq!(house.lines("log"), 2);
}

#[test]
fn programs_get_a_line_of_json_for_everything() {
    let (house, model) = (House::new(), ModelServer::says(script()).expect("starts"));
    let ran = house.run(&["run", "Log", "--json", "--model-url", &model.url()]);
    let lines: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    let events: Vec<&str> = lines.iter().filter_map(|it| it["event"].as_str()).collect();
    let round = ["asks", "heard", "calls", "called"];
    let expected = [&["begins"], &round[..], &round, &["asks", "heard", "ended"]].concat();
    assert_eq!(events, expected);
    let last = lines.last().expect("a line");
    assert_eq!(last["content"], "Both are logged.");
    assert_eq!(
        (&last["iterations"], &last["totalTokens"]),
        (&json!(3), &json!(360))
    );
}

#[test]
fn a_run_without_an_answer_is_a_failure() {
    let (house, model) = (
        House::new(),
        ModelServer::says(vec![Say::Status(400, "{}".to_owned())]).expect("starts"),
    );
    let ran = house.run(&["run", "Hello", "--model-url", &model.url()]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(ran.stderr.contains("gpt_oss_unreachable"), "{ran:#?}");
    house
        .run(&["run", "Hello"])
        .bad_usage("there is no model to ask");
    for address in ["spark:8000", "127.0.0.1:8000"] {
        let ran = house.run(&["run", "Hello", "--model-url", address]);
        ran.bad_usage(&format!("did you mean http://{address}?"));
        let file = house.file(
            "x.yaml",
            &format!("executor: {{modelUrl: \"{address}\"}}\n"),
        );
        let ran = house.run(&["config", "check", &file]);
        ran.bad_usage(&format!("did you mean http://{address}?"));
    }
}

/// Whoever mistypes a run need not look for a model first.
#[test]
fn a_run_that_is_not_there_is_said_to_be_missing_also_without_a_model() {
    let house = House::new();
    let ran = house.run(&["resume", "run-unknown"]);
    assert_eq!(ran.code, Some(1), "{ran:#?}");
    assert!(
        ran.stderr.contains("there is no run run-unknown"),
        "{ran:#?}"
    );
}

/// Killed or interrupted after its first call, a run goes on with the second.
#[test]
fn a_run_that_was_cut_off_goes_on() {
    for signal in [Signal::KILL, Signal::INT, Signal::TERM] {
        let house = House::new();
        let silent = ModelServer::start(|request| match turns(request) {
            0 => script()[0].clone(),
            _ => Say::Silence,
        });
        let silent = silent.expect("starts");
        let mut cut = house.start(&["run", "Log one and two", "--model-url", &silent.url()]);
        eventually("it waits for the second reply", || {
            (silent.asked().len() == 2).then_some(())
        });
        cut.signal(signal);
        let cut = cut.ended();
        if signal == Signal::INT {
            assert!(
                cut.stderr
                    .contains("Left unfinished; `holdfast resume run-"),
                "{cut:#?}"
            );
        }
        // Nobody has stopped the run itself.
        let goes_on = cut.stderr.contains("the next `holdfast serve`");
        assert_eq!(goes_on, signal == Signal::TERM, "{cut:#?}");
        let listed = house.run(&["resume", "--json"]).json();
        let id = listed[0]["id"].as_str().expect("a run").to_owned();
        assert_eq!(listed[0]["iterations"], 1);
        assert!(house.run(&["resume"]).stdout.contains("Log one and two"));
        house
            .run(&["resume", &id])
            .bad_usage("there is no model to ask");
        let model = ModelServer::says(script()).expect("starts");
        // Elsewhere its tools would work on other files.
        let elsewhere = house.home();
        let elsewhere = elsewhere.to_str().expect("UTF-8");
        let wrong = [
            "resume",
            &id,
            "--workspace",
            elsewhere,
            "--model-url",
            &model.url(),
        ];
        house.run(&wrong).bad_usage("works in");
        let ran = house.run(&["resume", &id, "--model-url", &model.url()]);
        assert_eq!(
            (ran.code, ran.stdout.as_str()),
            (Some(0), "Both are logged.\n")
        );
        let log = std::fs::read_to_string(house.path("log")).expect("a log");
        assert_eq!(log, "one\ntwo\n");
        assert!(house.run(&["resume"]).stdout.contains("Nothing was left"));
        for over in [
            house.run(&["resume", &id, "--model-url", &model.url()]),
            house.run(&["resume", &id]),
        ] {
            assert_eq!(over.code, Some(1), "{over:#?}");
            assert!(over.stderr.contains("has ended"), "{over:#?}");
        }
    }
}

#[test]
fn a_person_at_the_terminal_is_asked_in_the_middle_of_a_run() {
    let house = House::new();
    let model = ModelServer::says(vec![
        Say::calls(
            "exec",
            &json!({"command": "git push --force victim; echo ran >> log"}),
        ),
        Say::says("Final Answer: It is gone."),
    ]);
    let model = model.expect("starts");
    let (child, mut master) =
        at_a_terminal(&house, &["run", "Remove it", "--model-url", &model.url()]);
    let mut shown = String::new();
    while !shown.contains("Run it?") {
        let mut bytes = [0; 1024];
        let count = master.read(&mut bytes).expect("it asks");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(shown.contains("asks for approval"), "{shown}");
    assert_eq!(house.lines("log"), 0, "nothing runs before the answer");
    master.write_all(b"y\n").expect("types");
    let ran = Ran::of(&child.wait_with_output().expect("ends"));
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "It is gone.\n"),
        "{ran:#?}"
    );
    assert_eq!(house.lines("log"), 1);
}

#[test]
fn a_person_sees_the_model_think_and_why_it_was_asked_back() {
    let house = House::new();
    let model = ModelServer::says(vec![
        Say::says("I'll look that up."),
        Say::Held("Hm, two and two".to_owned(), " are four.".to_owned()),
    ]);
    let model = model.expect("starts");
    let (child, mut master) =
        at_a_terminal(&house, &["run", "2 + 2?", "--model-url", &model.url()]);
    let mut shown = String::new();
    while !shown.contains("s): Hm, two and two") {
        let mut bytes = [0; 1024];
        let count = master.read(&mut bytes).expect("it thinks");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    assert!(
        shown.contains("asked back") && shown.contains("announces a step"),
        "{shown}"
    );
    model.release();
    let ran = Ran::of(&child.wait_with_output().expect("ends"));
    let answer = "Hm, two and two are four.\n";
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), answer),
        "{ran:#?}"
    );
}

/// Whoever starts a server sees on one screen what it has and what it lacks.
#[test]
fn a_server_tells_its_person_what_it_found() {
    let (house, model) = (House::new(), ModelServer::says(script()).expect("starts"));
    let args = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--model-url",
        &model.url(),
    ];
    let (mut child, mut master) = at_a_terminal(&house, &args);
    let mut shown = String::new();
    while !shown.contains("approvals: ") {
        let mut bytes = [0; 1024];
        let count = master.read(&mut bytes).expect("it starts");
        shown.push_str(&String::from_utf8_lossy(&bytes[..count]));
    }
    let answers = format!("model      {}", model.url());
    let workspace = format!("workspace  {}", house.workspace().display());
    for said in [
        "address    http://127.0.0.1:",
        &answers,
        " answers",
        "tools      ",
        "exec",
        &workspace,
        "token      ",
    ] {
        assert!(shown.contains(said), "not {said:?}: {shown}");
    }
    master.write_all(b"\x03").expect("types Ctrl-C");
    assert!(child.wait().expect("ends").success());
}
