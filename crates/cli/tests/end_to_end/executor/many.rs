//! A thousand runs at once on a slow model server: all of them are in flight together, all of them end,
//! and what they need stays small.

use std::process::Command;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use holdfast_testkit::http::Connection;
use holdfast_testkit::model::{ModelServer, Say};

use crate::common::{House, eventually};
use crate::executor::{PATH, task};
use crate::harness::Serving;

const RUNS: usize = 1000;
/// What the process may need for all of them, in an unoptimised build: there a call is a future of several times its
/// size. The bench holds a release to 200 MB.
const RSS_KB_MAX: u64 = 320 * 1024;
/// Nobody waits for the others for ever.
const PATIENCE: Duration = Duration::from_secs(90);

/// Opens when as many wait as are to be there at once.
#[derive(Default)]
struct Gate {
    waiting: Mutex<usize>,
    open: Mutex<bool>,
    changed: Condvar,
}

impl Gate {
    fn pass(&self) {
        *self.waiting.lock().expect("not poisoned") += 1;
        let shut = self.open.lock().expect("not poisoned");
        let waited = self
            .changed
            .wait_timeout_while(shut, PATIENCE, |open| !*open);
        drop(waited.expect("not poisoned"));
    }

    fn open(&self) {
        *self.open.lock().expect("not poisoned") = true;
        self.changed.notify_all();
    }
}

/// A model that answers whoever gets through the gate.
fn model_behind(gate: &Arc<Gate>) -> ModelServer {
    let gate = gate.clone();
    let model = ModelServer::start(move |_| {
        gate.pass();
        Say::says("Final Answer: Here.")
    });
    model.expect("starts")
}

fn rss_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let rss = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let rss = rss.and_then(|text| text.split_whitespace().next()?.parse().ok());
    rss.expect("a number")
}

#[test]
fn a_thousand_runs_at_once_all_end_and_stay_small() {
    let (house, gate) = (House::new(), Arc::new(Gate::default()));
    let model = model_behind(&gate);
    let text = format!(
        "server: {{connectionsMax: 2000}}\nexecutor: {{runsMax: {RUNS}, requestsPerMinuteMax: 5000}}\n"
    );
    let config = house.file("holdfast.yaml", &text);
    let serving = house.serve(&["--config", &config, "--model-url", &model.url()]);
    let idle_kb = rss_kb(serving.pid());
    // Whoever waits for an answer needs no thread: only its connection.
    let mut clients: Vec<_> = (0..RUNS)
        .map(|number| {
            let mut client = serving.connect();
            let body = task(&format!("Question {number}")).to_string();
            let head = [("content-type", "application/json")];
            let sent = client.send_request("POST", PATH, &head, body.as_bytes());
            sent.expect("is taken");
            client
        })
        .collect();
    eventually("all of them ask the model", || {
        let waiting = *gate.waiting.lock().expect("not poisoned");
        (waiting == RUNS).then_some(())
    });
    let busy_kb = rss_kb(serving.pid());
    gate.open();
    for (number, client) in clients.iter_mut().enumerate() {
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, 200, "{number}: {}", answer.text());
        assert_eq!(answer.json()["choices"][0]["message"]["content"], "Here.");
    }
    let after_kb = rss_kb(serving.pid());
    println!(
        "resident: {idle_kb} KB idle, {busy_kb} KB with {RUNS} runs in flight, {after_kb} KB after them"
    );
    assert!(busy_kb < RSS_KB_MAX, "{busy_kb} KB");
    assert!(after_kb < RSS_KB_MAX, "{after_kb} KB");
}

/// Keys of two clients.
const ANN: &str = "key-of-ann-key-of-ann-key-of-ann-00";
const BEN: &str = "key-of-ben-key-of-ben-key-of-ben-00";
/// Runs at once, and those that are asked for.
const PLACES: usize = 50;
const OF_ANN: usize = 990;
const OF_BEN: usize = 10;

fn sent(serving: &Serving, key: &str, text: &str) -> Connection {
    let mut client = serving.connect();
    let bearer = format!("Bearer {key}");
    let head = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let body = task(text).to_string();
    let sent = client.send_request("POST", PATH, &head, body.as_bytes());
    sent.expect("is taken");
    client
}

/// One client fills all places and the queue; another with a handful of questions is not kept
/// waiting until the first has all of its answers.
#[test]
fn a_client_with_a_thousand_questions_does_not_keep_another_waiting_for_all_of_them() {
    let (house, gate) = (House::new(), Arc::new(Gate::default()));
    let model = model_behind(&gate);
    let text = format!(
        "server: {{connectionsMax: 2000}}\nexecutor: {{runsMax: {PLACES}, runsWaitingMax: {RUNS}, requestsPerMinuteMax: 100000}}\n"
    );
    let config = house.file("holdfast.yaml", &text);
    let with_keys = |command: &mut Command| {
        command.env("HOLDFAST_API_KEYS", format!("{ANN},{BEN}"));
    };
    let options = ["--config", &config, "--model-url", &model.url()];
    let serving = house.serve_with(&options, with_keys);
    let mut clients: Vec<Connection> = (0..OF_ANN)
        .map(|number| sent(&serving, ANN, &format!("ann {number}")))
        .collect();
    eventually("all places are taken", || {
        (*gate.waiting.lock().expect("not poisoned") == PLACES).then_some(())
    });
    clients.extend((0..OF_BEN).map(|number| sent(&serving, BEN, &format!("ben {number}"))));
    // Connections are taken in their order: by now the others are in.
    assert_eq!(serving.get("/ready", None).status, 200);
    gate.open();
    for client in &mut clients {
        let answer = client.answer().expect("an answer");
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let asked = model.asked();
    let of_ben = |request: &serde_json::Value| request["messages"].to_string().contains("ben ");
    let last = asked.iter().rposition(of_ben).expect("ben was answered");
    println!(
        "the last of ben's {OF_BEN} questions was number {last} of {}",
        asked.len()
    );
    // They take turns, so that it is about number 70. In one line for all of them it would be the last.
    assert!(last < OF_ANN / 2, "{last}");
}
