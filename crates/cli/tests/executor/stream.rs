//! Answers as they come: server-sent events.

use holdfast_testkit::http::Answer;
use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::{Executor, task};

/// The chunks of a stream, which has to end as it should.
pub(crate) fn chunks(answer: &Answer) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    let kind = answer.header("content-type").unwrap_or_default();
    assert!(kind.starts_with("text/event-stream"), "{kind}");
    let text = answer.text();
    let mut parts: Vec<&str> = text
        .split("\n\n")
        .filter(|part| !part.is_empty() && !part.starts_with(':'))
        .map(|part| part.strip_prefix("data: ").expect("data"))
        .collect();
    assert_eq!(parts.pop(), Some("[DONE]"), "{text}");
    parts
        .iter()
        .map(|part| serde_json::from_str(part).expect("JSON"))
        .collect()
}

fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    body
}

fn content(chunks: &[Value]) -> String {
    chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .collect()
}

#[test]
fn a_stream_tells_what_happens_and_ends_with_the_answer() {
    let long = "It is written. ".repeat(20);
    let executor = Executor::on(ModelServer::says(vec![
        Say::calls("write", &json!({"path": "a.txt", "content": "x"})),
        Say::says(format!("Final Answer: {long}")),
    ]));
    let answer = executor.ask(&streamed(task("Write it")));
    let chunks = chunks(&answer);
    for chunk in &chunks {
        assert_eq!(chunk["object"], "chat.completion.chunk");
        assert_eq!(chunk["id"], chunks[0]["id"], "one stream, one name");
        assert_eq!(chunk["model"], "gpt-oss");
    }
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    assert_eq!(content(&chunks).trim(), long.trim());
    let told: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| chunk["executor_progress"]["event"].as_str())
        .collect();
    assert_eq!(
        told,
        [
            "begins", "asks", "heard", "calls", "called", "asks", "heard"
        ]
    );
    // What is not the answer leaves the delta empty, or is what the model thought.
    let reasoned = &chunks[2]["choices"][0]["delta"]["reasoning"];
    assert!(
        reasoned
            .as_str()
            .is_some_and(|it| it.contains("Action: write"))
    );
    let [.., last, usage] = chunks.as_slice() else {
        panic!("{chunks:?}");
    };
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["executor_metadata"]["tools_called"], json!(["write"]));
    assert_eq!(
        (&usage["choices"], &usage["usage"]["total_tokens"]),
        (&json!([]), &json!(240))
    );
    // Without the option there is no usage.
    let mut body = streamed(task("Write it"));
    body["stream_options"] = Value::Null;
    let chunks = self::chunks(&executor.ask(&body));
    assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
}

#[test]
fn calls_for_the_client_are_streamed() {
    let executor = Executor::on(ModelServer::says(vec![Say::thinks(
        "Action: add\nAction Input: {\"a\": 1, \"b\": 2}",
    )]));
    let mut body = streamed(task("Add 1 and 2"));
    body["model"] = json!("gpt-oss-tools");
    body["tools"] = json!([{"type": "function", "function": {"name": "add", "parameters":
        {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}}}]);
    let chunks = chunks(&executor.ask(&body));
    let calls: Vec<&Value> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"].get(0))
        .collect();
    let [call] = calls.as_slice() else {
        panic!("{chunks:?}");
    };
    assert_eq!(
        (&call["index"], &call["function"]["name"]),
        (&json!(0), &json!("add"))
    );
    assert_eq!(call["function"]["arguments"], "{\"a\":1,\"b\":2}");
    let reason = chunks
        .iter()
        .find_map(|chunk| chunk["choices"][0]["finish_reason"].as_str());
    assert_eq!(reason, Some("tool_calls"));
}

#[test]
fn a_stream_that_fails_says_why() {
    let executor = Executor::on(ModelServer::says(vec![Say::Status(400, "{}".to_owned())]));
    let chunks = chunks(&executor.ask(&streamed(task("Hello"))));
    let error = &chunks.last().expect("a chunk")["error"];
    assert_eq!(error["code"], "gpt_oss_unreachable");
    // What is wrong before anything began is an answer like any other.
    let mut body = streamed(task("Hello"));
    body["model"] = json!("gpt-4");
    assert_eq!(executor.ask(&body).status, 404);
}

#[test]
fn a_client_that_was_cut_off_can_listen_again() {
    let executor = Executor::on(ModelServer::says(vec![Say::says("Final Answer: Hello.")]));
    let first = chunks(&executor.ask(&streamed(task("Hello"))));
    let run = first[0]["executor_progress"]["run_id"]
        .as_str()
        .expect("a run");
    let path = format!("/v1/runs/{run}/stream");
    let again = chunks(&executor.serving.get(&path, None));
    assert_eq!(content(&again), "Hello.");
    assert_eq!(again[0]["id"], first[0]["id"]);
    assert_eq!(executor.model.asked().len(), 1, "nothing is asked again");
    let none = executor.serving.get("/v1/runs/run-none/stream", None);
    assert_eq!(crate::code(&none), (404, "run_not_found".to_owned()));
}
