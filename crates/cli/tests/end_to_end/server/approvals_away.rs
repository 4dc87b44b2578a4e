//! Redis goes away while a call waits for a person, and its caller leaves meanwhile.

use std::io::Write;
use std::net::TcpStream;

use holdfast_testkit::redis::{Persistence, RedisServer};
use serde_json::json;

use super::{COMMAND, call};
use crate::common::{House, eventually};
use crate::harness::Serving;

/// A caller that can leave before it is answered.
fn caller(server: &Serving) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).expect("connects");
    let body = call(COMMAND).to_string();
    let head = format!(
        "POST /v1/tools/call HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        server.address,
        server.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("writes");
    stream.write_all(body.as_bytes()).expect("writes");
    stream
}

#[test]
fn a_call_whose_caller_left_while_redis_was_away_is_withdrawn_and_never_runs() {
    let mut redis = RedisServer::start(Persistence::Always, &[]).expect("Redis");
    let house = House::new();
    let yaml = format!(
        "reliability:\n  store:\n    kind: redis\n    redis: {{url: \"{}\"}}\n",
        redis.url()
    );
    let config = house.file("shared.yaml", &yaml);
    let serve = |name: &str| {
        let state = house.home().join(name);
        house.serve_with(&["--config", &config], move |command| {
            command.env("HOLDFAST_STATE", &state);
        })
    };
    let [one, two] = ["one", "two"].map(serve);
    let caller = caller(&one);
    let id = one.pending()["id"].as_str().expect("an id").to_owned();
    redis.kill().expect("kills");
    drop(caller);
    eventually("the call is given up", || {
        let in_flight = one.metric("holdfast_http_calls_in_flight");
        (in_flight == Some(0.0)).then_some(())
    });
    redis.run().expect("runs again");
    // A person says yes as soon as anybody listens.
    let (status, answer) = eventually("Redis is back", || {
        let (status, answer) = one.answer(&id, "approve", &json!({"by": "ann"}));
        (status < 500).then_some((status, answer))
    });
    assert_eq!(status, 409, "{answer}");
    eventually("the other machine knows", || {
        let path = format!("/v1/approvals/{id}");
        let seen = two.get(&path, Some(&two.approver_token));
        (seen.status == 200 && seen.json()["state"] == "withdrawn").then_some(())
    });
    drop((one, two));
    assert_eq!(house.lines("effect"), 0);
}
