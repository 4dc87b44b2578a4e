//! JSON in the text: fenced, or bare at the start of a line.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use super::call_object::{Reading, calls_of};
use super::{Found, sure};
use crate::cues;
use crate::doc::Doc;
use crate::json::{self, Ending};
use crate::limits::CONTEXT_BYTES_MAX;
use crate::model::Strategy;
use crate::raw::{Args, RawCall, Unknown};

/// Reads the object or list at `at`, when it stands where a call would stand.
pub(crate) fn read(doc: &Doc<'_>, at: usize) -> Option<Found> {
    if !starts_like_json(doc.text, at) {
        return None;
    }
    let fence = doc.fence_at(at);
    let end = fence.map_or(doc.text.len(), |fence| fence.body_end.max(at));
    let read = match json::try_read_at(doc.text, at, end)? {
        Ok(read) => read,
        // What opened on the way down is part of the same heap of brackets: it is not read again.
        Err(deep) => {
            return Some(Found {
                end: deep,
                ..Found::default()
            });
        }
    };
    doc.may_read(read.end - at);
    let (ending, stop, mended) = (read.ending, read.end, read.repaired);
    if let Some(found) = named_before(doc, at, &read) {
        return Some(found);
    }
    let reading = Reading {
        text: doc.text,
        tools: doc.tools,
        span: [at, read.end],
        tagged: false,
        strategy: Strategy::GuidedJson,
    };
    let found = calls_of(read, reading);
    if found.calls.is_empty() && !found.guided {
        // Data. Behind it when it is whole; else what is inside may still be something.
        return (ending == Ending::Whole).then(|| Found {
            end: stop,
            mended,
            ..Found::default()
        });
    }
    let mut result = Found {
        end: stop,
        ..Found::default()
    };
    if !stands_alone(doc, at, stop) {
        return Some(result);
    }
    result.calls = found.calls;
    result.cut = found.cut;
    if !ends_reply(doc, stop) {
        // Words behind it make it part of an answer.
        for call in &mut result.calls {
            if call.unknown == Unknown::Mistake {
                call.unknown = Unknown::Nothing;
            }
        }
    }
    result.done = found.done;
    if found.done || found.guided && result.calls.is_empty() {
        result.answer = found.reasoning;
    }
    Some(result)
}

/// Whether nothing but closers follows.
fn ends_reply(doc: &Doc<'_>, at: usize) -> bool {
    doc.text[at..]
        .chars()
        .all(|letter| letter.is_whitespace() || matches!(letter, '`' | '~' | ',' | ']' | '}' | ';'))
}

/// Labels before a name, and between the name and its arguments.
const NAME_LABELS: &[&str] = &[
    ">>>",
    "✿FUNCTION✿:",
    "<|recipient|>",
    "assistant<|recipient|>",
];
const ARGUMENT_LABELS: &[&str] = &["✿ARGS✿:", "<|content|>", "Arguments:", "Input:"];

/// A tool's name alone on the line before, and an object of its arguments (Functionary, GLM 4,
/// Qwen Agent).
fn named_before(doc: &Doc<'_>, at: usize, read: &json::Repaired) -> Option<Found> {
    let serde_json::Value::Object(map) = &read.value else {
        return None;
    };
    let from = crate::doc::floor(doc.text, at.saturating_sub(CONTEXT_BYTES_MAX))
        .max(doc.call_end.get().min(at));
    let mut before = doc.text[from..at].trim_end_matches([' ', '\t']);
    if let Some(label) = ARGUMENT_LABELS
        .iter()
        .find(|label| before.ends_with(**label))
    {
        before = &before[..before.len() - label.len()];
    }
    let before = before.strip_suffix('\n')?.trim_end_matches('\r');
    let line = &before[before.rfind('\n').map_or(0, |found| found + 1)..];
    let mut name = line.trim();
    for label in NAME_LABELS {
        name = name.strip_prefix(label).unwrap_or(name).trim();
    }
    let tool = doc.tools.find(name)?;
    let own = |key: &String| {
        tool.property(key).is_some()
            || tool
                .properties()
                .any(|(known, _)| crate::guide::same_argument(known, key))
    };
    if map.is_empty() || !map.keys().all(own) || doc.fence_at(at).is_some() {
        return None;
    }
    let start = at - (doc.text[from..at].len() - (before.len() - line.len()));
    let call = RawCall::new(
        name,
        Args::from_map(map.clone()),
        [start, read.end],
        Strategy::Native,
    )
    .confidence(sure::PYTHON)
    .repaired(read.repaired)
    .ending(read.ending)
    .elided(read.elided)
    .ambiguous(read.ambiguous)
    .lost(read.lost);
    Some(Found::calls(vec![call], read.end))
}

/// A cheap look before the real one: `{` and a key, or `[` and an object.
fn starts_like_json(text: &str, at: usize) -> bool {
    let bytes = text.as_bytes();
    let rest = text[at + 1..].trim_start();
    if bytes[at] == b'[' {
        return rest.starts_with('{');
    }
    match rest.as_bytes().first() {
        Some(b'"' | b'\'' | b'\\' | 0xE2) => true,
        Some(b'/' | b'#' | b',') => true,
        Some(byte) if byte.is_ascii_alphabetic() || *byte == b'_' => {
            let key = rest
                .bytes()
                .take(64)
                .take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
                .count();
            let behind = rest[key..].trim_start_matches(['"', '\'']);
            behind.trim_start_matches(' ').starts_with([':', '='])
        }
        _ => false,
    }
}

/// Whether it stands on lines of its own, or behind words that announce a call.
fn stands_alone(doc: &Doc<'_>, at: usize, end: usize) -> bool {
    let text = doc.text;
    // What an earlier call on the line says is not said about this one.
    let line = crate::doc::line_start(text, at).max(doc.call_end.get().min(at));
    let lead = text[line..at].trim_matches(|letter: char| {
        letter.is_whitespace() || matches!(letter, '\u{feff}' | '\u{200b}')
    });
    if lead == "\"" && text[at + 1..].trim_start().starts_with('\\') {
        // The whole call is encoded as a string.
        return crate::doc::line_rest(text, end).trim() == "\"";
    }
    let lead_ok = lead.is_empty()
        || lead.ends_with([':', '>', '`', ';', ','])
        || matches!(lead, "-" | "*" | "json" | "assistant" | "+")
        || lead
            .strip_suffix('.')
            .is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
        || announces(&lead.to_lowercase());
    let tail = crate::doc::line_rest(text, end).trim();
    let tail_ok = tail.is_empty()
        || tail.starts_with(['`', '<', ';', ',', ']', '{', '.', '[', '}', ')'])
        || lead.is_empty() && !says_about(tail)
        || announces(&lead.to_lowercase());
    lead_ok && tail_ok && !lead.ends_with(['"', '\'', '=', '('])
}

fn announces(lead: &str) -> bool {
    ["i'll", "i will", "let me", "calling", "tool_call"]
        .iter()
        .any(|cue| cues::has_words(lead, cue))
        && !cues::has_words(lead, "if")
        && !cues::has_words(lead, "not")
        && !cues::has_words(lead, "would")
        && !cues::has_words(lead, "you")
}

/// Words behind an object that talk about it.
fn says_about(tail: &str) -> bool {
    let first = tail.split_whitespace().next().unwrap_or("").to_lowercase();
    matches!(
        first.as_str(),
        "is" | "are"
            | "was"
            | "means"
            | "would"
            | "will"
            | "and"
            | "or"
            | "as"
            | "in"
            | "to"
            | "when"
            | "which"
            | "shows"
            | "to:"
            | "//"
            | "#"
            | "←"
            | "->"
    )
}
