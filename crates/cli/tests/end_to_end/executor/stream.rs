//! Answers as they come: server-sent events.

use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_testkit::http::{Answer, Connection};
use holdfast_testkit::model::{ModelServer, Say, turns};
use serde_json::{Value, json};

use crate::executor::{Executor, PATH, task};

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

pub(crate) fn content(chunks: &[Value]) -> String {
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
    assert_eq!(
        crate::executor::code(&none),
        (404, "run_not_found".to_owned())
    );
}

/// Reads a stream until what was read holds a text, and says all that was read.
pub(crate) fn until(connection: &mut Connection, text: &str) -> String {
    let mut read = String::new();
    while !read.contains(text) {
        let part = connection.chunk().expect("goes on");
        let part = part.unwrap_or_else(|| panic!("{text} never came: {read}"));
        read.push_str(&String::from_utf8_lossy(&part));
    }
    read
}

/// The chunks of what was read of a stream.
fn told(read: &str) -> Vec<Value> {
    read.lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect()
}

fn asking(executor: &Executor, body: &Value) -> Connection {
    let mut connection = executor.serving.connect();
    let headers = [("content-type", "application/json")];
    let sent = connection.send_request("POST", PATH, &headers, body.to_string().as_bytes());
    sent.expect("sends");
    assert_eq!(connection.head().expect("a head").status, 200);
    connection
}

#[test]
fn an_answer_is_told_while_the_model_still_speaks() {
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]);
    let (mut plain, mut none) = (task("Hello"), task("Hello"));
    plain["model"] = json!("gpt-oss-tools");
    none["model"] = json!("gpt-oss-tools");
    none["tools"] = tools;
    none["tool_choice"] = json!("none");
    for (body, before) in [
        // The model says itself that its answer follows.
        (
            task("Hello"),
            "Thought: I know it.\nFinal Answer: The first half, ",
        ),
        // There is nothing to call.
        (plain, "The first half, "),
        (none, "The first half, "),
    ] {
        let executor = Executor::on(ModelServer::says(vec![Say::Held(
            before.to_owned(),
            "and the second.".to_owned(),
        )]));
        let mut connection = asking(&executor, &streamed(body));
        let early = until(&mut connection, "half,");
        assert!(
            !early.contains("Final Answer") && !early.contains("second"),
            "{early}"
        );
        executor.model.release();
        let late = until(&mut connection, "[DONE]");
        let parts = told(&format!("{early}{late}"));
        assert_eq!(content(&parts), "The first half, and the second.");
        assert_eq!(executor.model.asked()[0]["stream"], true);
        let total = parts
            .iter()
            .find_map(|part| part["usage"]["total_tokens"].as_u64());
        assert_eq!(total, Some(120), "a stream has its usage too");
    }
}

/// A client puts what comes as a delta where it is, and what was thought is no part of the answer.
#[test]
fn what_was_thought_is_no_delta_once_the_answer_has_begun() {
    let executor = Executor::on(ModelServer::says(vec![Say::Reply {
        reasoning: "I know it.".to_owned(),
        content: "Final Answer: Hello there.".to_owned(),
        finish: "stop",
    }]));
    let chunks = chunks(&executor.ask(&streamed(task("Hello"))));
    assert_eq!(content(&chunks), "Hello there.");
    let thought = |chunk: &Value| chunk["choices"][0]["delta"].get("reasoning").is_some();
    assert!(!chunks.iter().any(thought), "{chunks:?}");
    let beside = chunks
        .iter()
        .find_map(|chunk| chunk["executor_progress"]["reasoning"].as_str());
    assert_eq!(beside, Some("I know it."));
}

#[test]
fn what_may_still_be_a_call_is_not_told() {
    let executor = Executor::on(ModelServer::start(|request| match turns(request) {
        0 => Say::Held(
            "I will look.\nAction: write\n".to_owned(),
            "Action Input: {\"path\": \"a\", \"content\": \"b\\n\"}".to_owned(),
        ),
        _ => Say::says("Final Answer: Written."),
    }));
    let mut connection = asking(&executor, &streamed(task("Write")));
    let early = until(&mut connection, "\"asks\"");
    executor.model.release();
    let all = early + &until(&mut connection, "[DONE]");
    assert_eq!(executor.house.lines("a"), 1);
    assert!(
        all.contains("Written.") && !all.contains("I will look."),
        "{all}"
    );
}

#[test]
fn an_answer_that_breaks_off_is_not_begun_again() {
    let executor = Executor::on(ModelServer::says(vec![Say::BrokenOff(
        "Final Answer: The first half, and".to_owned(),
    )]));
    let chunks = chunks(&executor.ask(&streamed(task("Hello"))));
    assert_eq!(content(&chunks), "The first half, and");
    let error = &chunks.last().expect("a chunk")["error"];
    assert_eq!(error["code"], "gpt_oss_unreachable", "{chunks:?}");
    let message = error["message"].as_str().expect("a text");
    for part in [
        executor.model.url().as_str(),
        "broke off",
        "not asked for again",
    ] {
        assert!(message.contains(part), "no {part}: {message}");
    }
    assert_eq!(executor.model.asked().len(), 1);
    // While nothing was told, it is asked again as ever.
    let executor = Executor::on(ModelServer::start({
        let asked = AtomicUsize::new(0);
        move |_| match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Say::BrokenOff("Thought: let me".to_owned()),
            _ => Say::says("Final Answer: Whole."),
        }
    }));
    assert_eq!(
        content(&self::chunks(&executor.ask(&streamed(task("Hello"))))),
        "Whole."
    );
}

#[test]
fn native_calls_come_in_a_stream_too() {
    let call = json!({"role": "assistant", "content": "Let me write it.", "tool_calls": [{"id": "c1", "type": "function",
        "function": {"name": "write", "arguments": "{\"path\": \"a\", \"content\": \"b\\n\"}"}}]});
    let executor = Executor::on(ModelServer::says(vec![
        Say::Message(call),
        Say::says("Final Answer: Written."),
    ]));
    let chunks = chunks(&executor.ask(&streamed(task("Write"))));
    assert_eq!(
        (content(&chunks).as_str(), executor.house.lines("a")),
        ("Written.", 1)
    );
}

/// Chat templates of reasoning models open the thought in the question, so that only its end is in the
/// reply.
#[test]
fn a_thought_that_the_template_opened_is_no_part_of_a_stream() {
    let mut body = streamed(task("What is 2 + 2?"));
    body["model"] = json!("gpt-oss-tools");
    let opened = "parser:\n  thought: opened\n";
    let of_one = "models:\n  gpt-oss-tools:\n    model: r1\n    thought: opened\n";
    for yaml in [opened, of_one] {
        let held = Say::Held(
            "It is 4, I think.\n</think>\n\nThe first half, ".to_owned(),
            "and the second.".to_owned(),
        );
        let executor = Executor::with(ModelServer::says(vec![held]), yaml);
        let mut connection = asking(&executor, &body);
        let early = until(&mut connection, "half,");
        assert!(!early.contains("I think"), "{early}");
        executor.model.release();
        let all = early + &until(&mut connection, "[DONE]");
        assert_eq!(content(&told(&all)), "The first half, and the second.");
    }
    // Whose settings do not say it shows it with its first reply.
    let says = "It is 4, I think.\n</think>\n\nIt is 4.";
    let executor = Executor::on(ModelServer::says(vec![Say::says(says)]));
    let mut whole = body.clone();
    whole["stream"] = json!(false);
    let answer = executor.ask(&whole).json();
    assert_eq!(answer["choices"][0]["message"]["content"], "It is 4.");
    assert_eq!(content(&chunks(&executor.ask(&body))), "It is 4.");
}
