//! Runs that are cancelled while a person is asked: nothing happens after that.

use holdfast_testkit::model::{ModelServer, Say};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::harness::Serving;
use crate::runs::{asking, post, runs};
use crate::task;

/// Reaches outside the workspace, so it needs a person.
const EFFECT: &str = "rm -f ../elsewhere; echo ran >> effects";

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
