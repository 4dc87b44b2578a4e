//! The admin surface of the real server, and the command line against it.

use std::fs;

use serde_json::{Value, json};

use crate::common::House;
use crate::harness::envelope;

fn audit(house: &House) -> Vec<Value> {
    let text = fs::read_to_string(house.state().join("audit.log")).unwrap_or_default();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    lines.collect()
}

#[test]
fn the_command_line_does_to_a_server_what_the_server_can() {
    let house = House::new();
    let server = house.serve(&[]);
    let url = server.url();
    let at = |args: &[&str]| house.run(&[args, &["--server", &url, "--json"]].concat());
    let call = |id: &str| {
        server.call(&envelope(
            id,
            "exec",
            &json!({"command": "true"}),
            Some("k"),
        ))
    };
    assert_eq!(call("r1").status, 200);

    let listed = at(&["breaker", "list"]).json();
    assert_eq!(listed[0]["key"], "tool:holdfast.tools/exec");
    let forced = at(&["breaker", "force-open", "exec", "--reason", "maintenance"]).json();
    assert_eq!(forced, json!({"forcedOpen": ["tool:holdfast.tools/exec"]}));
    assert_eq!(
        server
            .call(&envelope("r2", "exec", &json!({"command": "true"}), None))
            .status,
        503
    );
    assert_eq!(
        at(&["breaker", "list"]).json()[0]["forcedReason"],
        "maintenance"
    );
    assert_eq!(at(&["breaker", "reset", "all"]).code, Some(0));

    let records = at(&["dedupe", "list", "--tool", "exec"]).json();
    assert_eq!(records[0]["state"], "done");
    assert!(records[0].get("payload").is_none() && records[0].get("owner").is_none());
    assert_eq!(
        at(&["dedupe", "show", "k"]).json()["key"],
        records[0]["key"]
    );
    assert_eq!(call("r3").json()["fromCache"], true);
    assert_eq!(at(&["dedupe", "clear", "k"]).json()["cleared"], true);
    assert_eq!(call("r4").json()["fromCache"], false);
    let refused = at(&["dedupe", "flush"]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("--all"), "{refused:?}");
    let refused = server.act(&json!({"action": "flush"}));
    assert_eq!(refused.status, 400, "it is not left to the command line");
    assert_eq!(
        at(&["dedupe", "flush", "--tool", "exec"]).json()["flushed"],
        1
    );

    // What was switched holds for the next call of this server.
    assert_eq!(at(&["mode", "off"]).json()["modes"]["mode"], "off");
    assert_eq!(call("r5").json()["fromCache"], false);
    assert_eq!(call("r6").json()["fromCache"], false);
    assert_eq!(at(&["mode", "enforce"]).json()["modes"]["mode"], "enforce");
    assert_eq!(call("r7").json()["fromCache"], false);
    assert_eq!(call("r8").json()["fromCache"], true);

    let by: Vec<Value> = audit(&house)
        .iter()
        .map(|entry| entry["fields"]["operator"].clone())
        .collect();
    assert_eq!(by[0], "tester", "the login name");
    let named = at(&["mode", "enforce", "--operator", "ann"]);
    assert_eq!(named.code, Some(0), "{named:?}");
    let last = audit(&house).pop().expect("an entry");
    assert_eq!(last["fields"]["operator"], "ann");
    let written: Vec<(String, String)> = audit(&house)
        .iter()
        .map(|entry| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let event = text(&entry["event"]).replace("admin.", "");
            (text(&entry["fields"]["action"]["action"]), event)
        })
        .collect();
    let expected: Vec<(String, String)> = [
        ("force-open", "done"),
        ("reset", "done"),
        ("clear", "done"),
        ("flush", "failed"),
        ("flush", "done"),
        ("mode", "done"),
        ("mode", "done"),
        ("mode", "done"),
    ]
    .iter()
    .flat_map(|(action, end)| [(*action, "asked"), (*action, *end)])
    .map(|(action, phase)| (action.to_owned(), phase.to_owned()))
    .collect();
    assert_eq!(written, expected);
}

#[test]
fn the_command_line_finds_the_server_of_its_state_directory() {
    let house = House::new();
    let none = house.run(&["mode"]);
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("no server"), "{none:?}");
    let one = house.serve(&[]);
    assert!(house.run(&["mode"]).stdout.contains("mode enforce"));
    assert_eq!(
        house.run(&["breaker", "list", "--server", "auto"]).code,
        Some(0)
    );
    let two = house.serve(&[]);
    let several = house.run(&["mode", "shadow"]);
    assert_eq!(several.code, Some(1));
    assert!(several.stderr.contains(&one.url()) && several.stderr.contains(&two.url()));
    // The other one is not touched by a switch of the first.
    assert_eq!(
        house.run(&["mode", "shadow", "--server", &one.url()]).code,
        Some(0)
    );
    let mode = |url: String| {
        house.run(&["mode", "--json", "--server", &url]).json()["modes"]["mode"].clone()
    };
    assert_eq!(
        (mode(one.url()), mode(two.url())),
        (json!("shadow"), json!("enforce"))
    );
}

#[test]
fn nothing_is_done_or_shown_without_the_admin_token() {
    let house = House::new();
    let server = house.serve(&[]);
    let before = audit(&house).len();
    let paths = [
        "/debug/tool-reliability",
        "/debug/tool-reliability/breakers",
        "/debug/tool-reliability/records",
        "/debug/tool-reliability/records/abcdef",
        "/debug/tool-reliability/audit",
    ];
    for path in paths {
        assert_eq!(server.get(path, None).status, 401, "{path}");
        // The token for calls is none for this.
        let refused = server.get(path, Some(&server.token)).status;
        assert!([401, 429].contains(&refused), "{path}: {refused}");
    }
    for action in ["force-open", "reset", "flush", "clear", "mode"] {
        let body =
            json!({"action": action, "breaker": "exec", "all": true, "mode": "off", "key": "k"});
        let refused = server
            .post("/debug/tool-reliability", &server.token, &body)
            .status;
        assert!([401, 429].contains(&refused), "{action}: {refused}");
        let refused = server.post("/debug/tool-reliability", "", &body).status;
        assert!([401, 429].contains(&refused), "{action}: {refused}");
    }
    assert_eq!(audit(&house).len(), before);
    // Enough wrong ones: told to wait, while the right one still works here.
    let limited = server.get(paths[0], Some("wrong"));
    assert_eq!(limited.status, 429);
    assert!(limited.header("retry-after").is_some());
    let overview = server.get(paths[0], Some(&server.admin_token)).json();
    assert_eq!(overview["modes"]["mode"], "enforce");
    assert_eq!(overview["degraded"], json!(null));
    // And the admin token calls no tool.
    let refused = server.post(
        "/tools/invoke",
        &server.admin_token,
        &json!({"tool": "read"}),
    );
    assert_eq!(refused.status, 429);
}

#[test]
fn records_come_in_pages_and_without_secrets() {
    let house = House::new();
    let server = house.serve(&[]);
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for number in 0..5 {
        let command = json!({"command": format!("echo {secret} {number}")});
        let key = format!("k{number}");
        assert_eq!(
            server
                .call(&envelope(&key, "exec", &command, Some(&key)))
                .status,
            200
        );
    }
    let get = |query: &str| {
        let path = format!("/debug/tool-reliability/records{query}");
        server.get(&path, Some(&server.admin_token))
    };
    let mut seen = Vec::new();
    let mut offset = json!(0);
    while !offset.is_null() {
        let answer = get(&format!("?tool=exec&limit=2&offset={offset}"));
        assert!(!answer.text().contains(secret));
        let page = answer.json();
        let records = page["records"].as_array().expect("a list").clone();
        assert!(records.len() <= 2);
        seen.extend(
            records
                .iter()
                .map(|record| record["idempotencyKey"].clone()),
        );
        offset = page["nextOffset"].clone();
    }
    assert_eq!(seen, ["k4", "k3", "k2", "k1", "k0"].map(Value::from));
    let shown = get("/k3");
    assert_eq!(shown.json()["state"], "done");
    assert!(shown.json()["payload"].is_object() && !shown.text().contains(secret));
    for bad in [
        "?limit=0",
        "?limit=501",
        "?offset=99999",
        "?state=odd",
        "?sesion=x",
        "?limit=x",
    ] {
        assert_eq!(get(bad).status, 400, "{bad}");
    }
    assert_eq!(get("/nothing-like-it").status, 404);
}
