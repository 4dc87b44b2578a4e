//! Runs whose calls are the client's to make: one reply in, dependable calls out.

use std::collections::HashSet;

use holdfast_intent::{
    FinishReason, Intent, Parsed, Parser, Problem, Strategy, ToolSpec, without_thoughts,
};
use holdfast_toolbox::registry::Registry;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::held::{HeldCalls, UNREAD};
use super::reading::read;
use super::state::{CallLeftOut, Ending, Phase, RunErrorCode, RunState};
use super::step::{
    answer, answer_or_fail, asked_anew_for_nothing, correction, go_on, in_brief, note, said,
    says_a_call,
};
use crate::chat::{Message, NativeCall, Role};
use crate::context::spend;
use crate::model::ModelReply;
use crate::settings::WhenUsedUp;

/// What a model hears that calls a tool where it has none.
const NO_TOOLS: &str = "No tool can be called here. Answer in words.";

/// What a model hears whose first call is wrong, where one is made at a time.
const ONE_AT_A_TIME: &str =
    "One call is made at a time, and none of yours was made yet. Make the first one again, mended.";

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
/// are; when there are others, the model is asked for those once more, and what stays wrong is named.
/// Nothing that was right is lost by asking: whatever comes then, or does not come.
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
    if demand.is_none() && !state.holds_calls() && asked_anew_for_nothing(state, reply) {
        return;
    }
    let mut parsed = read(state, reply, parser);
    if let Mode::Return(client) = &state.mode {
        tell_of_the_named(&mut parsed, client);
    }
    let Checked {
        mut calls,
        misfits,
        others,
    } = checked(registry, &parsed);
    if at_once == CallsAtOnce::One {
        calls.truncate(1);
    }
    let first = parsed.intents.first();
    // A client that takes one call has the first, and misses no other.
    let is_all_wanted = at_once == CallsAtOnce::One && first == calls.first().copied();
    let mut left_out = [misfits.as_slice(), &others].concat();
    left_out.retain(|_| !is_all_wanted);
    let wrong = how_wrong(&misfits, parser, &parsed);
    let calls: Vec<NativeCall> = calls.into_iter().map(unnamed).collect();
    if let Some(held) = state.held.take_if(|it| it.has_calls() || !calls.is_empty()) {
        let words = parsed.final_text.as_deref().unwrap_or_default();
        let said = beside(reply, words);
        let made = match at_once {
            CallsAtOnce::One => held.or(calls, left_out),
            CallsAtOnce::Many => held.and(calls, left_out),
        };
        end_with(state, said, made);
        return;
    }
    if !calls.is_empty() {
        let held = HeldCalls { calls, left_out };
        if held.left_out.is_empty() || !may_be_asked_back(state) {
            end_with(state, beside(reply, ""), held);
            return;
        }
        let others = match at_once {
            CallsAtOnce::One => ONE_AT_A_TIME.to_owned(),
            CallsAtOnce::Many => held.are_made(),
        };
        state.held = Some(held);
        let wrong = wrong.unwrap_or_default();
        ask_back(state, reply, format!("{wrong}\n{others}"));
        return;
    }
    let asks_back = match &demand {
        _ if state.corrected => None,
        // Nobody is asked any more, and what is wrong is that the demand was not met.
        Some(_) if state.is_used_up() => None,
        _ if !misfits.is_empty() => wrong,
        Some(demand) => Some(
            wrong.unwrap_or_else(|| format!("You have to make {demand}, in the given format.")),
        ),
        None => correction(state, reply, &parsed, parser),
    };
    if let Some(text) = asks_back {
        // What does not come again is named beside what does.
        state.held = Some(HeldCalls { calls, left_out });
        ask_back(state, reply, text);
        return;
    }
    let complaint = misfits.first().map(CallLeftOut::to_string);
    answer_or_fail(state, reply, parsed, parser, complaint);
    if let Some(demand) = demand {
        refuse_words(state, &demand, reply.finish);
    }
}

/// What is said beside calls; `words` where they were written as such.
fn beside(reply: &ModelReply, words: &str) -> String {
    if reply.calls.is_null() {
        words.to_owned()
    } else {
        without_thoughts(&reply.content).trim().to_owned()
    }
}

/// The calls are the client's to make.
fn end_with(state: &mut RunState, content: String, made: HeldCalls) {
    state.phase = Phase::Ended(Ending::Calls {
        content,
        calls: named(&state.id, made.calls),
        left_out: made.left_out,
    });
}

/// A run that failed while it asked for the calls that were wrong has those that were right.
pub(super) fn end_with_held(state: &mut RunState) {
    if matches!(state.ending(), Some(Ending::Failed(_)))
        && let Some(held) = state.held.take_if(|it| it.has_calls())
    {
        end_with(state, String::new(), held);
    }
}

/// The model hears what is wrong, and is asked again.
fn ask_back(state: &mut RunState, reply: &ModelReply, text: impl Into<String>) {
    state.messages.push(said(reply, &[]));
    state.messages.push(Message::text(Role::User, text));
    state.corrected = true;
    go_on(state);
}

/// Whether asking back would end in anything but the loss of what is right.
fn may_be_asked_back(state: &RunState) -> bool {
    !state.corrected && !state.is_used_up() && spend::used_up(state).is_none()
}

/// A tool that the client has, and does not want called now, is no unknown one.
fn tell_of_the_named(parsed: &mut Parsed, client: &ClientTools) {
    let ToolChoice::Named(only) = &client.choice else {
        return;
    };
    let specs = client.tools.iter().filter_map(ToolSpec::from_json);
    let clients: HashSet<String> = specs.map(|spec| spec.name).collect();
    let of_calls = parsed.intents.iter_mut().flat_map(|it| &mut it.problems);
    for problem in of_calls.chain(&mut parsed.problems) {
        if let Problem::UnknownTool { name, .. } = problem
            && clients.contains(name)
        {
            *problem = Problem::NotNow {
                name: std::mem::take(name),
                only: only.clone(),
            };
        }
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
    ask_back(state, reply, NO_TOOLS);
}

/// The calls of a reply, by whether they can be made.
struct Checked<'p> {
    calls: Vec<&'p Intent>,
    /// Those that the schemas have something against.
    misfits: Vec<CallLeftOut>,
    /// Those that could not be read as calls of a tool that is there; they count beside `calls` only.
    others: Vec<CallLeftOut>,
}

fn checked<'p>(registry: &Registry, parsed: &'p Parsed) -> Checked<'p> {
    let (mut calls, mut misfits, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for intent in &parsed.intents {
        let left_out = |why: String| CallLeftOut {
            name: intent.name.clone(),
            reason: in_brief(&why),
        };
        if !intent.is_runnable() {
            others.extend(why_not(intent).map(left_out));
        } else if let Some(why) = problem(registry, intent) {
            misfits.push(left_out(why));
        } else {
            calls.push(intent);
        }
    }
    for problem in &parsed.problems {
        let name = match problem {
            Problem::UnknownTool { name, .. } | Problem::NotNow { name, .. } => name,
            Problem::Truncated
            | Problem::LooksLikeFailedCall
            | Problem::TooManyIntents
            | Problem::ReadingGivenUp => UNREAD,
            _ => continue,
        };
        others.push(CallLeftOut {
            name: name.to_owned(),
            reason: in_brief(&problem.message()),
        });
    }
    Checked {
        calls,
        misfits,
        others,
    }
}

/// What is wrong with a call. One that waits for the result of another is not wrong, and prose is no call.
fn why_not(intent: &Intent) -> Option<String> {
    let is_wrong = |it: &&Problem| it.is_blocking() && !matches!(it, Problem::Placeholder { .. });
    let problem = intent.problems.iter().find(is_wrong)?;
    (intent.strategy != Strategy::Fuzzy).then(|| problem.message())
}

/// All that is wrong with the calls of a reply, for the model.
fn how_wrong(misfits: &[CallLeftOut], parser: &Parser, parsed: &Parsed) -> Option<String> {
    let told = misfits.iter().map(CallLeftOut::to_string);
    let told: Vec<String> = told.chain(parser.corrective_message(parsed)).collect();
    (!told.is_empty()).then(|| told.join("\n"))
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

/// A call that has no name yet.
fn unnamed(intent: &Intent) -> NativeCall {
    NativeCall {
        id: String::new(),
        name: intent.name.clone(),
        arguments: intent.arguments.clone(),
    }
}

/// Names that no other answer's calls have: servers use `call_0` again and again.
fn named(run: &str, mut calls: Vec<NativeCall>) -> Vec<NativeCall> {
    let digits: Vec<char> = run.chars().filter(char::is_ascii_alphanumeric).collect();
    let tail: String = digits.iter().rev().take(20).rev().collect();
    for (place, call) in calls.iter_mut().enumerate() {
        call.id = format!("call_{tail}{place:02}");
    }
    calls
}

#[cfg(test)]
#[path = "returning_tests.rs"]
mod tests;
