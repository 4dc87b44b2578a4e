//! How much memory a run holds, about: texts by their length, and what they are kept in by its own
//! size, so that many small things are not taken for little.

use std::mem::size_of;

use serde_json::{Map, Value};

use super::returning::Mode;
use super::state::{CallLeftOut, Ending, Phase, PlannedCall, RunState};
use crate::chat::{Message, NativeCall};

/// The bytes of a run.
pub(crate) fn bytes(state: &RunState) -> usize {
    let settings = &state.settings;
    let sums = [
        size_of::<RunState>(),
        sum(&state.messages, message),
        fields(&state.passed_on),
        match &state.mode {
            Mode::Loop => 0,
            Mode::Return(client) => sum(&client.tools, value),
        },
        phase(&state.phase),
        state
            .held
            .as_ref()
            .map_or(0, |it| for_client(&it.calls, &it.left_out)),
        sum(&state.tools_called, |it| text(it)),
        size_of_val(state.tokens.as_slice()),
        size_of_val(state.made.as_slice()),
        text(&state.content),
        text(&state.reasoning),
        settings.prompt.as_deref().map_or(0, text),
        settings.guided_schema.as_ref().map_or(0, value),
    ];
    sums.into_iter().fold(0, usize::saturating_add)
}

fn sum<T>(all: &[T], size: impl Fn(&T) -> usize) -> usize {
    all.iter().map(size).fold(0, usize::saturating_add)
}

fn text(text: &str) -> usize {
    size_of::<String>() + text.len()
}

fn message(message: &Message) -> usize {
    let answers = message.answers.as_deref().map_or(0, text);
    size_of::<Message>() + message.content.len() + answers + sum(&message.calls, native)
}

fn native(call: &NativeCall) -> usize {
    size_of::<NativeCall>() + call.id.len() + call.name.len() + fields(&call.arguments)
}

fn phase(phase: &Phase) -> usize {
    match phase {
        Phase::Ask | Phase::Ended(Ending::Failed(_) | Ending::Cancelled) => 0,
        Phase::Act(calls) => sum(calls, planned),
        Phase::Ended(Ending::Answered { content, .. }) => text(content),
        Phase::Ended(Ending::Calls {
            content,
            calls,
            left_out,
        }) => text(content) + for_client(calls, left_out),
    }
}

fn for_client(calls: &[NativeCall], left_out: &[CallLeftOut]) -> usize {
    sum(calls, native) + sum(left_out, unmade)
}

fn unmade(call: &CallLeftOut) -> usize {
    text(&call.name) + text(&call.reason)
}

fn planned(call: &PlannedCall) -> usize {
    let result = call.result.as_ref().map_or(0, |result| result.text.len());
    size_of::<PlannedCall>() + call.name.len() + fields(&call.arguments) + result
}

/// Values as deep as JSON is read, which is not deep enough for the stack.
fn value(it: &Value) -> usize {
    let below = match it {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(text) => text.len(),
        Value::Array(all) => sum(all, value),
        Value::Object(all) => fields(all),
    };
    size_of::<Value>().saturating_add(below)
}

pub(crate) fn fields(all: &Map<String, Value>) -> usize {
    let each = all.iter().map(|(name, it)| text(name) + value(it));
    each.fold(0, usize::saturating_add)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::held::HeldCalls;
    use super::*;
    use crate::chat::Role;
    use crate::settings::RunSettings;

    fn run() -> RunState {
        RunState::new("r", "m", Vec::new(), RunSettings::default(), 0)
    }

    #[test]
    fn every_place_that_a_client_or_a_model_can_fill_is_weighed() {
        const MUCH: usize = 100_000;
        let much = "x".repeat(MUCH);
        let arguments = json!({"a": much}).as_object().cloned().unwrap_or_default();
        let call = NativeCall {
            id: "c".to_owned(),
            name: "t".to_owned(),
            arguments: arguments.clone(),
        };
        let empty = bytes(&run());
        let filled: [fn(&mut RunState, &str, &NativeCall); 9] = [
            |it, much, _| it.messages.push(Message::text(Role::User, much)),
            |it, _, call| {
                it.messages.push(Message {
                    calls: vec![call.clone()],
                    ..Message::text(Role::Assistant, "")
                });
            },
            |it, _, call| it.passed_on.clone_from(&call.arguments),
            |it, much, _| much.clone_into(&mut it.content),
            |it, much, _| much.clone_into(&mut it.reasoning),
            |it, _, call| {
                it.phase = Phase::Act(vec![PlannedCall {
                    name: "t".to_owned(),
                    arguments: call.arguments.clone(),
                    call_id: None,
                    mutating: false,
                    guess: false,
                    chained: None,
                    result: None,
                }]);
            },
            |it, _, call| {
                it.phase = Phase::Ended(Ending::Calls {
                    content: String::new(),
                    calls: vec![call.clone()],
                    left_out: Vec::new(),
                });
            },
            |it, _, call| {
                it.held = Some(HeldCalls {
                    calls: vec![call.clone()],
                    left_out: Vec::new(),
                });
            },
            |it, much, _| {
                it.phase = Phase::Ended(Ending::Calls {
                    content: String::new(),
                    calls: Vec::new(),
                    left_out: vec![CallLeftOut {
                        name: "t".to_owned(),
                        reason: much.to_owned(),
                    }],
                });
            },
        ];
        for (place, fill) in filled.iter().enumerate() {
            let mut state = run();
            fill(&mut state, &much, &call);
            let more = bytes(&state) - empty;
            assert!((MUCH..MUCH + 1000).contains(&more), "{place}: {more}");
        }
        // Two bytes on the wire each, and many more here.
        let mut state = run();
        state.passed_on.insert("a".to_owned(), json!(vec![1; MUCH]));
        assert!(bytes(&state) > MUCH * size_of::<Value>());
    }
}
