//! Calls as elements: `<invoke name="…"><parameter name="…">` (Anthropic, `MiniMax`, `DeepSeek`'s
//! DSML, Step) and `<function=…><parameter=…>` (Qwen Coder, Seed, Llama).

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, Input, MatchKind};

use super::{Found, markup, sure};
use crate::doc::{Doc, first_of};
use crate::json::{self, Ending};
use crate::limits::NAME_BYTES_MAX;
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall};
use crate::steps::visit;

pub(super) struct Words {
    call_open: &'static str,
    call_close: &'static str,
    parameter_open: &'static str,
    parameter_close: &'static str,
}

/// The words of a kind whose elements have this before their names.
macro_rules! prefixed {
    ($prefix:literal) => {
        Words {
            call_open: concat!("<", $prefix, "invoke"),
            call_close: concat!("</", $prefix, "invoke>"),
            parameter_open: concat!("<", $prefix, "parameter"),
            parameter_close: concat!("</", $prefix, "parameter>"),
        }
    };
}

const KINDS: &[Words] = &[
    prefixed!(""),
    Words {
        call_open: "<function=",
        call_close: "</function>",
        parameter_open: "<parameter",
        parameter_close: "</parameter>",
    },
    prefixed!("｜DSML｜"),
    prefixed!("|DSML|"),
    prefixed!("steptml:"),
    prefixed!("antml:"),
    prefixed!("atem:"),
];

/// How calls of the other kinds open and close inside of a value.
const CALL_OPENS: &[&str] = &["<invoke ", "<function=", "<function name="];
const CALL_CLOSES: &[&str] = &["</invoke>", "</function>"];

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
    concat!("</", "antml:", "function_calls>"),
    "</atem:function_calls>",
    "<｜tool_call_end｜>",
    "<｜tool_calls_end｜>",
];

/// The tags that the walk through a call of one kind stops at, its own four first, then the
/// containers' and those of calls of other kinds.
struct Tags {
    words: Vec<&'static str>,
    foreign: usize,
    finder: Option<AhoCorasick>,
}

static TAGS: LazyLock<Vec<Tags>> = LazyLock::new(|| KINDS.iter().map(Tags::of).collect());

impl Tags {
    fn of(words: &Words) -> Self {
        let mut tags = vec![
            words.call_close,
            words.call_open,
            words.parameter_open,
            words.parameter_close,
        ];
        tags.extend(CONTAINER_CLOSERS);
        let foreign = tags.len();
        tags.extend(CALL_OPENS);
        tags.extend(CALL_CLOSES);
        let finder = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .build(&tags)
            .ok();
        Self {
            words: tags,
            foreign,
            finder,
        }
    }

    /// The next tag from `at` on: where, and which.
    fn next(&self, text: &str, at: usize) -> Option<(usize, usize)> {
        let hit = self
            .finder
            .as_ref()?
            .find(Input::new(text).span(at..text.len()));
        visit(hit.map_or(text.len(), |hit| hit.end()) - at);
        hit.map(|hit| (hit.start(), hit.pattern().as_usize()))
    }
}

pub(crate) fn read(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let rest = &doc.text[at..];
    let kind = KINDS.iter().position(|words| {
        rest.get(..words.call_open.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(words.call_open))
    })?;
    let words = &KINDS[kind];
    let head_at = at + words.call_open.len();
    let (head, body) = head_of(doc.text, head_at, words.call_open.ends_with('='))?;
    let name = if words.call_open.ends_with('=') {
        head.trim()
    } else {
        attribute(head, "name")?
    };
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    if kind <= 1 && markup::opens_argument(doc.text, body) {
        return Some(markup::call(doc, name, [at, body]));
    }
    let inner = inner(doc, body, kind);
    if !inner.closed && inner.args == Args::default() && inner.ending == Ending::Whole {
        // A tag that opens and never goes on is talk about tags.
        return None;
    }
    let mut ending = inner.ending;
    let mut end = inner.end;
    if !inner.closed {
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
        inner.args,
        [at, end],
        Strategy::Native,
    )
    .confidence(sure::TOKENS)
    .repaired(inner.repaired)
    .elided(inner.elided)
    .ambiguous(inner.ambiguous)
    .lost(inner.lost);
    call.ending = ending;
    // A value's closer that nobody opened: this stands inside a value of the call before, whose end
    // was written into it.
    call.doubtful = doc.text[end..]
        .trim_start()
        .starts_with(words.parameter_close);
    Some(Found::calls(vec![call], end))
}

/// What a tag says behind its name, and where the text behind the tag starts. Models drop the
/// angle bracket of `<parameter=name`; the line's end stands for it.
fn head_of(text: &str, at: usize, plain: bool) -> Option<(&str, usize)> {
    let limit = crate::doc::floor(text, at + 4 * NAME_BYTES_MAX);
    let head = &text[at..limit];
    let bracket = head.find('>');
    let line = head.find('\n').filter(|_| plain);
    match (bracket, line) {
        (Some(bracket), Some(line)) if line < bracket => Some((&head[..line], at + line)),
        (Some(bracket), _) => Some((&head[..bracket], at + bracket + 1)),
        (None, Some(line)) => Some((&head[..line], at + line)),
        (None, None) => None,
    }
}

/// What stands inside a call's element.
#[expect(
    clippy::struct_excessive_bools,
    reason = "facts that have nothing to do with each other"
)]
struct Inner {
    args: Args,
    end: usize,
    /// Whether something says that the call ended here.
    closed: bool,
    ending: Ending,
    repaired: bool,
    elided: bool,
    ambiguous: bool,
    /// Whether something stands between the values that was not read.
    lost: bool,
}

fn inner(doc: &Doc<'_>, body: usize, kind: usize) -> Inner {
    let rest = &doc.text[body..];
    let lead = rest.len() - rest.trim_start().len();
    if rest[lead..].starts_with('{')
        && let Some(found) = json_inner(doc, body + lead, &KINDS[kind])
    {
        return found;
    }
    // Values can hold whole calls. Where reading them as such leads nowhere, tags in values are
    // only text.
    let (nested, depth) = walk(doc, body, kind, true);
    if nested.closed || depth == 0 {
        return nested;
    }
    let (flat, _) = walk(doc, body, kind, false);
    if flat.closed { flat } else { nested }
}

/// `<function=name>{…}</function>`.
fn json_inner(doc: &Doc<'_>, at: usize, words: &Words) -> Option<Inner> {
    let read = json::read_at(doc.text, at, doc.text.len())?;
    // A string that ran over the closer was never closed itself.
    let close = first_of(&doc.text.as_bytes()[at..], &[words.call_close]).map(|(n, _)| at + n);
    let read = match close {
        Some(close) if read.end > close && json::skim(doc.text, at).is_none() => {
            json::read_at(doc.text, at, close).unwrap_or(read)
        }
        _ => read,
    };
    doc.may_read(read.end - at);
    let serde_json::Value::Object(map) = read.value else {
        return None;
    };
    let tail = doc.text[read.end..].trim_start();
    let tail_at = doc.text.len() - tail.len();
    let closers = [words.call_close, "<function>", "<function/>"];
    let closer = closers.iter().find(|closer| tail.starts_with(**closer));
    Some(Inner {
        args: Args::from_map(map),
        end: closer.map_or(read.end, |closer| tail_at + closer.len()),
        closed: closer.is_some(),
        ending: read.ending,
        repaired: read.repaired,
        elided: read.elided,
        ambiguous: read.ambiguous,
        lost: read.lost,
    })
}

/// Walks from tag to tag. `nesting` says whether calls inside of values are stepped over whole;
/// how many of them were still open at the end is said too.
fn walk(doc: &Doc<'_>, body: usize, kind: usize, nesting: bool) -> (Inner, usize) {
    let text = doc.text;
    let words = &KINDS[kind];
    let Tags {
        words: tags,
        foreign,
        ..
    } = &TAGS[kind];
    let mut inner = Inner {
        args: Args::default(),
        end: text.len(),
        closed: false,
        ending: Ending::Whole,
        repaired: false,
        elided: false,
        ambiguous: false,
        lost: false,
    };
    // The open value: its tag's head, where it starts, and the last closer that may have ended it.
    let mut open: Option<(&str, usize, Option<usize>)> = None;
    let mut depth = 0_usize;
    let mut at = body;
    while let Some((tag, which)) = TAGS[kind].next(text, at) {
        doc.may_read(tag - at);
        // Between values nothing stands but the tags around them.
        inner.lost |= open.is_none() && !text[at..tag].trim().is_empty();
        at = tag + tags[which].len();
        // A call of another kind inside of a value counts like one of this kind, and nowhere else.
        let which = match which.checked_sub(*foreign) {
            None => which,
            Some(_) if open.is_none() => continue,
            Some(kind) if kind < CALL_OPENS.len() => 1,
            Some(_) if depth == 0 => continue,
            Some(_) => 0,
        };
        match (&mut open, which) {
            (Some(_), 1) if nesting && is_element(text, tag, words) => depth += 1,
            (Some(_), 0) if depth > 0 => depth -= 1,
            (Some(_), 0 | 2 | 3) if depth > 0 => {}
            (None, 2) => {
                let plain = text[at..].starts_with('=');
                let Some((head, value)) = head_of(text, at, plain) else {
                    inner.ending = Ending::OpenString;
                    return (inner, depth);
                };
                open = Some((head, value, None));
                at = behind_cdata(text, value);
                doc.may_read(at - value);
            }
            (Some((head, value, closer)), 3) => {
                if ends_value(text, at, words) {
                    inner.lost |= !push(&mut inner.args, head, &text[*value..tag]);
                    open = None;
                } else {
                    *closer = Some(tag);
                }
            }
            (Some((head, value, closer)), 2) if starts_line(text, tag) => {
                inner.lost |= closer.is_some_and(|closer| is_said(text, closer, tag, words));
                // The closer was forgotten, or words stand behind it.
                let to = closer.unwrap_or(tag);
                inner.lost |= !push(&mut inner.args, head, &text[*value..to]);
                inner.repaired = true;
                open = None;
                at = tag;
            }
            (Some((head, value, closer)), 0) if ends_call(text, at) => {
                inner.lost |= closer.is_some_and(|closer| is_said(text, closer, tag, words));
                let to = closer.unwrap_or(tag);
                inner.lost |= !push(&mut inner.args, head, &text[*value..to]);
                inner.repaired |= closer.is_none();
                (inner.end, inner.closed) = (at, true);
                return (inner, depth);
            }
            (None, 0) => {
                (inner.end, inner.closed) = (at, true);
                return (inner, depth);
            }
            // The call's own closer was forgotten.
            (None, which) if which != 3 => {
                (inner.end, inner.closed) = (tag, true);
                return (inner, depth);
            }
            _ => {}
        }
    }
    doc.may_read(text.len() - at);
    if let Some((head, value, closer)) = open {
        let to = closer.unwrap_or(text.len());
        inner.lost |= !push(&mut inner.args, head, &text[value.min(to)..to]);
        inner.ending = Ending::OpenString;
    } else if text[at..].contains('<') {
        // The last tag was cut in its middle.
        inner.ending = Ending::OpenValue;
    }
    (inner, depth)
}

/// Whether words stand between a value's closer and the next tag.
fn is_said(text: &str, closer: usize, tag: usize, words: &Words) -> bool {
    !text[closer + words.parameter_close.len()..tag]
        .trim()
        .is_empty()
}

/// Whether a tag inside a value opens an element and is not only named in a sentence.
fn is_element(text: &str, tag: usize, words: &Words) -> bool {
    starts_line(text, tag)
        || text[..tag].trim_end().ends_with(['>', '['])
        || head_of(text, tag, false).is_some_and(|(_, body)| {
            let inner = text[body..].trim_start();
            inner.starts_with(words.parameter_open) || inner.starts_with("<param")
        })
}

fn starts_line(text: &str, tag: usize) -> bool {
    text[crate::doc::line_start(text, tag)..tag]
        .trim()
        .is_empty()
}

/// Behind the closer of a value: the next tag of the same call, or nothing.
fn ends_value(text: &str, at: usize, words: &Words) -> bool {
    let next = text[at..].trim_start();
    next.is_empty()
        || [words.parameter_open, words.call_close, words.call_open]
            .iter()
            .chain(CONTAINER_CLOSERS)
            .any(|tag| next.starts_with(tag))
        // A closer that was cut in its middle.
        || next.len() < 24 && next.starts_with('<') && CONTAINER_CLOSERS
            .iter()
            .chain([&words.call_close])
            .any(|tag| tag.starts_with(next))
}

/// Behind the closer of a call: its line ends, or another tag follows.
fn ends_call(text: &str, at: usize) -> bool {
    let rest = crate::doc::line_rest(text, at).trim_start();
    rest.is_empty() || rest.starts_with('<')
}

/// Takes a value. False when nothing says of which argument it is.
fn push(args: &mut Args, head: &str, value: &str) -> bool {
    let name = match head.strip_prefix('=') {
        Some(name) => Some(name.trim().trim_matches(['"', '\''])),
        None => attribute(head, "name"),
    };
    let Some(name) = name else { return false };
    let value = without_cdata(value).unwrap_or_else(|| without_edge_breaks(value));
    let value = value.to_owned();
    let given = if attribute(head, "string") == Some("true") {
        Given::Json(serde_json::Value::String(value))
    } else {
        Given::Text(value)
    };
    args.named.push((name.to_owned(), given));
    true
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

/// The text without the line break that formats put before a value and behind it. Where none stands
/// before it, one behind it is the value's own.
pub(super) fn without_edge_breaks(text: &str) -> &str {
    let behind = text
        .strip_prefix("\r\n")
        .or_else(|| text.strip_prefix('\n'));
    let Some(text) = behind else { return text };
    text.strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(text)
}

/// Where a value goes on behind the `<![CDATA[…]]>` that it begins with: tags in it are text. Without
/// its end that is the end of the text.
pub(super) fn behind_cdata(text: &str, from: usize) -> usize {
    let rest = text[from..].trim_start();
    match rest
        .strip_prefix("<![CDATA[")
        .map(|inner| inner.find("]]>"))
    {
        None => from,
        Some(None) => text.len(),
        Some(Some(end)) => text.len() - rest.len() + "<![CDATA[".len() + end,
    }
}

/// The text of a value that is one `<![CDATA[…]]>`.
pub(super) fn without_cdata(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("<![CDATA[")?;
    inner.strip_suffix("]]>")
}
