//! `holdfast undo`: what a call changed comes back.

use serde_json::Value;

use crate::common::House;
use crate::harness::envelope;

fn removes_everything(house: &House) -> Value {
    let wreck = "echo new > made; rm src/main.rs; rmdir src; ln -s made link";
    let args = serde_json::json!({ "command": wreck }).to_string();
    house
        .run(&["call", "exec", "--json", "--args", &args])
        .json()
}

#[test]
fn undo_brings_back_what_a_command_removed_and_can_be_undone() {
    let house = House::new();
    let file = house.workspace().join("src/main.rs");
    std::fs::create_dir(house.workspace().join("src")).expect("made");
    std::fs::write(&file, "fn main() {}\n").expect("written");
    let called = removes_everything(&house);
    assert_eq!(
        called["output"]["metadata"]["undo"]["covers"], "full",
        "{called}"
    );
    assert!(!file.exists());
    // A person sees what the call changed before it comes back.
    let shown = house.run(&["undo", "show"]);
    assert!(
        shown.stdout.contains("- src/main.rs") && shown.stdout.contains("+ made"),
        "{shown:#?}"
    );
    let undone = house.run(&["undo", "--json"]).json();
    assert_eq!(
        std::fs::read_to_string(&file).expect("is back"),
        "fn main() {}\n"
    );
    assert!(!house.workspace().join("made").exists());
    assert!(std::fs::symlink_metadata(house.workspace().join("link")).is_err());
    // The undo is a point of its own.
    let again = undone["newPoint"]["id"]
        .as_str()
        .expect("a point")
        .to_owned();
    assert_eq!(house.run(&["undo", &again]).code, Some(0));
    assert!(!file.exists() && house.workspace().join("made").exists());
    house.run(&["undo", "clear"]);
    assert!(
        house
            .run(&["undo", "list"])
            .stdout
            .contains("No undo points")
    );
}

#[test]
fn what_a_person_changed_since_is_kept_and_later_calls_are_named() {
    let house = House::new();
    let write = |text: &str| {
        let args = serde_json::json!({"path": "a.txt", "content": text}).to_string();
        house
            .run(&["call", "write", "--json", "--args", &args])
            .json()
    };
    let first = write("one");
    let (request, second) = (first["requestId"].as_str().expect("an id"), write("two"));
    assert_eq!(second["status"], "success");
    let refused = house.run(&["undo", request]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("--also"), "{refused:#?}");
    std::fs::write(house.workspace().join("a.txt"), "mine").expect("written");
    let kept = house.run(&["undo", request, "--also"]);
    assert_eq!(kept.code, Some(1), "{kept:#?}");
    assert!(
        kept.stdout.contains("changed since by somebody else"),
        "{kept:#?}"
    );
    let text = || std::fs::read_to_string(house.workspace().join("a.txt"));
    assert_eq!(text().expect("is there"), "mine");
    let nothing = house.run(&["undo", "no-such-call"]);
    assert!(
        nothing.stderr.contains("holdfast undo list"),
        "{nothing:#?}"
    );
}

#[test]
fn undo_over_http_is_for_who_may_approve() {
    let house = House::new();
    let server = house.serve(&[]);
    let file = house.workspace().join("a.txt");
    std::fs::write(&file, "kept").expect("written");
    let body = envelope(
        "r1",
        "exec",
        &serde_json::json!({"command": "rm a.txt"}),
        None,
    );
    let called = server.call(&body).json();
    let point = called["output"]["metadata"]["undo"]["point"].clone();
    let approver = Some(server.approver_token.as_str());
    let listed = server.get("/v1/undo", approver).json();
    assert_eq!(listed["points"][0]["id"], point, "{listed}");
    let path = format!("/v1/undo/{}", point.as_str().expect("an id"));
    let shown = server.get(&path, approver).json();
    assert_eq!(shown["changes"][0]["path"], "a.txt", "{shown}");
    for token in [&server.token, &server.admin_token] {
        let refused = server.post(&path, token, &serde_json::json!({}));
        assert_eq!(refused.status, 401);
    }
    assert!(!file.exists());
    let dry = server.post(
        &path,
        &server.approver_token,
        &serde_json::json!({"dryRun": true}),
    );
    assert_eq!(dry.json()["restored"][0]["path"], "a.txt");
    assert!(!file.exists());
    let undone = server.post(&path, &server.approver_token, &serde_json::json!({}));
    assert_eq!(undone.status, 200);
    assert_eq!(std::fs::read_to_string(&file).expect("is back"), "kept");
    let unknown = server.post(
        "/v1/undo/999",
        &server.approver_token,
        &serde_json::json!({}),
    );
    assert_eq!(unknown.status, 404);
    let explained = house.run(&["explain", "r1"]).stdout;
    assert!(explained.contains("holdfast undo"), "{explained}");
}
