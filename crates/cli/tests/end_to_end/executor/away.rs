//! Runs whose state does not answer: Redis stopped or killed at the worst moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_testkit::http::Answer;
use holdfast_testkit::model::{ModelServer, Say, turns};
use holdfast_testkit::redis::{Persistence, RedisServer};
use holdfast_testkit::wait::eventually_within;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::runs::runs;
use crate::executor::{PATH, task};
use crate::harness::Serving;

const EFFECT: &str = "echo done >> effects";

/// A house whose state is in a Redis server, and a model that wants one effect.
struct Away {
    redis: RedisServer,
    house: House,
    model: ModelServer,
    /// The model was asked for the effect.
    asked: Arc<AtomicBool>,
    /// The model answers once this is set.
    speaks: Arc<AtomicBool>,
}

impl Away {
    fn new() -> Self {
        let (asked, speaks) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (is_asked, may_speak) = (asked.clone(), speaks.clone());
        let model = ModelServer::start(move |request| {
            if request.to_string().contains("Hello") {
                return Say::says("Final Answer: Hello.");
            }
            is_asked.store(true, Ordering::SeqCst);
            eventually("it may speak", || {
                may_speak.load(Ordering::SeqCst).then_some(())
            });
            match turns(request) {
                0 => Say::calls("exec", &json!({ "command": EFFECT })),
                _ => Say::says("Final Answer: It is done."),
            }
        });
        Self {
            redis: RedisServer::start(Persistence::Always, &[]).expect("Redis"),
            house: House::new(),
            model: model.expect("starts"),
            asked,
            speaks,
        }
    }

    fn serve(&self) -> Serving {
        let yaml = format!(
            "reliability:\n  store:\n    kind: redis\n    redis:\n      url: {}\n",
            self.redis.url()
        );
        let config = self.house.file("shared.yaml", &yaml);
        let model = self.model.url();
        self.house
            .serve(&["--config", &config, "--model-url", &model])
    }

    fn until_asked(&self) {
        eventually("the model is asked", || {
            self.asked.load(Ordering::SeqCst).then_some(())
        });
    }

    fn effects(&self) -> usize {
        self.house.lines("effects")
    }
}

fn ask(serving: &Serving, text: &str) -> Answer {
    let headers = [("content-type", "application/json")];
    let body = task(text).to_string();
    let mut connection = serving.connect();
    let asked = connection.request("POST", PATH, &headers, body.as_bytes());
    asked.expect("an answer")
}

fn status(serving: &Serving, run: &str) -> Value {
    serving.get(&format!("/v1/runs/{run}"), None).json()["status"].clone()
}

fn until_away(serving: &Serving) {
    eventually("the state is away", || {
        (serving.metric("holdfast_store_degraded ") == Some(1.0)).then_some(())
    });
}

fn until_all_ended(serving: &Serving) {
    eventually("all runs have ended", || {
        let runs = runs(serving);
        let open = |run: &Value| matches!(run["status"].as_str(), Some("unfinished" | "running"));
        (!runs.is_empty() && !runs.iter().any(open)).then_some(())
    });
}

/// Redis carries out what it was told before it was stopped, long after everybody has given up.
#[test]
fn a_run_that_may_have_begun_is_never_begun_beside_its_repetition() {
    let away = Away::new();
    away.speaks.store(true, Ordering::SeqCst);
    let serving = away.serve();
    assert_eq!(ask(&serving, "Hello").status, 200);
    away.redis.pause().expect("stops");
    let answer = ask(&serving, "Do it");
    assert!(answer.status >= 500, "{}", answer.text());
    away.redis.resume().expect("goes on");
    eventually("the state is back", || {
        (serving.get("/v1/runs", Some(&serving.token)).status == 200).then_some(())
    });
    let may_repeat = answer.header("x-should-retry") != Some("false");
    if may_repeat {
        assert_eq!(ask(&serving, "Do it").status, 200);
    } else {
        let told = answer.json()["executor_metadata"]["run_id"].clone();
        let run = told.as_str().expect("the run is named").to_owned();
        eventually("it is cancelled", || {
            (status(&serving, &run) == "cancelled").then_some(())
        });
    }
    serving.signal(Signal::KILL);
    assert_eq!(serving.ended().0, None, "killed");
    let serving = away.serve();
    until_all_ended(&serving);
    assert_eq!(away.effects(), usize::from(may_repeat), "done twice");
}

/// A client that the state is away for a moment from hears nothing of it.
#[test]
fn a_run_waits_for_its_state_for_a_moment() {
    let away = Away::new();
    let serving = away.serve();
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&serving, "Do it"));
        away.until_asked();
        away.redis.pause().expect("stops");
        away.speaks.store(true, Ordering::SeqCst);
        until_away(&serving);
        away.redis.resume().expect("goes on");
        let answer = asking.join().expect("no panic");
        assert_eq!(answer.status, 200, "{}", answer.text());
    });
    assert_eq!(away.effects(), 1);
}

/// Nobody has to restart anything: the process that let go of the run takes it up again.
#[test]
fn a_run_that_lost_its_state_goes_on_when_it_is_back() {
    let mut away = Away::new();
    let serving = away.serve();
    let answer = std::thread::scope(|scope| {
        let asking = scope.spawn(|| ask(&serving, "Do it"));
        away.until_asked();
        away.redis.kill().expect("killed");
        away.speaks.store(true, Ordering::SeqCst);
        asking.join().expect("no panic")
    });
    assert_eq!(
        crate::executor::code(&answer),
        (503, "tool_execution_failed".to_owned())
    );
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    let told = answer.json();
    let run = told["executor_metadata"]["run_id"].as_str();
    let run = run.expect("the run is named").to_owned();
    assert!(
        !told.to_string().contains("127.0.0.1"),
        "causes are not for clients: {told}"
    );
    away.redis.run().expect("is back");
    eventually_within(Duration::from_mins(2), "it is taken up", || {
        (status(&serving, &run) == "answered").then_some(())
    });
    assert_eq!(away.effects(), 1);
}
