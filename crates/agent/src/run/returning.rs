//! Runs whose calls are the client's to make: one reply in, dependable calls out.

use holdfast_intent::{FinishReason, Intent, Parsed, Parser, Problem, without_thoughts};
use holdfast_toolbox::registry::Registry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::state::{Ending, Phase, RunErrorCode, RunState};
use super::step::{
    answer, answer_or_fail, asked_anew_for_nothing, correction, go_on, note, read, said,
    says_a_call,
};
use crate::chat::{Message, NativeCall, Role};
use crate::model::ModelReply;
use crate::settings::WhenUsedUp;

/// What a model hears that calls a tool where it has none.
const NO_TOOLS: &str = "No tool can be called here. Answer in words.";

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

impl ClientTools {
    /// Tells a server that has calls of its own what the client wants of them: it may be able to see
    /// to it while the model writes. What is wanted anyway is not said, since not all servers take it.
    pub(super) fn wishes(&self, body: &mut Value) {
        match &self.choice {
            ToolChoice::Auto | ToolChoice::None => {}
            ToolChoice::Required => body["tool_choice"] = json!("required"),
            ToolChoice::Named(name) => {
                body["tool_choice"] = json!({"type": "function", "function": {"name": name}});
            }
        }
        if self.at_once == CallsAtOnce::One {
            body["parallel_tool_calls"] = json!(false);
        }
    }
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
    /// The call that has to come, in words; none where the model may answer otherwise.
    fn demand(&self) -> Option<String> {
        match self {
            Self::Auto | Self::None => None,
            Self::Required => Some("a call of one of the tools".to_owned()),
            Self::Named(name) => Some(format!("a call of `{name}`")),
        }
    }
}

impl Mode {
    /// Whether nothing but a call may end the run well: clients that demand one read no words.
    pub fn demands_a_call(&self) -> bool {
        matches!(self, Self::Return(client) if client.choice.demand().is_some())
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
    let (demand, at_once) = (client.choice.demand(), client.at_once);
    if registry.iter().next().is_none() {
        heard_without_tools(state, reply, parser);
        return;
    }
    if demand.is_none() && asked_anew_for_nothing(state, reply) {
        return;
    }
    let parsed = read(state, reply, parser);
    let (mut calls, complaints) = checked(registry, &parsed);
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
    let asks_back = match &demand {
        _ if state.corrected => None,
        // Nobody is asked any more, and what is wrong is that the demand was not met.
        Some(_) if state.is_used_up() => None,
        _ if !complaints.is_empty() => Some(complaints.join("\n")),
        Some(demand) => {
            let how = parser.corrective_message(&parsed);
            Some(how.unwrap_or_else(|| format!("You have to make {demand}, in the given format.")))
        }
        None => correction(state, &parsed, parser),
    };
    if let Some(text) = asks_back {
        state.messages.push(said(reply, &[]));
        state.messages.push(Message::text(Role::User, text));
        state.corrected = true;
        go_on(state);
        return;
    }
    let complaint = complaints.into_iter().next();
    answer_or_fail(state, reply, parsed, parser, complaint);
    if let Some(demand) = demand {
        refuse_words(state, &demand, reply.finish);
    }
}

/// The model has answered a client that offers no tools, so nothing that looks like a call is one. One
/// that says nothing beside such a call has said nothing, and hears so once.
fn heard_without_tools(state: &mut RunState, reply: &ModelReply, parser: &Parser) {
    let says_something = !without_thoughts(&reply.content).trim().is_empty();
    let is_still_nothing = state.corrected && !says_something && reply.reasoning.is_empty();
    if says_something || reply.calls.is_null() && !is_still_nothing {
        let words = ModelReply {
            calls: Value::Null,
            ..reply.clone()
        };
        if !asked_anew_for_nothing(state, &words) {
            let parsed = read(state, &words, parser);
            answer(state, &words, parsed.final_text);
        }
        return;
    }
    if state.corrected || state.is_used_up() {
        let why = match (reply.calls.is_null(), state.corrected) {
            (true, _) => {
                "the model asked for tools where none may be called, and says nothing else"
            }
            (false, true) => {
                "the model asks for tools where none may be called, also after it was told that there are none"
            }
            (false, false) => "the model asks for tools where none may be called",
        };
        state.fail_for_good(RunErrorCode::ToolExecutionFailed, why);
        return;
    }
    state.messages.push(said(reply, &[]));
    state.messages.push(Message::text(Role::User, NO_TOOLS));
    state.corrected = true;
    go_on(state);
}

/// The calls that can be made, and what the schemas have against the others.
fn checked<'p>(registry: &Registry, parsed: &'p Parsed) -> (Vec<&'p Intent>, Vec<String>) {
    let (mut calls, mut complaints) = (Vec::new(), Vec::new());
    for intent in parsed.intents.iter().filter(|intent| intent.is_runnable()) {
        match problem(registry, intent) {
            None => calls.push(intent),
            Some(why) => complaints.push(format!("`{}`: {why}", intent.name)),
        }
    }
    (calls, complaints)
}

/// A client that demanded a call can do nothing with words, and would take them for a call that went
/// missing: what a server that forces calls promises is that one comes.
fn refuse_words(state: &mut RunState, demand: &str, finish: FinishReason) {
    let Some(Ending::Answered { content, .. }) = state.ending() else {
        return;
    };
    let came = came_instead(content, finish);
    let told = if state.corrected {
        "also after it was told to call"
    } else {
        "and may not be asked again"
    };
    let why = format!("tool_choice demands {demand}, and the model answered with {came}, {told}");
    // It was asked twice already: a client that repeats by itself would pay for it time and again.
    state.fail_for_good(RunErrorCode::ToolExecutionFailed, why);
}

/// What a model gave in place of a call, in words. What it said is told beside the error.
fn came_instead(said: &str, finish: FinishReason) -> &'static str {
    match (said.trim().is_empty(), finish) {
        (true, _) => "nothing",
        (false, FinishReason::Length) => "words that were cut off",
        (false, _) => "words",
    }
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
    use holdfast_intent::{Strategy, ToolSet, ToolSpec};

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
        let specs = client.tools.iter().filter_map(ToolSpec::from_json);
        let parser = Parser::new(ToolSet::new(specs.collect()))
            .with_strategies(Strategy::React, Some(Strategy::Auto));
        let registry = client.registry().unwrap();
        let task = Message::text(Role::User, "How is the weather?");
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
        let Some(Ending::Calls { content, calls }) = state.ending() else {
            panic!("{:?}", state.phase)
        };
        assert_eq!((content.as_str(), calls.len()), ("I look.", 1));
    }
}
