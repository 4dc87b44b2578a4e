//! Calls whose tags are made of a vendor's own tokens, or whose arguments are elements named after
//! them, and can nest: `MiniMax` M3, Kimi K3, and `<invoke name="…"><path>…</path></invoke>`.

use serde_json::Value;

use super::element_values::{self, built, child_schema, given};
use super::markup_tags::{KIMI_K3, MINIMAX, Markup, PLAIN, PLAIN_FUNCTION, Tag};
use super::{Found, sure};
use crate::coerce::{self, Coerced};
use crate::doc::Doc;
use crate::json::Ending;
use crate::limits::{ARGUMENTS_MAX, NESTING_MAX};
use crate::model::Strategy;
use crate::raw::{Args, Given, RawCall, read_args};
use crate::steps::visit;

/// Elements that have an argument's name as an attribute.
const ARGUMENT_TAGS: &[&str] = &["argument", "arg", "parameter", "param"];

/// What stands at a token of `MiniMax` M3.
pub(crate) fn minimax(doc: &Doc<'_>, at: usize) -> Option<Found> {
    read(doc, at, &MINIMAX)
}

/// What stands at `<|open|>`.
pub(crate) fn kimi_k3(doc: &Doc<'_>, at: usize) -> Option<Found> {
    read(doc, at, &KIMI_K3)
}

fn read(doc: &Doc<'_>, at: usize, markup: &Markup) -> Option<Found> {
    let tag = markup.tag_at(doc.text, at)?;
    let skipped = Found {
        end: tag.end,
        ..Found::default()
    };
    if tag.closes || tag.name != markup.call {
        // The tag itself is no call, and none of the other forms is read in it.
        return Some(skipped);
    }
    let Some(name) = markup.attribute(tag.head, markup.name) else {
        return Some(Found {
            failed: true,
            ..skipped
        });
    };
    let rest = doc.text[tag.end..].trim_start();
    if rest.starts_with('<') && opens_argument(doc.text, tag.end) {
        // The token is forgotten in the call.
        return Some(call(doc, &name, [at, tag.end]));
    }
    Some(call_in(doc, markup, &name, [at, tag.end]))
}

/// Whether an `<invoke>` goes on with an element that is called like an argument.
pub(super) fn opens_argument(text: &str, body: usize) -> bool {
    let at = text.len() - text[body..].trim_start().len();
    // `MiniMax` forgets its token before the call's tag only.
    if MINIMAX.tag_at(text, at).is_some() {
        return true;
    }
    let tag = PLAIN.tag_at(text, at);
    tag.is_some_and(|tag| !tag.closes && tag.name != "parameter" && !tag.name.contains(':'))
}

/// The call of an `<invoke>` or `<function=…>` whose arguments are elements of their own names.
pub(super) fn call(doc: &Doc<'_>, name: &str, opener: [usize; 2]) -> Found {
    let is_function = doc.text[opener[0]..].starts_with("<function");
    let body = doc.text[opener[1]..].trim_start();
    let at = doc.text.len() - body.len();
    let markup = match MINIMAX.tag_at(doc.text, at) {
        Some(_) => &MINIMAX,
        None if is_function => &PLAIN_FUNCTION,
        None => &PLAIN,
    };
    call_in(doc, markup, name, opener)
}

/// The call of this name whose opening tag stands at `opener`.
fn call_in(doc: &Doc<'_>, markup: &Markup, name: &str, opener: [usize; 2]) -> Found {
    let [at, body] = opener;
    // Values can hold whole calls. Where reading them as such leads nowhere, their tags are read.
    let nested = Walk::new(doc, markup, name, body, true).run();
    let read = if nested.held && nested.ending != Ending::Whole {
        Walk::new(doc, markup, name, body, false).run()
    } else {
        nested
    };
    let end = read.end;
    let call = RawCall::new(name, read.args, [at, end], Strategy::Native)
        .confidence(sure::TOKENS)
        .repaired(read.repaired)
        .ending(read.ending)
        .lost(read.lost);
    Found::calls(vec![call], end)
}

/// What stands in a call's element.
struct Inside {
    args: Args,
    end: usize,
    ending: Ending,
    repaired: bool,
    lost: bool,
    /// Whether a value holds what begins like a call.
    held: bool,
}

/// An open element.
struct Open<'a> {
    key: String,
    tag: &'a str,
    /// Where its text starts.
    from: usize,
    schema: Option<Value>,
    /// What its vendor calls the type of its text.
    kind: Option<String>,
    /// Whether tags in it are text.
    is_text: bool,
    children: Vec<(String, Value)>,
}

/// The walk from tag to tag through one call.
struct Walk<'a, 'd> {
    doc: &'d Doc<'a>,
    markup: &'d Markup,
    schema: Option<Value>,
    at: usize,
    open: Vec<Open<'a>>,
    inside: Inside,
    /// Whether calls in values are stepped over whole, and in how many of them the walk is.
    nesting: bool,
    depth: usize,
}

impl<'a, 'd> Walk<'a, 'd> {
    fn new(doc: &'d Doc<'a>, markup: &'d Markup, name: &str, body: usize, nesting: bool) -> Self {
        let tool = doc.tools.find_close(name).map(|(tool, _)| tool);
        Self {
            doc,
            markup,
            schema: tool.map(|tool| tool.schema.as_ref().clone()),
            at: body,
            open: Vec::new(),
            inside: Inside {
                args: Args::default(),
                end: doc.text.len(),
                ending: Ending::Whole,
                repaired: false,
                lost: false,
                held: false,
            },
            nesting,
            depth: 0,
        }
    }

    fn run(mut self) -> Inside {
        let body = self.doc.text[self.at..].trim_start();
        if body.starts_with('{') {
            let from = self.doc.text.len() - body.len();
            return self.json(from);
        }
        while let Some(tag) = self.markup.next(self.doc, self.at) {
            if self.open.is_empty() {
                self.inside.lost |= !self.doc.text[self.at..tag.start].trim().is_empty();
            }
            if self.step(tag) {
                return self.inside;
            }
        }
        self.inside.ending = if self.open.is_empty() {
            Ending::MissingClosers
        } else {
            Ending::OpenString
        };
        let rest = self.doc.text[self.at..].trim();
        self.inside.lost |= self.open.is_empty() && !rest.is_empty();
        while !self.open.is_empty() {
            self.close(self.doc.text.len());
        }
        self.inside
    }

    /// Arguments that are one JSON object.
    fn json(mut self, from: usize) -> Inside {
        let mut stop = from;
        let closer = loop {
            match self.markup.next(self.doc, stop) {
                Some(tag) if tag.closes && tag.name == self.markup.call => break Some(tag),
                Some(tag) => stop = tag.end,
                None => break None,
            }
        };
        let to = closer.map_or(self.doc.text.len(), |tag| tag.start);
        let read = read_args(self.doc.text, from, to);
        self.inside = Inside {
            args: read.args,
            end: to,
            ending: read.ending,
            repaired: read.repaired,
            held: false,
            lost: read.lost || !self.doc.text[read.end.min(to)..to].trim().is_empty(),
        };
        match closer {
            Some(tag) => self.inside.end = self.behind_containers(tag.end),
            None => self.inside.ending = self.inside.ending.max(Ending::MissingClosers),
        }
        self.inside
    }

    /// Takes one tag. True when it ends the call.
    fn step(&mut self, tag: Tag<'a>) -> bool {
        let text = self.doc.text;
        if self.nesting && self.steps_over(tag) {
            self.at = tag.end;
            // A call in a value that nothing closes leads nowhere.
            let is_lost = self.depth > 0 && !self.markup.may_close_behind(self.doc, tag.end);
            if is_lost {
                self.inside.ending = Ending::OpenString;
            }
            return is_lost;
        }
        // The token before a closing tag was forgotten: `<a>1</a>` and then the next tag.
        while let Some(open) = self.open.last()
            && let Some(value) = text[open.from..tag.start]
                .trim_end()
                .strip_suffix(&format!("</{}>", open.tag))
        {
            let to = open.from + value.len();
            self.inside.repaired = true;
            self.close(to);
        }
        let is_text = self.open.last().is_some_and(|open| open.is_text);
        self.at = tag.end;
        if !tag.closes {
            if tag.name == self.markup.call && self.opens_next(tag) {
                // The call's own closer was forgotten.
                self.close_all(tag.start);
                self.inside.end = tag.start;
                return true;
            }
            if !is_text && self.open.len() < NESTING_MAX {
                self.push(tag);
            }
            return false;
        }
        let known = self.open.iter().rposition(|open| open.tag == tag.name);
        match known {
            Some(place) if place + 1 == self.open.len() || !is_text => {
                self.inside.repaired |= place + 1 < self.open.len();
                while self.open.len() > place {
                    self.close(tag.start);
                }
                false
            }
            Some(_) => false,
            None if tag.name == self.markup.call => {
                if is_text && self.closes_later(tag.end) {
                    return false;
                }
                self.close_all(tag.start);
                self.inside.end = self.behind_containers(tag.end);
                true
            }
            None if self.markup.containers.contains(&tag.name) && self.open.is_empty() => {
                self.inside.end = self.behind_containers(tag.end);
                true
            }
            None => {
                self.inside.lost |= self.open.is_empty();
                false
            }
        }
    }

    /// Whether a tag belongs to a call that stands in a value.
    fn steps_over(&mut self, tag: Tag<'a>) -> bool {
        let is_call = tag.name == self.markup.call && !self.open.is_empty();
        if is_call && !tag.closes && self.markup.attribute(tag.head, self.markup.name).is_some() {
            self.depth += 1;
            self.inside.held = true;
            return true;
        }
        if self.depth == 0 {
            return false;
        }
        self.depth -= usize::from(is_call && tag.closes);
        true
    }

    /// Whether a call's tag in a call is the next call, and no text of a value.
    fn opens_next(&self, tag: Tag<'a>) -> bool {
        self.markup.open.len() > 1 && self.markup.attribute(tag.head, self.markup.name).is_some()
    }

    /// Whether the open text's own closer follows. What stands before it is text, and is stepped over.
    fn closes_later(&mut self, from: usize) -> bool {
        let Some(open) = self.open.last() else {
            return false;
        };
        let closer = format!("{}{}{}", self.markup.close, open.tag, self.markup.end);
        let rest = &self.doc.text.as_bytes()[from..];
        let found = memchr::memmem::find(rest, closer.as_bytes());
        self.doc.may_read(found.unwrap_or(rest.len()));
        self.at = found.map_or(self.at, |found| from + found);
        found.is_some()
    }

    fn close_all(&mut self, to: usize) {
        self.inside.repaired |= !self.open.is_empty();
        while !self.open.is_empty() {
            self.close(to);
        }
    }

    fn push(&mut self, tag: Tag<'a>) {
        let is_argument = ARGUMENT_TAGS.contains(&tag.name);
        let key = ["key", "name"]
            .iter()
            .find_map(|key| self.markup.attribute(tag.head, key))
            .filter(|_| is_argument);
        let key = key.unwrap_or_else(|| tag.name.to_owned());
        let parent = match self.open.last() {
            Some(open) => open.schema.as_ref(),
            None => self.schema.as_ref(),
        };
        let schema = parent
            .and_then(|parent| child_schema(parent, &key))
            .cloned();
        let types = schema.as_ref().map(coerce::types_of).unwrap_or_default();
        let can_hold = types.iter().any(|kind| matches!(*kind, "object" | "array"));
        let is_text = !(can_hold || self.markup.nests && types.is_empty());
        self.open.push(Open {
            key,
            tag: tag.name,
            from: tag.end,
            kind: self.markup.attribute(tag.head, "type"),
            is_text: is_text || self.markup.escapes,
            schema,
            children: Vec::new(),
        });
    }

    /// Ends the innermost open element, whose text reaches to `to`.
    fn close(&mut self, to: usize) {
        let Some(open) = self.open.pop() else { return };
        let text = &self.doc.text[open.from.min(to)..to];
        let has_children = !open.children.is_empty();
        let given = if has_children {
            Given::Json(built(open.children, open.schema.as_ref()))
        } else {
            given(text, open.kind.as_deref(), open.schema.as_ref())
        };
        let Some(parent) = self.open.last_mut() else {
            return self.insert(open.key, given);
        };
        if parent.children.is_empty() {
            let before = self
                .doc
                .text
                .get(parent.from..open.from)
                .unwrap_or_default();
            let head = before
                .rfind(self.markup.open)
                .map_or("", |at| &before[..at]);
            self.inside.lost |= !head.trim().is_empty();
        }
        let value = match coerce::to_schema(given, open.schema.as_ref()) {
            Coerced::Fits(value)
            | Coerced::WrongType { value, .. }
            | Coerced::WrongValue { value, .. } => value,
        };
        parent.children.push((open.key, value));
    }

    /// One more argument. Repetitions of one that can be a list are its items.
    fn insert(&mut self, key: String, given: Given) {
        let schema = self.schema.as_ref().and_then(|own| child_schema(own, &key));
        let types = schema.map(coerce::types_of).unwrap_or_default();
        let can_be_list = types.is_empty() || types.contains(&"array");
        let named = &mut self.inside.args.named;
        visit(named.len());
        let known = named.iter().position(|known| known.0 == key);
        match known.filter(|_| can_be_list) {
            Some(place) => element_values::add(&mut named[place].1, given),
            None if named.len() < ARGUMENTS_MAX => named.push((key, given)),
            None => self.inside.lost = true,
        }
    }

    /// Behind the closers of what stands around a call.
    fn behind_containers(&self, mut at: usize) -> usize {
        let text = self.doc.text;
        loop {
            let next = text.len() - text[at..].trim_start().len();
            match self.markup.tag_at(text, next) {
                Some(tag) if tag.closes && self.markup.containers.contains(&tag.name) => {
                    at = tag.end;
                }
                _ => return at,
            }
        }
    }
}
