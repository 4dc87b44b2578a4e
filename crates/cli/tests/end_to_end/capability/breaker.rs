//! Circuit breakers are shared by all processes of a state directory.

use serde_json::Value;

use crate::common::House;

fn breakers(house: &House) -> Vec<Value> {
    let listed = house.run(&["breaker", "list", "--json"]).json();
    serde_json::from_value(listed).expect("a list")
}

#[test]
fn every_tool_has_a_breaker_before_its_first_call() {
    let house = House::new();
    let tools = house.run(&["tools", "--json"]).json();
    let names: Vec<&str> = tools
        .as_array()
        .expect("a list")
        .iter()
        .map(|tool| tool["name"].as_str().expect("a name"))
        .collect();
    assert!(names.contains(&"web_fetch"), "{names:?}");
    for name in names {
        let held = house.run(&["breaker", "force-open", name]);
        let says = format!("{name} held open.\n");
        assert_eq!((held.code, held.stdout), (Some(0), says));
    }
    let args = r#"{"url":"http://127.0.0.1:9/"}"#;
    let config = house.file("web.yaml", "web: {allowedHosts: [127.0.0.1]}");
    let call = [
        "call",
        "web_fetch",
        "--json",
        "--args",
        args,
        "--config",
        &config,
    ];
    house.run(&call).error("circuit_open");
    let unknown = house.run(&["breaker", "force-open", "web_fish"]);
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
}

#[test]
fn an_operator_can_hold_a_breaker_open() {
    let house = House::new();
    let held = house.run(&["breaker", "force-open", "exec", "--reason", "maintenance"]);
    assert_eq!(held.code, Some(0), "{held:?}");
    assert_eq!(held.stdout, "exec held open.\n");

    let answer = house
        .exec("k", "echo x >> effect", &[])
        .error("circuit_open");
    assert_eq!(answer["status"], "circuit_open");
    assert_eq!(answer["attempts"], 0);
    assert_eq!(house.lines("effect"), 0);
    // Nothing ran, so nothing is on record, and other tools are not concerned.
    assert_eq!(house.records(), Vec::<Value>::new());
    let args = r#"{"path":"note","content":"x"}"#;
    house
        .run(&["call", "write", "--json", "--args", args])
        .success();

    let list = breakers(&house);
    let exec = list
        .iter()
        .find(|breaker| breaker["key"] == "tool:holdfast.tools/exec")
        .expect("is listed");
    assert_eq!(exec["forcedReason"], "maintenance");
    let text = house.run(&["breaker", "list"]).stdout;
    assert!(
        text.contains("OPEN") && text.contains("maintenance"),
        "{text}"
    );

    let reset = house.run(&["breaker", "reset", "exec"]);
    assert_eq!(reset.stdout, "exec closed.\n");
    house.exec("k", "echo x >> effect", &[]).success();
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn hosts_are_listed_and_closed_by_name() {
    let house = House::new();
    let text = "web: {allowedHosts: ['127.0.0.1:9']}\nreliability:\n  tools:\n    web_fetch:\n      \
                retry: {maxAttempts: 1}\n      breaker: {consecutiveFailures: 1}\n";
    let config = house.file("web.yaml", text);
    let fetch = |turn: &str| {
        let args = r#"{"url":"http://127.0.0.1:9/"}"#;
        let call = [
            "call",
            "web_fetch",
            "--turn",
            turn,
            "--json",
            "--args",
            args,
        ];
        house.run(&[&call[..], &["--config", &config]].concat())
    };
    assert_ne!(fetch("1").code, Some(0));
    let refused = fetch("2").error("circuit_open");
    let told = refused["error"]["message"].as_str().expect("a message");
    assert!(told.contains("web_fetch (127.0.0.1)"), "{told}");
    let text = house.run(&["breaker", "list"]).stdout;
    assert!(text.contains("web_fetch (127.0.0.1)"), "{text}");
    assert!(!text.contains("part:"), "{text}");
    let reset = house.run(&["breaker", "reset", "127.0.0.1"]);
    assert_eq!(reset.stdout, "web_fetch (127.0.0.1) closed.\n");
    assert_ne!(fetch("3").json()["error"]["code"], "circuit_open");
}

#[test]
fn configuration_holds_a_breaker_open_and_a_reset_says_so() {
    let house = House::new();
    let text = "reliability: {tools: {exec: {breaker: {forcedOpen: vendor incident}}}}\n";
    let config = house.file("held.yaml", text);
    let with = ["--config", config.as_str()];
    house
        .exec("k", "echo x >> effect", &with)
        .error("circuit_open");
    assert_eq!(house.lines("effect"), 0);
    let listed = house.run(&[&["breaker", "list", "--json"][..], &with].concat());
    let listed = listed.json();
    assert_eq!(listed[0]["name"], "exec");
    assert_eq!(listed[0]["state"], "FORCED_OPEN");
    assert_eq!(listed[0]["forcedReason"], "vendor incident");
    let reset = house.run(&[&["breaker", "reset", "exec"][..], &with].concat());
    assert_eq!(reset.code, Some(1), "{reset:?}");
    assert!(reset.stderr.contains("vendor incident"), "{reset:?}");
    house.exec("k", "echo x >> effect", &[]).success();
}

#[test]
fn failures_of_several_processes_open_one_breaker() {
    let house = House::new();
    let config = house.file(
        "low.yaml",
        "reliability:\n  tools:\n    exec:\n      breaker:\n        consecutiveFailures: 3\n        \
         openCooldownMs: 3600000\n",
    );
    for number in 0..3 {
        // A command that ran out of time may have had its effect, and speaks against the tool.
        let key = format!("slow-{number}");
        let more = ["--config", &config, "--timeout-ms", "50"];
        house
            .exec(&key, "sleep 1000", &more)
            .error("outcome_unknown");
    }
    let answer = house
        .exec("k", "echo x >> effect", &["--config", &config])
        .error("circuit_open");
    assert_eq!(answer["error"]["breakerState"], "OPEN");
    assert_eq!(house.lines("effect"), 0);
    let open = &breakers(&house)[0];
    assert_eq!(open["state"], "OPEN");
    // By the cooldown of the tool that opened it, not by the standard one.
    assert_eq!(open["wouldAdmit"], false);
    let wait_ms = open["retryAfterMs"].as_u64().expect("a wait");
    assert!((1_800_000..=3_600_000).contains(&wait_ms), "{wait_ms}");
    house.run(&["breaker", "reset", "all"]);
    house
        .exec("k", "echo x >> effect", &["--config", &config])
        .success();
}

#[test]
fn a_breaker_that_is_not_there_is_an_error() {
    let house = House::new();
    let ran = house.run(&["breaker", "force-open", "no-such-tool"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("there is no breaker \"no-such-tool\""));
    let none = house.run(&["breaker", "list"]);
    assert_eq!(none.stdout, "No breakers: no tool has been called yet.\n");
}

#[test]
fn an_operators_word_holds_whichever_breaker_the_caller_names() {
    let house = House::new();
    assert_eq!(house.run(&["breaker", "force-open", "exec"]).code, Some(0));
    let envelope = serde_json::json!({
        "contractVersion": "1.1", "requestId": "r", "toolName": "exec",
        "toolNamespace": "holdfast.tools",
        "target": {"sessionKey": "s", "actorId": "a"},
        "payload": {"version": "1.0", "params": {"command": "echo x >> effect"}},
        "transport": {"dedupeMode": "enforced", "circuitBreakerHint": "global",
                      "retryBudget": {"maxAttempts": 1, "maxElapsedMs": 0}}
    });
    let call = ["call", "--envelope", "-", "--json"];
    house
        .run_with(&call, &envelope.to_string())
        .error("circuit_open");
    assert_eq!(house.lines("effect"), 0);
    house.run(&["breaker", "reset", "exec"]);
    house.run_with(&call, &envelope.to_string()).success();
}
