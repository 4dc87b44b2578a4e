//! What a model only thinks, beside what it says.

use holdfast_intent::{ToolSet, ToolSpec};
use serde_json::{Value, json};

use super::*;
use crate::chat::{Message, Role};
use crate::run::{CallsAtOnce, ClientTools, Ending, Phase, ToolChoice, heard, heard_for_client};
use crate::settings::RunSettings;

const DECLINES: &str = "I have decided against it. Nothing was done.";

/// The ways in which a model thinks of a call that it then declines.
fn thoughts_of_a_call() -> [String; 4] {
    let call =
        "<tool_call>{\"name\": \"exec\", \"arguments\": {\"command\": \"touch X\"}}</tool_call>";
    let react = "Action: exec\nAction Input: {\"command\": \"touch X\"}";
    [
        call.to_owned(),
        format!("I might call {call} but that is dangerous, no."),
        format!("{react}\nNo wait, the user said not to."),
        "{\"name\": \"exec\", \"arguments\": {\"command\": \"touch X\"}}".to_owned(),
    ]
}

fn parser() -> Parser {
    let (primary, fallback) = RunSettings::default().strategies();
    Parser::new(ToolSet::built_in()).with_strategies(primary, fallback)
}

fn begun(settings: RunSettings) -> RunState {
    let task = Message::text(Role::User, "Tidy up.");
    RunState::new("run-1", "gpt-oss", vec![task], settings, 1000)
}

fn reply(reasoning: &str, content: &str) -> ModelReply {
    ModelReply {
        content: content.to_owned(),
        reasoning: reasoning.to_owned(),
        finish: FinishReason::Stop,
        ..ModelReply::default()
    }
}

fn planned(state: &RunState) -> Vec<(&str, bool)> {
    match &state.phase {
        Phase::Act(calls) => calls
            .iter()
            .map(|call| (call.name.as_str(), call.result.is_none()))
            .collect(),
        _ => vec![],
    }
}

fn answer(state: &RunState) -> &str {
    match state.ending() {
        Some(Ending::Answered { content, .. }) => content,
        other => panic!("{other:?}"),
    }
}

fn by(source_field: SourceField, fallback_field: SourceField) -> RunSettings {
    RunSettings {
        source_field,
        fallback_field,
        ..RunSettings::default()
    }
}

/// Both orders of the fields that read both.
fn orders() -> [RunSettings; 2] {
    let (thought, said) = (SourceField::Reasoning, SourceField::Content);
    [by(thought, said), by(said, thought)]
}

#[test]
fn a_call_that_was_thought_of_and_declined_is_asked_back_and_not_made() {
    for settings in orders() {
        for thought in thoughts_of_a_call() {
            let mut state = begun(settings.clone());
            heard(&mut state, &reply(&thought, DECLINES), &parser());
            assert_eq!(state.phase, Phase::Ask, "{thought}");
            assert!(state.corrected);
            let told = &state.messages.last().unwrap().content;
            for part in ["`exec`", "Write the call in your reply", "Action Input"] {
                assert!(told.contains(part), "no {part}: {told}");
            }
            // Whether it thinks of it again or not, what it says is the answer then.
            for again in ["", &thought] {
                let mut state = state.clone();
                heard(&mut state, &reply(again, DECLINES), &parser());
                assert_eq!(answer(&state), DECLINES, "{thought}");
                assert!(state.tools_called.is_empty());
            }
        }
    }
}

/// Whoever says that it is done is not made to go on by what it thought, whatever that was.
#[test]
fn what_is_marked_as_the_answer_is_the_answer() {
    let read = "Action: read\nAction Input: {\"path\": \"a\"}".to_owned();
    let guess = "Let me search for the weather in Bern.".to_owned();
    for thought in thoughts_of_a_call().into_iter().chain([read, guess]) {
        for settings in orders() {
            let mut state = begun(settings);
            heard(&mut state, &reply(&thought, "Final Answer: No."), &parser());
            assert_eq!(answer(&state), "No.", "{thought}");
        }
    }
    // Cut off, it is not the answer yet.
    let mut state = begun(RunSettings::default());
    let mut cut = reply(
        "Action: read\nAction Input: {\"path\": \"a\"}",
        "Final Answer: N",
    );
    cut.finish = FinishReason::Length;
    heard(&mut state, &cut, &parser());
    assert_eq!(planned(&state), [("read", true)]);
}

/// What may be meant by the prose of a thought holds up no answer, also not where nobody may be asked.
#[test]
fn a_guess_at_a_thought_is_no_reason_to_ask() {
    let guesses = [
        "I'll run `cargo test`.",
        "I will execute the command `touch X` now.",
    ];
    for (guess, max_iterations) in guesses.into_iter().zip([1, 5]) {
        let alone = begun(RunSettings::default());
        let found = read(&alone, &reply(guess, ""), &parser()).intents;
        assert!(
            found.iter().any(|it| it.strategy == Strategy::Fuzzy),
            "{guess}"
        );
        let mut state = begun(RunSettings {
            max_iterations,
            ..RunSettings::default()
        });
        heard(&mut state, &reply(guess, "All tests pass."), &parser());
        assert_eq!(answer(&state), "All tests pass.", "{guess}");
    }
}

/// A call that can not be made, and was only thought of, costs nobody the answer at the end.
#[test]
fn a_broken_call_in_a_thought_does_not_cost_the_last_answer() {
    for thought in [
        "Action: read\nAction Input: {}",
        "Action: exce\nAction Input: {\"command\": \"touch X\"}",
    ] {
        let mut state = begun(RunSettings {
            max_iterations: 1,
            ..RunSettings::default()
        });
        heard(&mut state, &reply(thought, "It is 4."), &parser());
        assert_eq!(answer(&state), "It is 4.", "{thought}");
    }
}

/// Nobody can be asked any more, and what was said is an answer.
#[test]
fn at_the_end_of_the_iterations_what_was_said_is_the_answer() {
    let [thought, ..] = thoughts_of_a_call();
    let mut state = begun(RunSettings {
        max_iterations: 1,
        ..RunSettings::default()
    });
    heard(&mut state, &reply(&thought, DECLINES), &parser());
    assert_eq!(answer(&state), DECLINES);
}

#[test]
fn a_model_that_says_nothing_means_what_it_thinks() {
    for settings in orders() {
        let [thought, ..] = thoughts_of_a_call();
        for content in ["", " \n", "…"] {
            let mut state = begun(settings.clone());
            heard(&mut state, &reply(&thought, content), &parser());
            assert_eq!(planned(&state), [("exec", true)], "{content:?}");
        }
    }
}

/// Whoever reads nothing but thoughts has them mean what they say.
#[test]
fn where_only_thoughts_are_read_they_count() {
    let thought = SourceField::Reasoning;
    let mut state = begun(by(thought, thought));
    let [call, ..] = thoughts_of_a_call();
    heard(&mut state, &reply(&call, DECLINES), &parser());
    assert_eq!(planned(&state), [("exec", true)]);
}

#[test]
fn a_thought_may_look_and_only_what_changes_things_waits() {
    let read = "Action: read\nAction Input: {\"path\": \"notes.txt\"}";
    let write = "Action: write\nAction Input: {\"path\": \"a\", \"content\": \"b\"}";
    let mut state = begun(RunSettings::default());
    heard(
        &mut state,
        &reply(&format!("{read}\n{write}"), "The notes will tell."),
        &parser(),
    );
    assert_eq!(planned(&state), [("read", true), ("write", false)]);
}

/// A structured call in the reasoning is made beside an announcement of it, and of nothing else.
#[test]
fn a_call_in_the_reasoning_is_made_beside_its_announcement() {
    let thought = "Action: exec\nAction Input: {\"command\": \"cargo test\"}";
    for (said, is_made) in [
        ("I'll run `cargo test`.", true),
        ("Working on it.", true),
        ("I'll help with that...", true),
        ("I'll run `cargo test` as soon as you approve it.", false),
        ("", true),
        ("I'll run `cargo check` instead.", false),
        ("I won't run `cargo test`.", false),
    ] {
        let mut state = begun(RunSettings::default());
        heard(&mut state, &reply(thought, said), &parser());
        assert_eq!(!planned(&state).is_empty(), is_made, "{said}");
    }
}

#[test]
fn a_call_that_is_said_counts_before_one_that_is_thought_of() {
    for settings in orders() {
        for thought in thoughts_of_a_call() {
            let said = "Action: write\nAction Input: {\"path\": \"a\", \"content\": \"b\"}";
            let mut state = begun(settings.clone());
            heard(&mut state, &reply(&thought, said), &parser());
            assert_eq!(planned(&state), [("write", true)], "{thought}");
        }
    }
}

#[test]
fn a_native_call_counts_whatever_is_thought_and_said() {
    let call = json!({"id": "c", "type": "function", "function": {
        "name": "exec", "arguments": "{\"command\": \"date\"}"}});
    let [thought, ..] = thoughts_of_a_call();
    let native = ModelReply {
        calls: json!({"content": DECLINES, "tool_calls": [call]}),
        ..reply(&thought, DECLINES)
    };
    let mut state = begun(RunSettings::default());
    heard(&mut state, &native, &parser());
    let Phase::Act(calls) = &state.phase else {
        panic!("{:?}", state.phase)
    };
    assert_eq!(calls[0].arguments["command"], "date");
}

/// A thought without a call is not the answer in the place of what is said.
#[test]
fn what_is_said_is_the_answer_in_whichever_order_the_fields_are_read() {
    for settings in orders() {
        let mut state = begun(settings);
        heard(&mut state, &reply("I add them.", "It is 4."), &parser());
        assert_eq!(answer(&state), "It is 4.");
    }
}

fn weather(mutating: bool) -> Value {
    json!({"type": "function", "mutating": mutating, "function": {
        "name": "get_weather", "mutating": mutating,
        "parameters": {"type": "object", "required": ["city"],
            "properties": {"city": {"type": "string"}}}}})
}

/// Nobody knows what the tools of a client do, whatever it says of them.
#[test]
fn a_call_for_the_client_that_was_only_thought_of_is_always_asked_back() {
    let thought = "Action: get_weather\nAction Input: {\"city\": \"Bern\"}";
    for (choice, mutating) in [
        (ToolChoice::Auto, false),
        (ToolChoice::Auto, true),
        (ToolChoice::Required, false),
    ] {
        let client = ClientTools {
            tools: vec![weather(mutating)],
            choice: choice.clone(),
            at_once: CallsAtOnce::Many,
        };
        let specs = client.tools.iter().filter_map(ToolSpec::from_json);
        let parser = Parser::new(ToolSet::new(specs.collect()))
            .with_strategies(Strategy::React, Some(Strategy::Auto));
        let registry = client.registry().unwrap();
        let mut state = begun(RunSettings::default());
        state.mode = Mode::Return(client);
        heard_for_client(&mut state, &reply(thought, DECLINES), &parser, &registry);
        assert_eq!(state.phase, Phase::Ask);
        let told = &state.messages.last().unwrap().content;
        assert!(told.contains("Write the call in your reply"), "{told}");
        let mut calls = state.clone();
        heard_for_client(&mut calls, &reply("", thought), &parser, &registry);
        assert!(matches!(calls.ending(), Some(Ending::Calls { .. })));
        heard_for_client(&mut state, &reply(thought, DECLINES), &parser, &registry);
        match choice {
            ToolChoice::Auto => assert_eq!(answer(&state), DECLINES),
            _ => assert!(matches!(state.ending(), Some(Ending::Failed(_)))),
        }
    }
}
