//! What a server says about its switches is what its calls meet.

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::House;
use crate::harness::{Serving, envelope};

/// How often the effect of two calls with one key happens.
fn effects(house: &House, server: &Serving, name: &str) -> usize {
    let command = json!({"command": format!("echo paid >> {name}")});
    for number in 0..2 {
        let call = envelope(&format!("{name}-{number}"), "exec", &command, Some(name));
        assert_eq!(server.call(&call).status, 200);
    }
    house.lines(name)
}

/// The mode as each of the places tells it.
fn told(house: &House, server: &Serving) -> [Value; 3] {
    let health = server.get("/health", None).json()["mode"].clone();
    let path = "/debug/tool-reliability";
    let overview = server.get(path, Some(&server.admin_token)).json();
    let line = house.run(&["mode", "--json", "--server", &server.url()]);
    [
        health,
        overview["modes"]["mode"].clone(),
        line.json()["modes"]["mode"].clone(),
    ]
}

#[test]
fn the_configured_mode_is_told_and_can_be_switched() {
    for mode in ["shadow", "off"] {
        let house = House::new();
        let file = house.file(
            "holdfast.yaml",
            &format!("reliability: {{mode: \"{mode}\"}}\n"),
        );
        let server = house.serve(&["--config", &file]);
        assert_eq!(told(&house, &server), [mode; 3].map(Value::from));
        assert_eq!(effects(&house, &server, "before"), 2, "{mode}");
        let force = json!({"action": "force-open", "breaker": "exec"});
        assert_eq!(server.act(&force).status, 200);
        assert_eq!(effects(&house, &server, "forced"), 2, "{mode}");

        let switch = json!({"action": "mode", "mode": "enforce"});
        assert_eq!(
            server.act(&switch).json()["before"]["mode"],
            json!(mode),
            "what it was"
        );
        assert_eq!(told(&house, &server), ["enforce"; 3].map(Value::from));
        let call = envelope("held", "exec", &json!({"command": "true"}), None);
        assert_eq!(server.call(&call).status, 503, "it is held open");
        let reset = json!({"action": "reset", "breaker": "exec"});
        assert_eq!(server.act(&reset).status, 200);
        assert_eq!(effects(&house, &server, "after"), 1, "{mode}");
    }
}

/// What a tool is set to counts over what all are set to, and is told apart; an operator's word and
/// the kill switch count for it too.
#[test]
fn a_tool_that_is_set_apart_is_told_apart() {
    let house = House::new();
    let text = "reliability: {mode: shadow, tools: {exec: {mode: enforce}}}\n";
    let file = house.file("holdfast.yaml", text);
    let server = house.serve(&["--config", &file]);
    let path = "/debug/tool-reliability";
    let overview = server.get(path, Some(&server.admin_token)).json();
    assert_eq!(overview["modes"]["mode"], "shadow");
    assert_eq!(overview["modes"]["tools"], json!({"exec": "enforce"}));
    let shown = house.run(&["mode", "--server", &server.url()]).stdout;
    assert!(shown.contains("exec enforce"), "{shown}");
    assert_eq!(effects(&house, &server, "apart"), 1);
    let off = json!({"action": "mode", "mode": "off"});
    assert_eq!(server.act(&off).json()["modes"]["tools"], json!({}));
    assert_eq!(effects(&house, &server, "off"), 2);
}

#[test]
fn a_hangup_turns_the_switches_whose_setting_changed() {
    let house = House::new();
    let file = house.file("holdfast.yaml", "reliability: {}\n");
    let mut server = house.serve(&["--config", &file]);
    assert_eq!(effects(&house, &server, "enforced"), 1);

    let mut reload = |text: &str| {
        house.file("holdfast.yaml", text);
        server.signal(Signal::HUP);
        let said = server.says();
        assert_eq!(said["event"], "server_reloaded");
        assert_eq!(said["needRestart"], json!([]));
        said["modes"].clone()
    };
    assert_eq!(reload("reliability: {enabled: false}\n")["mode"], "off");
    let off = "reliability: {enabled: false, openMode: shadow}\n";
    assert_eq!(reload(off)["openMode"], "shadow");
    assert_eq!(told(&house, &server), ["off"; 3].map(Value::from));
    assert_eq!(effects(&house, &server, "killed"), 2);

    // What an operator turned stays, as long as nobody writes anything else about it.
    let switch = json!({"action": "mode", "mode": "enforce"});
    assert_eq!(server.act(&switch).status, 200);
    let mut reload = |text: &str| {
        house.file("holdfast.yaml", text);
        server.signal(Signal::HUP);
        server.says()["modes"].clone()
    };
    let modes = reload("reliability: {enabled: false, openMode: \"off\"}\n");
    assert_eq!(
        (&modes["mode"], &modes["openMode"]),
        (&json!("enforce"), &json!("off"))
    );
    assert_eq!(reload("reliability: {mode: shadow}\n")["mode"], "shadow");
    assert_eq!(told(&house, &server), ["shadow"; 3].map(Value::from));
    assert_eq!(effects(&house, &server, "watched"), 2);
}

/// The breaker that is kept is the live one, and an open one only says so.
#[test]
fn an_open_breaker_that_only_says_so_says_so() {
    let house = House::new();
    let log = house.file("events.jsonl", "");
    let server = house.serve_with(&["--log", &log], |command| {
        command.env("TOOL_RELIABILITY_OPEN_MODE", "shadow");
    });
    let force = json!({"action": "force-open", "breaker": "exec", "reason": "vendor incident"});
    assert_eq!(server.act(&force).status, 200);
    assert_eq!(
        effects(&house, &server, "through"),
        1,
        "the rest is enforced"
    );
    let text = std::fs::read_to_string(&log).expect("a log");
    let blocked: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .filter(|event: &Value| event["event"] == "tool_call_blocked")
        .collect();
    assert_eq!(blocked.len(), 1, "{text}");
    assert_eq!(blocked[0]["shadow"], true);
    let page = server.get("/metrics", None).text();
    let counted = page.lines().find(|line| {
        line.starts_with("holdfast_tool_calls_blocked_total") && line.contains("\"shadow\"")
    });
    assert!(counted.is_some_and(|line| line.ends_with(" 1")), "{page}");

    // Failures are counted where enforcing would count them.
    let switch = json!({"action": "mode", "openMode": "enforce"});
    assert_eq!(server.act(&switch).status, 200);
    let call = envelope("held", "exec", &json!({"command": "true"}), None);
    let held = server.call(&call);
    assert_eq!(held.status, 503);
    // And whoever meets it learns why.
    let message = held.json()["error"]["message"].to_string();
    assert!(message.contains("vendor incident"), "{message}");
}
