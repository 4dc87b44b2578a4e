//! What a reply asks for: calls of the server's, of what was said, and of what was only thought.

use std::collections::HashSet;

use holdfast_intent::{
    FUZZY_MUTATING_MAX, FinishReason, Intent, OPENED_THOUGHT_START, Parsed, Parser, Problem,
    Strategy, without_thoughts,
};

use super::returning::Mode;
use super::state::RunState;
use crate::model::ModelReply;
use crate::settings::SourceField;

/// Reads what the model asks for. Nothing was decided on in a thought that was cut off.
pub(super) fn read(state: &RunState, reply: &ModelReply, parser: &Parser) -> Parsed {
    if reply.cut_in_thought {
        return read_in_thought(&reply.reasoning, parser);
    }
    let mut parsed = read_fields(state, reply, parser);
    if reply.perhaps_in_thought {
        leave_undecided(&mut parsed.intents);
    }
    parsed
}

/// Reads a native call where there is one, else the fields that are to be read.
fn read_fields(state: &RunState, reply: &ModelReply, parser: &Parser) -> Parsed {
    if !reply.calls.is_null() {
        let mut native = parser.parse_reply(&reply.calls, reply.finish);
        if !native.intents.is_empty() {
            tell_apart(&mut native.intents, state.iteration);
            return native;
        }
    }
    let settings = &state.settings;
    let read = |which: SourceField, text: &str| {
        let is_read = [settings.source_field, settings.fallback_field].contains(&which);
        (is_read && !text.trim().is_empty()).then(|| parser.parse(text, reply.finish))
    };
    let thought = read(SourceField::Reasoning, &reply.reasoning);
    let said = read(SourceField::Content, &reply.content);
    match (thought, said) {
        (Some(thought), Some(said)) => both(state, reply, parser, thought, said),
        (one, other) => one
            .or(other)
            .unwrap_or_else(|| parser.parse("", reply.finish)),
    }
}

/// A reply that was thought and said. A call in the content or a marked answer counts first. Beside
/// nothing, or an announcement, the thought says what to do. An answer in words beats a guess at a
/// thought's prose, and a structured call beside it is asked about unless it only reads.
fn both(
    state: &RunState,
    reply: &ModelReply,
    parser: &Parser,
    mut thought: Parsed,
    said: Parsed,
) -> Parsed {
    let is_first = state.settings.source_field == SourceField::Content;
    let is_said = is_first && !said.intents.is_empty() || is_a_call(&said) || said.signalled;
    let is_no_wish = thought.intents.is_empty() && thought.completed;
    if is_no_wish || is_said {
        return said;
    }
    let aloud = without_thoughts(&reply.content);
    let is_announced =
        || parser.announces(aloud.trim(), reply.finish) && is_same_wish(&said, &thought);
    if !aloud.contains(char::is_alphanumeric) || is_announced() {
        return thought;
    }
    // Nobody knows what the tools of a client do.
    let is_ours = state.mode == Mode::Loop;
    let may_run = |intent: &Intent| is_ours && !intent.mutating && intent.is_runnable();
    thought
        .intents
        .retain(|intent| intent.strategy != Strategy::Fuzzy);
    if thought.intents.is_empty() {
        return said;
    }
    for intent in &mut thought.intents {
        if !may_run(intent) {
            leave_to_be_said(intent);
        }
    }
    // It is the answer when the model stays with it.
    thought.final_text = said.final_text;
    thought
}

/// Whether an announcement wants nothing but what was thought: "I'll run `make check` instead" does.
fn is_same_wish(said: &Parsed, thought: &Parsed) -> bool {
    said.intents.iter().all(|wish| {
        thought.intents.iter().any(|call| {
            let has = |(name, value)| call.arguments.get(name) == Some(value);
            call.name == wish.name && wish.arguments.iter().all(has)
        })
    })
}

/// Whether a text has a call in a form of calls, also one that can not be read.
fn is_a_call(said: &Parsed) -> bool {
    said.problems.contains(&Problem::LooksLikeFailedCall)
        || said.intents.iter().any(|it| it.strategy != Strategy::Fuzzy)
}

/// A call that was only thought of is a guess, like one from prose.
fn leave_to_be_said(intent: &mut Intent) {
    intent.confidence = intent.confidence.min(FUZZY_MUTATING_MAX);
    // It says what the other does, and what to do where it is not meant.
    intent
        .problems
        .retain(|it| *it != Problem::NeedsConfirmation);
    intent.problems.push(Problem::OnlyThought);
}

/// Whether a reply is held up by nothing but calls that were only thought of, beside words.
pub(super) fn is_only_thought(parsed: &Parsed) -> bool {
    let of_thoughts = |intent: &Intent| intent.problems.contains(&Problem::OnlyThought);
    !parsed.intents.is_empty() && parsed.intents.iter().all(of_thoughts)
}

/// A thought that was cut off: no call in it was decided on, and nothing in it is an answer.
fn read_in_thought(thought: &str, parser: &Parser) -> Parsed {
    let text = format!("{OPENED_THOUGHT_START}{thought}");
    let mut parsed = parser.parse(&text, FinishReason::Length);
    parsed.final_text = None;
    leave_undecided(&mut parsed.intents);
    parsed
}

/// Whatever was thought of went on, and the end never came.
fn leave_undecided(intents: &mut [Intent]) {
    for intent in intents.iter_mut().filter(|intent| intent.complete) {
        intent.complete = false;
        intent.problems.push(Problem::Truncated);
    }
}

/// Servers give two calls of one reply the same id, or none. A result has to find its own call.
fn tell_apart(intents: &mut [Intent], iteration: u32) {
    let mut used = HashSet::new();
    for (place, intent) in intents.iter_mut().enumerate() {
        let given = intent.call_id.take().filter(|id| !id.trim().is_empty());
        let mut id = given.unwrap_or_else(|| format!("call_{iteration}_{place}"));
        while !used.insert(id.clone()) {
            id = format!("{id}_{place}");
        }
        intent.call_id = Some(id);
    }
}

#[cfg(test)]
#[path = "reading_tests.rs"]
mod tests;
