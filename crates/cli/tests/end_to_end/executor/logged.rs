//! What is written down about runs, and how it looks.

use std::io::Read;
use std::process::Command;

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::common::House;
use crate::executor::{PATH, task};
use crate::pty::at_a_terminal;

const KEY: &str = "key-of-ann-key-of-ann-key-of-ann-00";

fn writes_once() -> ModelServer {
    ModelServer::says(vec![
        Say::calls("write", &json!({"path": "a", "content": "b"})),
        Say::says("Final Answer: Written."),
    ])
    .expect("starts")
}

fn events(log: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(log).expect("a log");
    let lines = text.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().expect("JSON")
}

/// Runs are in the log where calls are, and each of their calls says whose it is.
#[test]
fn runs_are_in_the_log_of_a_server_without_a_file_of_their_own() {
    let (house, model) = (House::new(), writes_once());
    let log = house.file("events.log", "");
    let with_key = |command: &mut Command| {
        command.env("HOLDFAST_API_KEYS", KEY);
    };
    let serving = house.serve_with(&["--model-url", &model.url(), "--log", &log], with_key);
    let answer = serving.post(PATH, KEY, &task("Write it"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let run = answer.json()["executor_metadata"]["run_id"].clone();
    let run = run.as_str().expect("a run").to_owned();
    let shown = serving.get(&format!("/v1/runs/{run}"), Some(KEY)).json();
    let events = events(&log);
    let of_run: Vec<&Value> = events.iter().filter(|it| it["run_id"] == run).collect();
    let names: Vec<&str> = of_run
        .iter()
        .filter_map(|it| it["event"].as_str())
        .collect();
    assert_eq!(names.first(), Some(&"executor_run_start"));
    assert_eq!(names.last(), Some(&"executor_run_end"));
    for name in [
        "tool_execution_start",
        "tool_execution_success",
        "tool_execution_complete",
    ] {
        let event = of_run.iter().find(|it| it["event"] == name);
        assert_eq!(event.expect(name)["client"], shown["client"], "{name}");
    }
    assert!(shown["client"].as_str().is_some_and(|it| it != KEY));
    let text = std::fs::read_to_string(&log).expect("a log");
    assert!(!text.contains(KEY));
}

/// What a run at a terminal logs goes to standard error, so that is whose reader counts.
#[test]
fn people_at_a_terminal_read_words_unless_the_file_says_json() {
    for (format, is_json) in [("", false), ("  format: json\n", true)] {
        let (house, model) = (House::new(), writes_once());
        let text = format!(
            "executor:\n  gpt_oss_url: {}\nlogging:\n  output: stdout\n{format}",
            model.url()
        );
        let file = house.file("executor.yaml", &text);
        // Standard output is a pipe there, standard error the terminal.
        let (child, mut terminal) = at_a_terminal(&house, &["run", "Write", "--config", &file]);
        let reading = std::thread::spawn(move || {
            let mut shown = Vec::new();
            // The end of a terminal is an error, once nobody holds its other side.
            let _ = terminal.read_to_end(&mut shown);
            shown
        });
        let output = child.wait_with_output().expect("ends");
        assert!(output.status.success());
        assert_eq!(output.stdout, b"Written.\n");
        let shown = reading.join().expect("no panic");
        let shown = String::from_utf8_lossy(&shown);
        let line = shown.lines().find(|line| line.contains("executor_run_end"));
        let line = line.unwrap_or_else(|| panic!("{shown}"));
        assert_eq!(line.trim().starts_with('{'), is_json, "{line}");
    }
}
