//! The success checklist of the executor's specification, line by line.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_testkit::http::Answer;
use holdfast_testkit::model::{ModelServer, Say, turns};
use serde_json::{Value, json};

use crate::common::{House, eventually};
use crate::executor::{Executor, code, task};
use crate::harness::Serving;

/// The command of the specification, to the letter.
const CURL: &str = r#"curl -X POST http://localhost:8001/v1/chat/completions \
  -H "Content-Type: application/json" \
  -d '{
    "model": "gpt-oss",
    "messages": [{"role": "user", "content": "Hello"}],
    "max_tokens": 100
  }'"#;

#[test]
fn check_01_it_listens_on_8001_with_chat_completions() {
    let shown = House::new().run(&["config", "show", "--json"]).stdout;
    assert!(shown.contains("127.0.0.1:8001"), "{shown}");
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hello!")]));
    // The tests have no port of their own to give away, so curl is told where 8001 is today.
    let there = format!(
        "silent\nconnect-to = \"localhost:8001:{}\"\n",
        executor.serving.address
    );
    std::fs::write(executor.house.home().join(".curlrc"), there).expect("writes");
    let output = Command::new("sh")
        .args(["-c", CURL])
        .env("HOME", executor.house.home())
        .output()
        .expect("curl runs");
    let answer: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    assert_eq!(answer["choices"][0]["message"]["content"], "Hello!");
}

#[test]
fn check_02_it_accepts_requests_as_openai_clients_send_them() {
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hello!")]));
    let answer = executor.ask(&json!({
        "model": "gpt-oss",
        "messages": [
            {"role": "system", "content": "You are a helpful assistant that can use tools to complete tasks."},
            {"role": "user", "content": [{"type": "text", "text": "Find the latest news."}]}],
        "temperature": 0.25, "max_tokens": 1000, "timeout": 300}));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let sent = &executor.model.asked()[0];
    let rules = sent["messages"][0]["content"].as_str().expect("rules");
    // The client's rules come first, and ours are added: many servers take one such message only.
    assert!(rules.starts_with("You are a helpful assistant"), "{rules}");
    assert_eq!(sent["messages"][1]["content"], "Find the latest news.");
}

#[test]
fn check_03_it_reads_the_reasoning_field() {
    for field in ["reasoning_content", "reasoning"] {
        let thought = format!(
            "Action: write\nAction Input: {}",
            json!({"path": "a", "content": "b\n"})
        );
        let message = json!({"role": "assistant", "content": null, field: thought});
        let body = json!({"choices": [{"message": message, "finish_reason": "stop"}]}).to_string();
        let executor = Executor::on(ModelServer::says(vec![
            Say::Body(body),
            Say::says("Final Answer: Written."),
        ]));
        assert_eq!(executor.ask(&task("Write")).status, 200);
        assert_eq!(executor.house.lines("a"), 1, "{field}");
    }
}

#[test]
fn check_04_it_finds_intents_in_plain_words() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::thinks("I will read the file `notes.txt` now."),
        Say::says("It says milk."),
    ]));
    std::fs::write(executor.house.path("notes.txt"), "milk\n").expect("writes");
    let answer = executor.ask(&task("What do the notes say?")).json();
    assert_eq!(
        answer["executor_metadata"]["tools_called"],
        json!(["read"]),
        "{answer}"
    );
    assert!(executor.model.asked()[1].to_string().contains("milk"));
}

#[test]
fn check_05_tools_run_one_after_the_other() {
    let both = format!(
        "Action: exec\nAction Input: {}\nAction: exec\nAction Input: {}",
        json!({"command": "sleep 0.2; echo one >> log"}),
        json!({"command": "echo two >> log"})
    );
    let executor = Executor::on(ModelServer::says(vec![
        Say::thinks(both),
        Say::says("Final Answer: Done."),
    ]));
    assert_eq!(executor.ask(&task("Log")).status, 200);
    let log = std::fs::read_to_string(executor.house.path("log")).expect("a log");
    assert_eq!(log, "one\ntwo\n");
}

/// A tool of the gateway is asked in the gateway's words, after what comes before it and before what
/// comes after it.
#[cfg(feature = "web")]
#[test]
fn check_05_tools_of_the_openclaw_gateway_run_in_their_turn() {
    let house = House::new();
    let log = house.path("log");
    let gateway = ModelServer::start(move |_| {
        let is_its_turn = std::fs::read_to_string(&log).is_ok_and(|log| log == "one\n");
        let title = if is_its_turn {
            "after one, before two"
        } else {
            "too early or too late"
        };
        let found = json!({"title": title, "url": "https://example.com"});
        let result = json!({"content": [], "details": {"results": [found]}});
        Say::Body(json!({"ok": true, "result": result}).to_string())
    });
    let gateway = gateway.expect("starts");
    let step = |tool: &str, arguments: Value| format!("Action: {tool}\nAction Input: {arguments}");
    let model = ModelServer::says(vec![
        Say::thinks(
            [
                step("exec", json!({"command": "echo one >> log"})),
                step("web_search", json!({"query": "Claude AI news"})),
                step("exec", json!({"command": "echo two >> log"})),
            ]
            .join("\n"),
        ),
        Say::says("Final Answer: Done."),
    ]);
    let model = model.expect("starts");
    let yaml = format!(
        "executor:\n  gpt_oss_url: {}\n  openclaw_gateway_url: {}\n  openclaw_gateway_token: secret-1\n",
        model.url(),
        gateway.url()
    );
    let file = house.file("executor.yaml", &yaml);
    let serving = house.serve(&["--config", &file]);
    let answer = ask(&serving, &task("Search"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let asked = gateway.asked();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(
        (&asked["tool"], &asked["args"]["query"]),
        (&json!("web_search"), &json!("Claude AI news"))
    );
    assert_eq!(gateway.keys(), ["Bearer secret-1"]);
    let told = model.asked()[1]["messages"].to_string();
    assert!(told.contains("after one, before two"), "{told}");
    let log = std::fs::read_to_string(house.path("log")).expect("a log");
    assert_eq!(log, "one\ntwo\n");
}

#[test]
fn check_06_results_go_back_into_the_conversation() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls("exec", &json!({"command": "echo forty-two"})),
        Say::says("Final Answer: 42."),
    ]));
    executor.ask(&task("What is it?"));
    let asked = executor.model.asked();
    let last = asked[1]["messages"].as_array().and_then(|all| all.last());
    let told = last
        .and_then(|it| it["content"].as_str())
        .expect("a message");
    assert!(
        told.starts_with("Tool execution results:\n[TOOL_RESULT: exec]\n"),
        "{told}"
    );
    assert!(told.contains("forty-two"), "{told}");
    let end = "Continue with next step or provide the final answer if the task is complete.";
    assert!(told.ends_with(end), "{told}");
}

#[test]
fn check_07_it_loops_until_an_answer_or_the_last_iteration() {
    let steps = |count: usize| {
        ModelServer::start(move |request| match turns(request) {
            // The word alone ends nothing. Beside words a thought may only look.
            turn if turn < count => Say::Reply {
                reasoning: format!(
                    "Action: read\nAction Input: {}",
                    json!({"path": format!("{turn}.txt")})
                ),
                content: "This step is complete and done.".to_owned(),
                finish: "stop",
            },
            _ => Say::says("Final Answer: All is complete."),
        })
    };
    let executor = Executor::on(steps(4));
    let answer = executor.ask(&task("Four steps")).json();
    assert_eq!(answer["executor_metadata"]["iterations"], 5, "{answer}");
    let executor = Executor::on(steps(5));
    let answer = executor.ask(&task("Five steps"));
    assert_eq!(code(&answer), (400, "max_iterations_exceeded".to_owned()));
}

#[test]
fn check_08_it_ends_within_its_time() {
    let executor = Executor::on(ModelServer::says(vec![Say::Silence]));
    let mut body = task("Hello");
    body["timeout"] = json!(1);
    assert_eq!(
        code(&executor.ask(&body)),
        (408, "timeout_exceeded".to_owned())
    );
    let executor = Executor::on(ModelServer::says(vec![Say::calls(
        "exec",
        &json!({"command": "sleep 1000"}),
    )]));
    // Long enough for the model's answer on a busy machine.
    body["timeout"] = json!(5);
    let answer = executor.ask(&body);
    assert_eq!(code(&answer), (408, "timeout_exceeded".to_owned()));
    let metadata = &answer.json()["executor_metadata"];
    assert_eq!(metadata["iterations"], 1, "{}", answer.text());
    let run = metadata["run_id"].as_str().unwrap_or_default();
    assert!(run.starts_with("run-"), "{}", answer.text());
}

/// A server with an `executor.yaml` of its own.
fn with_file(model: &ModelServer, yaml: &str) -> (House, Serving) {
    let house = House::new();
    let file = house.file("executor.yaml", yaml);
    let url = model.url();
    let serving = house.serve_with(&["--config", &file], |command| {
        command.env("GPTOSS_EXECUTOR_GPT_OSS_URL", &url);
    });
    (house, serving)
}

fn ask(serving: &Serving, body: &Value) -> Answer {
    serving.post(crate::executor::PATH, "local", body)
}

#[test]
fn check_09_it_counts_tokens_and_keeps_to_the_window() {
    let model = ModelServer::says(vec![Say::says("Final Answer: Hello.")]).expect("starts");
    let (_house, serving) = with_file(
        &model,
        "executor:\n  gpt_oss_model: gpt-oss\n  context_window_limit: 8000\n",
    );
    let answer = ask(&serving, &task("Hello")).json();
    assert_eq!(answer["usage"]["total_tokens"], 120);
    assert_eq!(answer["executor_metadata"]["context_usage_percent"], 1.5);
    let long = task(&"one two three four five ".repeat(2000));
    let answer = ask(&serving, &long);
    assert_eq!(code(&answer), (400, "context_window_exceeded".to_owned()));
    assert_eq!(
        model.asked().len(),
        1,
        "it is said before the model is asked"
    );
}

#[test]
fn check_10_it_logs_events_as_json() {
    let model = ModelServer::says(vec![
        Say::calls("exec", &json!({"command": "echo hello"})),
        Say::says("Final Answer: Hello."),
    ]);
    let model = model.expect("starts");
    let scratch = tempfile::tempdir().expect("a directory");
    let log = scratch.path().join("log");
    let yaml = format!("logging:\n  output: {}\n", log.display());
    let (_house, serving) = with_file(&model, &yaml);
    assert_eq!(ask(&serving, &task("Hello")).status, 200);
    let lines = std::fs::read_to_string(&log).expect("a log");
    let lines: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    for line in &lines {
        assert_eq!(line["logger"], "executor");
        assert!(
            line["timestamp"].is_string() && line["run_id"].is_string(),
            "{line}"
        );
    }
    let events: Vec<&str> = lines.iter().filter_map(|it| it["event"].as_str()).collect();
    for event in [
        "executor_run_start",
        "gpt_oss_call_start",
        "gpt_oss_call_complete",
        "tool_intents_parsed",
        "tool_execution_start",
        "tool_execution_success",
        "tool_execution_complete",
        "completion_signal_detected",
    ] {
        assert!(events.contains(&event), "no {event}: {events:?}");
    }
}

#[test]
fn check_11_it_keeps_a_page_of_errors_a_day() {
    let model = ModelServer::says(vec![
        Say::calls("read", &json!({"path": "missing.txt"})),
        Say::says("Final Answer: There is none."),
    ]);
    let model = model.expect("starts");
    let scratch = tempfile::tempdir().expect("a directory");
    let dir = scratch.path().join("logs");
    let yaml = format!(
        "logging:\n  output: stderr\n  level: error\n  error_log_dir: {}\n",
        dir.display()
    );
    let (_house, serving) = with_file(&model, &yaml);
    assert_eq!(ask(&serving, &task("Read")).status, 200);
    // It is written beside the run, not before its answer.
    let text = eventually("a page", || {
        let page = std::fs::read_dir(&dir)
            .ok()?
            .next()?
            .expect("a page")
            .path();
        let name = page.file_name()?.to_str().expect("UTF-8");
        assert!(name.ends_with("-errors.md") && name.len() == "2026-02-28-errors.md".len());
        let text = std::fs::read_to_string(&page).expect("a page");
        text.contains(" | Status: ").then_some(text)
    });
    assert_eq!(std::fs::read_dir(&dir).expect("a directory").count(), 1);
    assert!(text.contains("read | Error: "), "{text}");
}

/// The entry that the specification adds to `openclaw.json`.
#[test]
fn check_13_it_answers_as_the_provider_that_openclaw_is_given() {
    let entry = json!({"baseUrl": "http://localhost:8001/v1", "apiKey": "local",
        "api": "openai-completions", "models": [{"id": "executor"}]});
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hello!")]));
    let base = entry["baseUrl"]
        .as_str()
        .and_then(|url| url.strip_prefix("http://localhost:8001"));
    let path = format!("{}/chat/completions", base.expect("a path"));
    let body = json!({"model": entry["models"][0]["id"], "messages": [{"role": "user", "content": "Hello"}],
        "tools": [{"type": "function", "function": {"name": "sessions_spawn", "parameters": {"type": "object"}}}],
        "max_completion_tokens": 16384, "store": false, "stream": true, "stream_options": {"include_usage": true}});
    let answer = executor
        .serving
        .post(&path, entry["apiKey"].as_str().expect("a key"), &body);
    let text: String = crate::executor::stream::chunks(&answer)
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect();
    assert_eq!(text, "Hello!");
}

#[test]
fn check_12_it_retries_skips_and_aborts() {
    // Retry: a server that is away for a moment.
    let times = Arc::new(AtomicUsize::new(0));
    let seen = times.clone();
    let executor = Executor::on(ModelServer::start(move |_| {
        match seen.fetch_add(1, Ordering::SeqCst) {
            0 => Say::Status(503, "{}".to_owned()),
            1 => Say::Half,
            _ => Say::says("Final Answer: Back."),
        }
    }));
    assert_eq!(executor.ask(&task("Hello")).status, 200);
    assert_eq!(times.load(Ordering::SeqCst), 3);
    // Skip: a tool that fails is told, and the model finds another way.
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls("read", &json!({"path": "missing.txt"})),
        Say::says("Final Answer: There is no such file."),
    ]));
    assert_eq!(executor.ask(&task("Read")).status, 200);
    assert!(
        executor.model.asked()[1]
            .to_string()
            .contains("[ERROR: read]")
    );
    // Abort: a server that stays away.
    let executor = Executor::on(ModelServer::says(vec![Say::Status(500, "{}".to_owned())]));
    assert_eq!(
        code(&executor.ask(&task("Hello"))),
        (503, "gpt_oss_unreachable".to_owned())
    );
    assert_eq!(executor.model.asked().len(), 3);
}

#[test]
fn check_14_it_can_be_spawned_as_subagent_via_sessions_spawn() {
    let child = "Research Claude AI and summarize latest developments";
    let executor = Executor::on(ModelServer::start(move |request| {
        let is_child = crate::executor::subagents::task_of(request) == child;
        match (is_child, turns(request)) {
            // As the specification calls it.
            (false, 0) => Say::calls(
                "sessions_spawn",
                &json!({"task": child, "agentId": "gpt-oss-executor", "model": "gpt-oss-executor/executor",
                        "runTimeoutSeconds": 300, "label": "gpt-oss-research-task"}),
            ),
            (true, 0) => Say::calls(
                "write",
                &json!({"path": "summary.md", "content": "News.\n"}),
            ),
            (true, _) => Say::says("Final Answer: The summary is in summary.md."),
            (false, _) => Say::says("Final Answer: My subagent wrote it."),
        }
    }));
    let answer = executor.ask(&task("Have it researched"));
    let text = &answer.json()["choices"][0]["message"]["content"];
    assert_eq!(text, "My subagent wrote it.", "{}", answer.text());
    assert_eq!(executor.house.lines("summary.md"), 1);
    // The result went up as it is: how it ended, what it says, what it made.
    let told = executor.model.asked().last().expect("a question")["messages"].to_string();
    for part in [
        "completed",
        "The summary is in summary.md.",
        "artifacts",
        "gpt-oss-research-task",
    ] {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn check_15_it_can_be_watched() {
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hello.")]));
    let health = executor.serving.get("/health", None);
    let body = health.json();
    assert_eq!(health.status, 200, "{body}");
    assert_eq!(
        (&body["status"], &body["gpt_oss"], &body["gateway"]),
        (&json!("ok"), &json!("connected"), &json!("not configured"))
    );
    assert!(body["timestamp"].is_string());
    executor.ask(&task("Hello"));
    let metric = "holdfast_http_requests_total{route=\"/v1/chat/completions\",status=\"200\"} ";
    assert_eq!(
        executor.serving.metric(metric),
        Some(1.0),
        "{}",
        executor.serving.get("/metrics", None).text()
    );
    let Executor { model, serving, .. } = executor;
    drop(model);
    let away = eventually("the model is seen to be away", || {
        let health = serving.get("/health", None);
        (health.status == 503).then(|| health.json())
    });
    assert_eq!(
        (&away["status"], &away["gpt_oss"]),
        (&json!("degraded"), &json!("unreachable"))
    );
}
