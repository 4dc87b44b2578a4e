//! `Thought:` / `Action:` / `Action Input:` / `Final Answer:`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, MatchKind};

use super::{Found, pythonic, sure};
use crate::doc::Doc;
use crate::json::{self, Ending};
use crate::limits::NAME_BYTES_MAX;
use crate::model::Strategy;
use crate::raw::{Args, RawCall, args_of_value};
use crate::steps::visit;

/// Words for "nothing more to do" in the place of a tool's name.
const DONE_WORDS: &[&str] = &[
    "done",
    "finish",
    "final answer",
    "final_answer",
    "none",
    "n/a",
    "no action",
];
const LABELS: &[&str] = &[
    "Observation:",
    "Thought:",
    "Action:",
    "Final Answer:",
    "Question:",
    "**Observation",
    "**Thought",
    "**Action",
];

/// Whether only marks stand between the line's start and `at`.
pub(crate) fn at_line_start(text: &str, at: usize) -> bool {
    let line = crate::doc::line_start(text, at);
    text[line..at]
        .chars()
        .all(|letter| matches!(letter, ' ' | '\t' | '*' | '#' | '-' | '_'))
}

/// `Assistant: Action: read`, when its input follows on the next line.
fn behind_label(text: &str, at: usize, after: usize) -> bool {
    let line = crate::doc::line_start(text, at);
    let next = &text[after + crate::doc::line_rest(text, after).len()..];
    text[line..at].trim_end().ends_with(':') && input_at_start(next.trim_start()).is_some()
}

/// `Action: NAME` and its input.
pub(crate) fn action(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let text = doc.text;
    if !at_line_start(text, at) && !behind_label(text, at, after) {
        return None;
    }
    let line_end =
        memchr::memchr(b'\n', &text.as_bytes()[after..]).map_or(text.len(), |found| after + found);
    let mut line = &text[after..line_end];
    doc.may_read(line.len());
    let mut input_on_line = None;
    if let Some(found) = find_input(line) {
        input_on_line = Some(after + found.1);
        line = &line[..found.0];
    }
    let name = line
        .trim()
        .trim_matches(['*', '`', '"', '\'', ' ', '[', ']', '<', '>'])
        .trim_end_matches(['.', ';']);
    if name.is_empty() || name.starts_with("``") || name.starts_with('{') {
        return None;
    }
    if name.len() <= NAME_BYTES_MAX && DONE_WORDS.contains(&name.to_lowercase().as_str()) {
        let input = input_on_line.unwrap_or_else(|| skip_done_input(text, line_end));
        let end = section_end(text, input);
        let given = input > line_end || input_on_line.is_some();
        return Some(Found {
            end: if given { end } else { line_end },
            done: true,
            answer: given.then(|| done_answer(&text[input..end])).flatten(),
            ..Found::default()
        });
    }
    let input = input_on_line.or_else(|| {
        let rest = &text[line_end..];
        let lead = rest.len() - rest.trim_start().len();
        input_at_start(rest.trim_start()).map(|end| line_end + lead + end)
    });
    if let Some(input) = input {
        return Some(with_input(doc, name, at, input));
    }
    without_input(doc, name, at, after, line_end)
}

/// `Action Input:` in its spellings.
const INPUTS: &[&str] = &[
    "**action input:**",
    "**action input**:",
    "action input:",
    "action_input:",
    "action inputs:",
    "actioninput:",
    "action arguments:",
];
/// The short spelling, which only counts at the start of a line.
const SHORT_INPUT: &str = "input:";

static INPUT: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostFirst)
        .build(INPUTS)
        .ok()
});

/// The label in the first line of a text: where it starts and ends.
fn find_input(text: &str) -> Option<(usize, usize)> {
    if let Some(end) = input_at_start(text) {
        return Some((0, end));
    }
    // A tool's name is short, so the label stands near.
    let first = crate::doc::line_rest(text, 0);
    visit(first.len());
    let hit = INPUT.as_ref()?.find(first)?;
    Some((hit.start(), hit.end()))
}

/// The end of the label that a text begins with.
fn input_at_start(text: &str) -> Option<usize> {
    INPUTS.iter().chain([&SHORT_INPUT]).find_map(|label| {
        text.get(..label.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(label))
            .then_some(label.len())
    })
}

/// The answer that stands in the place of a last action's input.
fn done_answer(input: &str) -> Option<String> {
    let body = input.trim_matches(|letter: char| letter.is_whitespace() || letter == '*');
    if body.is_empty() || matches!(body, "None" | "none" | "N/A" | "n/a" | "null" | "{}") {
        return None;
    }
    if body.starts_with(['{', '"'])
        && let Ok(value) = serde_json::from_str(body)
    {
        return super::final_answer::of_value(&value);
    }
    Some(body.to_owned())
}

fn skip_done_input(text: &str, line_end: usize) -> usize {
    let rest = text[line_end..].trim_start();
    input_at_start(rest).map_or(line_end, |end| text.len() - rest.len() + end)
}

fn with_input(doc: &Doc<'_>, name: &str, at: usize, input: usize) -> Found {
    let text = doc.text;
    let rest = text[input..].trim_start_matches([' ', '\t', '*', '\r', '\n']);
    let start = text.len() - rest.len();
    let stop = section_end(text, start);
    let body = crate::raw::without_fence_end(&text[start..stop]).trim_end();
    let mut call = RawCall::new(
        name,
        Args::default(),
        [at, start + body.len()],
        Strategy::React,
    )
    .confidence(sure::REACT);
    let fenced = body.starts_with('`') && (body.starts_with("```") || body.len() < 3);
    let brace = if fenced {
        body.find('{')
    } else {
        body.starts_with(['{', '[']).then_some(0)
    };
    if let Some(brace) = brace
        && let Some(read) = json::read_at(
            text,
            start + brace,
            if fenced {
                start + body.len()
            } else {
                text.len()
            },
        )
    {
        doc.may_read(read.end - start);
        // A string that runs into the next label was never closed, unless all is well-formed.
        let read = if read.end > stop && json::skim(text, start + brace).is_none() {
            json::read_at(text, start + brace, start + body.len()).unwrap_or(read)
        } else {
            read
        };
        call.span[1] = read.end.max(start);
        call = call
            .with_args(args_of_value(read.value))
            .repaired(read.repaired)
            .ending(read.ending)
            .elided(read.elided)
            .ambiguous(read.ambiguous)
            .lost(read.lost);
        if stop < text.len() || fenced && body.len() < text[start..stop].trim_end().len() {
            // The next label or the block's end says that the model went on, so the last value
            // was finished.
            super::tagged::finish_closed(std::slice::from_mut(&mut call));
        }
        let end = call.span[1];
        return Found::calls(vec![call], end);
    }
    if let Some((inner, _)) =
        pythonic::one(doc, start, stop).filter(|(inner, _)| doc.tools.find(&inner.name).is_some())
    {
        call.args = inner.args;
        call.ending = inner.ending;
    } else if !fenced
        && !body.is_empty()
        && !matches!(body, "None" | "none" | "N/A" | "null" | "{}")
    {
        call.args =
            key_values(body).unwrap_or_else(|| Args::text(body.trim_matches(['"', '\'', '`'])));
        if doc.finish == crate::FinishReason::Length && stop == text.len() {
            call.ending = Ending::OpenString;
        }
    } else if stop == text.len()
        && (fenced && brace.is_none() || body.is_empty() && doc.finish != crate::FinishReason::Stop)
    {
        call.ending = Ending::OpenValue;
    }
    let end = call.span[1];
    Found::calls(vec![call], end)
}

/// `query=x, count=5` as a bare input.
fn key_values(body: &str) -> Option<Args> {
    let mut args = Args::default();
    for part in body.split([',', '\n']) {
        let (key, value) = part.split_once('=').or_else(|| part.split_once(": "))?;
        let key = key.trim();
        let plain = !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !plain {
            return None;
        }
        let value = value.trim().trim_matches(['"', '\'', '`']);
        args.named
            .push((key.to_owned(), crate::raw::Given::Text(value.to_owned())));
    }
    Some(args)
}

fn section_end(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(found) = memchr::memchr(b'\n', &text.as_bytes()[at..]) {
        let line = at + found + 1;
        let rest = text[line..].trim_start_matches([' ', '\t']);
        if LABELS.iter().any(|label| {
            rest.get(..label.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(label))
        }) {
            return line;
        }
        at = line;
    }
    text.len()
}

/// `Action: search[query]`, `Action: search("x")`, or a known name alone.
fn without_input(
    doc: &Doc<'_>,
    name: &str,
    at: usize,
    after: usize,
    line_end: usize,
) -> Option<Found> {
    let text = doc.text;
    let start = after + text[after..line_end].len() - text[after..line_end].trim_start().len();
    let mut calls = Vec::new();
    if let Some((mut call, end)) = pythonic::one(doc, start, text.len())
        .filter(|(call, _)| doc.tools.find(&call.name).is_some())
    {
        call.strategy = Strategy::React;
        call.span = [at, end];
        calls.push(call.confidence(sure::REACT));
        return Some(Found::calls(calls, end));
    }
    let line = text[start..line_end].trim();
    if let Some((head, tail)) = line.split_once('[')
        && let Some(value) = tail.strip_suffix(']')
        && doc.tools.find(head).is_some()
    {
        let value = value.trim().trim_matches(['"', '\'']);
        calls.push(
            RawCall::new(head, Args::text(value), [at, line_end], Strategy::React)
                .confidence(sure::REACT),
        );
        return Some(Found::calls(calls, line_end));
    }
    doc.tools.find(name)?;
    let mut call = RawCall::new(name, Args::default(), [at, line_end], Strategy::React)
        .confidence(sure::REACT - 0.1);
    if may_go_on(&text[line_end..], doc.finish) {
        call.ending = Ending::OpenValue;
    }
    calls.push(call);
    Some(Found::calls(calls, line_end))
}

/// Whether the input of an action can still have been on its way.
fn may_go_on(rest: &str, finish: crate::FinishReason) -> bool {
    let rest = rest.trim().trim_matches('*').to_ascii_lowercase();
    match finish {
        crate::FinishReason::Stop => false,
        crate::FinishReason::Unknown => rest.is_empty(),
        crate::FinishReason::Length => "action input:".starts_with(&rest),
    }
}

/// `Final Answer: …`.
pub(crate) fn final_answer(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    if !at_line_start(doc.text, at) {
        return None;
    }
    let answer = doc.text[after..].trim_start_matches('*').trim();
    Some(Found {
        end: doc.text.len(),
        done: true,
        answer: Some(answer.to_owned()),
        ..Found::default()
    })
}
