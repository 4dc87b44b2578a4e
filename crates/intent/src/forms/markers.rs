//! `[TOOL:name|key=value|…]` and `[DONE]`.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use super::{Found, sure};
use crate::doc::Doc;
use crate::json::{self, Ending, Skimmed};
use crate::limits::{CONTEXT_BYTES_MAX, NAME_BYTES_MAX, NESTED_CALLS_MAX};
use crate::model::{FinishReason, Strategy};
use crate::raw::{Args, Given, RawCall, Unknown, read_args};

const MINIMAX_TOKEN: &[u8] = b"]<]minimax[>[";

pub(crate) fn read(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let text = doc.text;
    let inner = text[at + 1..].trim_start();
    let inner = inner.get(4..)?.trim_start();
    let inner = inner.strip_prefix(':')?;
    let start = text.len() - inner.len();
    let Close {
        at: stop,
        closed,
        seen,
    } = close_of(text, behind_object(text, start));
    doc.may_read(seen - start);
    let mut end = if closed { stop + 1 } else { stop };
    let body = &text[start..stop];
    let name_end = body.find(['|', '{', ' ', '\n']).unwrap_or(body.len());
    // ` name |` has blanks around the name.
    let lead = body.len() - body.trim_start().len();
    let name_end = body[lead..]
        .find(['|', '{', ' ', '\n'])
        .map_or(name_end.max(body.len()), |found| lead + found);
    let name = body[..name_end].trim();
    if name.is_empty()
        || !name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
    {
        return None;
    }
    let rest = body[name_end..]
        .trim_start()
        .trim_start_matches('|')
        .trim_start();
    let mut call =
        RawCall::new(name, Args::default(), [at, end], Strategy::Markers).confidence(sure::MARKERS);
    if rest.is_empty() || !super::react::at_line_start(text, at) {
        call.unknown = Unknown::Nothing;
    }
    if rest.starts_with('{') {
        let from = stop - rest.len();
        call = call.with_args(read_args(text, from, stop));
        if closed {
            super::tagged::finish_closed(std::slice::from_mut(&mut call));
        }
    } else if rest.is_empty() && closed {
        // `[TOOL:name]{…}[/TOOL]`: the arguments stand behind.
        let behind = text[end..].trim_start();
        if behind.starts_with('{') {
            let from = text.len() - behind.len();
            let read = read_args(text, from, text.len());
            end = read.end;
            call = call.with_args(read);
        }
        let behind = text[end..].trim_start();
        if behind.is_empty() && call.args == Args::default() && doc.finish == FinishReason::Length {
            call.ending = Ending::OpenValue;
        }
        if behind
            .get(..7)
            .is_some_and(|tag| tag.eq_ignore_ascii_case("[/TOOL]"))
        {
            end = text.len() - behind.len() + 7;
        }
    } else {
        call.args = pairs(rest);
    }
    if !closed {
        call.ending = Ending::OpenString;
    }
    call.span[1] = end;
    Some(Found::calls(vec![call], end))
}

/// `name|{…}`: behind the object, when it is well-formed as far as it goes, for nothing in it closes
/// the marker; else where the name starts.
fn behind_object(text: &str, start: usize) -> usize {
    let head = &text[start..crate::doc::floor(text, start + NAME_BYTES_MAX)];
    let object = head.find(|letter: char| !letter.is_alphanumeric() && !"_-. |".contains(letter));
    match object.map(|at| json::skim_open(text, start + at)) {
        Some(Skimmed::Whole(end)) => end,
        Some(Skimmed::Open) => text.len(),
        _ => start,
    }
}

/// Where a marker ends.
struct Close {
    at: usize,
    closed: bool,
    /// How far the text was looked at to know it.
    seen: usize,
}

impl Close {
    /// The seed's own rule, the first bracket; without one the marker is open up to what was seen.
    fn first(bracket: Option<usize>, seen: usize) -> Self {
        Self {
            at: bracket.unwrap_or(seen),
            closed: bracket.is_some(),
            seen,
        }
    }

    /// The same, for a marker that the next one ends at the latest.
    fn before(next: Option<(usize, Option<usize>)>, bracket: Option<usize>, seen: usize) -> Self {
        match next {
            Some((next, bracket)) => Self {
                seen,
                ..Self::first(bracket, next)
            },
            None => Self::first(bracket, seen),
        }
    }
}

/// The bracket that closes the marker: brackets inside values pair up, marks hide them. Where they
/// do not pair up, the first bracket closes (the seed's own rule), unless the text ends with
/// that line: then the value may have been cut.
fn close_of(text: &str, from: usize) -> Close {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    let mut first = None;
    let mut mark: Option<u8> = None;
    let mut lines = false;
    // The first marker inside, and the first bracket before it. When the brackets do not pair up it
    // is the next one, and this one was never closed.
    let mut inner: Option<(usize, Option<usize>)> = None;
    // A token of `MiniMax` holds brackets that are none.
    let mut token_end = from;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        if at < token_end {
            continue;
        }
        if *byte == b']' && bytes[at..].starts_with(MINIMAX_TOKEN) {
            token_end = at + MINIMAX_TOKEN.len();
            continue;
        }
        match (mark, byte) {
            (Some(open), byte) if *byte == open && !is_escaped(bytes, at) => mark = None,
            // A forgotten mark is forgotten on its line; over several lines it holds a value.
            (Some(_), b']') if !lines => first = first.or(Some(at)),
            (Some(_), b'\n') => lines = true,
            (Some(_), _) => {}
            (None, b'"' | b'\'') if matches!(bytes[at - 1], b'=' | b':' | b'{') => {
                mark = Some(*byte);
            }
            // In the middle of a value marks come in pairs, or mean nothing.
            (None, b'"' | b'\'')
                if matches!(bytes[at - 1], b' ' | b',')
                    && closes_on_line(&bytes[at + 1..], *byte) =>
            {
                mark = Some(*byte);
            }
            (None, b'[') => {
                depth += 1;
                let next_line =
                    at > 0 && bytes[at - 1] == b'\n' && bytes[at..].starts_with(b"[TOOL");
                if next_line || bytes[at..].starts_with(b"[TOOL:") {
                    inner = inner.or(Some((at, first)));
                    if depth > NESTED_CALLS_MAX {
                        return Close::before(inner, first, at);
                    }
                }
            }
            (None, b']') if depth == 0 => return Close::first(Some(at), at),
            (None, b']') => {
                first = first.or(Some(at));
                depth -= 1;
            }
            _ => {}
        }
    }
    // One in the middle of a line is part of a value that was cut.
    let next = inner.filter(|(at, _)| bytes[at - 1] == b'\n');
    if next.is_some() {
        return Close::before(next, first, text.len());
    }
    let lines_follow = |at: &usize| text[at + 1..].trim_end().contains('\n');
    let first = first.filter(|_| inner.is_none());
    Close::first(first.filter(lines_follow), text.len())
}

/// Whether an odd number of strokes stands before a mark.
fn is_escaped(bytes: &[u8], at: usize) -> bool {
    let strokes = bytes[..at].iter().rev().take_while(|byte| **byte == b'\\');
    strokes.count() % 2 == 1
}

fn closes_on_line(rest: &[u8], mark: u8) -> bool {
    let line = memchr::memchr(b'\n', rest)
        .unwrap_or(rest.len())
        .min(CONTEXT_BYTES_MAX);
    memchr::memchr(mark, &rest[..line]).is_some()
}

/// `key=value` parts. A bar that no key follows belongs to the value: `command=cat a | grep b`.
fn pairs(text: &str) -> Args {
    let mut args = Args::default();
    for part in split_bars(text) {
        let key = part
            .split_once('=')
            .map(|(key, _)| key.trim())
            .filter(|key| {
                !key.is_empty()
                    && key
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            });
        match (key, args.named.last_mut()) {
            (Some(key), _) => {
                let value = part.split_once('=').map_or("", |(_, value)| value);
                args.named
                    .push((key.to_owned(), Given::Text(value.to_owned())));
            }
            (None, Some((_, Given::Text(value)))) => {
                value.push('|');
                value.push_str(part);
            }
            _ if part.trim().is_empty() => {}
            _ => args.positional.push(Given::Text(part.trim().to_owned())),
        }
    }
    for (_, given) in &mut args.named {
        if let Given::Text(value) = given {
            let trimmed = value.trim();
            let bare = ['"', '\'']
                .iter()
                .find_map(|mark| trimmed.strip_prefix(*mark)?.strip_suffix(*mark))
                .unwrap_or(trimmed);
            *value = bare.to_owned();
        }
    }
    args
}

/// The text between bars. A bar inside a whole marker, or inside the marks around a value, is text.
fn split_bars(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    // What did not end once does not end later either.
    let (mut markers_end, mut marks_end) = (true, true);
    while at < bytes.len() {
        let end = match bytes[at] {
            b'[' if markers_end && bytes[at..].starts_with(b"[TOOL:") => {
                let end = marker_end(bytes, at);
                markers_end = end.is_some();
                end
            }
            b'"' | b'\'' if marks_end && at > 0 && bytes[at - 1] == b'=' => {
                let end = marked_end(text, at);
                marks_end = end.is_some();
                end
            }
            b'|' => {
                parts.push(&text[start..at]);
                start = at + 1;
                None
            }
            _ => None,
        };
        at = end.unwrap_or(at + 1);
    }
    parts.push(&text[start..]);
    parts
}

/// Behind the bracket that closes the one at `at`.
fn marker_end(bytes: &[u8], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, byte) in bytes.iter().enumerate().skip(at) {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(place + 1),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Behind the mark that closes the value whose mark stands at `at`: a bar, or nothing, follows it.
fn marked_end(text: &str, at: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut depth = 0_usize;
    for (place, byte) in bytes.iter().enumerate().skip(at + 1) {
        match byte {
            b'[' => depth += 1,
            b']' => depth = depth.saturating_sub(1),
            byte if *byte == bytes[at] && depth == 0 && !is_escaped(bytes, place) => {
                let rest = text[place + 1..].trim_start();
                if rest.is_empty() || rest.starts_with('|') {
                    return Some(place + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// `[DONE]` on a line of its own.
pub(crate) fn done(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let line = crate::doc::line_start(doc.text, at);
    let tail = crate::doc::line_rest(doc.text, after).trim();
    let lead = doc.text[line..at].trim();
    // `data: [DONE]` is how a stream of events ends.
    let alone = tail.is_empty()
        && (lead.is_empty() || lead == "data:" || lead.ends_with([']', '.', '!', '?']));
    alone.then(|| Found {
        end: after,
        done: true,
        ..Found::default()
    })
}
