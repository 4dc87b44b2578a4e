//! Forms made of special tokens: `DeepSeek`, Kimi, Mistral, Llama's python tag, Gemma.

use super::call_object::{Reading, calls_of};
use super::tagged::{find_close, finish_closed, spanned};
use super::{Found, pythonic, sure};
use crate::doc::Doc;
use crate::json::{self, Ending};
use crate::model::Strategy;
use crate::raw::{RawCall, read_all_args};

/// `<｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME` and a fence (V3), or `NAME<｜tool▁sep｜>{…}` (V3.1).
pub(crate) fn deepseek(doc: &Doc<'_>, at: usize, after: usize) -> Found {
    let close = find_close(
        doc,
        after,
        &[
            "<｜tool▁call▁end｜>",
            "<|tool▁call▁end|>",
            "<｜tool▁calls▁end｜>",
            "<｜tool▁call▁begin｜>",
            "<｜end▁of▁sentence｜>",
        ],
    );
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let end = close.map_or(doc.text.len(), |(_, to)| to);
    let region = &doc.text[after..stop];
    let sep = ["<｜tool▁sep｜>", "<|tool▁sep|>"]
        .iter()
        .find_map(|sep| region.find(sep).map(|at| (at, sep.len())));
    let (kind, tail_at) = match sep {
        Some((at, len)) => (region[..at].trim(), after + at + len),
        None => ("", after),
    };
    let tail = &doc.text[tail_at..stop];
    let name_in_tail = kind.is_empty() || kind == "function";
    let (name, args_at) = if name_in_tail {
        let to = tail.find(['\n', '{', '`']).unwrap_or(tail.len());
        (tail[..to].trim(), tail_at + to)
    } else {
        (kind, tail_at)
    };
    call(doc, name, [at, end], (args_at, stop), close.is_some())
}

/// `<|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{…}<|tool_call_end|>`.
pub(crate) fn kimi(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let close = find_close(
        doc,
        after,
        &[
            "<|tool_call_end|>",
            "<|tool_calls_section_end|>",
            "<|tool_call_begin|>",
            "<|im_end|>",
        ],
    );
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let end = close.map_or(doc.text.len(), |(_, to)| to);
    let region = &doc.text[after..stop];
    let sep = "<|tool_call_argument_begin|>";
    let (name, args_at) = if let Some(found) = region.find(sep) {
        (region[..found].trim(), after + found + sep.len())
    } else {
        let brace = region.find('{')?;
        (region[..brace].trim(), after + brace)
    };
    let mut found = call(doc, name, [at, end], (args_at, stop), close.is_some());
    for call in &mut found.calls {
        // `functions.read:0` is the call's name for its result.
        call.call_id = name.contains(':').then(|| name.to_owned());
    }
    Some(found)
}

fn call(doc: &Doc<'_>, name: &str, span: [usize; 2], args: (usize, usize), closed: bool) -> Found {
    let is_prose = name.contains(char::is_whitespace) && doc.tools.find(name).is_none();
    if name.is_empty() || name.len() > crate::limits::NAME_BYTES_MAX || is_prose {
        return Found {
            end: span[1],
            failed: true,
            ..Found::default()
        };
    }
    let read = read_all_args(doc.text, args.0.min(args.1), args.1);
    doc.may_read(args.1.saturating_sub(args.0));
    let mut calls = vec![
        RawCall::new(name, crate::raw::Args::default(), span, Strategy::Native)
            .confidence(sure::TOKENS)
            .with_args(read),
    ];
    if closed {
        finish_closed(&mut calls);
    } else if doc.text[args.0.min(args.1)..].trim().is_empty() {
        calls[0].ending = Ending::OpenValue;
    }
    Found::calls(calls, span[1])
}

/// `[TOOL_CALLS][{…}]`, `[TOOL_CALLS]NAME{…}`, `[TOOL_CALLS]NAME[ARGS]{…}`, with call ids between.
pub(crate) fn mistral(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let rest = doc.text[after..].trim_start();
    let start = doc.text.len() - rest.len();
    if rest.starts_with(['[', '{']) && !rest.starts_with("[ARGS]") {
        let read = json::read_at(doc.text, start, doc.text.len())?;
        doc.may_read(read.end - start);
        let end = read.end;
        let reading = Reading {
            text: doc.text,
            tools: doc.tools,
            span: [start, end],
            tagged: true,
            strategy: Strategy::Native,
        };
        return Some(Found::calls(
            spanned(calls_of(read, reading).calls, at, end),
            end,
        ));
    }
    let mut calls = Vec::new();
    let mut from = start;
    loop {
        let rest = &doc.text[from..];
        let brace = rest
            .bytes()
            .take(2 * crate::limits::NAME_BYTES_MAX)
            .position(|byte| byte == b'{');
        let Some(brace) = brace else { break };
        let head = rest[..brace].trim();
        let name = head.split('[').next().unwrap_or("").trim();
        if name.is_empty() || name.contains(char::is_whitespace) {
            break;
        }
        let read = match json::try_read_at(doc.text, from + brace, doc.text.len()) {
            Some(Ok(read)) => read,
            // A heap of brackets is stepped over, not read again from its next name.
            Some(Err(deep)) if calls.is_empty() => {
                return Some(Found {
                    end: deep,
                    failed: true,
                    ..Found::default()
                });
            }
            _ => break,
        };
        doc.may_read(read.end - from);
        let end = read.end;
        let serde_json::Value::Object(map) = read.value else {
            break;
        };
        let start = if calls.is_empty() { at } else { from };
        calls.push(
            RawCall::new(
                name,
                crate::raw::Args::from_map(map),
                [start, end],
                Strategy::Native,
            )
            .confidence(sure::TOKENS)
            .repaired(read.repaired)
            .ending(read.ending)
            .elided(read.elided)
            .ambiguous(read.ambiguous)
            .lost(read.lost),
        );
        from = doc.text.len() - doc.text[end..].trim_start_matches([',', ' ', '\n']).len();
        if doc.text[from..].starts_with('[') {
            break;
        }
    }
    let end = calls.last().map_or(after, |call: &RawCall| call.span[1]);
    Some(Found::calls(calls, end))
}

/// `<|python_tag|>{…}; {…}` or `<|python_tag|>brave_search.call(query="x")`.
pub(crate) fn python_tag(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let closers = ["<|eom_id|>", "<|eot_id|>", "<|python_end|>"];
    let close = find_close(doc, after, &closers);
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let end = close.map_or(doc.text.len(), |(_, to)| to);
    let body = doc.text[after..stop].trim_start();
    let mut from = stop - body.len();
    if !body.starts_with('{') && !body.starts_with("[{") {
        let (mut calls, close) = pythonic::within(doc, from, close, &closers)?;
        let end = close.map_or(doc.text.len(), |(_, to)| to);
        if close.is_some() {
            finish_closed(&mut calls);
        }
        return Some(Found::calls(spanned(calls, at, end), end));
    }
    let mut calls = Vec::new();
    while let Some(skip) = doc.text[from..stop].find(['{', '[']) {
        let begin = from + skip;
        let Some(read) = json::read_at(doc.text, begin, stop) else {
            break;
        };
        doc.may_read(read.end - begin);
        from = read.end.max(begin + 1);
        let reading = Reading {
            text: doc.text,
            tools: doc.tools,
            span: [begin, read.end],
            tagged: true,
            strategy: Strategy::Native,
        };
        calls.extend(calls_of(read, reading).calls);
    }
    if close.is_some() {
        finish_closed(&mut calls);
    }
    Some(Found::calls(spanned(calls, at, end), end))
}

/// `<|tool_call>call:NAME{key:<|"|>value<|"|>}<tool_call|>`, and `FunctionGemma`'s
/// `<start_function_call>call:NAME{key:<escape>value<escape>}<end_function_call>`.
pub(crate) fn gemma(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let rest = &doc.text[after..];
    let brace = rest
        .bytes()
        .take(2 * crate::limits::NAME_BYTES_MAX)
        .position(|byte| byte == b'{')?;
    let name = rest[..brace].trim().trim_start_matches("call:").trim();
    let read = json::read_at(doc.text, after + brace, doc.text.len())?;
    doc.may_read(read.end - at);
    let mut end = read.end;
    let closers = ["<tool_call|>", "<end_function_call>"];
    let tail = doc.text[end..].trim_start();
    if let Some(closer) = closers.iter().find(|closer| tail.starts_with(**closer)) {
        end = doc.text.len() - tail.len() + closer.len();
    }
    let serde_json::Value::Object(map) = read.value else {
        return None;
    };
    let mut call = RawCall::new(
        name,
        crate::raw::Args::from_map(map),
        [at, end],
        Strategy::Native,
    )
    .confidence(sure::TOKENS)
    .elided(read.elided)
    .ambiguous(read.ambiguous)
    .lost(read.lost);
    call.ending = read.ending;
    Some(Found::calls(vec![call], end))
}
