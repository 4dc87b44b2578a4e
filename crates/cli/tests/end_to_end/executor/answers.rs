//! Plain answers, and every error with its code and status.

use holdfast_testkit::model::{ModelServer, Say, turns};
use serde_json::{Value, json};

use crate::executor::stream::{chunks, content};
use crate::executor::{Executor, code, task};

#[test]
fn an_answer_has_all_the_fields_of_the_seed() {
    let script = vec![
        Say::calls("write", &json!({"path": "a.txt", "content": "hello"})),
        Say::Reply {
            reasoning: "All is done.".to_owned(),
            content: "Final Answer: I wrote it.".to_owned(),
            finish: "stop",
        },
    ];
    let executor = Executor::on(ModelServer::says(script));
    let answer = executor.ask(&task("Write hello to a.txt"));
    assert_eq!(answer.status, 200, "{}", answer.text());
    let body = answer.json();
    assert!(body["id"].as_str().expect("an id").starts_with("chatcmpl-"));
    assert_eq!(
        (&body["object"], &body["model"]),
        (&json!("chat.completion"), &json!("gpt-oss"))
    );
    assert!(
        body["created"]
            .as_u64()
            .is_some_and(|at| at > 1_700_000_000)
    );
    let choice = &body["choices"][0];
    assert_eq!(choice["finish_reason"], "stop");
    assert_eq!(choice["message"]["role"], "assistant");
    assert_eq!(choice["message"]["content"], "I wrote it.");
    assert_eq!(choice["message"]["reasoning"], "All is done.");
    // The last answer's tokens, and those of all answers together.
    assert_eq!(
        body["usage"],
        json!({"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 240})
    );
    let metadata = &body["executor_metadata"];
    assert!(
        metadata["run_id"]
            .as_str()
            .expect("an id")
            .starts_with("run-")
    );
    assert_eq!(metadata["iterations"], 2);
    assert_eq!(metadata["tools_called"], json!(["write"]));
    assert!(metadata["total_tool_execution_time_ms"].is_u64());
    assert_eq!(metadata["context_usage_percent"], 0.3);
    assert_eq!(executor.house.lines("a.txt"), 1);
}

#[test]
fn what_the_client_asks_for_reaches_the_model() {
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hello.")]));
    let mut body = task("Hello");
    for (name, value) in [
        ("temperature", json!(0.5)),
        ("top_p", json!(0.5)),
        ("max_tokens", json!(5000)),
        ("seed", json!(7)),
        ("stop", json!("END")),
        ("n", json!(1)),
        ("unknown_field", json!({"a": 1})),
    ] {
        body[name] = value;
    }
    let answer = executor.ask(&body).json();
    let clamped = &answer["executor_metadata"]["max_tokens_clamped"];
    assert_eq!(clamped, &json!({"asked": 5000, "used": 1000}));
    let asked = executor.model.asked();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    for (name, value) in [
        ("temperature", json!(0.5)),
        ("top_p", json!(0.5)),
        ("max_tokens", json!(1000)),
        ("seed", json!(7)),
        ("stop", json!("END")),
        ("model", json!("gpt-oss")),
    ] {
        assert_eq!(asked[name], value, "{name}");
    }
    assert!(asked.get("unknown_field").is_none());
}

#[test]
fn an_answer_that_was_cut_off_says_so() {
    let executor = Executor::on(ModelServer::says(vec![Say::Reply {
        reasoning: String::new(),
        content: "It begins with".to_owned(),
        finish: "length",
    }]));
    let answer = executor.ask(&task("Tell me")).json();
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "length");
    // Nobody is told to call a tool, and what was said is not lost.
    assert_eq!(choice["message"]["content"], "It begins with");
    assert_eq!(executor.model.asked().len(), 1);
    let mut body = task("Tell me");
    body["stream"] = json!(true);
    let told = chunks(&executor.ask(&body));
    let last = told.last().expect("a chunk");
    assert_eq!(last["choices"][0]["finish_reason"], "length");
    assert_eq!(executor.model.asked().len(), 2);
}

/// Clients tell a filter from a limit: more tokens do not help against it.
#[test]
fn an_answer_that_a_filter_cut_says_so() {
    let executor = Executor::on(ModelServer::says(vec![Say::Reply {
        reasoning: String::new(),
        content: "It begins with".to_owned(),
        finish: "content_filter",
    }]));
    let mut body = task("Tell me");
    let answer = executor.ask(&body).json();
    let reason = &answer["choices"][0]["finish_reason"];
    assert_eq!(reason, "content_filter", "{answer}");
    assert_eq!(executor.model.asked().len(), 1);
    let run = answer["executor_metadata"]["run_id"].as_str();
    let path = format!("/v1/runs/{}", run.expect("a run"));
    let kept = executor.serving.get(&path, None).json();
    assert_eq!(kept["result"]["finish_reason"], "content_filter", "{kept}");
    body["stream"] = json!(true);
    let told = chunks(&executor.ask(&body));
    let last = told.last().expect("a chunk");
    assert_eq!(last["choices"][0]["finish_reason"], "content_filter");
}

/// The thought does not overrule the answer.
#[test]
fn what_a_model_thinks_of_and_declines_is_not_done() {
    let call =
        "<tool_call>{\"name\": \"exec\", \"arguments\": {\"command\": \"touch X\"}}</tool_call>";
    let react = "Action: exec\nAction Input: {\"command\": \"touch X\"}";
    let declines = "I have decided against it. Nothing was done.";
    for thought in [
        call.to_owned(),
        format!("I might call {call} but that is dangerous, no."),
        format!("{react}\nNo wait, the user said not to."),
    ] {
        let executor = Executor::on(ModelServer::says(vec![Say::Reply {
            reasoning: thought.clone(),
            content: declines.to_owned(),
            finish: "stop",
        }]));
        let answer = executor.ask(&task("Touch nothing.")).json();
        let message = &answer["choices"][0]["message"];
        assert_eq!(message["content"], declines, "{thought}: {answer}");
        assert_eq!(answer["executor_metadata"]["tools_called"], json!([]));
        assert!(!executor.house.path("X").exists(), "{thought}");
        assert_eq!(executor.model.asked().len(), 2, "it was asked back once");
    }
}

/// What a model that begins inside of a thought says until it is cut off is its thought; and what its
/// server leaves in the text is told as thought, as it is where the server tells it apart.
#[test]
fn thoughts_in_the_text_are_told_as_thoughts() {
    let opened = "parser:\n  thought: opened\n";
    let mut body = task("What is 2 + 2?");
    body["model"] = json!("gpt-oss-tools");
    for (yaml, said, finish, thought, aloud) in [
        (
            opened,
            "So 2 + 2 and then",
            "length",
            "So 2 + 2 and then",
            "",
        ),
        (opened, "It is 4.", "stop", "", "It is 4."),
        (
            opened,
            "So 2 + 2.\n</think>\n\nIt is",
            "length",
            "So 2 + 2.",
            "It is",
        ),
        (
            "",
            "So 2 + 2.\n</think>\n\nIt is 4.",
            "stop",
            "So 2 + 2.",
            "It is 4.",
        ),
        (
            "",
            "<think>\nSo 4.\n</think>It is 4.",
            "stop",
            "So 4.",
            "It is 4.",
        ),
        (
            "",
            "<|channel|>analysis<|message|>deep thought<|end|><|start|>assistant<|channel|>final<|message|>It is 4.<|return|>",
            "stop",
            "deep thought",
            "It is 4.",
        ),
        ("", "It is", "length", "", "It is"),
    ] {
        let executor = Executor::with(
            ModelServer::says(vec![Say::Reply {
                reasoning: String::new(),
                content: said.to_owned(),
                finish,
            }]),
            yaml,
        );
        let answer = executor.ask(&body).json();
        let choice = &answer["choices"][0];
        assert_eq!(choice["finish_reason"], finish, "{said}");
        assert_eq!(choice["message"]["content"], aloud, "{said}");
        assert_eq!(choice["message"]["reasoning"], thought, "{said}");
        let mut live = body.clone();
        live["stream"] = json!(true);
        let told = chunks(&executor.ask(&live));
        assert_eq!(content(&told), aloud, "{said}");
        let thoughts = told.iter().find_map(|chunk| {
            let (delta, beside) = (&chunk["choices"][0]["delta"], &chunk["executor_progress"]);
            let found = delta["reasoning"].as_str().or(beside["reasoning"].as_str());
            found.filter(|text| !text.is_empty())
        });
        assert_eq!(thoughts.unwrap_or_default(), thought, "{said}: {told:?}");
    }
}

#[test]
fn errors_have_the_codes_and_statuses_of_the_seed() {
    let executor = Executor::on(ModelServer::start(|request| {
        match request["messages"][1]["content"].as_str() {
            Some("loop") => Say::calls(
                "exec",
                &json!({"command": format!("echo {}", turns(request))}),
            ),
            Some("long") => Say::Status(
                400,
                json!({"object": "error", "code": 400,
                       "message": "This model's maximum context length is 32768 tokens"})
                .to_string(),
            ),
            Some("silence") => Say::Silence,
            Some("down") => Say::Status(500, "{}".to_owned()),
            Some("empty") => Say::Body("{\"choices\": []}".to_owned()),
            Some("half") => Say::Half,
            _ => Say::Body("<html>".to_owned()),
        }
    }));
    let mut silence = task("silence");
    silence["timeout"] = json!(1);
    let mut unknown = task("x");
    unknown["model"] = json!("gpt-4");
    let mut no_model = task("x");
    no_model["model"] = Value::Null;
    for (body, status, says) in [
        (no_model, 400, "invalid_request"),
        (json!({"model": "gpt-oss"}), 400, "invalid_request"),
        (unknown, 404, "model_not_found"),
        (task("loop"), 400, "max_iterations_exceeded"),
        (task("long"), 400, "context_window_exceeded"),
        (silence, 408, "timeout_exceeded"),
        (task("down"), 503, "gpt_oss_unreachable"),
        (task("empty"), 503, "gpt_oss_unreachable"),
        (task("half"), 503, "gpt_oss_unreachable"),
        (task("broken"), 503, "gpt_oss_unreachable"),
    ] {
        let answer = executor.ask(&body);
        assert_eq!(code(&answer), (status, says.to_owned()), "{body}");
        let error = &answer.json()["error"];
        assert!(error["message"].is_string() && error["type"].is_string());
    }
}

#[test]
fn a_run_without_an_answer_says_how_far_it_came() {
    let executor = Executor::on(ModelServer::start(|request| {
        let command = format!("echo {} >> log", turns(request));
        let call = json!({ "command": command });
        Say::says(format!("Thought: on\nAction: exec\nAction Input: {call}"))
    }));
    let answer = executor.ask(&task("Go on for ever"));
    assert_eq!(code(&answer), (400, "max_iterations_exceeded".to_owned()));
    let body = answer.json();
    assert_eq!(
        body["error"]["message"],
        "max iterations exceeded after 5 attempts"
    );
    assert_eq!(body["error"]["type"], "ExecutionError");
    let said = body["executor_metadata"]["content"].as_str();
    assert!(
        said.is_some_and(|it| it.contains("echo 4 >> log")),
        "{body}"
    );
    assert_eq!(body["executor_metadata"]["iterations"], 5);
    // Effects happened, so a client must not begin it all again by itself.
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(executor.house.lines("log"), 5);
}

#[test]
fn a_server_without_a_model_says_so() {
    let house = crate::common::House::new();
    let serving = house.serve(&[]);
    let answer = serving.post(crate::executor::PATH, "no-token", &task("Hello"));
    assert_eq!(code(&answer), (503, "gpt_oss_unreachable".to_owned()));
    assert_eq!(answer.header("retry-after"), None);
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    // Nobody waits for a model that nobody configured.
    assert_eq!(serving.get("/health", None).status, 200);
}

#[test]
fn only_json_from_this_machine_is_taken() {
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hello.")]));
    let body = task("Hello").to_string();
    for (headers, status) in [
        (vec![("content-type", "text/plain")], 415),
        (
            vec![
                ("content-type", "application/json"),
                ("origin", "https://evil.example"),
            ],
            403,
        ),
        (
            vec![
                ("content-type", "application/json"),
                ("host", "evil.example"),
            ],
            403,
        ),
        // What the seed's configuration sends.
        (
            vec![
                ("content-type", "application/json"),
                ("authorization", "Bearer local"),
            ],
            200,
        ),
    ] {
        let mut connection = executor.serving.connect();
        let answer = connection
            .request("POST", crate::executor::PATH, &headers, body.as_bytes())
            .expect("an answer");
        assert_eq!(answer.status, status, "{headers:?}");
    }
    let got = executor.serving.get(crate::executor::PATH, None);
    assert_eq!(got.status, 405);
}

#[test]
fn the_models_are_listed() {
    let executor = Executor::on(ModelServer::says(vec![]));
    let listed = executor.serving.get("/v1/models", None).json();
    let names: Vec<&str> = listed["data"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|model| model["id"].as_str())
        .collect();
    assert_eq!(names, ["gpt-oss", "executor", "gpt-oss-tools"]);
    let one = executor.serving.get("/v1/models/executor", None);
    assert_eq!((one.status, &one.json()["object"]), (200, &json!("model")));
    let none = executor.serving.get("/v1/models/gpt-4", None);
    assert_eq!(code(&none), (404, "model_not_found".to_owned()));
}

/// Clients that repeat by themselves keep to what the model's server asks for.
#[test]
fn a_model_server_that_is_busy_says_when_to_come_again() {
    let once = "executor:\n  max_retries: 0\n";
    let executor = Executor::with(ModelServer::start(|_| Say::Busy(17)), once);
    let answer = executor.ask(&task("Hello"));
    assert_eq!(code(&answer), (503, "gpt_oss_unreachable".to_owned()));
    assert_eq!(answer.header("retry-after"), Some("17"));
    // One that does not say it is worth coming again for as well.
    for status in [429, 503] {
        let away = ModelServer::start(move |_| Say::Status(status, "{}".to_owned()));
        let executor = Executor::with(away, once);
        let answer = executor.ask(&task("Hello"));
        assert_eq!(code(&answer), (503, "gpt_oss_unreachable".to_owned()));
        assert_eq!(answer.header("retry-after"), Some("5"), "{status}");
        assert_eq!(answer.header("x-should-retry"), None, "{status}");
    }
    // Who refuses will refuse again.
    for status in [400, 401, 404, 413] {
        let refuses = ModelServer::start(move |_| Say::Status(status, "{}".to_owned()));
        let executor = Executor::with(refuses, once);
        let answer = executor.ask(&task("Hello"));
        assert_eq!(code(&answer), (503, "gpt_oss_unreachable".to_owned()));
        assert_eq!(answer.header("retry-after"), None, "{status}");
        assert_eq!(answer.header("x-should-retry"), Some("false"), "{status}");
    }
    // Once something was done, nobody is asked to come again by itself.
    let script = vec![
        Say::calls("write", &json!({"path": "a.txt", "content": "hello\n"})),
        Say::Status(429, "{}".to_owned()),
    ];
    let executor = Executor::with(ModelServer::says(script), once);
    let answer = executor.ask(&task("Write hello to a.txt"));
    assert_eq!(code(&answer), (503, "gpt_oss_unreachable".to_owned()));
    assert_eq!(
        (
            answer.header("retry-after"),
            answer.header("x-should-retry")
        ),
        (None, Some("false"))
    );
    assert_eq!(executor.house.lines("a.txt"), 1);
}
