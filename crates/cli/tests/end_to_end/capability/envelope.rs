//! Whole envelopes, from a file or standard input.

use serde_json::{Value, json};

use crate::common::House;

/// An envelope as a host would write it.
pub(super) fn envelope(request: &str, tool: &str, params: &Value) -> Value {
    json!({
        "contractVersion": "1.1",
        "requestId": request,
        "toolName": tool,
        "toolNamespace": "holdfast.tools",
        "target": {"sessionKey": "session-1", "actorId": "actor-1"},
        "payload": {"version": "1.0", "params": params},
        "transport": {
            "dedupeMode": "enforced",
            "retryBudget": {"maxAttempts": 4, "maxElapsedMs": 30_000},
        },
        "control": {}
    })
}

#[test]
fn an_envelope_is_answered_once_however_often_it_is_delivered() {
    let house = House::new();
    let params = json!({"command": "echo x >> effect"});
    let text = envelope("r-1", "exec", &params).to_string();
    let file = house.file("envelope.json", &text);
    let first = house
        .run(&["call", "--envelope", &file, "--json"])
        .success();
    assert_eq!(first["requestId"], "r-1");
    assert_eq!(first["fromCache"], false);
    let again = house
        .run_with(&["call", "--envelope", "-", "--json"], &text)
        .success();
    assert_eq!(again["fromCache"], true);
    assert_eq!(house.lines("effect"), 1);
}

#[test]
fn a_malformed_envelope_is_refused_by_the_name_of_its_field() {
    let house = House::new();
    let good = envelope("r-1", "exec", &json!({"command": "echo x >> effect"}));
    let mut cases = Vec::new();
    for field in [
        "contractVersion",
        "requestId",
        "toolName",
        "target",
        "payload",
    ] {
        let mut bad = good.clone();
        bad.as_object_mut().expect("an object").remove(field);
        cases.push((bad, field.to_owned()));
    }
    for (pointer, value, names) in [
        ("/requestId", json!(7), "requestId"),
        ("/toolName", json!(""), "toolName"),
        ("/target/sessionKey", json!(""), "sessionKey"),
        ("/transport/dedupeMode", json!("perhaps"), "dedupeMode"),
        ("/payload/params", json!("text"), "params"),
    ] {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).expect("is there") = value;
        cases.push((bad, names.to_owned()));
    }
    for (bad, names) in cases {
        let ran = house.run_with(&["call", "--envelope", "-", "--json"], &bad.to_string());
        let answer = ran.error("invalid_envelope");
        let message = answer["error"]["message"].as_str().expect("a message");
        assert!(message.contains(&names), "not {names:?}: {message}");
        assert_eq!(answer["attempts"], 0);
    }
    for text in ["", "{", "[]", "null", "\u{0}"] {
        let ran = house.run_with(&["call", "--envelope", "-", "--json"], text);
        ran.error("invalid_envelope");
    }
    assert_eq!(house.lines("effect"), 0);
    assert_eq!(house.records(), Vec::<Value>::new());
}

#[test]
fn an_envelope_says_it_all() {
    let house = House::new();
    let file = house.file("envelope.json", "{}");
    for flag in ["--key", "--session", "--turn", "--request", "--deadline-ms"] {
        let ran = house.run(&["call", "--envelope", &file, flag, "1"]);
        ran.bad_usage("cannot be used with");
    }
    house
        .run(&["call", "exec", "--envelope", &file])
        .bad_usage("cannot be used with");
    house
        .run(&["call", "--envelope", "/no/such"])
        .bad_usage("/no/such can not be read");
}
