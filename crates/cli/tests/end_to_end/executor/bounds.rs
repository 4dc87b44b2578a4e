//! Codes, keys of the file and limits, as a client of the server meets them.

use std::fs::DirBuilder;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::DirBuilderExt;

use holdfast_testkit::model::{ModelServer, Say, turns};
use serde_json::{Value, json};

use crate::common::{House, Ran, eventually};
use crate::executor::{Executor, PATH, code, task};

/// A model that has always one more thing to do.
fn never_done() -> ModelServer {
    ModelServer::start(|request| {
        let command = format!("echo {}", turns(request));
        Say::calls("exec", &json!({ "command": command }))
    })
    .expect("starts")
}

#[test]
fn a_run_that_has_spent_its_budget_says_so() {
    // Each question takes 100 tokens, and its answer 20.
    let tokens = "executor:\n  run_tokens_max: 200\n";
    let money =
        "executor:\n  run_cost_max: 0.00015\nmodels:\n  gpt-oss:\n    input_per_million: 1\n";
    for file in [tokens, money] {
        let executor = Executor::with(Ok(never_done()), file);
        let answer = executor.ask(&task("Go on"));
        assert_eq!(
            code(&answer),
            (400, "budget_exceeded".to_owned()),
            "{file}: {}",
            answer.text()
        );
        let body = answer.json();
        assert_eq!(body["executor_metadata"]["iterations"], 2, "{body}");
        assert_eq!(executor.model.asked().len(), 2, "{file}");
    }
}

#[test]
fn without_a_state_nothing_is_begun() {
    let (house, model) = (House::new(), never_done());
    let private = DirBuilder::new().mode(0o700).create(house.state());
    private.expect("a directory");
    std::fs::write(house.database(), "this is no database ".repeat(100)).expect("written");
    let serving = house.serve(&["--model-url", &model.url()]);
    let answer = serving.post(PATH, "none", &task("Do it"));
    assert_eq!(
        code(&answer),
        (503, "tool_execution_failed".to_owned()),
        "{}",
        answer.text()
    );
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert!(model.asked().is_empty());
    let runs = serving.get("/v1/runs", Some(&serving.token));
    assert_eq!(code(&runs), (500, "tool_execution_failed".to_owned()));
}

/// The address and the times of the file are the server's, unless something else was typed.
#[test]
fn the_file_says_where_the_server_listens_and_how_long_it_waits() {
    let house = House::new();
    let text = "http_server:\n  bind: 127.0.0.2\n  port: 0\n  read_timeout_seconds: 7\n  \
                idle_timeout_seconds: 9\n  shutdown_timeout_seconds: 11\n";
    let file = house.file("executor.yaml", text);
    let mut started = house
        .command(&["serve", "--json", "--log", "off", "--config", &file])
        .spawn()
        .expect("starts");
    let mut line = String::new();
    let said = started.stdout.take().expect("a pipe");
    BufReader::new(said).read_line(&mut line).expect("a line");
    started.kill().expect("ends");
    started.wait().expect("ends");
    let said: Value = serde_json::from_str(&line).expect("JSON");
    assert_eq!(said["address"], "127.0.0.2");
    let shown = house.run(&["--config", &file, "config", "show"]).stdout;
    for setting in [
        "127.0.0.2:0",
        "headMsMax: 7000",
        "bodyMsMax: 7000",
        "idleMsMax: 9000",
        "shutdownMsMax: 11000",
    ] {
        assert!(shown.contains(setting), "{setting}: {shown}");
    }
    // What others can reach needs a token, whoever says where it listens.
    let open = house.file("open.yaml", "http_server:\n  bind: 0.0.0.0\n  port: 0\n");
    house
        .run(&["serve", "--config", &open])
        .bad_usage("can be reached from other machines");
    let six = house.file("six.yaml", "http_server:\n  bind: \"::1\"\n  port: 5\n");
    let shown = house.run(&["--config", &six, "config", "show"]).stdout;
    assert!(shown.contains("[::1]:5"), "{shown}");
}

#[test]
fn the_file_says_which_commands_run_and_for_how_long() {
    let house = House::new();
    let text = "tools:\n  default_timeout_seconds: 8\n  exec:\n    timeout_seconds: 1\n    \
                allowed_commands: [echo, sleep]\n";
    let file = house.file("executor.yaml", text);
    let exec = |command: &str| -> Ran {
        let args = json!({ "command": command }).to_string();
        house.run(&["--config", &file, "call", "exec", "--json", "--args", &args])
    };
    assert_eq!(exec("echo here").code, Some(0));
    exec("date").error("permission_denied");
    // Nobody knows what a command that was cut off had done by then.
    let cut = exec("sleep 30").error("outcome_unknown");
    assert!(cut.to_string().contains("within 1000 ms"), "{cut}");
    let shown = house.run(&["--config", &file, "config", "show"]).stdout;
    assert!(
        shown.contains("timeoutMs: 1000") && shown.contains("timeoutMs: 8000"),
        "{shown}"
    );
}

/// The gateway answers every search; the eleventh within a minute does not get there.
#[test]
fn ten_searches_a_minute_are_made_and_no_more() {
    let house = House::new();
    let found = json!({"content": [{"type": "text", "text": "1. https://example.com"}]});
    let found = json!({"ok": true, "result": found}).to_string();
    let gateway = ModelServer::start(move |_| Say::Body(found.clone())).expect("starts");
    let text = format!(
        "executor:\n  openclaw_gateway_url: {}\n  openclaw_gateway_token: t\n",
        gateway.url()
    );
    let file = house.file("executor.yaml", &text);
    let serving = house.serve(&["--config", &file]);
    let search = |number: usize| {
        let query = format!("question {number}");
        serving.invoke(&json!({"tool": "web_search", "args": {"query": query}}))
    };
    for number in 0..10 {
        let answer = search(number);
        assert_eq!(answer.status, 200, "{number}: {}", answer.text());
    }
    let refused = search(10);
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert_eq!(gateway.asked().len(), 10);
}

/// The gateway is gone while it works on a call: the model hears of it, and the run has its answer.
#[test]
fn a_gateway_that_is_gone_in_the_middle_of_a_run_ends_no_run() {
    let model = ModelServer::says(vec![
        Say::calls("web_search", &json!({"query": "news"})),
        Say::says("Final Answer: I could not search."),
    ]);
    let gateway = ModelServer::start(|_| Say::Silence).expect("starts");
    let text = format!(
        "executor:\n  openclaw_gateway_url: {}\n  openclaw_gateway_token: t\n",
        gateway.url()
    );
    let executor = Executor::with(model, &text);
    let mut client = crate::executor::runs::asking(&executor.serving, &task("What is new?"));
    eventually("the gateway is asked", || {
        (gateway.asked().len() == 1).then_some(())
    });
    drop(gateway);
    let answer = client.answer().expect("an answer");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert_eq!(
        body["choices"][0]["message"]["content"],
        "I could not search."
    );
    assert_eq!(
        body["executor_metadata"]["tools_called"],
        json!(["web_search"])
    );
    let told = executor.model.asked()[1]["messages"].to_string();
    assert!(told.contains("[ERROR: "), "{told}");
}

#[test]
fn health_says_whether_there_is_a_gateway() {
    let model = || ModelServer::says(vec![Say::says("Hello.")]);
    let with = Executor::with(
        model(),
        "executor:\n  openclaw_gateway_url: http://127.0.0.1:9\n  openclaw_gateway_token: t\n",
    );
    let without = Executor::on(model());
    let health = |executor: &Executor| executor.serving.get("/health", None).json();
    assert_eq!(health(&with)["gateway"], "configured");
    assert_ne!(health(&without)["gateway"], "configured");
    assert_eq!(health(&without)["gpt_oss"], "connected");
}

/// A server that has calls of its own is told of the tools; any other is told in words.
#[test]
fn tools_are_declared_where_calls_are_native() {
    let model = || ModelServer::says(vec![Say::says("Final Answer: Hello.")]);
    let native = Executor::with(model(), "parser:\n  strategy: native\n");
    assert_eq!(native.ask(&task("Hello")).status, 200);
    let asked = native.model.asked();
    let names: Vec<&str> = asked[0]["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .filter_map(|tool| tool["function"]["name"].as_str())
        .collect();
    for name in ["read", "write", "exec"] {
        assert!(names.contains(&name), "{names:?}");
    }
    let words = Executor::on(model());
    assert_eq!(words.ask(&task("Hello")).status, 200);
    let asked = words.model.asked();
    assert!(asked[0].get("tools").is_none());
    assert!(asked[0]["messages"].to_string().contains("## read"));
    // What the client leaves open is as the specification says.
    assert_eq!(
        (&asked[0]["top_p"], &asked[0]["temperature"]),
        (&json!(0.95), &json!(0.25))
    );
}
