//! JSON, XML or Python inside the tags of Hermes, Qwen, GLM, Granite, `InternLM`, LFM, Command and
//! their relatives.

use super::call_object::{Reading, calls_of};
use super::{Found, pythonic, sure, xml};
use crate::doc::{Doc, first_of};
use crate::json::{self, Ending};
use crate::limits::TAG_WIDENINGS_MAX;
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, read_args};

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

/// The first closer at or after `from`: where it starts and ends.
pub(super) fn find_close(doc: &Doc<'_>, from: usize, closers: &[&str]) -> Option<(usize, usize)> {
    // Behind the end of the text there is no closer.
    let rest = doc.text.as_bytes().get(from..)?;
    let found = first_of(rest, closers);
    doc.may_read(found.map_or(rest.len(), |(at, _)| at));
    found.map(|(at, which)| {
        let closer = closers[which];
        // The next call's opener is read again as such.
        let opens = closer == "<tool_call>" || closer.contains("begin");
        (from + at, from + at + if opens { 0 } else { closer.len() })
    })
}

pub(crate) fn read(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let opener = &doc.text[at..after];
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
        return Some(json_values(doc, at, start, (stop, end), closers));
    }
    let region = &doc.text[start..stop];
    if region.contains("<arg_key>") {
        return Some(glm(doc, at, start, stop, end, close.is_some()));
    }
    if let Some(found) = pythonic::many(doc, start, stop) {
        return Some(Found::calls(spanned(found, at, end), end));
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
fn json_values(
    doc: &Doc<'_>,
    at: usize,
    start: usize,
    close: (usize, usize),
    closers: &[&str],
) -> Found {
    let (mut stop, mut end) = close;
    let mut calls = Vec::new();
    let mut from = start;
    while from < stop {
        let Some(skip) = doc.text[from..stop].find(['{', '[']) else {
            break;
        };
        from += skip;
        let Some(mut read) = json::read_at(doc.text, from, stop) else {
            break;
        };
        doc.may_read(read.end - from);
        // The closer may stand inside a string: then the text up to a later one is valid JSON.
        if read.ending == Ending::OpenString {
            // An opener that ended the text is stepped over: it has no length as a closer.
            let mut wider = end.max(stop + 1);
            for _ in 0..TAG_WIDENINGS_MAX {
                let next = find_close(doc, wider, closers);
                let (to, behind) = next.unwrap_or((doc.text.len(), doc.text.len()));
                if let Some(better) = json::read_at(doc.text, from, to)
                    && better.is_strict()
                {
                    (read, stop, end) = (better, to, behind);
                    break;
                }
                doc.may_read(to - from);
                if next.is_none() {
                    break;
                }
                wider = behind.max(to + 1);
            }
        }
        let next = read.end.max(from + 1);
        let reading = Reading {
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
        calls.extend(found);
        from = next;
    }
    Found::calls(spanned(calls, at, end), end)
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

/// GLM: the name, then pairs of `<arg_key>` and `<arg_value>`.
fn glm(doc: &Doc<'_>, at: usize, start: usize, stop: usize, end: usize, closed: bool) -> Found {
    let region = &doc.text[start..stop];
    let name_end = region.find("<arg_key>").unwrap_or(region.len());
    let name = region[..name_end].trim();
    let mut args = Args::default();
    let mut ending = if closed {
        Ending::Whole
    } else {
        Ending::MissingClosers
    };
    let mut rest = &region[name_end..];
    while let Some((key, tail)) = rest
        .strip_prefix("<arg_key>")
        .and_then(|rest| rest.split_once("</arg_key>"))
    {
        let Some((_, tail)) = tail.split_once("<arg_value>") else {
            ending = Ending::OpenString;
            break;
        };
        let (value, tail) = if let Some(found) = tail.split_once("</arg_value>") {
            found
        } else {
            ending = Ending::OpenString;
            (tail, "")
        };
        args.named.push((
            key.trim().to_owned(),
            Given::Text(xml::without_edge_breaks(value).to_owned()),
        ));
        rest = tail.find("<arg_key>").map_or("", |next| &tail[next..]);
    }
    if rest.starts_with("<arg_key>") {
        ending = Ending::OpenString;
    }
    let call = RawCall::new(name, args, [at, end], Strategy::Native)
        .confidence(sure::TOKENS)
        .ending(ending);
    Found::calls(vec![call], end)
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
    let named = name.bytes().all(|byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/')
    });
    if name.is_empty()
        || !named
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
    let read = read_args(doc.text, start + name_end, stop);
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
