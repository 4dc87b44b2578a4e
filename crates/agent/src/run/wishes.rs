//! Wishes that are no plain calls: guesses at prose, calls that want what an earlier one finds, and what
//! nothing came of.

use holdfast_intent::{FinishReason, Intent, Parsed, Parser, Problem, thoughts, without_thoughts};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::held::UNREAD;
use super::returning::Mode;
use super::state::{NotDone, Phase, PlannedCall, RunState};
use super::step::{CALLS_PER_REPLY_MAX, in_brief, not_run, settle};
use crate::model::ModelReply;
use crate::settings::MutatingGuess;

/// Words for a place in a list, and the place.
const PLACES: &[(&str, usize)] = &[
    ("first", 0),
    ("top", 0),
    ("best", 0),
    ("results", 0),
    ("second", 1),
    ("third", 2),
];
/// What stands around an address in a result and is no part of it.
const AROUND_ADDRESS: &[char] = &['"', '\'', '<', '>', ']', '}', '\\', '|', '`', '*'];

/// An argument that an earlier result holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chain {
    /// Its name.
    pub argument: String,
    /// Which of the addresses in that result it is, from 0.
    pub place: usize,
}

/// Whether the settings let a guess at prose go on, of a tool that changes things.
pub(super) fn is_guess_to_make(state: &RunState, intent: &Intent) -> bool {
    let is_guess = intent.complete
        && intent.problems.contains(&Problem::NeedsConfirmation)
        && intent
            .problems
            .iter()
            .all(|it| *it == Problem::NeedsConfirmation || !it.is_blocking());
    is_guess
        && match state.settings.mutating_guess {
            MutatingGuess::AskModel => false,
            MutatingGuess::AskPerson => true,
            MutatingGuess::Run => intent.confidence >= state.settings.mutating_guess_min,
        }
}

/// A reply that is a thought between tags and nothing else, as of a server that tells thoughts apart.
pub(super) fn only_thought(reply: &ModelReply) -> Option<ModelReply> {
    let is_whole = reply.finish != FinishReason::Length && !reply.cut_in_thought;
    let is_plain = reply.calls.is_null() && reply.reasoning.trim().is_empty();
    if !is_whole || !is_plain || !without_thoughts(&reply.content).trim().is_empty() {
        return None;
    }
    let reasoning = thoughts(&reply.content);
    (!reasoning.trim().is_empty()).then(|| ModelReply {
        reasoning,
        content: String::new(),
        ..reply.clone()
    })
}

/// A person has said no to this call when it was only a guess. Saying it as a call changes nothing.
pub(super) fn was_denied(state: &RunState, intent: &Intent) -> bool {
    let mut denied = state.denied.iter();
    denied.any(|(tool, arguments)| *tool == intent.name && *arguments == intent.arguments)
}

/// Notes what the model wants and does not get. A wish stays noted until a call of its tool is made.
pub(super) fn keep_not_done(
    state: &mut RunState,
    parsed: &Parsed,
    runnable: &[&Intent],
    others: &[&Intent],
) {
    let wanted = not_done(parsed, others);
    let is_made = |wish: &NotDone| {
        let mut made = runnable.iter();
        made.any(|intent| wish.tool == intent.name || wish.tool == UNREAD)
    };
    let is_wanted_again = |wish: &NotDone| wanted.iter().any(|it| it.tool == wish.tool);
    state
        .not_done
        .retain(|wish| !is_made(wish) && !is_wanted_again(wish));
    let room = CALLS_PER_REPLY_MAX.saturating_sub(state.not_done.len());
    state.not_done.extend(wanted.into_iter().take(room));
}

/// What the model wanted and is not made, each with the reason.
fn not_done(parsed: &Parsed, others: &[&Intent]) -> Vec<NotDone> {
    let why = |problems: &[Problem]| {
        let told = problems.iter().filter(|it| it.is_blocking());
        let told: Vec<String> = told.map(Problem::message).collect();
        in_brief(&told.join(" "))
    };
    let brief = |value: &Value| match value {
        Value::String(text) => Value::String(in_brief(text)),
        other => other.clone(),
    };
    let calls = others.iter().map(|intent| NotDone {
        tool: intent.name.clone(),
        arguments: intent
            .arguments
            .iter()
            .map(|(name, value)| (name.clone(), brief(value)))
            .collect(),
        why: why(&intent.problems),
    });
    let is_wish = |problem: &&Problem| {
        matches!(
            problem,
            Problem::LooksLikeFailedCall | Problem::UnknownTool { .. }
        )
    };
    let unread = parsed.problems.iter().filter(is_wish).map(|problem| {
        let tool = match problem {
            Problem::UnknownTool { name, .. } => name.clone(),
            _ => UNREAD.to_owned(),
        };
        NotDone {
            tool,
            arguments: Map::new(),
            why: problem.message(),
        }
    });
    calls.chain(unread).take(CALLS_PER_REPLY_MAX).collect()
}

/// The address in an earlier result that this call wants: "then fetch the top result". Only tools that
/// change nothing are called with what a result says.
pub(super) fn chain(intent: &Intent) -> Option<Chain> {
    let mut blocking = intent.problems.iter().filter(|it| it.is_blocking());
    let (Some(Problem::Placeholder { argument, text }), None) = (blocking.next(), blocking.next())
    else {
        return None;
    };
    if intent.mutating || !intent.complete || argument != "url" {
        return None;
    }
    let lower = text.to_lowercase();
    let mut words = lower.split(|letter: char| !letter.is_alphanumeric());
    let place = words.find_map(|said| PLACES.iter().find(|(word, _)| said == *word));
    let (_, place) = place?;
    Some(Chain {
        argument: argument.clone(),
        place: *place,
    })
}

/// A planned call as it is made, with the address that it takes from a result before it. A call that finds
/// none is over, and the model is told so.
pub(super) fn filled(state: &mut RunState, place: usize) -> Option<PlannedCall> {
    let Phase::Act(calls) = &mut state.phase else {
        return None;
    };
    let Some(chain) = calls.get_mut(place)?.chained.take() else {
        return Some(calls[place].clone());
    };
    let found = addresses(&calls[..place]).into_iter().nth(chain.place);
    let call = &mut calls[place];
    if let Some(address) = found {
        call.arguments.insert(chain.argument, address.into());
        return Some(call.clone());
    }
    let why = format!(
        "not run: no search so far has the `{}` for it",
        chain.argument
    );
    call.result = Some(not_run(why));
    settle(state);
    None
}

/// The addresses in the latest result of a search that has any, in its order.
fn addresses(calls: &[PlannedCall]) -> Vec<String> {
    let searches = calls.iter().rev().filter(|it| it.name.contains("search"));
    let results = searches.filter_map(|call| call.result.as_ref());
    let mut found = results.filter(|result| result.ok).map(|result| {
        let mut all: Vec<String> = Vec::new();
        let starts = result.text.match_indices("http").map(|(at, _)| at);
        for rest in starts.map(|at| &result.text[at..]) {
            let is_end = |sign: char| sign.is_whitespace() || AROUND_ADDRESS.contains(&sign);
            let address = rest.split(is_end).next().unwrap_or_default();
            let address = without_stray_closer(address.trim_end_matches(['.', ',', ';']));
            let is_address = address.starts_with("http://") || address.starts_with("https://");
            if is_address && !all.iter().any(|known| known == address) {
                all.push(address.to_owned());
            }
        }
        all
    });
    found.find(|all| !all.is_empty()).unwrap_or_default()
}

/// `(https://a.example/b)` ends before the bracket, `https://a.example/b_(c)` behind it.
fn without_stray_closer(address: &str) -> &str {
    let count = |sign: char| address.matches(sign).count();
    match address.find(')') {
        Some(at) if count(')') > count('(') => &address[..at],
        _ => address,
    }
}

/// Whether a reply says what its model does next, and nothing was found to do. It may be meant as an
/// answer all the same, so it is asked about once in a row.
pub(super) fn announces_only(
    state: &RunState,
    reply: &ModelReply,
    parsed: &Parsed,
    parser: &Parser,
) -> bool {
    let mut texts = [&reply.content, &reply.reasoning].into_iter();
    let said = texts.find(|text| !text.trim().is_empty());
    state.mode == Mode::Loop
        && !(state.corrected || state.is_used_up() || parsed.signalled)
        && reply.finish != FinishReason::Length
        && !parser.tools().tools().is_empty()
        && said.is_some_and(|text| parser.announces(text, reply.finish))
}
