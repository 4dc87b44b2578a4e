//! How a server ends, and what becomes of calls whose caller goes away.

use rustix::process::Signal;
use serde_json::json;

use crate::common::{House, eventually, eventually_lines};
use crate::harness::envelope;

#[test]
fn told_to_end_it_finishes_what_is_in_flight_and_takes_nothing_new() {
    let house = House::new();
    let server = house.serve(&[]);
    let address = server.address;
    let mut idle = server.connect();
    let command = json!({"command": "echo begun >> log; while [ ! -e go ]; do sleep 0.01; done; echo done >> log"});
    let answer = std::thread::scope(|scope| {
        let slow = scope.spawn(|| server.call(&envelope("slow", "exec", &command, Some("k"))));
        eventually_lines(&house, "log", 1);
        server.signal(Signal::TERM);
        // The port is given up at once; a connection that only waited is closed.
        eventually("the port is closed", || {
            std::net::TcpStream::connect(address).is_err().then_some(())
        });
        assert_eq!(idle.rest().expect("is closed"), b"");
        std::fs::write(house.path("go"), "").expect("writes");
        slow.join().expect("no panic")
    });
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (200, &json!("success"))
    );
    assert_eq!(answer.header("connection"), Some("close"));
    let (code, last) = server.ended();
    assert_eq!(code, Some(0));
    assert_eq!(
        last,
        json!({"event": "server_ended", "cancelledRequests": 0, "unrecordedCalls": 0})
    );
    assert_eq!(house.lines("log"), 2);
    assert_eq!(house.only_state().as_deref(), Some("done"));
}

#[test]
fn what_does_not_finish_in_time_is_cancelled_and_said_to_be_unknown() {
    for (config, signals) in [
        ("server: {shutdownMsMax: 50}\n", 1),
        // A second signal ends the patience.
        ("server: {shutdownMsMax: 60000}\n", 2),
    ] {
        let house = House::new();
        let config = house.file("config.yaml", config);
        let server = house.serve(&["--config", &config]);
        let command = json!({"command": "echo begun >> log; sleep 600"});
        let answer = std::thread::scope(|scope| {
            let slow = scope.spawn(|| server.call(&envelope("slow", "exec", &command, Some("k"))));
            eventually_lines(&house, "log", 1);
            server.signal(Signal::TERM);
            if signals == 2 {
                eventually("it drains", || {
                    std::net::TcpStream::connect(server.address)
                        .is_err()
                        .then_some(())
                });
                server.signal(Signal::INT);
            }
            slow.join().expect("no panic")
        });
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["error"]["code"], "outcome_unknown");
        let (code, last) = server.ended();
        assert_eq!((code, &last["cancelledRequests"]), (Some(0), &json!(1)));
        assert_eq!(house.only_state().as_deref(), Some("unknown"));
        // A duplicate is told so, and nothing runs a second time.
        house
            .exec("k", "echo begun >> log; sleep 600", &[])
            .error("outcome_unknown");
        assert_eq!(house.lines("log"), 1);
    }
}

#[test]
fn a_client_that_goes_away_is_a_caller_that_went_away() {
    let house = House::new();
    let server = house.serve(&[]);
    let command = json!({"command": "echo begun >> log; sleep 600"});
    let mut connection = server.connect();
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let body = envelope("gone", "exec", &command, Some("k")).to_string();
    connection
        .send_request("POST", "/v1/tools/call", &headers, body.as_bytes())
        .expect("sends");
    eventually_lines(&house, "log", 1);
    drop(connection);
    eventually("the call is dropped", || {
        (house.only_state().as_deref() == Some("unknown")).then_some(())
    });
    // Its place is free again, and the server goes on.
    eventually("the place is given back", || {
        (server.metric("holdfast_http_calls_in_flight") == Some(0.0)).then_some(())
    });
    assert_eq!(server.get("/health", None).status, 200);
}

#[test]
fn after_kill_9_the_next_server_knows_what_it_does_not_know() {
    let house = House::new();
    let server = house.serve(&[]);
    let command = json!({"command": "echo begun >> log; sleep 600"});
    let call = envelope("slow", "exec", &command, Some("k"));
    std::thread::scope(|scope| {
        let body = call.to_string();
        let mut connection = server.connect();
        let bearer = format!("Bearer {}", server.token);
        scope.spawn(move || {
            let headers = [
                ("authorization", bearer.as_str()),
                ("content-type", "application/json"),
            ];
            let _ = connection.request("POST", "/v1/tools/call", &headers, body.as_bytes());
        });
        eventually_lines(&house, "log", 1);
        server.signal(Signal::KILL);
    });
    let (code, _) = server.ended();
    assert_eq!(code, None);
    let next = house.serve(&[]);
    let answer = next.call(&call);
    assert_eq!(
        answer.json()["error"]["code"],
        "outcome_unknown",
        "{}",
        answer.text()
    );
    assert_eq!(house.lines("log"), 1);
    // The dead server's announcement is no server.
    let found = house.run(&["mode", "--json"]);
    assert_eq!(found.json()["pid"], json!(next.pid()));
}
