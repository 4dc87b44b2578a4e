//! Calls as elements: `<invoke name="…"><parameter name="…">` (Anthropic, `MiniMax`, `DeepSeek`'s
//! DSML) and `<function=…><parameter=…>` (Qwen Coder, Seed, Llama).

use super::{Found, sure};
use crate::doc::{Doc, first_of};
use crate::json::{self, Ending};
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall};

struct Words {
    call_open: &'static str,
    call_close: &'static str,
    parameter_open: &'static str,
    parameter_close: &'static str,
}

const KINDS: &[Words] = &[
    Words {
        call_open: "<invoke",
        call_close: "</invoke>",
        parameter_open: "<parameter",
        parameter_close: "</parameter>",
    },
    Words {
        call_open: "<function=",
        call_close: "</function>",
        parameter_open: "<parameter",
        parameter_close: "</parameter>",
    },
    Words {
        call_open: "<｜DSML｜invoke",
        call_close: "</｜DSML｜invoke>",
        parameter_open: "<｜DSML｜parameter",
        parameter_close: "</｜DSML｜parameter>",
    },
    Words {
        call_open: "<|DSML|invoke",
        call_close: "</|DSML|invoke>",
        parameter_open: "<|DSML|parameter",
        parameter_close: "</|DSML|parameter>",
    },
];

/// Containers that may stand around calls; their closers belong to the last one.
const CONTAINER_CLOSERS: &[&str] = &[
    "</function_calls>",
    "</tool_call>",
    "</minimax:tool_call>",
    "</seed:tool_call>",
    "</tool_calls>",
    "</｜DSML｜function_calls>",
    "</｜DSML｜tool_calls>",
    "</|DSML|function_calls>",
];

pub(crate) fn read(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let rest = &doc.text[at..];
    let words = KINDS.iter().find(|words| {
        rest.get(..words.call_open.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(words.call_open))
    })?;
    let head_end = at + rest.find('>')?;
    let head = &doc.text[at + words.call_open.len()..head_end];
    let name = if words.call_open.ends_with('=') {
        head.trim()
    } else {
        attribute(head, "name")?
    };
    if name.len() > crate::limits::NAME_BYTES_MAX {
        return None;
    }
    let body = head_end + 1;
    let close = call_end(doc, body, words);
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let mut end = close.map_or(doc.text.len(), |(_, to)| to);
    let (args, mut ending, repaired) = arguments(doc, body, stop, words);
    if close.is_none() && args == Args::default() {
        // A tag that opens and never goes on is talk about tags.
        return None;
    }
    if close.is_none() {
        ending = ending.max(Ending::MissingClosers);
    }
    let tail = doc.text[end..].trim_start();
    if let Some(closer) = CONTAINER_CLOSERS
        .iter()
        .find(|closer| tail.starts_with(*closer))
    {
        end = doc.text.len() - tail.len() + closer.len();
        if ending == Ending::MissingClosers {
            ending = Ending::Whole;
        }
    }
    let mut call = RawCall::new(
        name.trim_matches(['"', '\'']),
        args,
        [at, end],
        Strategy::Native,
    )
    .confidence(sure::TOKENS)
    .repaired(repaired);
    call.ending = ending;
    Some(Found::calls(vec![call], end))
}

/// Where the call ends: its closer, or, when that was forgotten, what can only come behind it.
fn call_end(doc: &Doc<'_>, body: usize, words: &Words) -> Option<(usize, usize)> {
    let bytes = &doc.text.as_bytes()[body..];
    let mut from = 0;
    loop {
        let ends: Vec<&str> = [words.call_close, words.call_open]
            .iter()
            .chain(CONTAINER_CLOSERS)
            .copied()
            .collect();
        let Some((at, which)) = first_of(&bytes[from..], &ends) else {
            doc.may_read(bytes.len() - from);
            return None;
        };
        doc.may_read(at);
        let at = from + at;
        if which == 0 {
            return Some((body + at, body + at + words.call_close.len()));
        }
        // Inside a parameter it is content.
        let before = &doc.text[body + from..body + at];
        let opened = before.rfind(words.parameter_open);
        let closed = before.rfind(words.parameter_close);
        if opened.is_none() && from == 0 || closed > opened {
            return Some((body + at, body + at));
        }
        from = at + 1;
    }
}

fn arguments(doc: &Doc<'_>, body: usize, stop: usize, words: &Words) -> (Args, Ending, bool) {
    let mut args = Args::default();
    let mut ending = Ending::Whole;
    let mut rest = &doc.text[body..stop];
    if rest.trim_start().starts_with('{') {
        let at = body + (rest.len() - rest.trim_start().len());
        if let Some(read) = json::read_at(doc.text, at, stop)
            && let serde_json::Value::Object(map) = read.value
        {
            return (Args::from_map(map), read.ending, read.repaired);
        }
    }
    while let Some(at) = rest.find(words.parameter_open) {
        let head = &rest[at + words.parameter_open.len()..];
        let Some(head_end) = head.find('>') else {
            ending = Ending::OpenString;
            break;
        };
        let (key, value_at) = (&head[..head_end], &head[head_end + 1..]);
        let name = match key.strip_prefix('=') {
            Some(name) => Some(name.trim().trim_matches(['"', '\''])),
            None => attribute(key, "name"),
        };
        let (value, tail, closed) = split_value(value_at, words);
        if !closed && stop == doc.text.len() {
            ending = Ending::OpenString;
        }
        if let Some(name) = name {
            let value = without_edge_breaks(value).to_owned();
            let given = if attribute(key, "string") == Some("true") {
                Given::Json(serde_json::Value::String(value))
            } else {
                Given::Text(value)
            };
            args.named.push((name.to_owned(), given));
        }
        rest = tail;
    }
    (args, ending, false)
}

/// The value up to the last closer before the next parameter.
fn split_value<'a>(text: &'a str, words: &Words) -> (&'a str, &'a str, bool) {
    let next = text.find(words.parameter_open);
    let region = &text[..next.unwrap_or(text.len())];
    let tail = &text[region.len()..];
    match region.rfind(words.parameter_close) {
        Some(at) => (&region[..at], tail, true),
        None => (region, tail, next.is_some()),
    }
}

/// `name="x"`, `name='x'` or `name=x` in a tag's head.
pub(super) fn attribute<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    while let Some(at) = head[from..].find(name) {
        let at = from + at;
        let after = head[at + name.len()..].trim_start();
        if let Some(value) = after.strip_prefix('=') {
            let value = value.trim_start();
            return match value.chars().next()? {
                mark @ ('"' | '\'') => value[1..].split(mark).next(),
                _ => value
                    .split(|letter: char| letter.is_whitespace() || letter == '/')
                    .next(),
            };
        }
        from = at + name.len();
    }
    None
}

/// The text without the one line break that formats put around a value.
pub(super) fn without_edge_breaks(text: &str) -> &str {
    let text = text
        .strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'))
        .unwrap_or(text);
    text.strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(text)
}
