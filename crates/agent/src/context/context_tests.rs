use serde_json::json;

use super::*;
use crate::run::TokensUsed;
use crate::settings::RunSettings;

fn run(messages: Vec<Message>, window: u64) -> RunState {
    let mut settings = RunSettings {
        max_tokens: 100,
        ..RunSettings::default()
    };
    settings.window = WindowSettings {
        tokens: window,
        reserve_tokens: 100,
        ..WindowSettings::default()
    };
    RunState::new("r", "gpt-oss", messages, settings, 0)
}

fn asks(text: &str) -> Vec<Message> {
    vec![Message::text(Role::User, text)]
}

fn reply(prompt: u64) -> ModelReply {
    let tokens = TokensUsed {
        prompt,
        completion: 7,
    };
    ModelReply {
        content: "Hello.".to_owned(),
        tokens,
        ..ModelReply::default()
    }
}

#[test]
fn a_question_that_does_not_fit_is_not_sent() {
    let mut state = run(asks(&"milk ".repeat(2000)), 1500);
    let error = prepare(&mut state, Some("the tools"), &Value::Null).unwrap_err();
    assert!(matches!(error, ModelError::TooLong(_)), "{error}");
    let mut state = run(asks("milk"), 1500);
    let sent = prepare(&mut state, Some("the tools"), &Value::Null).unwrap();
    assert_eq!(sent, state.messages);
    assert!(usage_percent(&state) > 3.0 && usage_percent(&state) < 20.0);
    // The prompt and what is declared count too.
    let mut state = run(asks("milk"), 1500);
    assert!(prepare(&mut state, Some(&"rule ".repeat(2000)), &Value::Null).is_err());
    let declared = json!([{"function": {"description": "word ".repeat(2000)}}]);
    assert!(prepare(&mut run(asks("milk"), 1500), None, &declared).is_err());
}

#[test]
fn a_server_that_counts_more_is_believed_the_next_time() {
    let mut state = run(asks(&"milk ".repeat(500)), 3000);
    prepare(&mut state, None, &Value::Null).unwrap();
    let first = state.context.asked_tokens;
    account(&mut state, &mut reply(first * 2));
    prepare(&mut state, None, &Value::Null).unwrap();
    assert!(state.context.asked_tokens.abs_diff(first * 2) <= 2);
    // The same once more changes nothing; one that counts less than we do is not believed.
    account(&mut state, &mut reply(first * 2));
    assert!(state.context.scale_permille.abs_diff(2000) <= 2);
    account(&mut state, &mut reply(1));
    assert_eq!(state.context.scale_permille, 1000);
}

#[test]
fn a_server_that_does_not_count_is_counted_for() {
    let mut state = run(asks("milk"), 3000);
    prepare(&mut state, None, &Value::Null).unwrap();
    let mut said = ModelReply {
        tokens: TokensUsed::default(),
        ..reply(0)
    };
    account(&mut state, &mut said);
    assert_eq!(said.tokens.prompt, state.context.asked_tokens);
    assert_eq!(said.tokens.completion, 2);
}

#[test]
fn a_window_that_a_server_names_is_learned_once() {
    let table = [
        (
            "This model's maximum context length is 8192 tokens",
            Some(8192),
        ),
        ("longer than the maximum model length of 4096", Some(4096)),
        (
            "exceeds the available context size (2048 tokens)",
            Some(2048),
        ),
        ("context_length_exceeded", None),
    ];
    for (why, found) in table {
        assert_eq!(window_in(why), found, "{why}");
    }
    let mut state = run(asks(&"milk ".repeat(500)), 3000);
    prepare(&mut state, None, &Value::Null).unwrap();
    assert!(squeeze(&mut state, "maximum context length is 800 tokens"));
    assert_eq!(state.context.window_learned, Some(800));
    assert!(!squeeze(&mut state, "maximum context length is 700 tokens"));
}

#[test]
fn money_is_counted() {
    let mut state = run(asks("milk"), 3000);
    state.tokens = vec![
        TokensUsed {
            prompt: 500_000,
            completion: 100_000
        };
        2
    ];
    state.settings.cost = spend::CostSettings {
        input_per_million: 1.0,
        output_per_million: 10.0,
        run_max: None,
    };
    assert!((spend::cost(&state) - 3.0).abs() < 1e-9);
    assert_eq!(spend::used_up(&state), None);
    state.settings.cost.run_max = Some(3.0);
    assert!(spend::used_up(&state).unwrap().contains("may cost 3"));
    state.settings.cost.run_max = Some(3.1);
    assert_eq!(spend::used_up(&state), None);
}

#[test]
fn what_a_host_adds_behind_its_user_is_not_the_task() {
    let internal = &format!("{}\nIt is noon.", crate::chat::HOSTS_OWN);
    let mut messages = asks("old");
    messages.push(Message::text(Role::Assistant, "done"));
    messages.extend(asks("buy milk"));
    messages.extend(asks(internal));
    let mut state = run(messages, 3000);
    prepare(&mut state, None, &Value::Null).unwrap();
    assert_eq!(state.context.task, Some(2));
    // Where it says nothing else, there is nothing else to do.
    let mut state = run(asks(internal), 3000);
    prepare(&mut state, None, &Value::Null).unwrap();
    assert_eq!(state.context.task, Some(0));
}

/// A model that does not see what became of its calls makes them again.
#[test]
fn what_happens_after_a_reset_is_told() {
    let called = |name: &str, id: &str| Message {
        calls: vec![crate::chat::NativeCall {
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: serde_json::Map::new(),
        }],
        ..Message::text(Role::Assistant, "")
    };
    let result = |id: &str, text: &str| Message {
        answers: Some(id.to_owned()),
        ..Message::text(Role::Tool, text)
    };
    let mut state = run(asks("buy milk"), 3000);
    prepare(&mut state, None, &Value::Null).unwrap();
    let before = [called("look", "a"), result("a", "an old shop")];
    state.messages.extend(before);
    state.tools_called.push("look".to_owned());
    assert!(recast(&mut state) && recast(&mut state) && !recast(&mut state));
    let sent = prepare(&mut state, None, &Value::Null).unwrap();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].content.contains("in this order: look."));
    state
        .messages
        .extend([called("buy", "b"), result("b", "one bottle was bought")]);
    state.tools_called.push("buy".to_owned());
    let next = prepare(&mut state, None, &Value::Null).unwrap();
    assert_eq!(next[0], sent[0]);
    let said = |text: &str| next.iter().any(|it| it.content.contains(text));
    assert!(said("one bottle was bought") && said("buy"), "{next:?}");
    assert!(!said("an old shop"));
    assert!(next.iter().all(|it| it.calls.is_empty()));
}
