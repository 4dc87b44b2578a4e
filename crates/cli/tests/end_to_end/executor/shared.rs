//! Runs in Redis: what one machine leaves, another goes on with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_testkit::model::{ModelServer, Say, turns};
use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_testkit::wait::eventually_within;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::runs::runs;
use crate::executor::{PATH, task};
use crate::harness::Serving;

/// Longer than a lease and the time until somebody looks, twice.
const TAKEN_UP_WITHIN: Duration = Duration::from_mins(2);

fn until_answered(serving: &Serving, run: &str) -> Value {
    eventually_within(TAKEN_UP_WITHIN, "it is taken up", || {
        let found = serving.get(&format!("/v1/runs/{run}"), None).json();
        (found["status"] == "answered").then_some(found)
    })
}

#[test]
fn a_run_goes_on_on_another_machine_after_kill_9() {
    let redis = RedisServer::start(Persistence::None, &[]).expect("Redis");
    let house = House::new();
    let killed = Arc::new(AtomicBool::new(false));
    let is_killed = killed.clone();
    let model = ModelServer::start(move |request| match turns(request) {
        0 => Say::calls("exec", &json!({"command": "echo done >> effects"})),
        _ if is_killed.load(Ordering::SeqCst) => Say::says("Final Answer: It is done."),
        _ => Say::Silence,
    })
    .expect("starts");
    let config = house.file(
        "shared.yaml",
        &format!(
            "reliability:\n  store:\n    kind: redis\n    redis:\n      url: {}\n",
            redis.url()
        ),
    );
    let args = ["--config", config.as_str(), "--model-url", &model.url()];
    let first = house.serve(&args);
    let mut asking = first.connect();
    let headers = [("content-type", "application/json")];
    let body = task("Do it").to_string();
    asking
        .send_request("POST", PATH, &headers, body.as_bytes())
        .expect("sends");
    eventually("the second question", || {
        (model.asked().len() == 2).then_some(())
    });
    let run = runs(&first)[0]["id"].as_str().expect("a run").to_owned();
    // Another machine: the same workspace and the same Redis, a state directory of its own.
    let elsewhere = house.home().join("elsewhere");
    let second = house.serve_with(&args, |command| {
        command.env("HOLDFAST_STATE", &elsewhere);
    });
    let seen = second.get(&format!("/v1/runs/{run}"), None).json();
    assert_eq!(seen["status"], "unfinished", "it runs elsewhere: {seen}");
    let resumed = second
        .connect()
        .request("POST", &format!("/v1/runs/{run}/resume"), &[], b"");
    assert_eq!(
        resumed.expect("an answer").status,
        409,
        "the first one lives"
    );
    killed.store(true, Ordering::SeqCst);
    first.signal(Signal::KILL);
    assert_eq!(first.ended().0, None, "killed");
    let found = until_answered(&second, &run);
    assert_eq!(found["result"]["content"], "It is done.", "{found}");
    assert_eq!(house.lines("effects"), 1, "nothing is done twice");
    assert_eq!(found["iterations"], 2);
}
