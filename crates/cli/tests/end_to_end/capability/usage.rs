//! Bad usage: exit code 2, and a text that helps. Nothing is run and nothing is recorded.

use crate::common::{House, Ran};
use crate::pty::at_a_terminal;

#[test]
fn arguments_have_to_be_a_json_object() {
    let house = House::new();
    let call = |args: &str| house.run(&["call", "read", "--args", args]);
    call("{").bad_usage("--args is not valid JSON: EOF");
    call("{'path': 'x'}").bad_usage("--args is not valid JSON");
    call("[1]").bad_usage("--args has to be a JSON object");
    call("\"x\"").bad_usage("--args has to be a JSON object");
    call("").bad_usage("--args is not valid JSON");
    call("@no-such-file").bad_usage("no-such-file can not be read");
    let json = house.run(&["call", "read", "--json", "--args", "{"]);
    assert_eq!(json.code, Some(2));
    let said: serde_json::Value = serde_json::from_str(&json.stderr).expect("JSON");
    assert!(said["error"]["message"].is_string() && said["error"]["hint"].is_string());
}

/// Whoever asked for JSON reads JSON, also of words that nobody knows; help stays for people.
#[test]
fn words_that_are_wrong_are_told_as_json_where_that_was_asked_for() {
    let house = House::new();
    let said = |words: &[&str]| {
        let ran = house.run(words);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{ran:?}");
        let said: serde_json::Value = serde_json::from_str(&ran.stderr).expect("JSON");
        (
            said["error"]["message"].to_string(),
            said["error"]["hint"].to_string(),
        )
    };
    let (message, hint) = said(&["--json", "cal", "read"]);
    assert!(
        message.contains("'cal'") && hint.contains("'call'"),
        "{message} {hint}"
    );
    let (message, hint) = said(&["call", "read", "--json", "--turns", "x"]);
    assert!(
        message.contains("--turns") && hint.contains("--turn"),
        "{message} {hint}"
    );
    assert!(said(&["--json", "call"]).0.contains("required"));
    let plain = house.run(&["cal", "--", "--json"]);
    assert!(plain.stderr.starts_with("error: "), "{plain:?}");
    let help = house.run(&["--json", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("Usage"));
}

#[test]
fn arguments_come_from_a_file_or_standard_input() {
    let house = House::new();
    let arguments = r#"{"command":"echo x >> effect"}"#;
    let file = format!("@{}", house.file("args.json", arguments));
    house
        .run(&["call", "exec", "--json", "--args", &file])
        .success();
    house
        .run_with(&["call", "exec", "--json", "--args", "-"], arguments)
        .success();
    assert_eq!(house.lines("effect"), 2);
}

/// The names of the commands that a help screen lists.
fn commands(help: &str) -> Vec<String> {
    let list = help.split("\nCommands:\n").nth(1).unwrap_or_default();
    let list = list.split("\n\n").next().unwrap_or_default();
    // What goes on from the line before stands further to the right.
    let lines = list.lines().filter(|line| !line.starts_with("   "));
    let names = lines.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_command_has_help_without_slips() {
    let house = House::new();
    let mut open = vec![Vec::new()];
    let mut seen = 0;
    while let Some(command) = open.pop() {
        let mut words: Vec<&str> = command.iter().map(String::as_str).collect();
        words.push("--help");
        let help = house.run(&words);
        assert_eq!(help.code, Some(0), "{words:?}: {help:?}");
        let text = &help.stdout;
        for slip in ["\\\"", "`OpenClaw`", "`OpenAI`", "`OpenAPI`", ". [default"] {
            assert!(!text.contains(slip), "{slip:?} in {words:?}: {text}");
        }
        for name in commands(text) {
            open.push([command.as_slice(), &[name]].concat());
        }
        seen += 1;
    }
    assert!(seen > 50, "{seen} screens");
    for command in [
        "scan", "audit", "call", "dedupe", "explain", "doctor", "session",
    ] {
        let text = house.run(&[command, "--help"]).stdout;
        assert!(text.contains("Exit codes: 0 "), "{command}: {text}");
    }
}

#[test]
fn how_to_mend_without_mending_is_refused() {
    let house = House::new();
    let scan = house.run(&["scan", "--strategy", "truncate"]);
    scan.bad_usage("nothing is to be mended");
    scan.bad_usage("--dry-run");
    let watch = house.run(&["watch", "--strategy", "truncate"]);
    watch.bad_usage("Add --repair.");
    let tried = ["scan", "--strategy", "truncate", "--dry-run"];
    assert_eq!(house.run(&tried).code, Some(0));
}

#[test]
fn what_was_mistyped_is_named() {
    let house = House::new();
    house.run(&["call"]).bad_usage("<TOOL>");
    house.run(&["cal"]).bad_usage("'call'");
    house
        .run(&["call", "read", "--kei", "x"])
        .bad_usage("--key");
    house
        .run(&["call", "read", "--dedupe", "maybe"])
        .bad_usage("bestEffort");
    house
        .run(&["call", "read", "--timeout-ms", "0"])
        .bad_usage("--timeout-ms");
    house
        .run(&["call", "read", "--deadline-ms", "soon"])
        .bad_usage("--deadline-ms");
    house
        .run(&["call", "read", "--workspace", "/no/such"])
        .bad_usage("the workspace /no/such");
    house
        .run(&["call", "read", "--log", "/no/such/log"])
        .bad_usage("the log /no/such/log");
    house
        .run(&["tools", "raed"])
        .bad_usage("Did you mean read?");
    house.run(&["schema", "nothing"]).bad_usage("envelope");
    house
        .run(&["dedupe", "list", "--state-is", "lost"])
        .bad_usage("inflight, abandoned");
    house.run(&["completions", "nothing"]).bad_usage("bash");
    let help = house.run(&[]);
    assert_eq!(help.code, Some(2));
    assert!(help.stderr.contains("Usage: holdfast"));
    let unknown = house
        .run(&["call", "raed", "--json"])
        .error("tool_not_found");
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("Did you mean read?")
    );
}

#[test]
fn a_wrong_configuration_is_refused_with_its_place() {
    let house = House::new();
    let check = |name: &str, text: &str, says: &str| {
        let file = house.file(name, text);
        for command in [
            &["config", "check"][..],
            &["call", "read"],
            &["dedupe", "list"],
        ] {
            let ran = house.run(&[command, &["--config", &file]].concat());
            ran.bad_usage(says);
            assert!(ran.stderr.contains(&file), "{}", ran.stderr);
        }
    };
    check(
        "typo.yaml",
        "guard:\n  enabled: true\nreliability:\n  enabeld: true\n",
        "line 4",
    );
    check("shape.yaml", "reliability: 3\n", "line 1");
    check("syntax.yaml", "reliability:\n  retry: [\n", "line 2");
    check(
        "value.yaml",
        "guard:\n  maxFailuresPerTurn: 0\n",
        "guard.maxFailuresPerTurn",
    );
    check(
        "hook.yaml",
        "hooks:\n  admit:\n    - command: []\n",
        "hooks.admit[0]",
    );
    let missing = house.run(&["config", "check", "--config", "/no/such.yaml"]);
    missing.bad_usage("/no/such.yaml can not be read");
    assert!(!house.state().exists(), "nothing was begun");
}

#[test]
fn a_misspelt_switch_is_not_taken_for_on_or_off() {
    let house = House::new();
    for name in [
        "TOOL_RELIABILITY_ENABLED",
        "TOOL_RELIABILITY_OPEN_MODE",
        "TOOL_RELIABLE_DERIVE_IDEMPOTENCY",
    ] {
        let mut command = house.command(&["call", "read"]);
        let output = command.env(name, "flase").output().expect("runs");
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert!(
            stderr.contains(name) && stderr.contains("flase"),
            "{stderr}"
        );
    }
}

#[test]
fn the_kill_switch_takes_the_layers_out() {
    let house = House::new();
    for _ in 0..2 {
        let arguments = r#"{"command":"echo x >> effect"}"#;
        let args = ["call", "exec", "--json", "--key", "k", "--args", arguments];
        let mut command = house.command(&args);
        let output = command.env("TOOL_RELIABILITY_ENABLED", "false").output();
        assert_eq!(output.expect("runs").status.code(), Some(0));
    }
    assert_eq!(house.lines("effect"), 2);
    assert!(house.records().is_empty());
    // Schemas are not the switch's to take out.
    let mut command = house.command(&["call", "read", "--args", "{}"]);
    let output = command.env("TOOL_RELIABILITY_ENABLED", "off").output();
    assert_eq!(output.expect("runs").status.code(), Some(1));
}

#[test]
fn metrics_of_one_call() {
    let house = House::new();
    let file = house.file("metrics.txt", "");
    house.exec("k", "true", &["--metrics", &file]).success();
    let text = std::fs::read_to_string(&file).expect("reads");
    let line = r#"openclaw_tool_calls_total{tool="exec",status="success",scope="live"} 1"#;
    assert!(text.contains(line), "{text}");
    assert!(text.ends_with("# EOF\n"));
    assert!(!text.contains(".."), "{text}");
    let ran = house.exec("k", "true", &["--metrics", "-"]);
    ran.success();
    assert!(
        ran.stderr.contains("openclaw_tool_idempotency_hits_total"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_deadline_and_a_time_limit_end_a_call() {
    let house = House::new();
    // Long enough for the process to begin its call on a busy machine.
    let deadline = ["--deadline-ms", "2000"];
    let answer = house
        .exec("a", "sleep 1000", &deadline)
        .error("outcome_unknown");
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("deadline")
    );
    let limit = ["--timeout-ms", "50"];
    house
        .exec("b", "sleep 1000", &limit)
        .error("outcome_unknown");
    let states: Vec<_> = house
        .records()
        .iter()
        .map(|record| record["state"].clone())
        .collect();
    assert_eq!(states, ["unknown", "unknown"]);
    // Passed before anything began: nothing is on record.
    let answer = house
        .exec("c", "echo x >> effect", &["--deadline-ms", "0"])
        .json();
    assert_eq!(answer["status"], "timeout");
    assert_eq!(house.lines("effect"), 0);
    assert_eq!(house.records().len(), 2);
}

#[test]
fn declarations_come_in_every_providers_form() {
    let house = House::new();
    let form = |name: &str| house.run(&["tools", "--format", name]).json();
    assert_eq!(form("openai")[0]["function"]["name"], "edit");
    assert_eq!(form("anthropic")[0]["input_schema"]["type"], "object");
    assert_eq!(form("mcp")["tools"][0]["inputSchema"]["type"], "object");
    let prompt = house.run(&["tools", "read", "--format", "prompt"]).stdout;
    assert!(
        prompt.contains("## read") && !prompt.contains("## exec"),
        "{prompt}"
    );
    let unknown = house.run(&["tools", "raed", "--format", "openai"]);
    unknown.bad_usage("there is no tool named");
}

#[test]
fn a_wrong_variable_is_named_by_its_own_name() {
    let house = House::new();
    let ran = |args: &[&str], value: &str| {
        let mut command = house.command(args);
        Ran::of(&command.env("HOLDFAST_STATE", value).output().unwrap())
    };
    let empty = ran(&["tools"], "");
    empty.bad_usage("the variable HOLDFAST_STATE");
    assert!(!empty.stderr.contains("--state"), "{empty:?}");
    ran(&["tools", "--state="], "x").bad_usage("--state <DIR>");
}

/// A person who mistypes is not locked out of the tools; a program that does is a loop.
#[test]
fn typos_at_a_terminal_are_no_loop() {
    let house = House::new();
    for by_hand in [true, false] {
        let mut last = String::new();
        for _ in 0..6 {
            let args = ["call", "raed", "--json"];
            let ran = if by_hand {
                let (child, _terminal) = at_a_terminal(&house, &args);
                Ran::of(&child.wait_with_output().expect("ends"))
            } else {
                house.run(&args)
            };
            last = ran.json()["error"]["code"]
                .as_str()
                .expect("a code")
                .to_owned();
        }
        assert_eq!(last == "tool_not_found", by_hand, "{last}");
    }
}

#[test]
fn arguments_may_be_words() {
    let house = House::new();
    std::fs::write(house.workspace().join("a b.txt"), "one\ntwo\n").expect("written");
    for words in [&["a b.txt"][..], &["path=a b.txt", "limit=1"]] {
        let ran = house.run(&[&["call", "read", "--json"], words].concat());
        assert_eq!(ran.json()["status"], "success", "{ran:#?}");
    }
    house
        .run(&["call", "read", "a", "b"])
        .bad_usage("does not know which argument");
}
