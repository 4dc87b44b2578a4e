//! Calls over HTTP, and how they meet calls from elsewhere.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::Instant;

use serde_json::json;

use crate::common::House;
use crate::harness::envelope;

#[test]
fn it_says_where_it_is_and_keeps_its_tokens_to_its_owner() {
    let house = House::new();
    let begun = Instant::now();
    let server = house.serve(&[]);
    println!("ready after {:?}", begun.elapsed());
    let state = house.state();
    assert_eq!(
        server.started["token"],
        json!(state.join("server-token").display().to_string())
    );
    assert_eq!(server.started["store"], "sqlite");
    assert_eq!(server.started["pid"], json!(server.pid()));
    for name in ["server-token", "admin-token", "approver-token"] {
        let mode = fs::metadata(state.join(name)).expect("is there").mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(server.get("/health", None).json()["status"], "ok");
    assert_eq!(server.get("/ready", None).json()["status"], "ready");
    // The next start finds the same tokens.
    let first = server.token.clone();
    drop(server);
    assert_eq!(house.serve(&[]).token, first);
}

#[test]
fn second_look_under_a_reused_id_sees_the_write_in_between() {
    let house = House::new();
    fs::write(house.path("note"), "first\n").expect("writes");
    let server = house.serve(&[]);
    let run = |request: &str, command: &str| {
        let mut call = envelope(request, "exec", &json!({"command": command}), None);
        call["target"]["turnId"] = json!("t");
        call["toolCallId"] = json!("call_0");
        server.call(&call).json()
    };
    let first = run("r1", "cat note");
    assert_eq!(first["output"]["content"]["stdout"], "first\n", "{first}");
    assert_eq!(run("r2", "cat note")["fromCache"], true);
    assert_eq!(run("r3", "echo second > note")["status"], "success");
    let again = run("r4", "cat note");
    assert_eq!(again["output"]["content"]["stdout"], "second\n", "{again}");
}

#[test]
fn an_envelope_goes_in_and_a_result_envelope_comes_out() {
    let house = House::new();
    fs::write(house.path("a.txt"), "hello\n").expect("writes");
    let server = house.serve(&[]);
    let answer = server.call(&envelope("r1", "read", &json!({"path": "a.txt"}), None));
    assert_eq!(answer.status, 200);
    let result = answer.json();
    assert_eq!(result["requestId"], "r1");
    assert_eq!(result["status"], "success");
    assert_eq!(result["output"]["content"]["content"], "hello\n");
    let schema = house.run(&["schema", "result"]).json();
    assert!(jsonschema::is_valid(&schema, &result), "{result}");

    let answer = server.call(&envelope("r2", "raed", &json!({}), None));
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (404, &json!("tool_not_found"))
    );
    let answer = server.call(&envelope("r3", "read", &json!({}), None));
    assert_eq!(
        (answer.status, &answer.json()["error"]["code"]),
        (400, &json!("invalid_arguments"))
    );
    let counted = r#"openclaw_tool_calls_total{tool="read",status="success",scope="live"}"#;
    assert_eq!(server.metric(counted), Some(1.0));
    let over_http = r#"holdfast_http_requests_total{route="/v1/tools/call",status="200"}"#;
    assert_eq!(server.metric(over_http), Some(1.0));
}

#[test]
fn one_key_is_one_effect_over_http_the_gateway_shape_and_the_command_line() {
    let house = House::new();
    let server = house.serve(&[]);
    let command = json!({"command": "echo paid >> ledger"});
    let first = server.call(&envelope("r1", "exec", &command, Some("order-1")));
    let second = server.call(&envelope("r2", "exec", &command, Some("order-1")));
    assert_eq!(first.json()["fromCache"], false);
    assert_eq!(second.json()["fromCache"], true);
    assert_eq!(first.json()["output"], second.json()["output"]);
    // The same session and actor on the command line, in the same workspace.
    let third = house.exec("order-1", "echo paid >> ledger", &[]).success();
    assert_eq!(third["fromCache"], true);
    assert_eq!(house.lines("ledger"), 1);

    let body = json!({"tool": "exec", "args": {"command": "echo sent >> mails"}, "idempotencyKey": "mail-1"});
    let first = server.invoke(&body);
    let second = server.invoke(&body);
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(first.json(), second.json());
    assert_eq!(house.lines("mails"), 1);
}

#[test]
fn two_servers_on_one_state_directory_give_one_effect() {
    let house = House::new();
    let (one, two) = (house.serve(&[]), house.serve(&[]));
    assert_eq!(one.token, two.token);
    for round in 0..8 {
        let key = format!("round-{round}");
        // Slow enough for the duplicates to meet the call in flight.
        let command = json!({"command": format!("echo x >> {key}; sleep 0.1")});
        let answers = std::thread::scope(|scope| {
            let asked: Vec<_> = (0..6)
                .map(|number| {
                    let server = if number % 2 == 0 { &one } else { &two };
                    let envelope =
                        envelope(&format!("{key}-{number}"), "exec", &command, Some(&key));
                    scope.spawn(move || server.call(&envelope))
                })
                .collect();
            let answers = asked
                .into_iter()
                .map(|asked| asked.join().expect("no panic"));
            answers.collect::<Vec<_>>()
        });
        for answer in &answers {
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert_eq!(answer.json()["output"], answers[0].json()["output"]);
        }
        let fresh = answers
            .iter()
            .filter(|answer| answer.json()["fromCache"] == false);
        assert_eq!((fresh.count(), house.lines(&key)), (1, 1));
    }
    // What one is told about breakers, the other obeys.
    assert_eq!(
        one.act(&json!({"action": "force-open", "breaker": "exec"}))
            .status,
        200
    );
    let refused = two.call(&envelope("late", "exec", &json!({"command": "true"}), None));
    assert_eq!(refused.status, 503);
    assert_eq!(refused.json()["error"]["code"], "circuit_open");
    assert!(refused.header("retry-after").is_some());
    assert_eq!(
        two.act(&json!({"action": "reset", "breaker": "exec"}))
            .status,
        200
    );
    let passed = one.call(&envelope(
        "later",
        "exec",
        &json!({"command": "true"}),
        None,
    ));
    assert_eq!(passed.status, 200, "{}", passed.text());
}

#[test]
fn a_server_does_not_listen_to_the_world_without_a_configured_token() {
    let house = House::new();
    let refused = house.run(&["serve", "--listen", "0.0.0.0:0"]);
    refused.bad_usage("no token was configured");
    refused.bad_usage("HOLDFAST_SERVER_TOKEN");
    house
        .run(&["serve", "--listen", "localhost"])
        .bad_usage("server.listen");
    let mut weak = house.command(&["serve", "--listen", "127.0.0.1:0"]);
    let ran = weak
        .env("HOLDFAST_SERVER_TOKEN", "short")
        .output()
        .expect("runs");
    assert_eq!(ran.status.code(), Some(2));
    assert!(!String::from_utf8_lossy(&ran.stderr).contains("\"short\""));
}

#[test]
fn a_tool_sees_no_token() {
    let house = House::new();
    let (caller, admin) = ("c".repeat(40), "a".repeat(40));
    let mut server = house.serve_with(&[], |command| {
        command
            .env("HOLDFAST_SERVER_TOKEN", &caller)
            .env("HOLDFAST_ADMIN_TOKEN", &admin);
    });
    server.token = caller.clone();
    assert_eq!(server.started["token"], "$HOLDFAST_SERVER_TOKEN");
    let answer = server.invoke(&json!({"tool": "exec", "args": {"command": "env"}}));
    assert_eq!(answer.status, 200);
    assert!(!answer.text().contains(&caller) && !answer.text().contains(&admin));
}
