//! What stands on lines of its own: a tool and its arguments as labels, a list below a name, a block.

use std::sync::LazyLock;

use super::fill::{Filled, Takes, takes, wanted};
use super::lists;
use super::literals::literals;
use super::sentence::Sentence;
use crate::doc::Doc;
use crate::guide::same_argument;
use crate::json;
use crate::limits::{INTENTS_MAX, SENTENCE_BYTES_MAX};
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, Unknown, args_of_value};
use crate::tools::ToolSpec;

/// Labels before a tool's name.
static NAME_LABELS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("name labels"));
/// Labels before all arguments.
static INPUT_LABELS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("input labels"));
/// A label is short.
const LABEL_BYTES_MAX: usize = 40;
/// Lines of arguments below a tool's name.
const ARGUMENT_LINES_MAX: usize = 12;
/// How sure such lines are.
const SURE: f64 = 0.7;

/// Calls written as labelled lines, each with where it stands.
pub(super) fn calls(doc: &Doc<'_>) -> Vec<RawCall> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < doc.text.len() && found.len() < INTENTS_MAX {
        let end = line_end(doc.text, at);
        if let Some((call, stop)) = labelled(doc, at, end) {
            found.push(call);
            at = stop.max(end);
        } else {
            at = end;
        }
    }
    found
}

fn line_end(text: &str, at: usize) -> usize {
    memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |next| at + next + 1)
}

/// The label of a line and what stands behind it.
fn label(line: &str) -> Option<(String, &str)> {
    let line = line
        .trim()
        .trim_start_matches(['-', '*', '#', '>', '_', '`', ' ', '•']);
    let head = &line[..crate::doc::floor(line, LABEL_BYTES_MAX + 3)];
    let at = head
        .find([':', '：', '='])
        .filter(|at| *at <= LABEL_BYTES_MAX)?;
    let sign = line[at..].chars().next().map_or(1, char::len_utf8);
    let name = line[..at]
        .trim_matches(['*', '_', '`', ' ', '"'])
        .to_lowercase();
    let value = line[at + sign..].trim_start_matches(['*', '_']).trim();
    (!name.is_empty()).then_some((name, value))
}

fn labelled(doc: &Doc<'_>, at: usize, end: usize) -> Option<(RawCall, usize)> {
    let line = &doc.text[at..end];
    let (name, value) = label(line)?;
    if !NAME_LABELS
        .contains(&name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == ' '))
        || doc.fence_at(at).is_some()
    {
        return None;
    }
    // "Tool: x / Query: y", or one a line.
    let mut parts = value.split([',', '/', '|', ';']);
    let tool = doc
        .tools
        .find(parts.next()?.trim_matches(['`', '*', '"', '\'', ' ', '.']))?;
    if doc.is_hidden(at, 0) || doc.in_thought(at) || doc.is_shown(at) || doc.is_inert(at, 0) {
        return None;
    }
    let mut args = Args::default();
    for part in parts {
        take(tool, part, &mut args);
    }
    let mut stop = end;
    for _ in 0..ARGUMENT_LINES_MAX {
        let next = line_end(doc.text, stop);
        if stop >= doc.text.len()
            || doc.fence_at(stop).is_some()
            || !take(tool, &doc.text[stop..next], &mut args)
        {
            break;
        }
        stop = next;
    }
    let given = !args.named.is_empty() || !args.positional.is_empty();
    given.then(|| {
        let mut call = RawCall::new(&tool.name, args, [at, stop], Strategy::Fuzzy).confidence(SURE);
        call.unknown = Unknown::Nothing;
        (call, stop)
    })
}

/// Takes one labelled argument; false when it is none.
fn take(tool: &ToolSpec, line: &str, args: &mut Args) -> bool {
    let Some((name, value)) = label(line) else {
        return false;
    };
    let value = value.trim_matches(['`', '*']).trim();
    if value.is_empty() {
        return false;
    }
    if INPUT_LABELS.contains(&name.as_str()) && tool.property(&name).is_none() {
        match json::read_at(value, 0, value.len()).filter(|_| value.starts_with('{')) {
            Some(read) => args.named.extend(args_of_value(read.value).args.named),
            None => args
                .positional
                .push(Given::Text(unquoted(value).to_owned())),
        }
        return true;
    }
    let known = tool
        .properties()
        .map(|(known, _)| known)
        .find(|known| **known == name || same_argument(known, &name));
    let Some(known) = known else { return false };
    args.named
        .push((known.clone(), Given::Text(unquoted(value).to_owned())));
    true
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    for (open, close) in super::literals::MARKS {
        let inner = value
            .strip_prefix(*open)
            .and_then(|rest| rest.strip_suffix(*close));
        if let Some(inner) = inner.filter(|inner| !inner.contains(*close)) {
            return inner;
        }
    }
    value
}

/// The items of a list right below a name: one call each.
pub(super) fn list(doc: &Doc<'_>, end: usize, tool: &ToolSpec, filled: &mut Filled) {
    let wanted = wanted(tool);
    let [argument] = wanted.as_slice() else {
        return;
    };
    let mut at = end + doc.text[end..].len()
        - doc.text[end..]
            .trim_start_matches([' ', '\t', ':', '*'])
            .len();
    if !doc.text[at..].starts_with('\n') {
        return;
    }
    at += 1;
    while at < doc.text.len() && filled.more.len() < INTENTS_MAX {
        let stop = line_end(doc.text, at);
        if stop - at > SENTENCE_BYTES_MAX || !doc.may_read(stop - at) {
            return;
        }
        let line = doc.text[at..stop].trim();
        let item = line.trim_start_matches(|letter: char| {
            letter.is_ascii_digit() || matches!(letter, '-' | '*' | '•' | '.' | ')' | ' ')
        });
        if item.len() == line.len() && !line.is_empty()
            || line.is_empty() && !filled.args.named.is_empty()
        {
            return;
        }
        at = stop;
        let Some(value) = item_value(doc, argument, item) else {
            continue;
        };
        filled.until = stop;
        let given = ((*argument).to_owned(), Given::Text(value));
        if filled.args.named.is_empty() {
            filled.args.named.push(given);
        } else {
            let mut args = Args::default();
            args.named.push(given);
            filled.more.push(args);
        }
    }
}

fn item_value(doc: &Doc<'_>, argument: &str, item: &str) -> Option<String> {
    let literals = literals(doc, item);
    let first = literals
        .iter()
        .find(|literal| super::fill::fits(argument, literal, &[argument]) || literal.is_marked());
    if let Some(literal) = first {
        return Some(literal.text.clone());
    }
    let is_free = matches!(takes(argument), Takes::Query | Takes::Command);
    let bare = item.trim().trim_end_matches(['.', ',', ';']);
    (is_free && !bare.is_empty()).then(|| bare.to_owned())
}

/// A block right behind the sentence is a command, or what is to be written.
pub(super) fn block(doc: &Doc<'_>, sentence: &Sentence, tool: &ToolSpec, filled: &mut Filled) {
    let free = wanted(tool).into_iter().find(|name| {
        let takes = takes(name);
        !filled.has(name) && (takes == Takes::Command || takes == Takes::Text)
    });
    let Some(argument) = free else { return };
    let next = doc
        .fences
        .partition_point(|fence| fence.start < sentence.span[1]);
    if takes(argument) == Takes::Command
        && let Some((command, until)) = command_below(doc, sentence.span[1])
    {
        let given = (argument.to_owned(), Given::Text(command));
        filled.args.named.push(given);
        filled.start = filled.start.or(Some(0));
        filled.until = until;
        return;
    }
    let Some(fence) = doc.fences.get(next) else {
        return;
    };
    let between = &doc.text[sentence.span[1]..fence.start];
    if !between
        .chars()
        .all(|letter| letter.is_whitespace() || matches!(letter, ':' | '.' | '：'))
    {
        return;
    }
    let body = &doc.text[fence.body.min(fence.body_end)..fence.body_end];
    let is_command = takes(argument) == Takes::Command;
    if is_command && body.trim_start().starts_with(['{', '[', '<']) {
        return;
    }
    filled.open |= !fence.closed;
    let body = if is_command { body.trim() } else { body };
    filled
        .args
        .named
        .push((argument.to_owned(), Given::Text(body.to_owned())));
    filled.start = filled.start.or(Some(0));
}

/// Arguments on lines of their own below a sentence that ends in a colon: "Edit a.txt:", "old: …", "new: …".
pub(super) fn labels(doc: &Doc<'_>, end: usize, tool: &ToolSpec, filled: &mut Filled) {
    let stop = line_end(doc.text, end);
    if !doc.text[..end].ends_with(':') || !doc.text[end..stop].trim().is_empty() {
        return;
    }
    let mut args = Args::default();
    let mut at = stop;
    for _ in 0..ARGUMENT_LINES_MAX {
        let next = line_end(doc.text, at);
        let is_read = next > at
            && next - at <= SENTENCE_BYTES_MAX
            && doc.fence_at(at).is_none()
            && doc.may_read(next - at);
        if !is_read || !take(tool, &doc.text[at..next], &mut args) {
            break;
        }
        at = next;
    }
    args.named.retain(|(name, _)| !filled.has(name));
    if args.positional.is_empty() && !args.named.is_empty() {
        filled.args.named.append(&mut args.named);
        filled.keyed = true;
        filled.until = at;
    }
}

/// The command on a line of its own below a sentence that announces it, with one empty line between at most.
/// With it, where it ends.
pub(super) fn command_below(doc: &Doc<'_>, end: usize) -> Option<(String, usize)> {
    let rest = doc.text[end..].trim_start_matches([' ', '\t', '\r', '*']);
    let gap = rest.len() - rest.trim_start().len();
    let breaks = rest[..gap].matches('\n').count();
    if !doc.text[..end].ends_with(':') || !(1..=2).contains(&breaks) {
        return None;
    }
    let at = doc.text.len() - rest.len() + gap;
    let stop = line_end(doc.text, at);
    if stop - at > SENTENCE_BYTES_MAX || doc.fence_at(at).is_some() || !doc.may_read(stop - at) {
        return None;
    }
    let line = doc.text[at..stop].trim_end();
    let line = line.strip_prefix("$ ").unwrap_or(line);
    let behind = doc.text[stop..].trim_start_matches([' ', '\r']);
    let is_last = behind.is_empty() || behind.starts_with('\n');
    let is_command = super::commands::command_end(line, 0) == Some(line.len());
    (is_command && is_last).then(|| (line.to_owned(), stop))
}

/// "14:01 exec git pull ok", "- [x] read a.md": lines of what was done.
pub(super) fn is_log(line: &str) -> bool {
    let line = line.trim_start_matches(['-', '*', ' ', '•']);
    let digits = line
        .bytes()
        .take_while(|byte| {
            byte.is_ascii_digit() || matches!(byte, b':' | b'-' | b'.' | b'[' | b'T')
        })
        .count();
    let is_stamped =
        digits >= 4 && line[..digits].contains(':') && line.as_bytes()[0].is_ascii_digit();
    is_stamped
        || line.starts_with(['[', 'd', '✓', '✔', '✅', '☑'])
            && ["[x]", "✓", "✔", "✅", "☑", "[done]", "done:"]
                .iter()
                .any(|mark| line.starts_with(mark))
}
