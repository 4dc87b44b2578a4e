//! Answers about calls, and calls that are no answers.

use holdfast_intent::ToolSet;

use super::*;
use crate::settings::RunSettings;

/// How a run ends whose model says the same until it ends.
fn insisted(content: &str) -> RunState {
    let settings = RunSettings::default();
    let (primary, fallback) = settings.strategies();
    let parser = Parser::new(ToolSet::built_in()).with_strategies(primary, fallback);
    let reply = ModelReply {
        content: content.to_owned(),
        finish: FinishReason::Stop,
        ..ModelReply::default()
    };
    let task = Message::text(Role::User, "How does Qwen call tools?");
    let mut state = RunState::new("run-1", "gpt-oss", vec![task], settings, 1000);
    while state.phase == Phase::Ask {
        heard(&mut state, &reply, &parser);
    }
    state
}

/// Who is told how to call, and says the same again, does not want to call.
#[test]
fn an_answer_that_only_speaks_of_calls_is_given_when_the_model_insists() {
    for speech in [
        "The bug is in the template. It has to end with <tool_call> and not with a line break.",
        "Qwen writes its calls as <tool_call>…</tool_call>, one after the other.",
        "The tags are <tool_call>...</tool_call>.",
        "Every call of it stands between <tool_call> and </tool_call>.",
        "Every call of it stands between `<tool_call>` and `</tool_call>`.",
        "It is ``<tool_call>{\"name\": \"x\", \"arguments\": {}}</tool_call>`` on the wire.",
        "Qwen frames calls.\n\n```\n<tool_call>\n{\"name\": <name>, \"arguments\": <args>}\n</tool_call>\n```\n\nThe server takes them apart.",
        "Qwen frames calls.\n\n```xml\n<tool_call>\n{\"name\": \"tool_name\", \"arguments\": {…}}\n</tool_call>\n```\n\nThe server takes them apart.",
    ] {
        let state = insisted(speech);
        let Phase::Ended(Ending::Answered { content, .. }) = &state.phase else {
            panic!("{speech}: {:?}", state.phase)
        };
        assert_eq!(content, speech);
        assert!(state.tools_called.is_empty());
    }
}

/// With words before it or behind it, in a block or not, a call stays a call.
#[test]
fn a_broken_call_is_no_speech_however_often_it_is_said() {
    for call in [
        "The file will tell.\n<tool_call>{\"name\": \"read\", \"argum",
        "I'll read it now.\n```\n<tool_call>\n{\"name\": \"read\", \"argum\n```\nPlease wait.",
        "The file will tell.\n```\n<tool_call>\n{\"name\": \"teleport\", \"arguments\": {}}\n</tool_call>\n```",
    ] {
        let state = insisted(call);
        let Phase::Ended(Ending::Failed(error)) = &state.phase else {
            panic!("{call}: {:?}", state.phase)
        };
        assert_eq!(error.code, RunErrorCode::MaxIterationsExceeded);
        assert_eq!(state.not_done.len(), 1, "{:?}", state.not_done);
    }
}
