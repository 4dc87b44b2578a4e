//! The tags of calls whose elements can nest: how each vendor writes them.

use std::cell::RefCell;

use super::xml::attribute;
use crate::doc::Doc;
use crate::limits::NAME_BYTES_MAX;
use crate::steps::visit;

/// How tags are written, and which of them is a call.
pub(super) struct Markup {
    /// What stands before a tag's name. A closing tag has `close` there.
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// What ends a tag.
    pub(super) end: &'static str,
    /// The element that is a call, and the attribute with the tool's name.
    pub(super) call: &'static str,
    pub(super) name: &'static str,
    /// Elements around calls. They hold nothing by themselves.
    pub(super) containers: &'static [&'static str],
    /// Whether an argument can hold elements where the schema does not say so.
    pub(super) nests: bool,
    /// Whether quotation marks in attributes are escaped.
    pub(super) escapes: bool,
}

/// `]<]minimax[>[<invoke name="f">]<]minimax[>[<a>1]<]minimax[>[</a>]<]minimax[>[</invoke>`.
pub(super) const MINIMAX: Markup = Markup {
    open: "]<]minimax[>[<",
    close: "]<]minimax[>[</",
    end: ">",
    call: "invoke",
    name: "name",
    containers: &["tool_call"],
    nests: true,
    escapes: false,
};

/// `<|open|>call tool="f"<|sep|><|open|>argument key="a" type="number"<|sep|>1<|close|>argument<|sep|>…`.
pub(super) const KIMI_K3: Markup = Markup {
    open: "<|open|>",
    close: "<|close|>",
    end: "<|sep|>",
    call: "call",
    name: "tool",
    containers: &["tools", "message"],
    nests: false,
    escapes: true,
};

/// `<invoke name="f"><a>1</a></invoke>`.
pub(super) const PLAIN: Markup = Markup {
    open: "<",
    close: "</",
    end: ">",
    call: "invoke",
    name: "name",
    containers: &[
        "tool_call",
        "tool_calls",
        "function_calls",
        "minimax:tool_call",
    ],
    nests: false,
    escapes: false,
};

/// `<function=f><a>1</a></function>`.
pub(super) const PLAIN_FUNCTION: Markup = Markup {
    call: "function",
    ..PLAIN
};

/// Where the last closing tags of calls stand, of those markups that were asked for.
#[derive(Default)]
pub(crate) struct LastClosers(RefCell<Vec<Closer>>);

/// How the tags close and what the call is called, and where the last one is.
type Closer = ((&'static str, &'static str), Option<usize>);

/// A tag in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tag<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) closes: bool,
    pub(super) name: &'a str,
    pub(super) head: &'a str,
}

impl Markup {
    /// The tag at this place. White space may stand between `MiniMax`'s token and the tag.
    pub(super) fn tag_at<'a>(&self, text: &'a str, at: usize) -> Option<Tag<'a>> {
        let rest = text.get(at..)?;
        let (closes, head) = if let Some(token) = self.open.strip_suffix('<') {
            let rest = rest.strip_prefix(token)?.trim_start().strip_prefix('<')?;
            let inner = rest.strip_prefix('/');
            (inner.is_some(), inner.unwrap_or(rest))
        } else if let Some(head) = rest.strip_prefix(self.close) {
            (true, head)
        } else {
            (false, rest.strip_prefix(self.open)?)
        };
        let from = text.len() - head.len();
        let limit = crate::doc::floor(head, 4 * NAME_BYTES_MAX);
        let to = head[..limit].find(self.end)?;
        let inner = head[..to].trim();
        let is_in_name =
            |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | ':');
        let name_len = inner
            .find(|letter| !is_in_name(letter))
            .unwrap_or(inner.len());
        (name_len > 0).then(|| Tag {
            start: at,
            end: from + to + self.end.len(),
            closes,
            name: &inner[..name_len],
            head: &inner[name_len..],
        })
    }

    /// The next tag from `at` on.
    pub(super) fn next<'a>(&self, doc: &Doc<'a>, mut at: usize) -> Option<Tag<'a>> {
        let token = match self.open.strip_suffix('<') {
            Some("") => "<",
            Some(token) => token,
            None => "<|",
        };
        loop {
            let found = memchr::memmem::find(doc.text.as_bytes().get(at..)?, token.as_bytes());
            doc.may_read(found.unwrap_or(doc.text.len() - at));
            let start = at + found?;
            if let Some(tag) = self.tag_at(doc.text, start) {
                return Some(tag);
            }
            at = start + token.len();
        }
    }

    /// Whether a closing tag of a call can follow. The last one is looked for once.
    pub(super) fn may_close_behind(&self, doc: &Doc<'_>, at: usize) -> bool {
        let key = (self.close, self.call);
        let mut known = doc.closers.0.borrow_mut();
        if !known.iter().any(|(known, _)| *known == key) {
            known.push((key, self.last_closer(doc.text)));
        }
        let is_behind = |(known, last): &Closer| *known == key && last.is_some_and(|it| it >= at);
        known.iter().any(is_behind)
    }

    fn last_closer(&self, text: &str) -> Option<usize> {
        // White space may stand between a token and its tag.
        let close = if self.open.ends_with('<') {
            "</"
        } else {
            self.close
        };
        visit(text.len());
        memchr::memmem::rfind_iter(text.as_bytes(), close.as_bytes())
            .find(|at| text[at + close.len()..].trim_start().starts_with(self.call))
    }

    pub(super) fn attribute(&self, head: &str, name: &str) -> Option<String> {
        let value = attribute(head, name)?;
        Some(if self.escapes {
            value.replace("&quot;", "\"").replace("&amp;", "&")
        } else {
            value.to_owned()
        })
    }
}
