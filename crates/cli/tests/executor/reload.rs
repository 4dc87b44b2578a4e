//! SIGHUP: limits and policies are exchanged, and a file that is wrong changes nothing.

use holdfast_testkit::model::{ModelServer, Say};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::House;
use crate::harness::envelope;
use crate::task;

#[test]
fn a_new_file_counts_from_the_next_request_and_a_wrong_one_never() {
    let model = ModelServer::says(vec![Say::says("Hello.")]).expect("starts");
    let house = House::new();
    std::fs::write(house.path("notes.txt"), "hello").expect("written");
    let before = "executor: {requestsPerMinuteMax: 1}\npermissions: {deniedTools: [read]}\n";
    let file = house.file("holdfast.yaml", before);
    let mut serving = house.serve(&["--config", &file, "--model-url", &model.url()]);
    let read = |serving: &crate::harness::Serving, id: &str| {
        let call = envelope(id, "read", &json!({"path": "notes.txt"}), None);
        serving.call(&call).status
    };
    let ask = |serving: &crate::harness::Serving| {
        let path = "/v1/chat/completions";
        serving.post(path, "none", &task("Hello")).status
    };
    assert_eq!((ask(&serving), ask(&serving)), (200, 429));
    assert_eq!(read(&serving, "r-1"), 403);

    house.file("holdfast.yaml", "executor: {requestsPerMinuteMax: 0}\n");
    serving.signal(Signal::HUP);
    let said = serving.says();
    assert_eq!(said["event"], "server_reload_failed");
    let reason = said["reason"].as_str().unwrap_or_default();
    assert!(reason.contains("requestsPerMinuteMax"), "{reason}");
    assert_eq!((ask(&serving), read(&serving, "r-2")), (429, 403));

    let after = "executor: {requestsPerMinuteMax: 100, runsMax: 7}\nserver: {bodyBytesMax: 1000}\n";
    house.file("holdfast.yaml", after);
    serving.signal(Signal::HUP);
    let said = serving.says();
    assert_eq!(said["event"], "server_reloaded");
    // What can not be exchanged is named.
    assert_eq!(said["needRestart"], json!(["executor"]));
    assert_eq!((ask(&serving), read(&serving, "r-3")), (200, 200));
    let large: Value = task(&"x".repeat(2000));
    let refused = serving.post("/v1/chat/completions", "none", &large);
    assert_eq!(refused.status, 413);
}

/// Which commands run, how long people are waited for and what the loop guard takes: for calls that
/// begin from then on.
#[test]
fn policies_and_the_guard_s_limits_count_without_a_restart() {
    let house = House::new();
    let before = "permissions: {commands: {blocked: [echo]}, approvals: {waitMs: 600000}}\n\
                  guard: {maxIdenticalFailures: 1}\n";
    let file = house.file("holdfast.yaml", before);
    let mut serving = house.serve(&["--config", &file]);
    let number = std::cell::Cell::new(0);
    let call = |serving: &crate::harness::Serving, tool: &str, args: &Value| {
        number.set(number.get() + 1);
        let mut call = envelope(&format!("c-{}", number.get()), tool, args, None);
        call["target"]["turnId"] = json!("one turn");
        let answer = serving.call(&call).json();
        let code = answer["error"]["code"].as_str();
        code.unwrap_or("ok").to_owned()
    };
    let missing = json!({"path": "nowhere.txt"});
    assert_eq!(
        call(&serving, "exec", &json!({"command": "echo a"})),
        "permission_denied"
    );
    assert_ne!(call(&serving, "read", &missing), "loop_detected");
    assert_eq!(call(&serving, "read", &missing), "loop_detected");

    let after = "permissions: {approvals: {waitMs: 50}, tools: {exec: {gate: required}}}\n\
                 guard: {maxIdenticalFailures: 9, maxFailuresPerTurn: 90}\n";
    house.file("holdfast.yaml", after);
    serving.signal(Signal::HUP);
    let said = serving.says();
    assert_eq!(said["event"], "server_reloaded");
    assert_eq!(said["needRestart"], json!([]));
    assert_ne!(call(&serving, "read", &missing), "loop_detected");
    // It is asked about now, and nobody is waited for.
    let asked = envelope("asked", "exec", &json!({"command": "echo b"}), None);
    let asked = serving.call(&asked).json();
    let why = asked["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("nobody approved it in time"), "{asked}");

    house.file("holdfast.yaml", "permissions: {}\n");
    serving.signal(Signal::HUP);
    assert_eq!(serving.says()["event"], "server_reloaded");
    assert_eq!(call(&serving, "exec", &json!({"command": "echo c"})), "ok");
}
