//! `gpt-oss-tools`: calls go back to the client, parsed, repaired and validated.

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::common::eventually;
use crate::executor::Executor;
use crate::executor::runs::{asking, post};
use crate::executor::stream::{chunks, content};

fn weather() -> Value {
    json!([{"type": "function", "function": {
        "name": "get_weather", "description": "The weather of a city.",
        "parameters": {"type": "object", "required": ["city"], "additionalProperties": false,
            "properties": {"city": {"type": "string", "minLength": 2},
                           "days": {"type": "integer", "minimum": 1},
                           "unit": {"type": "string", "enum": ["celsius", "fahrenheit"]}}}}}])
}

fn request() -> Value {
    json!({"model": "gpt-oss-tools", "tools": weather(),
           "messages": [{"role": "user", "content": "How is the weather in Bern?"}]})
}

fn arguments(answer: &Value) -> Value {
    let call = &answer["choices"][0]["message"]["tool_calls"][0]["function"];
    let text = call["arguments"].as_str().unwrap_or_default();
    serde_json::from_str(text).unwrap_or_default()
}

/// However the model writes it, the client gets the same call.
#[test]
fn calls_in_any_form_come_back_as_tool_calls() {
    let native = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "call_0",
        "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\": \"Bern\", \"days\": 2}"}}]});
    let forms = [
        Say::thinks("Action: get_weather\nAction Input: {\"city\": \"Bern\", \"days\": 2}"),
        // Nearly JSON, and a number in quotes.
        Say::thinks("Action: get_weather\nAction Input: {'city': 'Bern', 'days': '2',}"),
        Say::says("Action: getWeather\nAction Input: {\"city\": \"Bern\", \"days\": 2}"),
        Say::Message(native),
    ];
    for form in forms {
        let shown = format!("{form:?}");
        let executor = Executor::on(ModelServer::says(vec![form]));
        let answer = executor.ask(&request()).json();
        let choice = &answer["choices"][0];
        assert_eq!(choice["finish_reason"], "tool_calls", "{shown}: {answer}");
        let call = &choice["message"]["tool_calls"][0];
        assert_eq!(
            (&call["type"], &call["function"]["name"]),
            (&json!("function"), &json!("get_weather"))
        );
        assert!(call["id"].as_str().is_some_and(|id| id.len() > 20));
        assert_eq!(arguments(&answer), json!({"city": "Bern", "days": 2}));
    }
}

#[test]
fn a_call_that_does_not_fit_the_schema_is_asked_back_once() {
    let wrong = Say::thinks("Action: get_weather\nAction Input: {\"city\": \"B\", \"days\": 0}");
    let right = Say::thinks("Action: get_weather\nAction Input: {\"city\": \"Bern\"}");
    let executor = Executor::on(ModelServer::says(vec![wrong.clone(), right]));
    let answer = executor.ask(&request()).json();
    assert_eq!(arguments(&answer), json!({"city": "Bern"}), "{answer}");
    let asked = executor.model.asked();
    let told = asked[1]["messages"].as_array().and_then(|it| it.last());
    let told = told.map(|it| it["content"].to_string()).unwrap_or_default();
    assert!(told.contains("city") && told.contains("days"), "{told}");

    // One that does not learn gets no second chance, and the client neither a broken call nor its
    // words in place of an answer, nor an empty one.
    let aloud = Say::says("Action: get_weather\nAction Input: {\"city\": \"B\"}");
    for (wrong, choice) in [
        (wrong.clone(), "auto"),
        (wrong, "required"),
        (aloud, "auto"),
    ] {
        let executor = Executor::on(ModelServer::says(vec![wrong]));
        let mut body = request();
        body["tool_choice"] = json!(choice);
        let answer = executor.ask(&body);
        assert_eq!(answer.status, 500, "{}", answer.text());
        let error = answer.json()["error"].clone();
        assert_eq!(error["code"], "tool_execution_failed", "{error}");
        let why = error["message"].as_str().unwrap_or_default();
        assert!(
            why.contains("`get_weather`") && why.contains("city"),
            "{why}"
        );
        assert_eq!(answer.header("x-should-retry"), Some("false"));
        assert_eq!(executor.model.asked().len(), 2);
    }
}

#[test]
fn a_call_that_stays_wrong_beside_a_right_one_is_named() {
    let call = |name: &str, arguments: &str| json!({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}});
    let both = json!({"role": "assistant", "content": null, "tool_calls": [
        call("get_weather", "{\"city\": \"Bern\"}"), call("teleport", "{}")]});
    let executor = Executor::on(ModelServer::says(vec![Say::Message(both)]));
    let answer = executor.ask(&request()).json();
    assert_eq!(arguments(&answer), json!({"city": "Bern"}), "{answer}");
    let mut live = request();
    live["stream"] = json!(true);
    let last = chunks(&executor.ask(&live)).pop().unwrap_or_default();
    for told in [&answer, &last] {
        let left_out = &told["executor_metadata"]["calls_left_out"];
        assert_eq!(left_out[0]["name"], "teleport", "{told}");
        let reason = left_out[0]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("no tool named"), "{told}");
    }
    assert_eq!(executor.model.asked().len(), 4, "each was asked back once");
}

/// What was right is the client's, whatever becomes of the question for the rest: streamed or not.
#[test]
fn a_right_call_outlives_the_question_for_the_wrong_one() {
    let call = |name: &str, arguments: &str| json!({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}});
    let both = json!({"role": "assistant", "content": null, "tool_calls": [
        call("get_weather", "{\"city\": \"Bern\"}"), call("get_weather", "{}")]});
    let mended = json!({"role": "assistant", "content": null, "tool_calls": [
        call("get_weather", "{\"city\": \"Basel\"}")]});
    let refused = r#"{"error": {"message": "no such model"}}"#.to_owned();
    for (second, made, named) in [
        (Say::Message(mended), 2, 0),
        (Say::says("I know no other city."), 1, 1),
        (Say::Status(400, refused), 1, 1),
    ] {
        for stream in [false, true] {
            let script = vec![Say::Message(both.clone()), second.clone()];
            let executor = Executor::on(ModelServer::says(script));
            let mut body = request();
            body["stream"] = json!(stream);
            let answer = executor.ask(&body);
            let told = if stream {
                chunks(&answer)
            } else {
                vec![answer.json()]
            };
            let calls = told.iter().flat_map(|it| {
                let choice = &it["choices"][0];
                let of = [&choice["message"], &choice["delta"]];
                of.map(|it| it["tool_calls"].as_array().map_or(0, Vec::len))
            });
            assert_eq!(calls.sum::<usize>(), made, "{told:?}");
            let last = told.last().expect("a part");
            let left_out = last["executor_metadata"]["calls_left_out"].as_array();
            assert_eq!(left_out.map_or(0, Vec::len), named, "{last}");
        }
    }
}

/// Nobody but the tool's author knows the order of its arguments.
#[test]
fn a_list_of_arguments_is_asked_back() {
    let tool = json!([{"type": "function", "function": {"name": "transfer",
        "parameters": {"type": "object", "required": ["amount", "to", "from"], "properties": {
            "amount": {"type": "integer"}, "from": {"type": "string"}, "to": {"type": "string"}}}}}]);
    let list = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c",
        "type": "function", "function": {"name": "transfer", "arguments": "[5, \"alice\", \"bob\"]"}}]});
    let executor = Executor::on(ModelServer::says(vec![Say::Message(list)]));
    let mut body = request();
    body["tools"] = tool;
    let answer = executor.ask(&body);
    assert_eq!(answer.status, 500, "{}", answer.text());
    let why = answer.json()["error"]["message"].to_string();
    assert!(why.contains("one JSON object"), "{why}");
    assert_eq!(executor.model.asked().len(), 2);
}

#[test]
fn results_of_the_client_reach_a_model_that_has_no_calls() {
    let executor = Executor::on(ModelServer::says(vec![
        Say::Silence,
        Say::says("Final Answer: Sunny."),
    ]));
    let mut body = request();
    body["messages"] = json!([
        {"role": "user", "content": [{"type": "text", "text": "How is the weather in Bern?"}]},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "call_a", "type": "function",
            "function": {"name": "get_weather", "arguments": "{\"city\":\"Bern\"}"}}]},
        {"role": "tool", "tool_call_id": "call_a", "content": "sunny"}]);
    let answer = executor.ask(&body).json();
    assert_eq!(
        answer["choices"][0]["message"]["content"], "Sunny.",
        "{answer}"
    );
    let sent = executor.model.asked()[0]["messages"].clone();
    let roles: Vec<&str> = sent
        .as_array()
        .expect("messages")
        .iter()
        .filter_map(|message| message["role"].as_str())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    assert!(sent.to_string().contains("[TOOL_RESULT: get_weather]"));
}

#[test]
fn the_clients_choice_is_kept() {
    let call = || Say::thinks("Action: get_weather\nAction Input: {\"city\": \"Bern\"}");
    // None: nothing that looks like a call is one, and the model is not told of any.
    let executor = Executor::on(ModelServer::says(vec![Say::says("I can not know.")]));
    let mut body = request();
    body["tool_choice"] = json!("none");
    body["response_format"] = json!({"type": "json_object"});
    let answer = executor.ask(&body).json();
    assert_eq!(
        answer["choices"][0]["message"]["content"],
        "I can not know."
    );
    let asked = &executor.model.asked()[0];
    assert!(!asked.to_string().contains("get_weather"), "{asked}");
    assert_eq!(asked["response_format"]["type"], "json_object");

    // Required: a model that only talks is asked once more.
    let executor = Executor::on(ModelServer::says(vec![Say::says("Hm."), call()]));
    let mut body = request();
    body["tool_choice"] = json!("required");
    let answer = executor.ask(&body).json();
    assert_eq!(
        answer["choices"][0]["finish_reason"], "tool_calls",
        "{answer}"
    );
    let prompt = executor.model.asked()[0]["messages"][0]["content"].to_string();
    assert!(prompt.contains("You have to call a tool"), "{prompt}");

    // A loop can be asked to return its calls, and the other way round.
    let executor = Executor::on(ModelServer::says(vec![call()]));
    let mut body = request();
    body["model"] = json!("executor");
    body["executor"] = json!({"mode": "return"});
    let answer = executor.ask(&body).json();
    assert_eq!(
        answer["choices"][0]["finish_reason"], "tool_calls",
        "{answer}"
    );
}

/// Whoever demands a call reads nothing else, and must not take words for one that went missing.
#[test]
fn words_where_a_call_is_demanded_are_an_error_streamed_or_not() {
    let named = json!({"type": "function", "function": {"name": "get_weather"}});
    for (choice, demand) in [
        (json!("required"), "a call of one of the tools"),
        (named, "a call of `get_weather`"),
    ] {
        for said in [
            "It is sunny.",
            "Thought: I know.\nFinal Answer: It is sunny.",
        ] {
            let executor = Executor::on(ModelServer::says(vec![Say::says(said)]));
            let mut body = request();
            body["tool_choice"] = choice.clone();
            let answer = executor.ask(&body);
            assert_eq!(answer.status, 500, "{}", answer.text());
            // It was asked twice; a client that asks again by itself would pay for it time and again.
            assert_eq!(answer.header("x-should-retry"), Some("false"));
            let whole = answer.json();
            assert_eq!(executor.model.asked().len(), 2, "it is told to, once");
            body["stream"] = json!(true);
            let told = chunks(&executor.ask(&body));
            assert_eq!(content(&told), "", "no words come before the error");
            for told in [&whole, told.last().expect("a chunk")] {
                let error = &told["error"];
                assert_eq!(error["code"], "tool_execution_failed", "{told}");
                let message = error["message"].as_str().unwrap_or_default();
                assert!(message.contains(demand), "{message}");
                assert_eq!(told["executor_metadata"]["content"], said, "{told}");
            }
        }
    }
}

/// The same code as with more iterations: how many there may be is not what is wrong.
#[test]
fn words_where_a_call_is_demanded_have_one_code_however_often_may_be_asked() {
    let once = "executor:\n  max_iterations: 1\n";
    let executor = Executor::with(ModelServer::says(vec![Say::says("It is sunny.")]), once);
    let mut body = request();
    body["tool_choice"] = json!("required");
    let answer = executor.ask(&body);
    let told = answer.json();
    assert_eq!(told["error"]["code"], "tool_execution_failed", "{told}");
    let message = told["error"]["message"].as_str().unwrap_or_default();
    assert!(
        !message.contains("after it was told"),
        "nobody told it: {message}"
    );
    assert_eq!(executor.model.asked().len(), 1);
}

/// A client that wants no call gets words, or hears why there are none.
#[test]
fn a_call_where_none_may_be_made_is_no_empty_answer() {
    let calls = |words: Value| {
        Say::Message(
            json!({"role": "assistant", "content": words, "tool_calls": [{"id": "c",
            "type": "function",
            "function": {"name": "get_weather", "arguments": "{\"city\": \"Bern\"}"}}]}),
        )
    };
    let mut body = request();
    body["tool_choice"] = json!("none");
    let mut live = body.clone();
    live["stream"] = json!(true);
    let sunny = "It is sunny.";
    // What it says beside the call is what there is; without a word it is told, once.
    for (script, asked) in [
        (vec![calls(json!(sunny))], 1),
        (vec![calls(Value::Null), Say::says(sunny)], 2),
        (
            vec![calls(json!("<think>Hm.</think>")), Say::says(sunny)],
            2,
        ),
    ] {
        let shown = format!("{script:?}");
        let executor = Executor::on(ModelServer::says(script));
        let answer = executor.ask(&body);
        assert_eq!(answer.status, 200, "{shown}: {}", answer.text());
        let choice = &answer.json()["choices"][0];
        assert_eq!(choice["message"]["content"], sunny, "{shown}");
        assert_eq!(choice["finish_reason"], "stop", "{shown}");
        assert_eq!(executor.model.asked().len(), asked, "{shown}");
        assert_eq!(content(&chunks(&executor.ask(&live))), sunny, "{shown}");
    }
    // One that does not learn has no answer.
    let executor = Executor::on(ModelServer::says(vec![calls(Value::Null)]));
    let answer = executor.ask(&body);
    assert_eq!(answer.status, 500, "{}", answer.text());
    assert_eq!(answer.header("x-should-retry"), Some("false"));
    assert_eq!(executor.model.asked().len(), 2);
    let told = chunks(&executor.ask(&live));
    for told in [&answer.json(), told.last().expect("a chunk")] {
        assert_eq!(told["error"]["code"], "tool_execution_failed", "{told}");
    }
}

/// A server that has calls of its own can see to it while the model writes.
#[test]
fn the_clients_choice_reaches_a_server_that_has_calls_of_its_own() {
    let call = json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c", "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\": \"Bern\"}"}}]});
    let native = "parser:\n  strategy: native\n";
    let executor = Executor::with(ModelServer::says(vec![Say::Message(call)]), native);
    let named = json!({"type": "function", "function": {"name": "get_weather"}});
    for (choice, sent) in [
        (json!("required"), json!("required")),
        (named.clone(), named),
        (json!("auto"), Value::Null),
    ] {
        let mut body = request();
        body["tool_choice"] = choice;
        body["parallel_tool_calls"] = json!(sent.is_null());
        let answer = executor.ask(&body).json();
        assert_eq!(arguments(&answer), json!({"city": "Bern"}), "{answer}");
        let asked = executor.model.asked();
        let asked = asked.last().expect("a question");
        assert_eq!(asked["tool_choice"], sent);
        let at_once = &asked["parallel_tool_calls"];
        assert_eq!(at_once.is_null(), sent.is_null(), "{asked}");
    }
    // One that is asked in words knows of no tools, so of no choice either.
    let words = Executor::on(ModelServer::says(vec![Say::thinks(
        "Action: get_weather\nAction Input: {\"city\": \"Bern\"}",
    )]));
    let mut body = request();
    body["tool_choice"] = json!("required");
    assert_eq!(words.ask(&body).status, 200);
    assert!(words.model.asked()[0].get("tool_choice").is_none());
}

#[test]
fn several_calls_come_at_once_unless_the_client_takes_one() {
    let both = "Action: get_weather\nAction Input: {\"city\": \"Bern\"}\n\
                Action: get_weather\nAction Input: {\"city\": \"Basel\"}";
    let executor = Executor::on(ModelServer::says(vec![Say::thinks(both)]));
    let count = |answer: &Value| {
        let calls = answer["choices"][0]["message"]["tool_calls"].as_array();
        calls.map_or(0, Vec::len)
    };
    assert_eq!(count(&executor.ask(&request()).json()), 2);
    let mut body = request();
    body["parallel_tool_calls"] = json!(false);
    assert_eq!(count(&executor.ask(&body).json()), 1);
}

/// It is kept nowhere, and can be found and cancelled all the same while it runs.
#[test]
fn a_completion_that_is_not_kept_can_be_found_and_cancelled_by_its_name() {
    let executor = Executor::on(ModelServer::says(vec![Say::Silence]));
    let mut body = request();
    body["stream"] = json!(true);
    let mut waiting = asking(&executor.serving, &body);
    assert_eq!(waiting.head().expect("a head").status, 200);
    let mut told = String::new();
    let id = loop {
        let part = waiting.chunk().expect("goes on").expect("a part");
        told.push_str(&String::from_utf8_lossy(&part));
        let named = told.split("\"run_id\":\"").nth(1);
        if let Some((id, _)) = named.and_then(|rest| rest.split_once('"')) {
            break id.to_owned();
        }
    };
    let path = format!("/v1/runs/{id}");
    let one = executor.serving.get(&path, None);
    assert_eq!(one.status, 200, "{}", one.text());
    let one = one.json();
    assert_eq!(
        (&one["id"], &one["status"], &one["model"]),
        (&json!(id), &json!("running"), &json!("gpt-oss-tools"))
    );
    assert_eq!(post(&executor.serving, &format!("{path}/cancel")).0, 202);
    let mut rest = String::new();
    while let Some(part) = waiting.chunk().expect("goes on") {
        rest.push_str(&String::from_utf8_lossy(&part));
    }
    assert!(rest.contains("\"cancelled\""), "{rest}");
    eventually("it is forgotten", || {
        (executor.serving.get(&path, None).status == 404).then_some(())
    });
}
