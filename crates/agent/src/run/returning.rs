//! Runs whose calls are the client's to make: one reply in, dependable calls out.

use holdfast_intent::{Intent, Parser, Problem, without_thoughts};
use holdfast_toolbox::registry::Registry;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::{Ending, Phase, RunState};
use super::step::{answer, answer_or_fail, correction, go_on, note, read, said, says_a_call};
use crate::chat::{Message, NativeCall, Role};
use crate::model::ModelReply;
use crate::settings::WhenUsedUp;

/// Where the calls of a run go.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// To our own tools, until there is an answer.
    #[default]
    Loop,
    /// To the client, who has tools of its own.
    Return(ClientTools),
}

/// The tools of a client.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientTools {
    /// As the client wrote them.
    pub tools: Vec<Value>,
    /// Which of them the model may or has to call.
    pub choice: ToolChoice,
    /// How many calls the client takes at once.
    pub at_once: CallsAtOnce,
}

/// Which tools a model may or has to call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolChoice {
    /// As it sees fit.
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// This one.
    Named(String),
}

/// How many calls a client takes in one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallsAtOnce {
    /// One.
    One,
    /// As many as the model makes.
    Many,
}

impl ToolChoice {
    fn demands_a_call(&self) -> bool {
        matches!(self, Self::Required | Self::Named(_))
    }
}

/// The model has answered a client that has tools of its own. Calls that can be made go back as they
/// are; when there are only others, the model is asked once more.
pub fn heard_for_client(
    state: &mut RunState,
    reply: &ModelReply,
    parser: &Parser,
    registry: &Registry,
) {
    note(state, reply);
    if state.settings.when_used_up == WhenUsedUp::Answer {
        state.said_a_call = says_a_call(reply, parser);
    }
    let Mode::Return(client) = &state.mode else {
        return;
    };
    let (choice, at_once) = (client.choice.clone(), client.at_once);
    let parsed = read(state, reply, parser);
    if registry.iter().next().is_none() {
        // Nothing was offered, so nothing that looks like a call is one.
        answer(state, reply, parsed.final_text);
        return;
    }
    let mut complaints = Vec::new();
    let mut calls: Vec<&Intent> = Vec::new();
    for intent in parsed.intents.iter().filter(|intent| intent.is_runnable()) {
        match problem(registry, intent) {
            None => calls.push(intent),
            Some(why) => complaints.push(format!("`{}`: {why}", intent.name)),
        }
    }
    if at_once == CallsAtOnce::One {
        calls.truncate(1);
    }
    if !calls.is_empty() {
        let calls = named(&state.id, &calls);
        let content = if reply.calls.is_null() {
            String::new()
        } else {
            without_thoughts(&reply.content).trim().to_owned()
        };
        state.phase = Phase::Ended(Ending::Calls { content, calls });
        return;
    }
    let asks_back = if !complaints.is_empty() && !state.corrected {
        Some(complaints.join("\n"))
    } else if choice.demands_a_call() && !state.corrected {
        let how = parser.corrective_message(&parsed);
        Some(how.unwrap_or_else(|| "You have to call a tool, in the given format.".to_owned()))
    } else {
        correction(state, &parsed, parser)
    };
    if let Some(text) = asks_back {
        state.messages.push(said(reply, &[]));
        state.messages.push(Message::text(Role::User, text));
        state.corrected = true;
        go_on(state);
        return;
    }
    answer_or_fail(state, reply, parsed, parser);
}

/// What the tool's schema has against a call.
fn problem(registry: &Registry, intent: &Intent) -> Option<String> {
    match registry.get(&intent.name) {
        Some(found) => found.problem_with(&Value::Object(intent.arguments.clone())),
        None => Some(
            Problem::UnknownTool {
                name: intent.name.clone(),
                similar: Vec::new(),
            }
            .message(),
        ),
    }
}

/// Names that no other answer's calls have: servers use `call_0` again and again.
fn named(run: &str, calls: &[&Intent]) -> Vec<NativeCall> {
    let digits: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
    let tail: String = digits.iter().rev().take(20).rev().collect();
    let name = |(place, intent): (usize, &&Intent)| NativeCall {
        id: format!("call_{tail}{place:02}"),
        name: intent.name.clone(),
        arguments: intent.arguments.clone(),
    };
    calls.iter().enumerate().map(name).collect()
}

#[cfg(test)]
mod tests {
    use holdfast_intent::{FinishReason, Strategy, ToolSet, ToolSpec};
    use serde_json::json;

    use super::*;
    use crate::run::RunErrorCode;
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
        let specs = client.tools.iter().filter_map(ToolSpec::from_json);
        let parser = Parser::new(ToolSet::new(specs.collect()))
            .with_strategies(Strategy::React, Some(Strategy::Auto));
        let registry = client.registry().unwrap();
        let task = Message::text(Role::User, "How is the weather?");
        let settings = RunSettings::default();
        let mut state = RunState::new("run-1", "gpt-oss-tools", vec![task], settings, 0);
        state.mode = Mode::Return(client.clone());
        while state.phase == Phase::Ask {
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

    /// A client that gets nothing takes that for the answer.
    /// A native call whose arguments do not fit, with these words beside it.
    fn calls_wrongly(words: &str) -> ModelReply {
        let call = json!({"id": "c", "type": "function",
            "function": {"name": "get_weather", "arguments": "{\"city\": \"B\"}"}});
        let mut reply = says(words, FinishReason::Stop);
        reply.calls = json!({"content": words, "tool_calls": [call]});
        reply
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
                assert_eq!(error.message.contains("cut off"), is_cut, "{error}");
                assert_eq!(state.iteration, 2, "it was told how to, once");
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
        let Some(Ending::Calls { content, calls }) = state.ending() else {
            panic!("{:?}", state.phase)
        };
        assert_eq!((content.as_str(), calls.len()), ("I look.", 1));
    }
}
