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
