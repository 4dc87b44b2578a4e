//! JSON, XML or Python inside the tags of Hermes, Qwen, GLM, Granite, `InternLM`, LFM, Command and
//! their relatives.

use super::call_object::{Reading, calls_of};
use super::{Found, glm, pythonic, sure};
use crate::doc::{Doc, first_of};
use crate::json::{self, Ending, Skimmed};
use crate::model::Strategy;
use crate::raw::{Args, RawCall, read_all_args};
use crate::signs::CONJUNCTIONS;

/// Closers of each opener, the likely one first.
fn closers(opener: &str) -> &'static [&'static str] {
    match opener.to_ascii_lowercase().as_str() {
        "<tool_calls>" => &["</tool_calls>"],
        "<function_calls>" => &["</function_calls>"],
        "<function_call>" => &["</function_call>", "</tool_call>"],
        "<functioncall>" => &["</functioncall>", "</function_call>"],
        "<tool_use>" => &["</tool_use>"],
        "<toolcall>" => &["</toolcall>", "</tool_call>"],
        "<|tool_call_start|>" => &["<|tool_call_end|>"],
        "<|action_start|>" => &["<|action_end|>", "<|im_end|>"],
        "<|start_action|>" => &["<|END_ACTION|>"],
        "<|tool_call|>" => &["<|/tool_call|>", "<|end_of_text|>", "<|end|>"],
        "functools[" => &["<|im_end|>", "<|end|>"],
        _ => &[
            "</tool_call>",
            "</function_call>",
            "</tools>",
            "<|im_end|>",
            "<tool_call>",
        ],
    }
}

/// The first closer at or after `from`: where it starts and ends. One that stands in a string of a
/// well-formed value closes nothing: what the string holds is text, even if it looks like a call.
pub(super) fn find_close(doc: &Doc<'_>, from: usize, closers: &[&str]) -> Option<(usize, usize)> {
    let mut close = first_close(doc, from, closers)?;
    let mut at = from;
    while let Some(open) = memchr::memchr2(b'{', b'[', &doc.text.as_bytes()[at..close.0]) {
        match json::skim_open(doc.text, at + open) {
            Skimmed::Whole(end) => {
                doc.may_read(end - at);
                at = end;
            }
            // All that follows stands in a value that was cut off.
            Skimmed::Open => return None,
            Skimmed::Broken => break,
        }
        if at > close.0 {
            close = first_close(doc, at, closers)?;
        }
    }
    Some(close)
}

fn first_close(doc: &Doc<'_>, from: usize, closers: &[&str]) -> Option<(usize, usize)> {
    // Behind the end of the text there is no closer.
    let rest = doc.text.as_bytes().get(from..)?;
    let found = first_of(rest, closers);
    doc.may_read(found.map_or(rest.len(), |(at, _)| at));
    found.map(|(at, which)| {
        let closer = closers[which];
        // The next call's opener is read again as such.
        let opens = matches!(closer, "<tool_call>" | "<|start|>" | "<|channel|>")
            || closer.contains("begin");
        (from + at, from + at + if opens { 0 } else { closer.len() })
    })
}

pub(crate) fn read(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let opener = &doc.text[at..after];
    if opener.ends_with(':') {
        return glm::suffixed(doc, at, after);
    }
    let mut body = after;
    if opener.eq_ignore_ascii_case("functools[") {
        body -= 1;
    }
    let mut rest = doc.text[body..].trim_start();
    while let Some(tail) = rest.strip_prefix("\\n") {
        // A line break that was escaped once too often.
        rest = tail.trim_start();
    }
    let rest = rest
        .strip_prefix("<|plugin|>")
        .or_else(|| rest.strip_prefix("<|interpreter|>"))
        .map_or(rest, str::trim_start);
    let start = doc.text.len() - rest.len();
    let closers = closers(opener);
    // XML inside has openers of its own; the outer tag only says that a call comes.
    if super::elements::opens(rest) {
        return None;
    }
    let close = find_close(doc, start, closers);
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let end = close.map_or(doc.text.len(), |(_, to)| to);
    if rest.is_empty() || start >= stop {
        return (close.is_some() || doc.finish == crate::FinishReason::Length).then(|| Found {
            end,
            failed: true,
            ..Found::default()
        });
    }
    if rest.starts_with(['{', '[']) && !is_python_list(rest) || rest.starts_with("```") {
        let start = if rest.starts_with("```") {
            start + rest.find(['{', '['])?
        } else {
            start
        };
        let stop = body_stop(rest, stop, doc.text.len());
        return Some(json_values(doc, at, start, (stop, end)));
    }
    let region = &doc.text[start..stop];
    if glm::begins(region, "") {
        return Some(glm::read(doc, at, start, (close, closers), ""));
    }
    if let Some((calls, close)) = pythonic::within(doc, start, close, closers) {
        let end = close.map_or(doc.text.len(), |(_, to)| to);
        return Some(Found::calls(spanned(calls, at, end), end));
    }
    named(doc, at, start, stop, end, close.is_some())
}

/// Where the JSON ends at the latest: before the fence that closes a fence.
fn body_stop(rest: &str, stop: usize, len: usize) -> usize {
    let start = len - rest.len();
    start + crate::raw::without_fence_end(&rest[..stop - start]).len()
}

fn is_python_list(rest: &str) -> bool {
    let inner = rest[1..].trim_start();
    rest.starts_with('[')
        && inner.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_')
}

pub(super) fn spanned(mut calls: Vec<RawCall>, start: usize, end: usize) -> Vec<RawCall> {
    if let [only] = calls.as_mut_slice() {
        only.span = [start, end];
    }
    calls
}

/// One or more JSON values up to the closer.
fn json_values(doc: &Doc<'_>, at: usize, start: usize, close: (usize, usize)) -> Found {
    let (stop, end) = close;
    let mut calls: Vec<RawCall> = Vec::new();
    let mut from = start;
    while from < stop {
        let Some(skip) = doc.text[from..stop].find(['{', '[']) else {
            break;
        };
        lose(&mut calls, &doc.text[from..from + skip]);
        from += skip;
        let Some(read) = json::read_at(doc.text, from, stop) else {
            break;
        };
        doc.may_read(read.end - from);
        let next = read.end.max(from + 1);
        let reading = Reading {
            text: doc.text,
            tools: doc.tools,
            span: [from, read.end],
            tagged: true,
            strategy: Strategy::Native,
        };
        let closed = end > stop;
        let mut found = calls_of(read, reading).calls;
        if closed {
            finish_closed(&mut found);
        }
        if found.is_empty() {
            lose(&mut calls, &doc.text[from..next]);
        }
        calls.extend(found);
        from = next;
    }
    if end > stop {
        lose(&mut calls, &doc.text[from.min(stop)..stop]);
    }
    Found::calls(spanned(calls, at, end), end)
}

/// Says of the last call that something stands behind it which was not read.
fn lose(calls: &mut [RawCall], between: &str) {
    let is_frame = |letter: char| letter.is_whitespace() || "`]});,".contains(letter);
    let is_lost = !between.trim_matches(is_frame).is_empty();
    if let (true, Some(last)) = (is_lost, calls.last_mut()) {
        last.lost |= last.ending == Ending::Whole;
    }
}

/// A closer behind the text says that the last value was finished: only an open string was cut.
pub(super) fn finish_closed(calls: &mut [RawCall]) {
    for call in calls {
        if call.ending == Ending::OpenValue {
            call.ending = Ending::MissingClosers;
        }
        call.repaired |= call.ending != Ending::Whole;
        if call.ending == Ending::MissingClosers {
            call.ending = Ending::Whole;
        }
    }
}

pub(super) fn is_name(name: &str) -> bool {
    name.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/')
    })
}

/// `name` and then JSON, or a name alone.
fn named(
    doc: &Doc<'_>,
    at: usize,
    start: usize,
    stop: usize,
    end: usize,
    closed: bool,
) -> Option<Found> {
    let region = &doc.text[start..stop];
    let name_end = region
        .find(|letter: char| letter.is_whitespace() || matches!(letter, '{' | '(' | '<' | '['))
        .unwrap_or(region.len());
    let name = region[..name_end].trim();
    if name.is_empty()
        || !is_name(name)
        // "Between <tool_call> and </tool_call>", or `<tool_call>...</tool_call>`, speaks of the tags.
        || CONJUNCTIONS.contains(&name) && doc.tools.find(name).is_none()
        || !name.contains(char::is_alphanumeric)
        || name_end > crate::limits::NAME_BYTES_MAX
        || !closed && doc.tools.find(name).is_none()
    {
        return None;
    }
    let after = region[name_end..].trim_start();
    if !after.is_empty() && !after.starts_with(['{', '`']) {
        return Some(Found {
            end,
            failed: true,
            ..Found::default()
        });
    }
    let read = read_all_args(doc.text, start + name_end, stop);
    let mut call = RawCall::new(name, Args::default(), [at, end], Strategy::Native)
        .confidence(sure::TOKENS)
        .with_args(read);
    if !closed {
        call.ending = call.ending.max(Ending::MissingClosers);
    }
    let mut calls = vec![call];
    if closed {
        finish_closed(&mut calls);
    }
    Some(Found::calls(calls, end))
}
