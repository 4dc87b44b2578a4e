//! What a text shows as code, a quotation or a comment, whatever its words say.

use crate::cues;
use crate::doc::{Doc, Fence, line_start};
use crate::sketch;

/// Languages of a block that a prompt can ask for a list of calls in.
const LIST_LANGS: &[&str] = &["python", "py", "python3"];

impl Doc<'_> {
    /// Whether a Python block at the end of the reply holds one list of names or strings and nothing
    /// else. Only such a list can be the calls that a prompt has asked for.
    pub(crate) fn is_all_a_list(&self, fence: &Fence) -> bool {
        let body = self.text[fence.body..fence.body_end].trim();
        let is_list = body.strip_prefix('[').is_some_and(|inner| {
            let is_item =
                |letter: char| letter.is_alphabetic() || matches!(letter, '_' | '"' | '\'');
            inner.ends_with(']') && inner.trim_start().starts_with(is_item)
        });
        LIST_LANGS.contains(&fence.lang.as_str())
            && fence.closed
            && is_list
            && self.text[fence.end..].trim().is_empty()
    }

    /// Whether a whole form is shown: in a block that is closed or begins with it, between marks, in a
    /// quoted line or a comment of its own, or in something hidden.
    pub(crate) fn holds_plainly(&self, [start, end]: [usize; 2]) -> bool {
        let holder = |ranges: &[[usize; 2]]| {
            let next = ranges.partition_point(|[_, to]| *to <= start);
            let range = ranges.get(next).copied();
            range.filter(|[from, to]| *from <= start && *to >= end)
        };
        if let Some(fence) = self.fence_at(start).filter(|fence| fence.end >= end) {
            let begins_with_it = self.text[fence.body.min(start)..start].trim().is_empty();
            return fence.closed && fence.body_end >= end || begins_with_it;
        }
        let lead = self.text[line_start(self.text, start)..start].trim();
        let is_comment = lead.starts_with("//") && lead.trim_matches('/').is_empty();
        let is_quoted = holder(&self.quoted).is_some_and(|[from, _]| {
            self.text[from..].starts_with('`') || lead.trim_matches(['>', ' ']).is_empty()
        });
        is_comment || is_quoted || holder(&self.hidden).is_some()
    }

    /// Whether this place is in code that the text shows: between marks, or in a block that is closed and
    /// that words lead up to which do not speak of the model's own doing. Not all languages are known, so
    /// the block has to be no call, or the words have to say that it is shown.
    pub(crate) fn is_in_shown_code(&self, at: usize) -> bool {
        let Some(fence) = self.fence_at(at) else {
            return self.in_quoted(at);
        };
        let lead = self.lead(fence.start, 0);
        fence.closed
            && !lead.line.trim().is_empty()
            && !cues::is_own(lead)
            && (self.is_sketch(fence) || cues::explains(lead, self.after(fence.end)))
    }

    fn is_sketch(&self, fence: &Fence) -> bool {
        let code = &self.text[fence.body..fence.body_end];
        self.may_read(code.len()) && sketch::is_sketch(code)
    }
}
