use std::collections::BTreeMap;

use serde_json::json;

use super::*;

fn read(body: &Value) -> Result<Asked, String> {
    let models = Served::all(&RunSettings::default(), &BTreeMap::new());
    Asked::read(body.to_string().as_bytes(), &models)
        .map_err(|error| error.body()["error"].to_string())
}

fn plain() -> Value {
    json!({"model": "gpt-oss", "messages": [{"role": "user", "content": "Hello"}]})
}

fn with(name: &str, value: Value) -> Value {
    let mut body = plain();
    body[name] = value;
    body
}

#[test]
fn what_the_seed_and_clients_send_is_read() {
    let mut body = plain();
    for (name, value) in [
        ("temperature", json!(0.5)),
        ("max_tokens", json!(100)),
        ("top_p", json!(0.9)),
        ("timeout", json!(20)),
        ("stop", json!(["END"])),
        ("seed", json!(7)),
        ("reasoning_effort", json!("low")),
        ("n", json!(1)),
        ("response_format", json!({"type": "json_object"})),
        ("user", json!("somebody")),
        ("store", json!(false)),
        (
            "tools",
            json!([{"type": "function", "function": {"name": "x"}}]),
        ),
        ("stream", json!(true)),
        ("stream_options", json!({"include_usage": true})),
        ("logprobs", Value::Null),
    ] {
        body[name] = value;
    }
    let asked = read(&body).expect("a request");
    let settings = &asked.settings;
    assert_eq!((settings.temperature, settings.top_p), (0.5, Some(0.9)));
    assert_eq!(
        (settings.max_tokens, settings.run_timeout_ms),
        (100, 20_000)
    );
    // OpenClaw always sends tools; the loop has its own.
    assert_eq!(asked.mode, Mode::Loop);
    assert_eq!(asked.delivery, Delivery::Stream(Usage::Shown));
    let passed: Vec<&String> = asked.passed_on.keys().collect();
    assert_eq!(
        passed,
        ["reasoning_effort", "response_format", "seed", "stop"]
    );
    assert!(asked.digest.get("stream").is_none());
}

#[test]
fn efforts_are_said_in_the_words_of_gpt_oss() {
    for (asked, said) in [
        ("none", Some("low")),
        ("minimal", Some("low")),
        ("low", Some("low")),
        ("medium", Some("medium")),
        ("high", Some("high")),
        ("xhigh", Some("high")),
        ("max", Some("high")),
        ("default", None),
        ("", None),
    ] {
        let read = read(&with("reasoning_effort", json!(asked))).expect("a request");
        let passed = read.passed_on.get("reasoning_effort");
        assert_eq!(passed.and_then(Value::as_str), said, "{asked}");
    }
}

#[test]
fn a_cap_on_tokens_is_kept_and_said() {
    let asked = read(&with("max_tokens", json!(16_384))).expect("a request");
    assert_eq!(asked.settings.max_tokens, 1000);
    assert_eq!(asked.notes.max_tokens_asked, Some(16_384));
    let asked = read(&with("max_completion_tokens", json!(5))).expect("a request");
    assert_eq!(
        (asked.settings.max_tokens, asked.notes.max_tokens_asked),
        (5, None)
    );
}

#[test]
fn a_request_says_where_its_calls_go() {
    let tools = json!([{"type": "function", "function": {"name": "add",
        "parameters": {"type": "object"}}}]);
    let mut body = with("tools", tools);
    body["model"] = json!("gpt-oss-tools");
    body["tool_choice"] = json!({"type": "function", "function": {"name": "add"}});
    body["parallel_tool_calls"] = json!(false);
    let asked = read(&body).expect("a request");
    let Mode::Return(client) = asked.mode else {
        panic!("{:?}", asked.mode);
    };
    assert_eq!(client.choice, ToolChoice::Named("add".to_owned()));
    assert_eq!((client.tools.len(), client.at_once), (1, CallsAtOnce::One));
    body["executor"] = json!({"mode": "loop"});
    assert_eq!(read(&body).expect("a request").mode, Mode::Loop);
    let body = with("executor", json!({"mode": "return"}));
    assert!(matches!(
        read(&body).expect("a request").mode,
        Mode::Return(_)
    ));
}

#[test]
fn as_many_messages_are_read_as_may_be_and_not_one_more() {
    let many = |count: usize| {
        let one = json!({"role": "user", "content": "x"});
        with("messages", Value::Array(vec![one; count]))
    };
    let asked = read(&many(MESSAGES_MAX)).expect("a request");
    assert_eq!(asked.messages.len(), MESSAGES_MAX);
    assert_eq!(read(&many(1)).expect("a request").messages.len(), 1);
    let error = read(&many(MESSAGES_MAX + 1)).expect_err("one too many");
    assert!(
        error.contains("messages: between 1 and 2048 of them"),
        "{error}"
    );
    assert!(error.contains("invalid_request"), "{error}");
}

#[test]
fn what_is_wrong_is_named() {
    for (name, value, says) in [
        ("model", Value::Null, "model: missing"),
        ("model", json!("gpt-4"), "model_not_found"),
        ("messages", json!([]), "messages: between 1"),
        ("messages", json!("hello"), "messages: has to be"),
        ("messages", json!([{"role": "robot"}]), "messages[0].role"),
        ("temperature", json!(3), "temperature"),
        ("temperature", json!("hot"), "temperature"),
        ("top_p", json!(-1), "top_p"),
        ("max_tokens", json!(0), "max_tokens"),
        ("timeout", json!(1.5), "timeout"),
        ("timeout", json!(1_000_000), "timeout: at most"),
        ("n", json!(2), "n: only one"),
        ("stream", json!("yes"), "stream"),
        ("stop", json!(["a", "b", "c", "d", "e"]), "stop"),
        ("seed", json!(1.5), "seed"),
        ("reasoning_effort", json!(3), "reasoning_effort"),
        ("response_format", json!("json"), "response_format"),
        ("executor", json!({"mode": "fly"}), "executor.mode"),
    ] {
        let error = read(&with(name, value)).expect_err(name);
        assert!(error.contains(says), "{name}: {error}");
        // Programs are told which field, where it is one.
        let error: Value = serde_json::from_str(&error).expect("JSON");
        let param = error["param"].as_str().unwrap_or_default();
        let is_known = error["code"] == "model_not_found";
        assert!(is_known || param.starts_with(name), "{name}: {error}");
    }
    for (name, value, says) in [
        ("tools", json!({}), "tools: has to be"),
        ("tools", json!([{"type": "function"}]), "tools[0]"),
        (
            "tools",
            json!([{"type": "function", "function": {"name": "a", "parameters": {"type": 5}}}]),
            "schema",
        ),
        ("tool_choice", json!("maybe"), "tool_choice"),
        ("tool_choice", json!("required"), "there are no tools"),
        (
            "tool_choice",
            json!({"function": {"name": "b"}}),
            "no tool named",
        ),
    ] {
        let mut body = with(name, value);
        body["model"] = json!("gpt-oss-tools");
        let error = read(&body).expect_err(name);
        assert!(error.contains(says), "{name}: {error}");
    }
    for body in ["", "[]", "{", "\"gpt-oss\""] {
        assert!(Asked::read(body.as_bytes(), &[]).is_err());
    }
}

#[test]
fn a_request_is_bounded_in_its_functions_and_calls() {
    let function = json!({"type": "function", "function": {"name": "f"}});
    let fits = json!(vec![function.clone(); CLIENT_TOOLS_MAX]);
    assert!(read(&with("tools", fits)).is_ok());
    let many = json!(vec![function; CLIENT_TOOLS_MAX + 1]);
    assert!(read(&with("tools", many)).unwrap_err().contains("tools: "));
    let call = json!({"id": "c", "function": {"name": "f", "arguments": "{}"}});
    let said = |calls: usize| {
        json!([{"role": "user", "content": "x"},
               {"role": "assistant", "tool_calls": vec![call.clone(); calls]}])
    };
    assert!(read(&with("messages", said(HISTORY_CALLS_MAX))).is_ok());
    let error = read(&with("messages", said(HISTORY_CALLS_MAX + 1))).unwrap_err();
    assert!(error.contains("at most 4096 calls"), "{error}");
}

#[test]
fn what_is_wrong_is_wrong_whoever_runs_the_calls() {
    for (name, value) in [
        ("tools", json!([5])),
        (
            "tools",
            json!([{"type": "function", "function": {"name": ""}}]),
        ),
        ("tool_choice", json!("perhaps")),
        ("parallel_tool_calls", json!("yes")),
        ("stream_options", json!(true)),
        ("executor", json!("loop")),
        ("max_completion_tokens", json!("many")),
    ] {
        for model in ["gpt-oss", "gpt-oss-tools"] {
            let mut body = with(name, value.clone());
            body["model"] = json!(model);
            body["max_tokens"] = json!(5);
            let error = read(&body).unwrap_err();
            assert!(error.contains(name), "{name} of {model}: {error}");
        }
    }
    let asked = read(&with(
        "max_tokens",
        serde_json::from_str("7.0").expect("JSON"),
    ));
    assert_eq!(asked.expect("a request").settings.max_tokens, 7);
}

#[test]
fn a_model_that_was_configured_has_its_own_settings() {
    let own = RunSettings {
        max_tokens: 77,
        ..RunSettings::default()
    };
    let named = ["qwen", "qwen-tools"].map(|name| (name.to_owned(), own.clone()));
    let models = Served::all(&RunSettings::default(), &BTreeMap::from(named));
    let mut body = with("max_tokens", json!(5000));
    for (name, tokens, returns) in [
        ("gpt-oss", 1000, false),
        ("qwen", 77, false),
        ("qwen-tools", 77, true),
    ] {
        body["model"] = json!(name);
        let asked = Asked::read(body.to_string().as_bytes(), &models).expect("a request");
        assert_eq!(
            (asked.model.as_str(), asked.settings.max_tokens),
            (name, tokens)
        );
        assert_eq!(matches!(asked.mode, Mode::Return(_)), returns);
    }
}
