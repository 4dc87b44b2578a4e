//! Calls whose parts are elements: the tool's own name as the tag (`<read_file><path>…`), or the
//! name and the arguments in tags of their own (`<tool>…</tool><tool_input>…</tool_input>`).

use super::element_values::without_entities;
use super::xml::{attribute, behind_cdata, without_cdata, without_edge_breaks};
use super::{Found, sure};
use crate::doc::{Doc, first_of};
use crate::json::Ending;
use crate::limits::{NAME_BYTES_MAX, NESTED_CALLS_MAX};
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, Unknown, read_all_args};
use crate::tools::ToolSpec;

/// Elements whose text is a tool's name.
const NAME_TAGS: &[&str] = &[
    "tool_name",
    "toolname",
    "tool",
    "function_name",
    "function",
    "name",
    "action",
];
/// Elements that hold the arguments.
const ARGUMENT_TAGS: &[&str] = &[
    "arguments",
    "parameters",
    "args",
    "params",
    "input",
    "tool_input",
    "action_input",
    "tool_args",
];
/// Elements around a call that may carry the name as an attribute.
const CALL_TAGS: &[&str] = &[
    "tool_call",
    "function_call",
    "tool_use",
    "tool",
    "function",
    "invoke",
    "call",
    "action",
];

/// The blank as some tokenizers write it (`MiniCPM`).
const TOKENIZER_BLANK: char = '\u{120}';

/// Whether the inside of a tag begins with another element, which has an opener of its own.
pub(super) fn opens(rest: &str) -> bool {
    if ["<invoke", "<function=", "<｜DSML｜", "<steptml:"]
        .iter()
        .any(|open| rest.starts_with(open))
    {
        return true;
    }
    tag_at(rest, 0).is_some_and(|tag| !tag.closes && NAME_TAGS.contains(&tag.name))
}

/// A tag in the text.
struct Tag<'a> {
    name: &'a str,
    /// What stands between the name and the angle bracket.
    head: &'a str,
    end: usize,
    closes: bool,
}

fn tag_at(text: &str, at: usize) -> Option<Tag<'_>> {
    let rest = text.get(at..)?.strip_prefix('<')?;
    let closes = rest.starts_with('/');
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let name_len = rest
        .bytes()
        .take(NAME_BYTES_MAX)
        .take_while(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
        .count();
    if name_len == 0 || !rest.as_bytes()[0].is_ascii_alphabetic() {
        return None;
    }
    let name_len = name_len - glued_attribute(&rest[..name_len], &rest[name_len..]);
    let limit = crate::doc::floor(rest, name_len + 2 * NAME_BYTES_MAX);
    let head = &rest[name_len..limit];
    let bracket = head.find('>')?;
    let is_apart = head.starts_with([' ', '\n', '\t', '/', TOKENIZER_BLANK]);
    if bracket > 0 && !is_apart && !head.starts_with("name=") {
        return None;
    }
    Some(Tag {
        name: &rest[..name_len],
        head: &head[..bracket],
        end: text.len() - rest.len() + name_len + bracket + 1,
        closes,
    })
}

/// How many letters of a tag's name are its attribute's: `<functionname="f">`.
fn glued_attribute(name: &str, behind: &str) -> usize {
    const GLUED: &[&str] = &["functionname", "paramname", "parametername"];
    let is_glued = behind.starts_with('=') && GLUED.contains(&name);
    if is_glued { "name".len() } else { 0 }
}

pub(crate) fn read(doc: &Doc<'_>, at: usize) -> Option<Found> {
    let tag = tag_at(doc.text, at).filter(|tag| !tag.closes)?;
    let lower = tag.name.to_ascii_lowercase();
    if tag.head.trim().is_empty() {
        if NAME_TAGS.contains(&lower.as_str())
            && let Some(found) = name_and_arguments(doc, at, &tag)
        {
            return Some(found);
        }
        let tool = doc.tools.find(tag.name)?;
        return named_by_tag(doc, at, &tag, tool);
    }
    if !CALL_TAGS.contains(&lower.as_str()) {
        return None;
    }
    let name = attribute(tag.head, "name")?;
    let is_known = doc.tools.find_close(name).is_some();
    if !is_known && !has_parameters(doc.text, tag.end) {
        return None;
    }
    let (stop, end, closed) = close_of(doc, tag.end, tag.name);
    let region = (tag.end, stop);
    let mut found = inside(doc, (name, tag.name), at, region, end, closed);
    if !is_known {
        // In plain tags it can be data as well.
        for call in &mut found.calls {
            call.unknown = Unknown::Mistake;
        }
    }
    Some(found)
}

/// Whether an element goes on with one for an argument that has its name as an attribute.
fn has_parameters(text: &str, from: usize) -> bool {
    let at = text.len() - text[from..].trim_start().len();
    tag_at(text, at).is_some_and(|tag| {
        !tag.closes
            && matches!(tag.name, "param" | "parameter")
            && attribute(tag.head, "name").is_some()
    })
}

/// `<tool_name>x</tool_name>` and the element with the arguments behind it.
fn name_and_arguments(doc: &Doc<'_>, at: usize, tag: &Tag<'_>) -> Option<Found> {
    let text = doc.text;
    let limit = crate::doc::floor(text, tag.end + 2 * NAME_BYTES_MAX);
    let name_end = tag.end + text[tag.end..limit].find('<')?;
    let name = text[tag.end..name_end].trim();
    let name_closer =
        tag_at(text, name_end).filter(|found| found.closes && found.name == tag.name)?;
    let next = text[name_closer.end..].trim_start();
    let next_at = text.len() - next.len();
    let arguments = tag_at(text, next_at).filter(|next| {
        !next.closes && ARGUMENT_TAGS.contains(&next.name.to_ascii_lowercase().as_str())
    })?;
    if name.is_empty() || tag.name == "name" && doc.tools.find_close(name).is_none() {
        return None;
    }
    let (stop, end, closed) = close_of(doc, arguments.end, arguments.name);
    Some(inside(
        doc,
        (name, tag.name),
        at,
        (arguments.end, stop),
        end,
        closed,
    ))
}

/// `<read_file><path>a</path></read_file>`: only where the children are the tool's arguments.
fn named_by_tag(doc: &Doc<'_>, at: usize, tag: &Tag<'_>, tool: &ToolSpec) -> Option<Found> {
    let rest = doc.text[tag.end..].trim_start();
    let child = tag_at(rest, 0).filter(|child| !child.closes && child.head.trim().is_empty());
    let fits = child.is_some_and(|child| {
        tool.property(child.name).is_some()
            || tool
                .properties()
                .any(|(name, _)| crate::guide::same_argument(name, child.name))
    });
    if !fits && !rest.starts_with("{\"") {
        return None;
    }
    let (stop, end, closed) = close_of(doc, tag.end, tag.name);
    Some(inside(
        doc,
        (tag.name, tag.name),
        at,
        (tag.end, stop),
        end,
        closed,
    ))
}

/// The element's own closer: where it starts, where it ends, and whether it is there.
fn close_of(doc: &Doc<'_>, from: usize, name: &str) -> (usize, usize, bool) {
    let rest = &doc.text[from..];
    let found = paired_closer(rest, 0, name);
    doc.may_read(found.map_or(rest.len(), |(_, end)| end));
    found.map_or((doc.text.len(), doc.text.len(), false), |(stop, end)| {
        (from + stop, from + end, true)
    })
}

/// The closer that belongs to an element which opened right before `from`: elements of its name
/// inside have closers of their own, and tags in `<![CDATA[…]]>` are text. `None` where they do not
/// pair up.
pub(super) fn paired_closer(text: &str, from: usize, name: &str) -> Option<(usize, usize)> {
    const CDATA: &str = "<![CDATA[";
    const CDATA_END: &str = "]]>";
    let (opener, closer) = (format!("<{name}>"), format!("</{name}>"));
    let named = format!("<{name} name=");
    let tags = [opener.as_str(), named.as_str(), closer.as_str(), CDATA];
    let mut depth = 0_usize;
    let mut at = from;
    while let Some((found, which)) = first_of(&text.as_bytes()[at..], &tags) {
        let tag = at + found;
        at = tag + tags[which].len();
        match (which, depth) {
            (3, _) => {
                let (end, _) = first_of(&text.as_bytes()[at..], &[CDATA_END])?;
                at += end + CDATA_END.len();
            }
            (0 | 1, NESTED_CALLS_MAX..) => return None,
            (0 | 1, _) => depth += 1,
            (_, 0) => return Some((tag, at)),
            _ => depth -= 1,
        }
    }
    None
}

/// The call whose arguments stand in `region`: JSON, elements or a bare text. It has the tool's name
/// and that of its own element.
fn inside(
    doc: &Doc<'_>,
    (name, own): (&str, &str),
    at: usize,
    region: (usize, usize),
    end: usize,
    closed: bool,
) -> Found {
    let body = &doc.text[region.0..region.1];
    let mut call =
        RawCall::new(name, Args::default(), [at, end], Strategy::Native).confidence(sure::TOKENS);
    let mut closed = closed;
    if body.trim_start().starts_with('<') {
        let children = children(body, own, closed);
        doc.may_read(children.end);
        (call.args, call.ending) = (children.args, children.ending);
        call.lost = children.lost;
        let next = tag_at(body, children.end).filter(|_| !closed);
        if let Some(next) = next.filter(|_| call.ending == Ending::Whole) {
            // Its name stands in a value and has no closer, or the next call follows at once.
            closed = next.closes;
            call.span[1] = region.0 + if next.closes { next.end } else { children.end };
        }
    } else {
        call = call
            .with_args(read_all_args(doc.text, region.0, region.1))
            .may_be_bare();
        if !closed && !body.trim_start().starts_with('{') {
            call.ending = Ending::OpenString;
        }
    }
    if closed {
        super::tagged::finish_closed(std::slice::from_mut(&mut call));
    } else {
        call.ending = call.ending.max(Ending::MissingClosers);
    }
    let end = call.span[1];
    Found::calls(vec![call], end)
}

/// The elements inside of a call.
struct Children {
    args: Args,
    /// Where the next thing stands that is none of them.
    end: usize,
    ending: Ending,
    /// Whether something stands behind them that is none.
    lost: bool,
}

/// `<key>value</key>` or `<arg key="key">value</arg>`, one after the other. Where the call itself
/// is not `closed`, one more of its `own` name can follow at once.
fn children(body: &str, own: &str, closed: bool) -> Children {
    let mut args = Args::default();
    let mut container = None;
    let mut at = body.len() - body.trim_start().len();
    while let Some(tag) = tag_at(body, at).filter(|tag| !tag.closes) {
        if !closed && tag.name == own {
            break;
        }
        let key = ["key", "name"]
            .iter()
            .find_map(|key| attribute(tag.head, key))
            .unwrap_or(tag.name);
        if ARGUMENT_TAGS.contains(&tag.name) && has_parameters(body, tag.end) {
            // A container around the arguments.
            at = body.len() - body[tag.end..].trim_start().len();
            container = Some(tag.name);
            continue;
        }
        let behind_cdata = behind_cdata(body, tag.end);
        let (stop, end) = child_end(body, behind_cdata, tag.name, closed);
        let value = &body[tag.end..stop];
        // `MiniCPM` writes XML, and nothing around its values.
        let is_xml = tag.name == "param" && key != tag.name;
        let value = match without_cdata(value) {
            Some(inner) => inner.to_owned(),
            None if is_xml => without_entities(value).unwrap_or_else(|| value.to_owned()),
            None => without_edge_breaks(value).to_owned(),
        };
        args.named.push((key.to_owned(), Given::Text(value)));
        let Some(end) = end else {
            return Children {
                args,
                end: body.len(),
                ending: Ending::OpenString,
                lost: false,
            };
        };
        at = body.len() - body[end..].trim_start().len();
        let behind = container.and_then(|name| {
            let tag = tag_at(body, at)?;
            (tag.closes && tag.name == name).then_some(tag.end)
        });
        if let Some(behind) = behind {
            container = None;
            at = body.len() - body[behind..].trim_start().len();
        }
    }
    let rest = body[at.min(body.len())..].trim();
    let cut = rest.starts_with('<') && !rest.contains('>');
    Children {
        args,
        end: at,
        ending: if cut {
            Ending::OpenValue
        } else {
            Ending::Whole
        },
        lost: closed && !rest.is_empty(),
    }
}

/// Where a child ends: at the first closer that another element, or nothing, follows. Where elements
/// of its name do not pair up, the value was cut, unless the call around it is `closed`.
fn child_end(body: &str, from: usize, name: &str, closed: bool) -> (usize, Option<usize>) {
    let mut last = None;
    let mut at = from;
    while let Some((stop, end)) = paired_closer(body, at, name) {
        let rest = body[end..].trim_start();
        last = Some((stop, Some(end)));
        if rest.is_empty() || rest.starts_with('<') {
            break;
        }
        at = end;
    }
    let tag = format!("</{name}>");
    let first = || {
        let (found, _) = first_of(&body.as_bytes()[from..], &[&tag]).filter(|_| closed)?;
        Some((from + found, Some(from + found + tag.len())))
    };
    last.or_else(first).unwrap_or((body.len(), None))
}
