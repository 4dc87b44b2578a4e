//! The steps of a run as pure functions: no clock, no model, no tool.

use std::ops::Range;

use holdfast_contract::ErrorCode;
use holdfast_intent::{
    FinishReason, Intent, Parsed, Parser, Problem, Strategy, thoughts, without_thoughts,
};
use holdfast_reliability::guard::TOOL_ERROR_LIMIT_TAG;
use holdfast_toolbox::session::model::RESULT_ITEMS_MAX;

use super::reading::{is_only_thought, read};
use super::returning::Mode;
use super::state::{Effects, Ending, Phase, PlannedCall, RunErrorCode, RunState};
use super::wishes::{
    announces_only, chain, is_guess_to_make, keep_not_done, only_thought, was_denied,
};
use crate::chat::{Message, NativeCall, Role};
use crate::context::spend;
use crate::model::{MODEL_ERROR_CHARS_MAX, ModelReply};
use crate::results::{Brake, CallResult, batch};
use crate::settings::WhenUsedUp;

/// The way out for a model whose words were taken for a call.
const NO_CALL_MEANT: &str = "If you mean no call, write `Final Answer:` and then your answer.";

/// Calls of one reply that run.
pub const CALLS_PER_REPLY_MAX: usize = 32;

/// The run's time is up, and what a person has not answered by then.
pub fn timed_out(state: &mut RunState, waits_for: Option<&str>) {
    state.note_calls_under_way();
    state.note_not_made();
    let seconds = state.settings.run_timeout_ms / 1000;
    let mut why = format!("executor run exceeded timeout ({seconds} s)");
    if let Some(asked) = waits_for {
        why.push_str("; it waited for a person to answer ");
        why.push_str(asked);
    }
    state.fail(RunErrorCode::TimeoutExceeded, why);
}

/// What the model said goes into the books.
pub(super) fn note(state: &mut RunState, reply: &ModelReply) {
    state.iteration += 1;
    state.tokens.push(reply.tokens);
    state.content.clone_from(&reply.content);
    // What its server left in the text is thought as well, and is told as such.
    state.reasoning = if reply.reasoning.is_empty() {
        thoughts(&reply.content)
    } else {
        reply.reasoning.clone()
    };
}

/// The model has answered.
pub fn heard(state: &mut RunState, reply: &ModelReply, parser: &Parser) {
    let told_apart = only_thought(reply);
    let reply = told_apart.as_ref().unwrap_or(reply);
    note(state, reply);
    if state.settings.when_used_up == WhenUsedUp::Answer {
        state.said_a_call = says_a_call(reply, parser);
    }
    let parsed = read(state, reply, parser);
    let mut has_begun = false;
    let (runnable, others): (Vec<&Intent>, Vec<&Intent>) =
        parsed.intents.iter().partition(|intent| {
            let is_made =
                intent.is_runnable() || intent.is_refusable() || is_guess_to_make(state, intent);
            // What a call before it finds is what this one wants.
            let is_chained = has_begun && chain(intent).is_some();
            has_begun |= is_made;
            is_made || is_chained
        });
    keep_not_done(state, &parsed, &runnable, &others);
    // A server with calls of its own wants a result for each of them, also for one that is wrong.
    let is_native = others.iter().any(|intent| intent.call_id.is_some());
    if !runnable.is_empty() || is_native {
        let all: Vec<&Intent> = parsed.intents.iter().collect();
        state.messages.push(said(reply, &all));
        state.corrected = false;
        state.said_nothing = false;
        plan(state, &runnable, &others);
        return;
    }
    if asked_anew_for_nothing(state, reply) {
        return;
    }
    if let Some(correction) = correction(state, reply, &parsed, parser) {
        state.messages.push(said(reply, &[]));
        state.messages.push(Message::text(Role::User, correction));
        state.corrected = true;
        go_on(state);
        return;
    }
    answer_or_fail(state, reply, parsed, parser, None);
}

/// A model that said nothing at all is asked once more: that is no answer.
pub(super) fn asked_anew_for_nothing(state: &mut RunState, reply: &ModelReply) -> bool {
    let is_nothing = reply.finish != FinishReason::Length && is_empty(reply);
    let is_new = is_nothing && !state.said_nothing && !state.corrected;
    if is_new {
        state.said_nothing = true;
        go_on(state);
    }
    is_new
}

fn is_empty(reply: &ModelReply) -> bool {
    let mut texts = [&reply.content, &reply.reasoning].into_iter();
    reply.calls.is_null() && texts.all(|text| text.trim().is_empty())
}

/// Whether a model says nothing for the second time, and nothing explains it: no filter, no mark of the
/// client's at which it has to stop, and no tool whose result leaves nothing to be said.
fn fails_to_speak(state: &RunState, reply: &ModelReply) -> bool {
    let last = state.messages.last();
    state.said_nothing
        && is_empty(reply)
        && reply.finish == FinishReason::Stop
        && !reply.filtered
        && !state.passed_on.contains_key("stop")
        && state.tools_called.is_empty()
        && last.is_none_or(|message| message.answers.is_none())
}

/// The model has answered, and this part of its content was shown as its answer already.
pub(super) fn answered_live(
    state: &mut RunState,
    reply: &ModelReply,
    parser: &Parser,
    shown: Range<usize>,
) {
    note(state, reply);
    let begins = shown.start;
    let shown = reply.content.get(shown).unwrap_or_default();
    let parsed = parser.parse(&reply.content, reply.finish);
    // As it would be read if nobody had listened, unless that is not how it began.
    let read = parsed.final_text.filter(|text| text.starts_with(shown));
    let told = reply.content.get(begins..).unwrap_or_default().trim_end();
    answer(state, reply, Some(read.unwrap_or_else(|| told.to_owned())));
}

/// The run has its answer: what was meant for the user, else all that was said.
pub(super) fn answer(state: &mut RunState, reply: &ModelReply, final_text: Option<String>) {
    if fails_to_speak(state, reply) {
        let why = "the model said nothing, also when it was asked once more";
        state.fail(RunErrorCode::GptOssUnreachable, why);
        return;
    }
    let final_text = final_text.filter(|text| !text.trim().is_empty());
    let said = || {
        let said = without_thoughts(&reply.content).trim_start().to_owned();
        // Only thoughts are better than nothing.
        Some(said).filter(|text| !text.is_empty())
    };
    let content = final_text.or_else(said);
    let content = content.unwrap_or_else(|| nothing_more(state, reply));
    state.phase = Phase::Ended(Ending::Answered {
        content,
        cut_off: reply.finish == FinishReason::Length,
        filtered: reply.filtered,
    });
}

/// What stands in the place of an answer of a model that has ended without words.
fn nothing_more(state: &RunState, reply: &ModelReply) -> String {
    let is_explained =
        reply.finish == FinishReason::Length || reply.filtered || state.mode.demands_a_call();
    if is_explained {
        return reply.content.clone();
    }
    match state.tools_called.join(", ") {
        called if called.is_empty() => "(The model said nothing more.)".to_owned(),
        called => format!("(The model said nothing more. It has called: {called}.)"),
    }
}

/// The same for a reply that was read for calls. A call that can not be made is no answer, however
/// often the model says it: the run has failed, whoever was to make the call. A text that only looks
/// like one is the answer of a model that was told how to call and says it all the same.
pub(super) fn answer_or_fail(
    state: &mut RunState,
    reply: &ModelReply,
    parsed: Parsed,
    parser: &Parser,
    complaint: Option<String>,
) {
    let is_text = |text: &String| !text.trim().is_empty();
    // What is said beside a native call is about the call.
    let is_all_protocol = !reply.calls.is_null() || !is_text(&without_thoughts(&reply.content));
    let is_call = parsed.final_text.as_ref().is_none_or(|it| !is_text(it))
        && (says_a_call(reply, parser) || is_all_protocol && is_protocol(&parsed));
    if !is_call {
        answer(state, reply, parsed.final_text);
        return;
    }
    let how = if reply.filtered {
        "and was cut off by a filter of its server".to_owned()
    } else if reply.finish == FinishReason::Length {
        let most = state.settings.max_tokens;
        format!("in more than the {most} tokens that an answer may have, and was cut off")
    } else {
        "in a way that can not be run".to_owned()
    };
    let told = if state.corrected {
        ", also after it was told how to"
    } else {
        ""
    };
    let why = complaint.or_else(|| first_problem(&parsed));
    let why = why.map_or_else(String::new, |why| format!(": {}", in_brief(&why)));
    state.fail_for_good(
        RunErrorCode::ToolExecutionFailed,
        format!("the model asks for tools {how}{told}{why}"),
    );
}

/// A part of what the model's own words may be in.
pub(super) fn in_brief(text: &str) -> String {
    text.chars().take(MODEL_ERROR_CHARS_MAX).collect()
}

/// What keeps the first of the calls from being made.
fn first_problem(parsed: &Parsed) -> Option<String> {
    let of_call = parsed.intents.iter().find_map(|intent| {
        let problem = intent.problems.iter().find(|it| it.is_blocking())?;
        Some(format!("`{}`: {}", intent.name, problem.message()))
    });
    of_call.or_else(|| parsed.problems.first().map(Problem::message))
}

/// Whether what the model said aloud is a call.
pub(super) fn says_a_call(reply: &ModelReply, parser: &Parser) -> bool {
    is_protocol(&parser.parse(&reply.content, reply.finish))
        && !parser.only_speaks_of_calls(&reply.content, reply.finish)
}

/// Whether a reply is written for a program and not for a person. What is only guessed from prose, or
/// may be an example in it, is prose.
fn is_protocol(parsed: &Parsed) -> bool {
    let is_call = |intent: &Intent| {
        let is_broken = !intent.complete || intent.problems.iter().any(Problem::is_blocking);
        intent.strategy != Strategy::Fuzzy && (is_broken || intent.is_runnable())
    };
    parsed.intents.iter().any(is_call) || parsed.problems.contains(&Problem::LooksLikeFailedCall)
}

/// What the model said, as it goes into the history.
pub(super) fn said(reply: &ModelReply, runnable: &[&Intent]) -> Message {
    let native = |intent: &&Intent| {
        Some(NativeCall {
            id: intent.call_id.clone()?,
            name: intent.name.clone(),
            arguments: intent.arguments.clone(),
        })
    };
    // Thoughts are not repeated to the model, in whichever field its server puts them. But one that
    // only thought is told what it thought: else it would not know why it gets results.
    let aloud = without_thoughts(&reply.content);
    let content = [&aloud, &reply.content]
        .into_iter()
        .find(|text| !text.trim().is_empty())
        .unwrap_or(&reply.reasoning);
    let calls: Vec<NativeCall> = runnable.iter().filter_map(native).collect();
    // Some servers take no turn that has neither words nor calls.
    let content = if calls.is_empty() && content.trim().is_empty() {
        "(asks for a tool)"
    } else {
        content
    };
    Message {
        role: Role::Assistant,
        content: content.to_owned(),
        calls,
        answers: None,
    }
}

/// What the model is told of a wish that can not be made, as often as iterations remain. A reply that
/// may as well be an answer is asked about once in a row.
pub(super) fn correction(
    state: &RunState,
    reply: &ModelReply,
    parsed: &Parsed,
    parser: &Parser,
) -> Option<String> {
    // At the end of the iterations nobody can be asked, and what was said beside a thought is an answer.
    let may_be_answer =
        is_only_thought(parsed) || parser.only_speaks_of_calls(&reply.content, reply.finish);
    if may_be_answer && (state.corrected || state.is_used_up()) {
        return None;
    }
    let waits = parsed
        .intents
        .iter()
        .any(|intent| intent.problems.iter().any(Problem::is_blocking) || !intent.complete);
    let message = if !parsed.completed || waits {
        parser.corrective_message(parsed)?
    } else if announces_only(state, reply, parsed, parser) {
        parser.corrective_message(&Parsed {
            problems: vec![Problem::OnlyAnnounced],
            ..Parsed::default()
        })?
    } else {
        return None;
    };
    Some(match state.mode {
        Mode::Loop => format!("{message}\n{NO_CALL_MEANT}"),
        Mode::Return(_) => message,
    })
}

fn plan(state: &mut RunState, runnable: &[&Intent], others: &[&Intent]) {
    let mut calls: Vec<PlannedCall> = runnable
        .iter()
        .map(|intent| PlannedCall {
            name: intent.name.clone(),
            arguments: intent.arguments.clone(),
            call_id: intent.call_id.clone(),
            mutating: intent.mutating,
            guess: is_guess_to_make(state, intent) || was_denied(state, intent),
            chained: chain(intent),
            result: None,
        })
        .collect();
    for (place, call) in calls.iter_mut().enumerate() {
        if place >= CALLS_PER_REPLY_MAX {
            call.result = Some(not_run(format!(
                "not run: only the first {CALLS_PER_REPLY_MAX} calls of one reply run"
            )));
        }
    }
    for intent in others {
        let why: Vec<String> = intent.problems.iter().map(Problem::message).collect();
        let why = if why.is_empty() {
            "it was not clear enough that it was meant; ask for it in the given format".to_owned()
        } else {
            why.join("; ")
        };
        calls.push(PlannedCall {
            name: intent.name.clone(),
            arguments: intent.arguments.clone(),
            call_id: intent.call_id.clone(),
            mutating: intent.mutating,
            guess: false,
            chained: None,
            result: Some(not_run(format!("not run: {why}"))),
        });
    }
    if calls
        .iter()
        .any(|call| call.mutating && call.result.is_none())
    {
        // From here on a run that is cut off may have had an effect.
        state.effects = Effects::Possible;
    }
    state.phase = Phase::Act(calls);
    settle(state);
}

pub(super) fn not_run(why: String) -> CallResult {
    CallResult {
        text: why,
        ..CallResult::default()
    }
}

/// A call has ended. Results that come late, or for nobody, change nothing.
pub fn acted(state: &mut RunState, place: usize, result: CallResult) {
    let Phase::Act(calls) = &mut state.phase else {
        return;
    };
    let Some(call) = calls.get_mut(place).filter(|call| call.result.is_none()) else {
        return;
    };
    state.tools_called.push(call.name.clone());
    state.tools_ms = state.tools_ms.saturating_add(result.duration_ms);
    for made in &result.made {
        if state.made.len() < RESULT_ITEMS_MAX && !state.made.contains(made) {
            state.made.push(made.clone());
        }
    }
    if call.guess
        && result
            .text
            .starts_with(ErrorCode::PermissionDenied.as_str())
    {
        let denied = (call.name.clone(), call.arguments.clone());
        call.result = Some(result);
        state.denied.push(denied);
    } else {
        call.result = Some(result);
    }
    settle(state);
}

/// When all calls of the iteration have ended, their results go back to the model, in order.
pub(super) fn settle(state: &mut RunState) {
    let Phase::Act(calls) = &state.phase else {
        return;
    };
    if calls.iter().any(|call| call.result.is_none()) {
        return;
    }
    if let Some(why) = for_the_parent(state, calls) {
        state.fail(RunErrorCode::ToolExecutionFailed, why);
        return;
    }
    let mut lines = Vec::new();
    let mut answers = Vec::new();
    let (was_told, mut is_on) = (state.told_to_stop, false);
    for call in calls {
        let Some(result) = &call.result else { continue };
        // At the limit it reads that it is reached; the refusal after that tells it to answer.
        state.told_to_stop |= result.brake == Brake::On;
        is_on |= result.brake == Brake::On;
        match &call.call_id {
            Some(id) => answers.push(Message {
                answers: Some(id.clone()),
                ..Message::text(Role::Tool, result.text.clone())
            }),
            None => lines.push(result.line(&call.name)),
        }
    }
    state.messages.append(&mut answers);
    if !lines.is_empty() {
        state
            .messages
            .push(Message::text(Role::User, batch(&lines)));
    }
    if was_told && is_on {
        // It was told that no tool runs any more and to answer: whatever it calls next, it gets the same
        // answer, and each question costs.
        let message = format!(
            "{TOOL_ERROR_LIMIT_TAG} too many tool failures in this run, and the model went on calling tools"
        );
        state.fail(RunErrorCode::ToolExecutionFailed, message);
        return;
    }
    go_on(state);
}

/// What a subagent can not get right goes up, and its run is over. A run without a parent goes on:
/// its model was told to turn to the user. When all the wrong calls were made in one reply, the
/// model has not heard of them yet.
fn for_the_parent(state: &RunState, calls: &[PlannedCall]) -> Option<String> {
    state.parent.as_ref()?;
    let results = || calls.iter().filter_map(|call| call.result.as_ref());
    let wrong_here = results().filter(|result| result.wrong).count();
    results()
        .filter_map(|result| result.escalation.as_ref())
        .find(|found| wrong_here == 1 || found.attempts as usize > wrong_here)
        .map(ToString::to_string)
}

/// The model is asked again, unless a bound is reached.
pub(super) fn go_on(state: &mut RunState) {
    if state.is_used_up() {
        if state.settings.when_used_up == WhenUsedUp::Answer && !state.mode.demands_a_call() {
            let said = without_thoughts(&state.content).trim().to_owned();
            let is_answer = !said.is_empty() && !state.said_a_call;
            let none = || format!("(No answer after {} questions.)", state.iteration);
            state.phase = Phase::Ended(Ending::Answered {
                content: if is_answer { said } else { none() },
                cut_off: true,
                filtered: false,
            });
            return;
        }
        let message = format!("max iterations exceeded after {} attempts", state.iteration);
        state.fail(RunErrorCode::MaxIterationsExceeded, message);
        return;
    }
    if let Some(message) = spend::used_up(state) {
        state.fail(RunErrorCode::BudgetExceeded, message);
        return;
    }
    state.phase = Phase::Ask;
}

#[cfg(test)]
#[path = "step_nothing_tests.rs"]
mod nothing_tests;
#[cfg(test)]
#[path = "step_speech_tests.rs"]
mod speech_tests;
#[cfg(test)]
#[path = "step_tests.rs"]
mod tests;
#[cfg(test)]
#[path = "step_wishes_tests.rs"]
mod wishes_tests;
