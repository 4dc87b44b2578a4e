//! Clients that go away, over real connections.

use holdfast_testkit::http::Connection;
use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::common::eventually;
use crate::executor::runs::{asking, runs};
use crate::executor::stream::{content, until};
use crate::executor::{Executor, task};

fn streamed(text: &str) -> Value {
    let mut body = task(text);
    body["stream"] = json!(true);
    body
}

fn status(executor: &Executor) -> Option<String> {
    let all = runs(&executor.serving);
    let status = all.first()?["status"].as_str()?;
    Some(status.to_owned())
}

fn begun(executor: &Executor, body: &Value) -> Connection {
    let client = asking(&executor.serving, body);
    eventually("the model is asked", || {
        (!executor.model.asked().is_empty()).then_some(())
    });
    client
}

/// With a stream and without: whoever closes the connection and does not come back has its run cancelled.
#[test]
fn the_run_of_a_client_that_stays_away_is_cancelled() {
    for body in [streamed("Wait"), task("Wait")] {
        let executor = Executor::with(
            ModelServer::says(vec![Say::Silence]),
            "executor:\n  client_away_seconds: 1\n",
        );
        let client = begun(&executor, &body);
        assert_eq!(status(&executor).as_deref(), Some("running"), "{body}");
        drop(client);
        let ended = eventually("it ends", || status(&executor).filter(|it| it != "running"));
        assert_eq!(ended, "cancelled", "{body}");
    }
}

/// A client that comes back hears all of it, and the run goes on as if nobody had left.
#[test]
fn a_client_that_comes_back_listens_to_the_same_run() {
    let executor = Executor::on(ModelServer::says(vec![Say::Held(
        "Final Answer: The first half, ".to_owned(),
        "and the second.".to_owned(),
    )]));
    let mut first = begun(&executor, &streamed("Tell me"));
    assert_eq!(first.head().expect("a head").status, 200);
    let heard = until(&mut first, "half,");
    drop(first);
    let run = runs(&executor.serving)[0]["id"].clone();
    let run = run.as_str().expect("a run").to_owned();
    assert!(heard.contains(&run));
    let mut second = executor.serving.connect();
    let path = format!("/v1/runs/{run}/stream");
    second.send_request("GET", &path, &[], b"").expect("sends");
    assert_eq!(second.head().expect("a head").status, 200);
    // What the first one heard comes again, while the model is still in the middle of it.
    let early = until(&mut second, "half,");
    assert!(early.contains("\"asks\"") && !early.contains("second."));
    executor.model.release();
    let all = early + &until(&mut second, "[DONE]");
    let parts: Vec<Value> = all
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    assert_eq!(content(&parts), "The first half, and the second.");
    assert_eq!(executor.model.asked().len(), 1, "nothing is asked again");
    assert_eq!(status(&executor).as_deref(), Some("answered"));
}
