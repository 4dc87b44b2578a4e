//! JSON in the text: fenced, or bare at the start of a line.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use super::Found;
use super::call_object::{Reading, calls_of};
use crate::doc::Doc;
use crate::json::{self, Ending};
use crate::model::Strategy;
use crate::word_set;

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
    let (ending, stop) = (read.ending, read.end);
    let reading = Reading {
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
    if ending == Ending::OpenString || ending == Ending::OpenValue {
        // A block that was closed over an open string is damaged, not cut.
        for call in &mut result.calls {
            call.ending = call.ending.max(ending);
        }
    }
    result.done = found.done;
    if found.done || found.guided && result.calls.is_empty() {
        result.answer = found.reasoning;
    }
    Some(result)
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
        .any(|cue| word_set::has_words(lead, cue))
        && !word_set::has_words(lead, "if")
        && !word_set::has_words(lead, "not")
        && !word_set::has_words(lead, "would")
        && !word_set::has_words(lead, "you")
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
