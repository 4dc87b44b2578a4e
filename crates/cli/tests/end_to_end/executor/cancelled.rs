//! Runs that are cancelled while a person is asked: nothing happens after that.

use holdfast_testkit::model::{ModelServer, Say};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::runs::{asking, post, runs};
use crate::executor::task;
use crate::harness::Serving;

/// Asked about by a rule.
const EFFECT: &str = "git push --force elsewhere; echo ran >> effects";

fn model() -> ModelServer {
    let script = vec![
        Say::calls("exec", &json!({ "command": EFFECT })),
        Say::says("Final Answer: Done."),
    ];
    ModelServer::says(script).expect("starts")
}

fn approvals(serving: &Serving) -> Vec<Value> {
    let listed = serving.get("/v1/approvals", Some(&serving.approver_token));
    listed.json()["approvals"]
        .as_array()
        .cloned()
        .unwrap_or_default()
}

fn state_of(serving: &Serving, id: &str) -> Value {
    let path = format!("/v1/approvals/{id}");
    serving.get(&path, Some(&serving.approver_token)).json()["state"].clone()
}

/// A server that was killed while a person was asked, and the next one; the run and the request.
fn killed_while_it_asks(house: &House, model: &ModelServer) -> (Serving, String, String) {
    let first = house.serve(&["--model-url", &model.url()]);
    let _waiting = asking(&first, &task("Do it"));
    let asked = eventually("a person is asked", || approvals(&first).first().cloned());
    first.signal(Signal::KILL);
    assert_eq!(first.ended().0, None, "killed");
    let next = house.serve(&["--model-url", &model.url()]);
    let run = eventually("the run goes on", || {
        let run = runs(&next).first().cloned()?;
        (run["status"] == "running").then_some(run)
    });
    let name = |of: &Value| of["id"].as_str().expect("a name").to_owned();
    (next, name(&run), name(&asked))
}

#[test]
fn an_approval_of_a_cancelled_run_runs_nothing() {
    let (house, model) = (House::new(), model());
    let (serving, run, approval) = killed_while_it_asks(&house, &model);
    assert_eq!(post(&serving, &format!("/v1/runs/{run}/cancel")).0, 202);
    eventually("it is cancelled", || {
        (runs(&serving)[0]["status"] == "cancelled").then_some(())
    });
    let path = format!("/v1/approvals/{approval}/approve");
    let answer = serving.post(&path, &serving.approver_token, &json!({"by": "ann"}));
    assert_eq!(answer.status, 409, "{}", answer.text());
    assert_eq!(state_of(&serving, &approval), "withdrawn");
    serving.signal(Signal::TERM);
    assert_eq!(serving.ended().0, Some(0), "what it began has ended");
    assert_eq!(house.lines("effects"), 0);
}

/// The same run asks the same person the same thing: the answer is not lost with the process.
#[test]
fn an_approval_of_a_run_that_goes_on_runs_its_call_once() {
    let (house, model) = (House::new(), model());
    let (serving, _, approval) = killed_while_it_asks(&house, &model);
    let path = format!("/v1/approvals/{approval}/approve");
    let answer = serving.post(&path, &serving.approver_token, &json!({"by": "ann"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    eventually("the run has its answer", || {
        (runs(&serving)[0]["status"] == "answered").then_some(())
    });
    assert_eq!(house.lines("effects"), 1);
    assert_eq!(runs(&serving)[0]["tools_called"], json!(["exec"]));
}

/// Whoever listens, or looks, learns what the run waits for.
#[test]
fn an_approval_that_a_run_waits_for_is_told_in_its_stream_and_shown() {
    let (house, model) = (House::new(), model());
    let serving = house.serve(&["--model-url", &model.url()]);
    let mut body = task("Do it");
    body["stream"] = json!(true);
    let mut waiting = asking(&serving, &body);
    assert_eq!(waiting.head().expect("a head").status, 200);
    let mut told = String::new();
    while !told.contains("needs_approval") {
        let part = waiting.chunk().expect("goes on").expect("a part");
        told.push_str(&String::from_utf8_lossy(&part));
    }
    let chunks = told.lines().filter_map(|line| line.strip_prefix("data: "));
    let chunk = chunks
        .map(|text| serde_json::from_str::<Value>(text).expect("JSON"))
        .find(|chunk| chunk["executor_progress"]["event"] == "needs_approval")
        .expect("a chunk");
    assert_eq!(chunk["choices"][0]["delta"], json!({}));
    let progress = &chunk["executor_progress"];
    let id = approvals(&serving)[0]["id"].clone();
    assert_eq!(
        (&progress["approval"], &progress["tool"]),
        (&id, &json!("exec"))
    );
    let run = runs(&serving)[0]["id"].as_str().expect("a name").to_owned();
    let shown = || serving.get(&format!("/v1/runs/{run}"), None).json();
    assert_eq!(shown()["waits_for_approvals"], json!([id]));
    let path = format!("/v1/approvals/{}/deny", id.as_str().expect("a name"));
    let answer = serving.post(&path, &serving.approver_token, &json!({"by": "ann"}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    while waiting.chunk().expect("goes on").is_some() {}
    assert_eq!(shown()["status"], "answered");
    assert!(shown().get("waits_for_approvals").is_none());
}

/// Whoever waits for an answer learns that it was a person who did not give one.
#[test]
fn a_run_whose_time_is_up_while_a_person_is_asked_says_so() {
    let (house, model) = (House::new(), model());
    let serving = house.serve(&["--model-url", &model.url()]);
    let mut asked = task("Do it");
    asked["timeout"] = json!(2);
    let answer = serving.post("/v1/chat/completions", "none", &asked);
    assert_eq!(answer.status, 408, "{}", answer.text());
    let said = answer.json()["error"]["message"].to_string();
    assert!(said.contains("exceeded timeout (2 s); it waited"), "{said}");
    let run = runs(&serving)[0]["id"].as_str().expect("a name").to_owned();
    let shown = serving.get(&format!("/v1/runs/{run}"), None).json();
    assert_eq!(shown["result"]["error"]["code"], "timeout_exceeded");
    assert_eq!(house.lines("effects"), 0);
}
