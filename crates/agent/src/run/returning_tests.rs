use holdfast_intent::ToolSet;

use super::*;
use crate::settings::RunSettings;

fn weather() -> ClientTools {
    let parameters = json!({"type": "object", "required": ["city"],
        "properties": {"city": {"type": "string", "minLength": 2}}});
    ClientTools {
        tools: vec![json!({"type": "function", "function": {
            "name": "get_weather", "parameters": parameters}})],
        choice: ToolChoice::Auto,
        at_once: CallsAtOnce::Many,
    }
}

/// What becomes of a reply that is given again and again.
fn heard(client: &ClientTools, reply: &ModelReply) -> RunState {
    heard_under(RunSettings::default(), client, reply)
}

fn heard_under(settings: RunSettings, client: &ClientTools, reply: &ModelReply) -> RunState {
    heard_each(settings, client, std::iter::repeat(reply))
}

/// What becomes of these replies, as far as they are asked for.
fn heard_each<'r>(
    settings: RunSettings,
    client: &ClientTools,
    replies: impl IntoIterator<Item = &'r ModelReply>,
) -> RunState {
    let registry = client.registry().unwrap();
    // Only what is offered is known, as in a run.
    let specs = client.tools.iter().filter_map(ToolSpec::from_json);
    let specs = specs.filter(|spec| registry.get(&spec.name).is_some());
    let parser = Parser::new(ToolSet::new(specs.collect()))
        .with_strategies(Strategy::React, Some(Strategy::Auto));
    let task = Message::text(Role::User, "How is the weather?");
    let mut state = RunState::new("run-1", "gpt-oss-tools", vec![task], settings, 0);
    state.mode = Mode::Return(client.clone());
    for reply in replies {
        if state.phase != Phase::Ask {
            break;
        }
        heard_for_client(&mut state, reply, &parser, &registry);
    }
    state
}

fn says(content: &str, finish: FinishReason) -> ModelReply {
    ModelReply {
        content: content.to_owned(),
        finish,
        ..ModelReply::default()
    }
}

/// A native call whose arguments do not fit, with these words beside it.
fn calls_wrongly(words: &str) -> ModelReply {
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\": \"B\"}"}});
    let mut reply = says(words, FinishReason::Stop);
    reply.calls = json!({"content": words, "tool_calls": [call]});
    reply
}

/// Clients that demand a call read nothing else: words would be taken for one that went missing.
#[test]
fn words_where_a_call_is_demanded_are_an_error() {
    for (choice, demand) in [
        (ToolChoice::Required, "a call of one of the tools"),
        (
            ToolChoice::Named("get_weather".to_owned()),
            "a call of `get_weather`",
        ),
    ] {
        let client = ClientTools {
            choice,
            ..weather()
        };
        for (reply, came) in [
            (says("It is sunny.", FinishReason::Stop), "words,"),
            (says("Final Answer: sunny.", FinishReason::Stop), "words,"),
            (
                says("It is", FinishReason::Length),
                "words that were cut off",
            ),
            (says("", FinishReason::Stop), "nothing"),
        ] {
            let state = heard(&client, &reply);
            let Some(Ending::Failed(error)) = state.ending() else {
                panic!("{reply:?}: {:?}", state.phase)
            };
            assert_eq!(error.code, RunErrorCode::ToolExecutionFailed);
            for part in [demand, came] {
                assert!(error.message.contains(part), "no {part}: {error}");
            }
            assert_eq!(state.iteration, 2, "it was told to call, once");
        }
    }
    // Nobody has to call where nobody demands it.
    let state = heard(&weather(), &says("It is sunny.", FinishReason::Stop));
    assert!(matches!(state.ending(), Some(Ending::Answered { .. })));
}

/// What came is no answer: a client that gets nothing takes that for one.
#[test]
fn a_model_that_says_nothing_is_asked_once_more_for_the_client_too() {
    let nothing = says(" ", FinishReason::Stop);
    let none = ClientTools {
        choice: ToolChoice::None,
        ..weather()
    };
    for client in [weather(), none.clone()] {
        let state = heard(&client, &nothing);
        assert_eq!(state.iteration, 2);
        let Some(Ending::Failed(error)) = state.ending() else {
            panic!("{:?}", state.phase)
        };
        assert_eq!(error.code, RunErrorCode::GptOssUnreachable);
    }
    let thinks = ModelReply {
        reasoning: "Hm.".to_owned(),
        ..says("", FinishReason::Stop)
    };
    assert_eq!(heard(&none, &thinks).iteration, 1);
}

/// Also not when the iterations are used up, and the last words would do for anybody else.
#[test]
fn the_last_words_are_no_demanded_call() {
    let client = ClientTools {
        choice: ToolChoice::Required,
        ..weather()
    };
    let settings = RunSettings {
        max_iterations: 1,
        when_used_up: WhenUsedUp::Answer,
        ..RunSettings::default()
    };
    let state = heard_under(settings, &client, &says("It is sunny.", FinishReason::Stop));
    let Some(Ending::Failed(error)) = state.ending() else {
        panic!("{:?}", state.phase)
    };
    assert_eq!(error.code, RunErrorCode::ToolExecutionFailed);
    assert!(!error.message.contains("told to call"), "{error}");
}

#[test]
fn a_call_that_stays_wrong_is_an_error_and_no_empty_answer() {
    let wrong = "Action: get_weather\nAction Input: {\"city\": \"B\"}";
    let open = "<tool_call>{\"name\": \"get_weather\", \"argum";
    for choice in [
        ToolChoice::Auto,
        ToolChoice::Required,
        ToolChoice::Named("get_weather".to_owned()),
    ] {
        let client = ClientTools {
            choice,
            ..weather()
        };
        for reply in [
            says(wrong, FinishReason::Stop),
            says(open, FinishReason::Stop),
            says(open, FinishReason::Length),
            calls_wrongly(""),
            calls_wrongly("I'll check the weather."),
            calls_wrongly("<think>Hm.</think>"),
        ] {
            let state = heard(&client, &reply);
            let Some(Ending::Failed(error)) = state.ending() else {
                panic!("{reply:?}: {:?}", state.phase)
            };
            assert_eq!(error.code, RunErrorCode::ToolExecutionFailed);
            let is_cut = reply.finish == FinishReason::Length;
            let says_cut = error.message.contains("tokens that an answer may have");
            assert_eq!(says_cut, is_cut, "{error}");
            assert_eq!(state.iteration, 2, "it was told how to, once");
            let is_empty = |turn: &Message| turn.content.trim().is_empty();
            assert!(!state.messages.iter().any(is_empty), "{reply:?}");
        }
    }
}

#[test]
fn what_is_said_beside_a_call_comes_without_thoughts() {
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "get_weather", "arguments": "{\"city\": \"Bern\"}"}});
    let mut reply = says("<think>Hm.</think>\nI look.", FinishReason::Stop);
    reply.calls = json!({"content": reply.content, "tool_calls": [call]});
    let state = heard(&weather(), &reply);
    let Some(Ending::Calls { content, calls, .. }) = state.ending() else {
        panic!("{:?}", state.phase)
    };
    assert_eq!((content.as_str(), calls.len()), ("I look.", 1));
}

/// Two tools, called natively with these names and arguments.
fn two_tools(choice: ToolChoice, at_once: CallsAtOnce) -> ClientTools {
    let mail = json!({"type": "function", "function": {"name": "send_mail",
        "parameters": {"type": "object", "required": ["to"],
            "properties": {"to": {"type": "string"}}}}});
    let mut client = ClientTools {
        choice,
        at_once,
        ..weather()
    };
    client.tools.push(mail);
    client
}

fn calls(made: &[(&str, &str)]) -> ModelReply {
    let call = |(name, arguments): &(&str, &str)| json!({"id": "c", "type": "function", "function": {"name": name, "arguments": arguments}});
    let made: Vec<Value> = made.iter().map(call).collect();
    let mut reply = says("", FinishReason::Stop);
    reply.calls = json!({"content": "", "tool_calls": made});
    reply
}

const RIGHT: (&str, &str) = ("get_weather", "{\"city\": \"Bern\"}");

/// A call that goes missing beside another is a call that the client believes nobody wanted.
#[test]
fn a_wrong_call_beside_a_right_one_is_asked_back_and_then_named() {
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::Many);
    for (name, arguments, reason) in [
        ("teleport", "{}", "no tool named"),
        ("send_mail", "{}", "`to`"),
        ("get_weather", "{\"city\": \"B\"}", "city"),
    ] {
        for reply in [
            calls(&[RIGHT, (name, arguments)]),
            calls(&[(name, arguments), RIGHT]),
        ] {
            let state = heard(&client, &reply);
            let told = &state.messages.last().unwrap().content;
            for part in [
                name,
                reason,
                "do not repeat them: get_weather({\"city\":\"Bern\"})",
            ] {
                assert!(told.contains(part), "no {part}: {told}");
            }
            assert_eq!(state.iteration, 2, "it was told once");
            let Some(Ending::Calls {
                calls, left_out, ..
            }) = state.ending()
            else {
                panic!("{:?}", state.phase)
            };
            assert_eq!((calls.len(), &*calls[0].name), (1, "get_weather"));
            assert_eq!(left_out.len(), 1);
            assert_eq!(left_out[0].name, name);
            assert!(left_out[0].reason.contains(reason), "{left_out:?}");
        }
    }
}

/// The calls that a client gets, by their tools, and those that it is told of.
fn ended(state: &RunState) -> (Vec<&str>, Vec<&str>, &str) {
    let Some(Ending::Calls {
        content,
        calls,
        left_out,
    }) = state.ending()
    else {
        panic!("{:?}", state.phase)
    };
    let ids: HashSet<&str> = calls.iter().map(|call| call.id.as_str()).collect();
    assert_eq!(ids.len(), calls.len(), "{calls:?}");
    (
        calls.iter().map(|call| call.name.as_str()).collect(),
        left_out.iter().map(|call| call.name.as_str()).collect(),
        content,
    )
}

/// The model was told that its right calls are made, so they are: whatever it makes of the others.
#[test]
fn what_was_right_is_not_lost_by_asking_for_the_rest() {
    const MENDED: (&str, &str) = ("send_mail", "{\"to\": \"bob\"}");
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::Many);
    let first = calls(&[RIGHT, ("send_mail", "{}")]);
    let after = |second: &ModelReply| heard_each(RunSettings::default(), &client, [&first, second]);
    let both = ["get_weather", "send_mail"];
    for second in [calls(&[MENDED]), calls(&[RIGHT, MENDED])] {
        let state = after(&second);
        assert_eq!(ended(&state), (both.to_vec(), vec![], ""));
    }
    let in_text = "Action: send_mail\nAction Input: {\"to\": \"bob\"}";
    let state = after(&says(in_text, FinishReason::Stop));
    assert_eq!(ended(&state), (both.to_vec(), vec![], ""));
    // In words, or with nothing, the wrong one stays wrong, and is named.
    let state = after(&says("I have no address.", FinishReason::Stop));
    let (weather, mail) = (vec!["get_weather"], vec!["send_mail"]);
    assert_eq!(
        ended(&state),
        (weather.clone(), mail.clone(), "I have no address.")
    );
    let state = after(&says("", FinishReason::Stop));
    assert_eq!(ended(&state), (weather.clone(), mail.clone(), ""));
    // So it is where others come, or only what is made already, in other words or the same.
    let state = after(&calls(&[("teleport", "{}")]));
    assert_eq!(
        ended(&state),
        (weather.clone(), vec!["send_mail", "teleport"], "")
    );
    let state = after(&calls(&[RIGHT]));
    assert_eq!(ended(&state), (weather.clone(), mail.clone(), ""));
    let state = after(&calls(&[("get_weather", "{\"city\": \"Berne\"}"), MENDED]));
    assert_eq!(ended(&state), (both.to_vec(), vec!["get_weather"], ""));
    let state = after(&says("I was", FinishReason::Length));
    assert_eq!(ended(&state).1.first(), Some(&"send_mail"));
    // The question for it may fail.
    let mut state = heard_each(RunSettings::default(), &client, [&first]);
    assert_eq!(state.phase, Phase::Ask);
    let mut cancelled = state.clone();
    state.fail(RunErrorCode::GptOssUnreachable, "gone".to_owned());
    end_with_held(&mut state);
    assert_eq!(ended(&state), (weather, mail, ""));
    cancelled.cancel();
    end_with_held(&mut cancelled);
    assert_eq!(cancelled.ending(), Some(&Ending::Cancelled));
}

/// Of two that were wrong one may come back mended.
#[test]
fn what_does_not_come_again_stays_named() {
    const MENDED: (&str, &str) = ("send_mail", "{\"to\": \"bob\"}");
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::Many);
    let first = calls(&[
        RIGHT,
        ("send_mail", "{}"),
        ("get_weather", "{\"city\": \"B\"}"),
    ]);
    let settings = RunSettings::default;
    let state = heard_each(settings(), &client, [&first, &calls(&[MENDED])]);
    let both = vec!["get_weather", "send_mail"];
    assert_eq!(ended(&state), (both.clone(), vec!["get_weather"], ""));
    // What could not be read at all may be what comes then.
    let mut unread = calls(&[RIGHT]);
    let nameless = json!({"id": "d", "type": "function", "function": {"arguments": "{}"}});
    unread.calls["tool_calls"]
        .as_array_mut()
        .unwrap()
        .push(nameless);
    let state = heard_each(settings(), &client, [&unread, &calls(&[MENDED])]);
    assert_eq!(ended(&state), (both, vec![], ""));
    let state = heard_each(
        settings(),
        &client,
        [&unread, &says("No.", FinishReason::Stop)],
    );
    assert_eq!(ended(&state), (vec!["get_weather"], vec![UNREAD], "No."));
}

/// Also where none was right at first.
#[test]
fn of_calls_that_were_all_wrong_those_that_stay_away_are_named() {
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::Many);
    let first = calls(&[("send_mail", "{}"), ("send_mail", "{\"cc\": \"ann\"}")]);
    let mended = calls(&[("send_mail", "{\"to\": \"bob\"}")]);
    let after = |second: &ModelReply| heard_each(RunSettings::default(), &client, [&first, second]);
    assert_eq!(
        ended(&after(&mended)),
        (vec!["send_mail"], vec!["send_mail"], "")
    );
    let words = after(&says("I have no address.", FinishReason::Stop));
    assert!(matches!(words.ending(), Some(Ending::Answered { .. })));
    let mut failed = heard_each(RunSettings::default(), &client, [&first]);
    failed.fail(RunErrorCode::GptOssUnreachable, "gone");
    end_with_held(&mut failed);
    assert!(matches!(failed.ending(), Some(Ending::Failed(_))));
}

/// Where one call is made at a time, the first one is asked for again, and the next one is not lost.
#[test]
fn the_first_of_calls_that_are_made_one_by_one_is_asked_back() {
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::One);
    let first = calls(&[("send_mail", "{}"), RIGHT]);
    let after = |second: &ModelReply| heard_each(RunSettings::default(), &client, [&first, second]);
    let mended = calls(&[("send_mail", "{\"to\": \"bob\"}"), RIGHT]);
    assert_eq!(ended(&after(&mended)), (vec!["send_mail"], vec![], ""));
    let words = after(&says("I have no address.", FinishReason::Stop));
    assert_eq!(
        ended(&words),
        (vec!["get_weather"], vec!["send_mail"], "I have no address.")
    );
}

#[test]
fn right_calls_come_back_at_once_where_nobody_can_be_asked() {
    let asked_once = RunSettings {
        max_iterations: 1,
        ..RunSettings::default()
    };
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::Many);
    let reply = calls(&[RIGHT, ("teleport", "{}")]);
    let state = heard_under(asked_once, &client, &reply);
    assert!(matches!(state.ending(), Some(Ending::Calls { left_out, .. }) if left_out.len() == 1));
    // All are right, or the client takes one, and it is right.
    let all = calls(&[RIGHT, ("send_mail", "{\"to\": \"bob\"}")]);
    let one = two_tools(ToolChoice::Auto, CallsAtOnce::One);
    for (client, reply, made) in [(&client, &all, 2), (&one, &reply, 1)] {
        let state = heard(client, reply);
        assert_eq!(state.iteration, 1);
        let Some(Ending::Calls {
            calls, left_out, ..
        }) = state.ending()
        else {
            panic!("{:?}", state.phase)
        };
        assert_eq!((calls.len(), left_out.len()), (made, 0));
    }
}

/// What a step in words waits for is no mistake.
#[test]
fn a_call_that_waits_for_the_first_ones_result_is_not_wrong() {
    let client = two_tools(ToolChoice::Auto, CallsAtOnce::Many);
    let later = ("send_mail", "{\"to\": \"<address from results>\"}");
    let state = heard(&client, &calls(&[RIGHT, later]));
    assert_eq!(state.iteration, 1);
    assert!(matches!(state.ending(), Some(Ending::Calls { calls, .. }) if calls.len() == 1));
}

#[test]
fn another_tool_of_the_clients_is_known_and_may_not_be_called_now() {
    let named = ToolChoice::Named("get_weather".to_owned());
    let client = two_tools(named, CallsAtOnce::Many);
    let native = calls(&[("send_mail", "{\"to\": \"bob\"}")]);
    let text = "<tool_call>{\"name\": \"send_mail\", \"arguments\": {\"to\": \"bob\"}}</tool_call>";
    for reply in [native, says(text, FinishReason::Stop)] {
        let state = heard(&client, &reply);
        let told = &state.messages.last().unwrap().content;
        assert!(
            told.contains("Only `get_weather` may be called now"),
            "{told}"
        );
        assert!(!told.contains("no tool named"), "{told}");
    }
    let state = heard(&client, &calls(&[("teleport", "{}")]));
    let told = &state.messages.last().unwrap().content;
    assert!(told.contains("no tool named `teleport`"), "{told}");
}
