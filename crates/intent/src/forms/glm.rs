//! A name and pairs of `<arg_key>` and `<arg_value>` (GLM, Poolside, Hunyuan). Hunyuan ends the name
//! with `<tool_sep>`, and some of its tokenizers write a suffix into every tag: `<arg_key:opensource>`.

use super::tagged::{find_close, is_name};
use super::{Found, sure};
use crate::doc::Doc;
use crate::json::Ending;
use crate::limits::NAME_BYTES_MAX;
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, read_all_args};

/// A suffix is a word such as `opensource`.
const SUFFIX_BYTES_MAX: usize = 32;

/// The tags of one tokenizer.
struct Tags {
    separator: String,
    key_open: String,
    key_close: String,
    value: String,
    value_open: String,
    value_close: String,
}

impl Tags {
    fn with(suffix: &str) -> Self {
        Self {
            separator: format!("<tool_sep{suffix}>"),
            key_open: format!("<arg_key{suffix}>"),
            key_close: format!("</arg_key{suffix}>"),
            value: format!("arg_value{suffix}"),
            value_open: format!("<arg_value{suffix}>"),
            value_close: format!("</arg_value{suffix}>"),
        }
    }

    /// Where the name ends, and where the pairs start.
    fn name_end(&self, region: &str) -> Option<(usize, usize)> {
        let key = region.find(&self.key_open);
        let head = &region[..key.unwrap_or(region.len())];
        match (head.find(&self.separator), key) {
            (Some(at), _) => Some((at, at + self.separator.len())),
            (None, Some(at)) => Some((at, at)),
            (None, None) => None,
        }
    }
}

/// Whether what stands behind a call's tag is a name and such pairs.
pub(super) fn begins(region: &str, suffix: &str) -> bool {
    let end = Tags::with(suffix).name_end(region);
    end.is_some_and(|(end, _)| end > 0 && is_name(region[..end].trim()))
}

/// `<tool_call:SUFFIX>`, `after` being behind the colon.
pub(super) fn suffixed(doc: &Doc<'_>, at: usize, after: usize) -> Option<Found> {
    let rest = &doc.text[after..];
    let len = rest
        .bytes()
        .take(SUFFIX_BYTES_MAX)
        .position(|byte| byte == b'>')?;
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if len == 0 || !rest[..len].bytes().all(is_word) {
        return None;
    }
    let suffix = &doc.text[after - 1..after + len];
    let closers = [
        format!("</tool_call{suffix}>"),
        format!("</tool_calls{suffix}>"),
        "</tool_call>".to_owned(),
    ];
    let closers: Vec<&str> = closers.iter().map(String::as_str).collect();
    let start = after + len + 1;
    let close = find_close(doc, start, &closers);
    let stop = close.map_or(doc.text.len(), |(from, _)| from);
    let region = &doc.text[start..stop];
    if begins(region, suffix) {
        return Some(read(doc, at, start, (close, &closers), suffix));
    }
    let name = region.trim();
    if close.is_none() || name.is_empty() || name.len() > NAME_BYTES_MAX || !is_name(name) {
        return Some(Found {
            end: start,
            failed: true,
            ..Found::default()
        });
    }
    let end = close.map_or(stop, |(_, to)| to);
    let call = RawCall::new(name, Args::default(), [at, end], Strategy::Native);
    Some(Found::calls(vec![call.confidence(sure::TOKENS)], end))
}

/// The call whose name starts at `start`, and where its tag closes.
pub(super) fn read(
    doc: &Doc<'_>,
    at: usize,
    start: usize,
    (mut close, closers): (Option<(usize, usize)>, &[&str]),
    suffix: &str,
) -> Found {
    let text = doc.text;
    let tags = Tags::with(suffix);
    let stop_of = |close: Option<(usize, usize)>| close.map_or(text.len(), |(from, _)| from);
    let region = &text[start..stop_of(close)];
    let (name_len, pairs) = tags
        .name_end(region)
        .unwrap_or((region.len(), region.len()));
    let mut args = Args::default();
    let mut ending = Ending::Whole;
    let mut lost = false;
    let mut from = start + pairs;
    if region[pairs..].trim_start().starts_with('{') {
        let read = read_all_args(text, from, stop_of(close));
        let end = close.map_or(text.len(), |(_, to)| to);
        let call = RawCall::new(region[..name_len].trim(), args, [at, end], Strategy::Native)
            .confidence(sure::TOKENS)
            .with_args(read);
        return Found::calls(vec![call], end);
    }
    loop {
        let stop = stop_of(close);
        let next = text[from..stop].find(&tags.key_open);
        doc.may_read(next.unwrap_or(stop - from));
        // Behind a name and between pairs stands nothing.
        lost |= !text[from..next.map_or(stop, |next| from + next)]
            .trim()
            .is_empty();
        let Some(next) = next else { break };
        let key_from = from + next + tags.key_open.len();
        let Some(key_to) = find(text, key_from, stop, &tags.key_close) else {
            ending = Ending::OpenString;
            break;
        };
        let behind = key_to + tags.key_close.len();
        let value_open = find(text, behind, stop, &tags.value_open);
        let other_key = find(text, behind, value_open.unwrap_or(stop), &tags.key_open);
        let Some(value) = value_open.filter(|_| other_key.is_none()) else {
            // A key without a value.
            match other_key {
                Some(other) => (lost, from) = (true, other),
                None if close.is_some() => {
                    lost = true;
                    break;
                }
                None => {
                    ending = Ending::OpenString;
                    break;
                }
            }
            continue;
        };
        lost |= !text[behind..value].trim().is_empty();
        let value = value + tags.value_open.len();
        let key = &text[key_from..key_to];
        let (value_end, behind) = value_end(doc, value, stop, &tags);
        let Some(behind) = behind else {
            ending = Ending::OpenString;
            // A call in the middle of a line of the open value is part of it.
            let part = |(from, to): &(usize, usize)| {
                from == to && !super::react::at_line_start(text, *from)
            };
            close = close.filter(|close| !part(close));
            push_text(&mut args, key, &text[value..value_end]);
            break;
        };
        push_text(&mut args, key, &text[value..value_end]);
        if behind > stop_of(close) {
            close = find_close(doc, behind, closers);
        }
        from = behind;
    }
    if close.is_none() {
        ending = ending.max(Ending::MissingClosers);
    }
    let end = close.map_or(text.len(), |(_, to)| to);
    let name = text[start..start + name_len].trim();
    let call = RawCall::new(name, args, [at, end], Strategy::Native)
        .confidence(sure::TOKENS)
        .ending(ending)
        .lost(lost && ending != Ending::OpenString);
    Found::calls(vec![call], end)
}

fn find(text: &str, from: usize, to: usize, word: &str) -> Option<usize> {
    text.get(from..to)?.find(word).map(|found| from + found)
}

fn push_text(args: &mut Args, key: &str, value: &str) {
    let value = super::xml::without_edge_breaks(value).to_owned();
    args.named.push((key.trim().to_owned(), Given::Text(value)));
}

/// Where a value ends, and the byte behind its closer. A value that holds whole calls ends behind
/// them.
fn value_end(doc: &Doc<'_>, from: usize, stop: usize, tags: &Tags) -> (usize, Option<usize>) {
    let flat = find(doc.text, from, stop, &tags.value_close);
    let to = flat.unwrap_or(stop);
    if flat.is_none() || doc.text[from..to].contains(&tags.value_open) {
        let paired = super::elements::paired_closer(doc.text, from, &tags.value);
        doc.may_read(paired.map_or(doc.text.len(), |(_, end)| end) - from);
        if let Some((to, end)) = paired {
            return (to, Some(end));
        }
    }
    (to, flat.map(|flat| flat + tags.value_close.len()))
}
