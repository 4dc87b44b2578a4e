//! Replies in which nothing is said.

use serde_json::json;

use super::tests::{answer, begun, parser, thought};
use super::*;
use crate::settings::RunSettings;

#[test]
fn a_model_that_says_nothing_is_asked_once_more() {
    let mut state = begun(RunSettings::default());
    heard(&mut state, &thought(" ", "\n"), &parser());
    assert_eq!(state.phase, Phase::Ask);
    assert_eq!(state.messages.len(), 1);
    heard(&mut state, &thought("", ""), &parser());
    let Some(Ending::Failed(error)) = state.ending() else {
        panic!("{:?}", state.phase)
    };
    assert_eq!(error.code, RunErrorCode::GptOssUnreachable);
    assert!(!error.lasts, "it may say something next time");
}

/// What has happened in a run before its model says nothing.
type Before = fn(&mut RunState);

/// After its tools some models have nothing to add, and some are stopped by what the client or a filter
/// wants them to be stopped by.
#[test]
fn nothing_is_an_answer_where_there_is_a_reason_for_it() {
    let nothing = thought("", "");
    let cut = ModelReply {
        finish: FinishReason::Length,
        ..nothing.clone()
    };
    let filtered = ModelReply {
        filtered: true,
        ..nothing.clone()
    };
    let stops = |state: &mut RunState| {
        state.passed_on.insert("stop".to_owned(), json!(["END"]));
    };
    let acted = |state: &mut RunState| state.tools_called.push("read".to_owned());
    let answered = |state: &mut RunState| {
        state.messages.push(Message {
            answers: Some("call_0".to_owned()),
            ..Message::text(Role::Tool, "buy milk")
        });
    };
    let as_it_is = |_: &mut RunState| {};
    let called = "(The model said nothing more. It has called: read.)";
    let cases: [(ModelReply, Before, &str); 5] = [
        (cut, as_it_is, ""),
        (filtered, as_it_is, ""),
        (nothing.clone(), stops, "(The model said nothing more.)"),
        (nothing.clone(), acted, called),
        (nothing, answered, "(The model said nothing more.)"),
    ];
    for (reply, prepare, expected) in cases {
        let mut state = begun(RunSettings::default());
        prepare(&mut state);
        while state.phase == Phase::Ask {
            heard(&mut state, &reply, &parser());
        }
        assert_eq!(answer(&state), expected, "{reply:?}");
    }
}

/// A server that has calls of its own wants a result for each of them.
#[test]
fn a_native_call_that_can_not_be_made_gets_its_result() {
    let call = json!({"id": "c", "type": "function",
        "function": {"name": "teleport", "arguments": "{}"}});
    let mut reply = thought("", "");
    reply.calls = json!({"content": null, "tool_calls": [call]});
    let mut state = begun(RunSettings::default());
    heard(&mut state, &reply, &parser());
    assert_eq!(state.phase, Phase::Ask);
    let [_, turn, result] = state.messages.as_slice() else {
        panic!("{:?}", state.messages)
    };
    assert_eq!(turn.calls[0].id, "c");
    assert_eq!(
        (result.role, result.answers.as_deref()),
        (Role::Tool, Some("c"))
    );
    assert!(result.content.contains("teleport"), "{}", result.content);
}
