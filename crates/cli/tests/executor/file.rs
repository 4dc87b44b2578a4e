//! `executor.yaml`: checked, and used by the loop at the terminal.

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::common::House;

/// The keys and values of the specification's example.
const SEED: &str = include_str!("../../../agent/tests/data/executor.yaml");

#[test]
fn the_file_of_the_specification_is_checked_as_it_is() {
    let house = House::new();
    let file = house.file("executor.yaml", SEED);
    let checked = house.run(&["config", "check", &file]);
    assert_eq!(checked.code, Some(0), "{checked:#?}");
    // What is done otherwise here is said.
    for said in ["config/system-prompt.txt", "\"browser\""] {
        assert!(
            checked.stderr.contains(said),
            "not {said}: {}",
            checked.stderr
        );
    }
    let json = house.run(&["config", "check", &file, "--json"]);
    let said: Value = serde_json::from_str(&json.stdout).expect("JSON");
    assert_eq!(said["ok"], true);
    assert!(
        said["warnings"]
            .as_array()
            .is_some_and(|list| list.len() >= 2)
    );
}

#[test]
fn commands_that_it_blocks_do_not_run() {
    let house = House::new();
    let file = house.file("executor.yaml", SEED);
    let call = |command: &str| {
        let args = json!({"command": command}).to_string();
        house.run(&["--config", &file, "call", "exec", "--json", "--args", &args])
    };
    let refused = call("echo x; reboot").error("permission_denied");
    let said = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(said.contains("`reboot` is blocked by the rule"), "{said}");
    assert_eq!(call("echo rebooted").code, Some(0));
}

#[test]
fn what_is_wrong_with_it_is_named() {
    let house = House::new();
    let wrong = SEED.replace("max_iterations: 5", "max_iteration: 5");
    let file = house.file("executor.yaml", &wrong);
    house
        .run(&["config", "check", &file])
        .bad_usage("executor.max_iteration is not known; did you mean \"max_iterations\"?");
    let ours = house.file("holdfast.yaml", "guard:\n  enabled: true\n");
    assert_eq!(house.run(&["config", "check", &ours]).code, Some(0));
    let ours = house.file("holdfast.yaml", "gard:\n  enabled: true\n");
    house.run(&["config", "check", &ours]).bad_usage("gard");
}

#[test]
fn a_run_takes_its_rules_servers_and_log_from_it() {
    let (house, model) = (
        House::new(),
        ModelServer::says(vec![
            Say::calls("exec", &json!({"command": "exit 0"})),
            Say::calls("read", &json!({"path": "missing"})),
            Say::says("Final Answer: Done."),
        ])
        .expect("starts"),
    );
    let (log, pages) = (house.file("events.log", ""), house.file("pages", ""));
    std::fs::remove_file(&pages).expect("removed");
    // Nobody listens on the first server's port.
    let text = format!(
        "executor:\n  gpt_oss_url: http://127.0.0.1:1\n  upstreams: [\"{}\"]\n  max_iterations: 4\n\
         parser:\n  strategy: react\n\
         logging:\n  output: {log}\n  error_log_dir: {pages}\n\
         tools:\n  enabled: [read, exec]\n  result_limits: {{exec: 900}}\n",
        model.url()
    );
    let file = house.file("executor.yaml", &text);
    let ran = house.run(&["run", "Do it", "--config", &file]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "Done.\n"),
        "{ran:#?}"
    );
    let lines = std::fs::read_to_string(&log).expect("a log");
    let events: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(events[0]["event"], "executor_run_start");
    assert_eq!(events[0]["max_iterations"], 4);
    let failed = events
        .iter()
        .find(|it| it["event"] == "tool_execution_failed");
    assert_eq!(failed.expect("a failure")["tool"], "read");
    let page = std::fs::read_dir(&pages)
        .expect("a directory")
        .next()
        .expect("a page")
        .expect("readable");
    let text = std::fs::read_to_string(page.path()).expect("a text");
    assert!(
        text.starts_with("## 20") && text.contains("] read | Error: "),
        "{text}"
    );
}
