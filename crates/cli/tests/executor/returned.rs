//! `gpt-oss-tools`: calls go back to the client, parsed, repaired and validated.

use holdfast_testkit::model::{ModelServer, Say};
use serde_json::{Value, json};

use crate::Executor;
use crate::common::eventually;
use crate::runs::{asking, post};

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
        assert_eq!(executor.model.asked().len(), 2);
    }
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
