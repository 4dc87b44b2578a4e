use holdfast_intent::{Strategy, ToolSet};
use serde_json::{Value, json};

use super::*;
use crate::run::TokensUsed;
use crate::settings::{RunSettings, SourceField};

pub(super) fn parser() -> Parser {
    Parser::new(ToolSet::built_in()).with_strategies(Strategy::React, Some(Strategy::Fuzzy))
}

pub(super) fn begun(settings: RunSettings) -> RunState {
    let task = Message::text(Role::User, "Read the notes.");
    RunState::new("run-1", "gpt-oss", vec![task], settings, 1000)
}

pub(super) fn thought(reasoning: &str, content: &str) -> ModelReply {
    ModelReply {
        content: content.to_owned(),
        reasoning: reasoning.to_owned(),
        calls: Value::Null,
        finish: FinishReason::Stop,
        tokens: TokensUsed {
            prompt: 10,
            completion: 5,
        },
        ..ModelReply::default()
    }
}

const READ: &str = "Thought: look\nAction: read\nAction Input: {\"path\": \"notes.txt\"}";

pub(super) fn found(text: &str) -> CallResult {
    CallResult {
        text: text.to_owned(),
        ok: true,
        duration_ms: 7,
        unknown: false,
        ..CallResult::default()
    }
}

pub(super) fn planned(state: &RunState) -> Vec<&str> {
    match &state.phase {
        Phase::Act(calls) => calls.iter().map(|call| call.name.as_str()).collect(),
        _ => vec![],
    }
}

pub(super) fn answer(state: &RunState) -> &str {
    match &state.phase {
        Phase::Ended(Ending::Answered { content, .. }) => content,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_call_runs_and_its_result_goes_back() {
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought(READ, "I will look."), &parser());
    assert_eq!(planned(&state), ["read"]);
    acted(&mut state, 0, found("buy milk"));
    assert_eq!(state.phase, Phase::Ask);
    let last = state.messages.last().unwrap();
    assert_eq!(last.role, Role::User);
    assert_eq!(
        last.content,
        "Tool execution results:\n[TOOL_RESULT: read]\nbuy milk\n\nContinue with next step or \
         provide the final answer if the task is complete."
    );
    heard(
        &mut state,
        &thought("All is known.", "Buy milk."),
        &parser(),
    );
    assert_eq!(answer(&state), "Buy milk.");
    assert_eq!((state.iteration, state.tokens_total()), (2, 30));
    assert_eq!(
        (state.tools_called.as_slice(), state.tools_ms),
        (["read".to_owned()].as_slice(), 7)
    );
}

#[test]
fn a_result_for_nobody_changes_nothing() {
    let mut state = begun(RunSettings::default());
    let before = state.clone();
    acted(&mut state, 0, found("late"));
    assert_eq!(state, before);
    heard(&mut state, &thought(READ, ""), &parser());
    let before = state.clone();
    acted(&mut state, 9, found("late"));
    assert_eq!(state, before);
}

#[test]
fn the_other_field_is_read_when_the_first_has_nothing() {
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought("", READ), &parser());
    assert_eq!(planned(&state), ["read"]);
    let mut state = begun(RunSettings::default());
    heard(
        &mut state,
        &thought("Let me see what there is.", READ),
        &parser(),
    );
    assert_eq!(planned(&state), ["read"]);
}

#[test]
fn a_native_call_is_answered_by_its_id() {
    let message = json!({"content": null, "tool_calls": [{"id": "c7", "type": "function",
        "function": {"name": "read", "arguments": "{\"path\": \"notes.txt\"}"}}]});
    let reply = ModelReply {
        calls: message,
        ..thought("", "")
    };
    let mut state = begun(RunSettings::default());
    heard(&mut state, &reply, &parser());
    acted(&mut state, 0, found("buy milk"));
    let [.., call, result] = state.messages.as_slice() else {
        panic!("{:?}", state.messages)
    };
    assert_eq!(call.calls[0].id, "c7");
    assert_eq!(
        (result.role, result.answers.as_deref()),
        (Role::Tool, Some("c7"))
    );
    assert_eq!(result.content, "buy milk");
}

#[test]
fn a_call_that_can_not_be_read_is_asked_back_while_iterations_remain() {
    let broken = thought("Action: read\nAction Input: {\"path\": \"no", "");
    let mut state = begun(RunSettings::default());
    let cut = ModelReply {
        finish: FinishReason::Length,
        ..broken
    };
    heard(&mut state, &cut, &parser());
    assert!(state.corrected && state.phase == Phase::Ask, "{state:?}");
    assert!(
        state
            .messages
            .last()
            .unwrap()
            .content
            .contains("Action Input")
    );
    for _ in 2..=5 {
        assert_eq!(state.phase, Phase::Ask);
        heard(&mut state, &cut, &parser());
    }
    let Phase::Ended(Ending::Failed(error)) = &state.phase else {
        panic!("{:?}", state.phase)
    };
    assert_eq!(error.code, RunErrorCode::MaxIterationsExceeded);
    assert_eq!(state.not_done[0].tool, "read");
    assert!(state.tools_called.is_empty());
}

#[test]
fn a_model_that_never_stops_is_stopped() {
    let mut state = begun(RunSettings {
        max_iterations: 3,
        ..RunSettings::default()
    });
    for _ in 0..3 {
        heard(&mut state, &thought(READ, "Still looking."), &parser());
        acted(&mut state, 0, found("x"));
    }
    let Phase::Ended(Ending::Failed(error)) = &state.phase else {
        panic!("{:?}", state.phase)
    };
    assert_eq!(error.code, RunErrorCode::MaxIterationsExceeded);
    assert_eq!(error.message, "max iterations exceeded after 3 attempts");
    assert_eq!(state.content, "Still looking.");
}

#[test]
fn used_up_iterations_may_answer_with_what_there_is() {
    let mut state = begun(RunSettings {
        max_iterations: 1,
        when_used_up: WhenUsedUp::Answer,
        ..RunSettings::default()
    });
    heard(&mut state, &thought(READ, "Still looking."), &parser());
    acted(&mut state, 0, found("x"));
    assert_eq!(answer(&state), "Still looking.");
    assert_eq!(state.ending().map(Ending::finish_reason), Some("length"));
}

#[test]
fn a_budget_ends_a_run() {
    let mut state = begun(RunSettings {
        tokens_max: Some(15),
        ..RunSettings::default()
    });
    heard(&mut state, &thought(READ, ""), &parser());
    acted(&mut state, 0, found("x"));
    assert!(
        matches!(&state.phase, Phase::Ended(Ending::Failed(error)) if error.code == RunErrorCode::BudgetExceeded),
        "{:?}",
        state.phase
    );
}

#[test]
fn a_state_survives_its_checkpoint() {
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought(READ, ""), &parser());
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<RunState>(&text).unwrap(), state);
}

#[test]
fn the_second_field_is_read_only_where_it_is_another() {
    let both = RunSettings::default();
    let mut state = begun(both.clone());
    heard(&mut state, &thought("", READ), &parser());
    assert_eq!(planned(&state), ["read"]);
    let only = RunSettings {
        fallback_field: SourceField::Reasoning,
        ..both
    };
    let mut state = begun(only);
    heard(&mut state, &thought("", READ), &parser());
    assert_eq!(planned(&state), Vec::<&str>::new());
}

/// Servers that give every call the id `call_0`, or none at all.
#[test]
fn every_result_finds_its_own_call() {
    for ids in [["call_0", "call_0"], ["", ""], ["call_0_1", "call_0"]] {
        let call = |id: &str, path: &str| {
            json!({"id": id, "type": "function",
                   "function": {"name": "read", "arguments": json!({"path": path}).to_string()}})
        };
        let calls = [call(ids[0], "a.txt"), call(ids[1], "b.txt")];
        let mut reply = thought("", "");
        reply.calls = json!({"role": "assistant", "content": null, "tool_calls": calls});
        let mut state = begun(RunSettings::default());
        heard(&mut state, &reply, &parser());
        assert_eq!(planned(&state), ["read", "read"], "{ids:?}");
        acted(&mut state, 0, found("of a"));
        acted(&mut state, 1, found("of b"));
        let mended = state.messages;
        let [.., asked, first, second] = mended.as_slice() else {
            panic!("{mended:?}");
        };
        assert_eq!(asked.calls[0].arguments["path"], "a.txt", "{ids:?}");
        assert_eq!(first.answers.as_ref(), Some(&asked.calls[0].id));
        assert_eq!(second.answers.as_ref(), Some(&asked.calls[1].id));
        assert_ne!(first.answers, second.answers, "{ids:?}");
        assert_eq!([&*first.content, &*second.content], ["of a", "of b"]);
    }
}

/// gpt-oss writes the first of them by itself, others the rest, whatever the prompt asks for.
#[test]
fn every_form_is_read_unless_settings_say_otherwise() {
    let settings = RunSettings::default();
    let (primary, fallback) = settings.strategies();
    let parser = Parser::new(ToolSet::built_in()).with_strategies(primary, fallback);
    for said in [
        "<|channel|>commentary to=functions.read <|message|>{\"path\": \"a\"}<|call|>",
        "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>",
        "[TOOL:read|path=a]",
        "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
        "[read(path=\"a\")]",
        "Action: read\nAction Input: {\"path\": \"a\"}",
    ] {
        let mut state = begun(settings.clone());
        heard(&mut state, &thought("", said), &parser);
        assert_eq!(planned(&state), ["read"], "{said}");
    }
}

/// Who was asked again because nothing came was not told how to call.
#[test]
fn a_reply_of_nothing_takes_no_correction_away() {
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought("", ""), &parser());
    assert_eq!(state.phase, Phase::Ask);
    let broken = "<tool_call>{\"name\": \"read\", \"argum";
    heard(&mut state, &thought("", broken), &parser());
    assert_eq!(state.phase, Phase::Ask, "it is told how to");
    assert!(state.corrected);
}

/// What is written for a program is no answer to a person.
#[test]
fn a_call_that_can_not_be_made_is_never_the_answer() {
    let unknown = "Action: teleport\nAction Input: {\"to\": \"Mars\"}";
    let markup = "<tool_call>{\"name\": \"read\", \"argum";
    for (reasoning, content) in [("", unknown), (unknown, ""), ("", markup)] {
        let mut state = begun(RunSettings::default());
        while state.phase == Phase::Ask {
            heard(&mut state, &thought(reasoning, content), &parser());
        }
        let Phase::Ended(Ending::Failed(error)) = &state.phase else {
            panic!("{content}: {:?}", state.phase)
        };
        assert_eq!(error.code, RunErrorCode::MaxIterationsExceeded);
        assert!(!state.not_done.is_empty());
        assert_eq!(state.content, content, "it can be looked at");
    }
    // What was said beside a call that was only thought of is one.
    let mut state = begun(RunSettings::default());
    for _ in 0..2 {
        heard(&mut state, &thought(unknown, "It is 4."), &parser());
    }
    assert_eq!(answer(&state), "It is 4.");
}

/// A run that ends in the middle of its calls has made those that are under way.
#[test]
fn calls_under_way_count_as_called_when_a_run_is_cut_off() {
    let ends: [fn(&mut RunState); 2] = [RunState::cancel, |state| timed_out(state, None)];
    let reads = READ.to_owned() + "\n" + &READ.replace("notes", "more");
    let write = "Action: write\nAction Input: {\"path\": \"a\", \"content\": \"b\"}\n";
    let writes = write.to_owned() + &write.replace("\"a\"", "\"c\"");
    for end in ends {
        for (calls, called) in [(&reads, &["read", "read"][..]), (&writes, &["write"])] {
            let mut state = begun(RunSettings::default());
            heard(&mut state, &thought(calls, ""), &parser());
            assert_eq!(planned(&state).len(), 2);
            end(&mut state);
            assert_eq!(state.tools_called, called);
        }
        let mut state = begun(RunSettings::default());
        end(&mut state);
        assert!(state.tools_called.is_empty());
    }
}

/// As many servers leave it in the content; it is no part of what is said, however a run ends.
#[test]
fn thoughts_are_neither_the_last_words_nor_told_to_the_model_again() {
    let content = "<think>I could look.</think>\n\nStill looking.";
    let mut state = begun(RunSettings {
        max_iterations: 1,
        when_used_up: WhenUsedUp::Answer,
        ..RunSettings::default()
    });
    heard(&mut state, &thought(READ, content), &parser());
    acted(&mut state, 0, found("x"));
    assert_eq!(answer(&state), "Still looking.");
    let said = state.messages.iter().find(|it| it.role == Role::Assistant);
    assert_eq!(said.unwrap().content.trim(), "Still looking.");
    // Also when the model was cut off in what it says.
    let cut = ModelReply {
        finish: FinishReason::Length,
        ..thought("", "<think>Hm.</think>It is")
    };
    let mut state = begun(RunSettings::default());
    for _ in 0..2 {
        heard(&mut state, &cut, &parser());
    }
    assert_eq!(answer(&state), "It is");
}

#[test]
fn used_up_iterations_do_not_answer_with_a_call() {
    let mut state = begun(RunSettings {
        max_iterations: 1,
        when_used_up: WhenUsedUp::Answer,
        ..RunSettings::default()
    });
    heard(&mut state, &thought("", READ), &parser());
    acted(&mut state, 0, found("x"));
    assert_eq!(answer(&state), "(No answer after 1 questions.)");
    assert_eq!(state.ending().map(Ending::finish_reason), Some("length"));
}

fn refused(attempts: u32) -> CallResult {
    let escalation = (attempts >= 3).then(|| holdfast_contract::Escalation {
        tool: "read".to_owned(),
        field: Some("/path".to_owned()),
        reason: "Missing required parameter: path".to_owned(),
        attempts,
    });
    CallResult {
        text: "invalid_arguments: Missing required parameter: path".to_owned(),
        wrong: true,
        escalation,
        ..CallResult::default()
    }
}

#[test]
fn what_a_subagent_does_not_get_right_goes_to_its_parent() {
    let mut state = begun(RunSettings::default());
    state.parent = Some("run:main".to_owned());
    for attempts in 1..=3 {
        heard(&mut state, &thought(READ, ""), &parser());
        acted(&mut state, 0, refused(attempts));
        assert_eq!(state.phase == Phase::Ask, attempts < 3, "{attempts}");
    }
    let Phase::Ended(Ending::Failed(error)) = &state.phase else {
        panic!("{:?}", state.phase)
    };
    assert_eq!(error.code, RunErrorCode::ToolExecutionFailed);
    assert_eq!(
        error.message,
        "`read` was called wrongly 3 times, the last time in /path: Missing required parameter: path"
    );
}

#[test]
fn a_thought_in_the_content_is_left_out_streamed_or_whole() {
    for content in [
        "Hello <think>Hm.</think> there",
        "Final Answer: Hello <think>Hm.</think> there",
        "Hello <thinking>never closed",
    ] {
        let reply = thought("", content);
        let mut whole = begun(RunSettings::default());
        heard(&mut whole, &reply, &parser());
        let mut streamed = begun(RunSettings::default());
        let begins = content.find("Hello").unwrap_or_default();
        answered_live(&mut streamed, &reply, &parser(), begins..begins + 5);
        assert_eq!(answer(&whole), answer(&streamed), "{content}");
        assert!(!answer(&whole).contains("Hm."), "{}", answer(&whole));
    }
}

#[test]
fn without_a_parent_the_model_is_told_and_the_run_goes_on() {
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought(READ, ""), &parser());
    acted(&mut state, 0, refused(3));
    assert_eq!(state.phase, Phase::Ask);
}

#[test]
fn wrong_calls_of_one_reply_are_told_before_they_go_up() {
    let lines = ["a", "b", "c"].map(|name| READ.replace("notes", name));
    let three = lines.join("\n");
    let mut state = begun(RunSettings::default());
    state.parent = Some("run:main".to_owned());
    heard(&mut state, &thought(&three, ""), &parser());
    assert_eq!(planned(&state), ["read", "read", "read"]);
    for (place, attempts) in [(0, 1), (1, 2), (2, 3)] {
        acted(&mut state, place, refused(attempts));
    }
    assert_eq!(state.phase, Phase::Ask, "it has heard of none of them yet");
    heard(&mut state, &thought(READ, ""), &parser());
    acted(&mut state, 0, refused(4));
    assert!(matches!(state.phase, Phase::Ended(Ending::Failed(_))));
}

#[test]
fn a_call_whose_arguments_do_not_fit_is_refused_by_the_tools_schema() {
    let without = "Thought: look\nAction: read\nAction Input: {\"limit\": 3}";
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought(without, ""), &parser());
    assert_eq!(planned(&state), ["read"]);
    assert!(!state.corrected);
}
