//! What the binary says about itself: schemas, completions, configuration, the demo.

use serde_json::{Value, json};

use super::envelope::envelope;
use crate::common::House;

fn schema(house: &House, which: &str) -> jsonschema::Validator {
    let printed = house.run(&["schema", which]);
    assert_eq!(printed.code, Some(0));
    jsonschema::validator_for(&printed.json()).expect("a schema")
}

#[track_caller]
fn fits(schema: &jsonschema::Validator, value: &Value) {
    let problems: Vec<String> = schema
        .iter_errors(value)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(problems, Vec::<String>::new(), "{value}");
}

#[test]
fn schemas_fit_what_is_really_written() {
    let house = House::new();
    let call = envelope("r-1", "exec", &json!({"command": "echo hello"}));
    let schema_of_calls = schema(&house, "envelope");
    fits(&schema_of_calls, &call);
    assert!(!schema_of_calls.is_valid(&json!({"requestId": 7})));

    let results = schema(&house, "result");
    let args = ["call", "--envelope", "-", "--json"];
    let success = house.run_with(&args, &call.to_string()).success();
    fits(&results, &success);
    fits(
        &results,
        &house.run_with(&args, &call.to_string()).success(),
    );
    let failed = house
        .run(&["call", "read", "--json"])
        .error("invalid_arguments");
    fits(&results, &failed);
    assert!(!results.is_valid(&json!({"requestId": "r", "status": "perhaps"})));

    let records = schema(&house, "record");
    let key = house.records()[0]["key"]
        .as_str()
        .expect("a key")
        .to_owned();
    let record = house
        .run(&["dedupe", "show", &key, "--reveal", "--json"])
        .json();
    fits(&records, &record);

    let config = schema(&house, "config");
    fits(&config, &house.run(&["config", "show", "--json"]).json());
    assert!(!config.is_valid(&json!({"reliability": {"enabeld": true}})));
    let printed = house.run(&["config", "schema"]).stdout;
    assert_eq!(printed, house.run(&["schema", "config"]).stdout);
}

#[test]
fn the_configuration_in_force_can_be_read_back() {
    let house = House::new();
    let text = "guard:\n  maxFailuresPerTurn: 7\n";
    let named = house.file("named.yaml", text);
    let shown = house.run(&["config", "show", "--config", &named]);
    assert!(
        shown.stdout.contains("maxFailuresPerTurn: 7"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains(house.state().to_str().unwrap()));
    // What is shown is itself a configuration, and means the same.
    let again = house.file("again.yaml", &shown.stdout);
    let shown_again = house.run(&["config", "show", "--config", &again]);
    assert_eq!(shown.stdout, shown_again.stdout);

    let checked = house.run(&["config", "check", "--json"]).json();
    assert_eq!(checked["source"], "the built-in defaults");
    // The user's own file is found without being named.
    let dir = house.home().join(".config/holdfast");
    std::fs::create_dir_all(&dir).expect("creates");
    std::fs::write(dir.join("holdfast.yaml"), text).expect("writes");
    let checked = house.run(&["config", "check"]);
    assert!(
        checked.stdout.contains("holdfast.yaml"),
        "{}",
        checked.stdout
    );
    let shown = house.run(&["config", "show", "--json"]).json();
    assert_eq!(shown["guard"]["maxFailuresPerTurn"], 7);
}

#[test]
fn completions_are_printed_for_each_shell() {
    let house = House::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = house.run(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("dedupe") && ran.stdout.contains("bestEffort"));
    }
}

#[test]
fn tools_are_described() {
    let house = House::new();
    let tools = house.run(&["tools", "--json"]).json();
    let names: Vec<_> = tools
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    for name in ["edit", "exec", "read", "write"] {
        assert!(names.contains(&name), "{names:?}");
        let tool = house.run(&["tools", name, "--json"]).json();
        jsonschema::validator_for(&tool["parameters"]).expect("a schema");
        assert!(tool["policy"]["timeoutMs"].is_u64());
    }
}

#[test]
fn the_demo_keeps_its_promises() {
    let house = House::new();
    let ran = house.run(&["demo", "--json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let scenes = ran.json();
    let scenes = scenes.as_array().expect("a list");
    let sum = |run: &str, what: &str| -> u64 {
        let of = |scene: &Value| scene[run][what].as_u64().expect("a number");
        scenes.iter().map(of).sum()
    };
    assert_eq!(sum("with", "duplicates"), 0);
    assert!(sum("without", "duplicates") > 0);
    assert!(sum("with", "wasted") < sum("without", "wasted"));
    let looping = scenes
        .iter()
        .find(|scene| scene["scene"] == "empty arguments in a loop")
        .expect("the loop");
    assert!(looping["with"]["calls"].as_u64().expect("a number") <= 6);
    assert!(looping["without"]["calls"].as_u64().expect("a number") > 6);
}

#[test]
fn the_demo_leaves_nothing_behind_unless_asked() {
    let house = House::new();
    let temporary = house.home().join("tmp");
    std::fs::create_dir(&temporary).expect("creates");
    let kept = || std::fs::read_dir(&temporary).expect("lists").count();
    let demo = |args: &[&str]| {
        let mut command = house.command(args);
        let output = command.env("TMPDIR", &temporary).output().expect("runs");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    demo(&["demo", "--quiet"]);
    assert_eq!(kept(), 0);
    let text = demo(&["demo", "--quiet", "--keep"]);
    assert_eq!(kept(), 1);
    assert!(text.contains("Kept: "), "{text}");
    assert!(
        !house.state().exists(),
        "the user's own state is not touched"
    );
}
