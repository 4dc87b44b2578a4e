//! Runs: looked at, cancelled, left and gone on with; keys, rates and places.

use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use holdfast_testkit::http::Connection;
use holdfast_testkit::model::{ModelServer, Say, turns};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::{Executor, PATH, code, task};
use crate::harness::Serving;

/// The runs, as whoever has the token for calls sees them.
pub(crate) fn runs(serving: &Serving) -> Vec<Value> {
    let listed = serving.get("/v1/runs", Some(&serving.token)).json();
    listed["data"].as_array().cloned().unwrap_or_default()
}

/// Asks, and does not wait for the answer.
pub(crate) fn asking(serving: &Serving, body: &Value) -> Connection {
    let mut connection = serving.connect();
    let headers = [("content-type", "application/json")];
    connection
        .send_request("POST", PATH, &headers, body.to_string().as_bytes())
        .expect("sends");
    connection
}

fn only_run(serving: &Serving) -> Value {
    eventually("there is a run", || runs(serving).first().cloned())
}

pub(crate) fn post(serving: &Serving, path: &str) -> (u16, Value) {
    let mut connection = serving.connect();
    let answer = connection
        .request("POST", path, &[], b"")
        .expect("an answer");
    (answer.status, answer.json())
}

#[test]
fn a_run_can_be_looked_at() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls("write", &json!({"path": "a", "content": "b"})),
        Say::says("Final Answer: Hello."),
    ]));
    let answer = executor.ask(&task("Hello")).json();
    let id = answer["executor_metadata"]["run_id"]
        .as_str()
        .expect("a run");
    // The name opens one run; the list needs the token.
    let one = executor.serving.get(&format!("/v1/runs/{id}"), None).json();
    assert_eq!(
        (&one["status"], &one["iterations"]),
        (&json!("answered"), &json!(2))
    );
    assert_eq!(one["result"]["content"], "Hello.");
    assert_eq!(one["tools_called"], json!(["write"]));
    assert_eq!(executor.serving.get("/v1/runs", None).status, 401);
    assert_eq!(runs(&executor.serving)[0]["id"], id);
    let page = executor
        .serving
        .get("/v1/runs?limit=1", Some(&executor.serving.token));
    let next = page.json()["next"]
        .as_str()
        .expect("a page was full")
        .to_owned();
    let rest = format!("/v1/runs?limit=1&after={next}");
    let rest = executor.serving.get(&rest, Some(&executor.serving.token));
    assert_eq!(rest.json()["data"], json!([]));
    let wrong = executor
        .serving
        .get("/v1/runs?limit=0", Some(&executor.serving.token));
    assert_eq!(code(&wrong), (400, "invalid_request".to_owned()));
}

#[test]
fn a_run_can_be_cancelled() {
    let executor = Executor::on(ModelServer::says(vec![Say::Silence]));
    let mut waiting = asking(&executor.serving, &task("Hello"));
    let id = only_run(&executor.serving)["id"]
        .as_str()
        .expect("a name")
        .to_owned();
    let (status, _) = post(&executor.serving, &format!("/v1/runs/{id}/cancel"));
    assert_eq!(status, 202);
    let answer = waiting.answer().expect("an answer");
    assert_eq!(code(&answer), (400, "cancelled".to_owned()));
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(only_run(&executor.serving)["status"], "cancelled");
    // What is over is over.
    for what in ["cancel", "resume"] {
        let (status, body) = post(&executor.serving, &format!("/v1/runs/{id}/{what}"));
        assert_eq!(
            (status, &body["error"]["code"]),
            (409, &json!("run_conflict"))
        );
    }
}

#[test]
fn a_server_that_ends_leaves_its_runs_to_the_next_one() {
    let speaks = Arc::new(AtomicBool::new(false));
    let says = speaks.clone();
    let executor = Executor::on(ModelServer::start(move |_| {
        if says.load(Ordering::SeqCst) {
            Say::says("Final Answer: Late, but here.")
        } else {
            Say::Silence
        }
    }));
    let Executor {
        house,
        model,
        serving,
    } = executor;
    let mut waiting = asking(&serving, &task("Hello"));
    let id = only_run(&serving)["id"].clone();
    eventually("the model is asked", || {
        (!model.asked().is_empty()).then_some(())
    });
    serving.signal(Signal::TERM);
    serving.signal(Signal::INT);
    let answer = waiting.answer().expect("an answer");
    assert_eq!(code(&answer), (503, "cancelled".to_owned()));
    assert_eq!(serving.ended().0, Some(0));
    speaks.store(true, Ordering::SeqCst);
    let serving = house.serve(&["--model-url", &model.url()]);
    let ended = eventually("the run has its answer", || {
        let run = only_run(&serving);
        (run["status"] == "answered").then_some(run)
    });
    assert_eq!(ended["id"], id);
}

#[test]
fn a_key_makes_requests_one_run() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls("exec", &json!({"command": "echo x >> effect"})),
        Say::says("Final Answer: Done."),
    ]));
    let key = [("idempotency-key", "order-17")];
    let first = executor.ask_with(&task("Do it"), &key).json();
    let second = executor.ask_with(&task("Do it"), &key).json();
    assert_eq!(first, second);
    assert_eq!(
        (executor.house.lines("effect"), executor.model.asked().len()),
        (1, 2)
    );
    // As a stream it is the same run too.
    let mut streamed = task("Do it");
    streamed["stream"] = json!(true);
    let third = crate::executor::stream::chunks(&executor.ask_with(&streamed, &key));
    assert_eq!(third[0]["id"], first["id"]);
    let other = executor.ask_with(&task("Do something else"), &key);
    assert_eq!(code(&other), (422, "idempotency_key_conflict".to_owned()));
    let without = executor.ask(&task("Do it")).json();
    assert_ne!(without["id"], first["id"]);
    assert_eq!(executor.house.lines("effect"), 2);
}

#[test]
fn requests_with_one_key_that_come_at_once_get_one_answer() {
    let executor = Executor::on(ModelServer::start(|request| match turns(request) {
        0 => Say::calls("exec", &json!({"command": "echo x >> effect"})),
        _ => Say::says("Final Answer: Done."),
    }));
    for round in 1..=5 {
        let key = format!("order-{round}");
        let headers = [
            ("content-type", "application/json"),
            ("idempotency-key", &*key),
        ];
        let body = task("Do it").to_string();
        let mut asked: Vec<Connection> = (0..10).map(|_| executor.serving.connect()).collect();
        for connection in &mut asked {
            let sent = connection.send_request("POST", PATH, &headers, body.as_bytes());
            sent.expect("sends");
        }
        let answers = asked.iter_mut().map(|it| it.answer().expect("an answer"));
        let answers: Vec<(u16, Value)> = answers.map(|it| (it.status, it.json())).collect();
        assert!(answers.iter().all(|it| it == &answers[0]), "{answers:#?}");
        assert_eq!(answers[0].0, 200, "{answers:#?}");
        assert_eq!(executor.house.lines("effect"), round);
    }
}

/// The official clients say how often they have tried: what they try again is the run of the first time.
#[test]
fn what_a_client_tries_again_is_the_same_run() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls("exec", &json!({"command": "echo x >> effect"})),
        Say::says("Final Answer: Done."),
    ]));
    let attempt = |what: &str, count: &str| {
        let header = [("x-stainless-retry-count", count)];
        executor.ask_with(&task(what), &header).json()
    };
    let first = attempt("Do it", "0");
    assert_eq!(attempt("Do it", "1"), first);
    assert_eq!(executor.house.lines("effect"), 1);
    // Asked for once more it is done once more, and that is what is tried again then.
    let anew = attempt("Do it", "0");
    assert_ne!(anew["id"], first["id"]);
    assert_eq!(attempt("Do it", "2")["id"], anew["id"]);
    assert_eq!(executor.house.lines("effect"), 2);
    // What nobody has asked for yet begins, whatever its client has tried before.
    attempt("Do it again", "1");
    assert_eq!(executor.house.lines("effect"), 3);
}

/// A client that does not wait for its answer and tries again is given that of the run which goes on.
#[test]
fn a_client_that_lost_patience_finds_its_run() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls(
            "exec",
            &json!({"command": "echo x >> effect; while [ ! -e go ]; do sleep 0.05; done"}),
        ),
        Say::says("Final Answer: Done."),
    ]));
    let first = [
        ("content-type", "application/json"),
        ("x-stainless-retry-count", "0"),
    ];
    let mut impatient = executor.serving.connect();
    let body = task("Do it").to_string();
    let sent = impatient.send_request("POST", PATH, &first, body.as_bytes());
    sent.expect("is sent");
    eventually("it is being done", || {
        (executor.house.lines("effect") == 1).then_some(())
    });
    drop(impatient);
    fs::write(executor.house.path("go"), "").expect("writes");
    let again = executor.ask_with(&task("Do it"), &[("x-stainless-retry-count", "1")]);
    assert_eq!(again.status, 200, "{}", again.text());
    assert!(again.text().contains("Done."), "{}", again.text());
    assert_eq!(executor.house.lines("effect"), 1);
}

/// Neither does one whose server was killed: the run that it began is gone on with.
#[test]
fn a_client_whose_server_was_killed_finds_its_run() {
    let asked = AtomicUsize::new(0);
    let executor = Executor::on(ModelServer::start(move |_| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Say::calls("exec", &json!({"command": "echo x >> effect"})),
            1 => Say::Silence,
            _ => Say::says("Final Answer: Done."),
        }
    }));
    let first = [
        ("content-type", "application/json"),
        ("x-stainless-retry-count", "0"),
    ];
    let body = task("Do it").to_string();
    let mut waiting = executor.serving.connect();
    let sent = waiting.send_request("POST", PATH, &first, body.as_bytes());
    sent.expect("is sent");
    eventually("it is done, and the model asked what is next", || {
        (executor.model.asked().len() == 2).then_some(())
    });
    executor.serving.signal(Signal::KILL);
    let Executor {
        house,
        model,
        serving,
    } = executor;
    assert_eq!(serving.ended().0, None, "killed");
    let next = house.serve(&["--model-url", &model.url()]);
    let again = [
        ("content-type", "application/json"),
        ("x-stainless-retry-count", "1"),
    ];
    let asked = next
        .connect()
        .request("POST", PATH, &again, body.as_bytes());
    let answer = asked.expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("Done."), "{}", answer.text());
    assert_eq!((house.lines("effect"), runs(&next).len()), (1, 1));
}

#[test]
fn a_run_that_failed_without_an_effect_gives_its_key_back() {
    let up = Arc::new(AtomicBool::new(false));
    let is_up = up.clone();
    let executor = Executor::on(ModelServer::start(move |_| {
        if is_up.load(Ordering::SeqCst) {
            Say::says("Final Answer: Hello.")
        } else {
            Say::Status(400, "{}".to_owned())
        }
    }));
    let key = [("idempotency-key", "k")];
    let failed = executor.ask_with(&task("Hello"), &key);
    assert_eq!(code(&failed), (503, "gpt_oss_unreachable".to_owned()));
    // Nobody is to come again by itself, and who does all the same begins anew.
    assert_eq!(failed.header("x-should-retry"), Some("false"));
    up.store(true, Ordering::SeqCst);
    assert_eq!(executor.ask_with(&task("Hello"), &key).status, 200);
}

#[test]
fn a_client_that_asks_too_often_is_told_to_wait() {
    let yaml = "executor: {requestsPerMinuteMax: 2}";
    let executor = Executor::with(ModelServer::says(vec![Say::says("Hello.")]), yaml);
    assert_eq!(executor.ask(&task("Hello")).status, 200);
    assert_eq!(executor.ask(&task("Hello")).status, 200);
    let refused = executor.ask(&task("Hello"));
    assert_eq!(code(&refused), (429, "rate_limited".to_owned()));
    let wait: u64 = refused
        .header("retry-after")
        .and_then(|it| it.parse().ok())
        .expect("a wait");
    assert!((1..=60).contains(&wait), "{wait}");
    assert_eq!(executor.model.asked().len(), 2);
}

#[test]
fn a_full_house_says_so() {
    let yaml = "executor: {runsMax: 1, runsWaitingMax: 0}";
    let executor = Executor::with(ModelServer::says(vec![Say::Silence]), yaml);
    let mut first = asking(&executor.serving, &task("Hello"));
    let id = only_run(&executor.serving)["id"]
        .as_str()
        .expect("a name")
        .to_owned();
    let refused = executor.ask(&task("Hello"));
    assert_eq!(code(&refused), (429, "rate_limited".to_owned()));
    assert!(refused.header("retry-after").is_some());
    post(&executor.serving, &format!("/v1/runs/{id}/cancel"));
    assert_eq!(first.answer().expect("an answer").status, 400);
}

#[test]
fn keys_let_clients_in_and_apart() {
    const ANN: &str = "key-of-ann-key-of-ann-key-of-ann-00";
    const BEN: &str = "key-of-ben-key-of-ben-key-of-ben-00";
    let (house, model) = (
        House::new(),
        ModelServer::says(vec![
            Say::calls("exec", &json!({"command": "true"})),
            Say::says("Final Answer: Hello."),
        ])
        .expect("starts"),
    );
    let log = house.file("log", "");
    let with_keys = |command: &mut Command| {
        command.env("HOLDFAST_API_KEYS", format!("{ANN}, {BEN}"));
    };
    let serving = house.serve_with(&["--model-url", &model.url(), "--log", &log], with_keys);
    let ask = |key: &str| serving.post(PATH, key, &task("Hello"));
    let refused = ask("local");
    assert_eq!(code(&refused), (401, "unauthorized".to_owned()));
    let why = refused.json()["error"]["message"].clone();
    assert!(
        why.as_str().is_some_and(|it| it.contains("Bearer KEY")),
        "{why}"
    );
    let answer = ask(ANN);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let id = answer.json()["executor_metadata"]["run_id"].clone();
    let path = format!("/v1/runs/{}", id.as_str().expect("a run"));
    let client = serving.get(&path, Some(ANN)).json()["client"].clone();
    let client = client.as_str().expect("a client").to_owned();
    assert!(client.starts_with("key-") && client.len() < 20, "{client}");
    assert_eq!(serving.get(&path, Some(BEN)).status, 404);
    assert_eq!(serving.get(&path, Some(&serving.token)).status, 200);
    assert_eq!(serving.get(&path, None).status, 401);
    // Every call of a tool says for whom, and nothing says the key.
    let logged = fs::read_to_string(&log).expect("a log");
    assert!(
        logged.contains(&format!("\"actorId\":\"{client}\"")),
        "{logged}"
    );
    assert!(!logged.contains(ANN));
}

/// Whoever looks does not act: the stream of a run that nobody works on says so, and asks nobody.
#[test]
fn looking_at_the_stream_of_a_run_does_not_go_on_with_it() {
    let house = House::new();
    let silent = ModelServer::start(|_| Say::Silence).expect("starts");
    let mut left = house.start(&["run", "Hello", "--model-url", &silent.url()]);
    eventually("the model is asked", || {
        (silent.asked().len() == 1).then_some(())
    });
    left.signal(Signal::INT);
    left.ended();
    let model = ModelServer::says(vec![Say::says("Final Answer: Hi.")]).expect("starts");
    let serving = house.serve(&["--model-url", &model.url()]);
    let token = serving.token.clone();
    let listed = serving.get("/v1/runs", Some(&token)).json();
    assert_eq!(listed["data"][0]["status"], "unfinished", "{listed}");
    let id = listed["data"][0]["id"].as_str().expect("a run").to_owned();
    let stream = format!("/v1/runs/{id}/stream");
    let answer = serving.get(&stream, Some(&token));
    assert_eq!(code(&answer), (409, "run_conflict".to_owned()));
    assert!(
        answer
            .text()
            .contains(&format!("POST /v1/runs/{id}/resume"))
    );
    assert!(model.asked().is_empty(), "looking asked the model");
    let path = format!("/v1/runs/{id}/resume");
    assert_eq!(
        serving.post(&path, &token, &serde_json::json!({})).status,
        202
    );
    eventually("it ends", || {
        let run = serving.get(&format!("/v1/runs/{id}"), Some(&token)).json();
        (run["status"] == "answered").then_some(())
    });
    let told = serving.get(&stream, Some(&token)).text();
    assert!(
        told.contains("Hi.") && told.ends_with("data: [DONE]\n\n"),
        "{told}"
    );
}

/// Who is turned away has claimed nothing: another server on the same state takes the request.
#[test]
fn a_key_that_began_nothing_is_free_on_the_next_server() {
    let yaml = "executor: {runsMax: 1, runsWaitingMax: 0}";
    let model = ModelServer::start(|request| {
        if request.to_string().contains("Take your time") {
            Say::Silence
        } else {
            Say::says("Final Answer: Hello.")
        }
    });
    let full = Executor::with(model, yaml);
    let _waiting = asking(&full.serving, &task("Take your time"));
    only_run(&full.serving);
    let key = [
        ("idempotency-key", "k"),
        ("content-type", "application/json"),
    ];
    let refused = full.ask_with(&task("Hello"), &key[..1]);
    assert_eq!(code(&refused), (429, "rate_limited".to_owned()));
    let next = full.house.serve(&["--model-url", &full.model.url()]);
    let body = task("Hello").to_string();
    let ask = |serving: &Serving| {
        let mut connection = serving.connect();
        let asked = connection.request("POST", PATH, &key, body.as_bytes());
        asked.expect("an answer")
    };
    let first = ask(&next);
    assert_eq!(first.status, 200, "{}", first.text());
    // A full house knows the run of a key all the same.
    assert_eq!(ask(&full.serving).json(), first.json());
}
