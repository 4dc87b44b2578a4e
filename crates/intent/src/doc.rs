//! The text with its regions: what is a code block, inline code, a quotation, private reasoning.
//! Found once, in one walk over the lines.

use memchr::memmem;

use crate::cues;
use crate::limits::{BLOCKS_MAX, CONTEXT_BYTES_MAX, REREAD_FACTOR_MAX};
use crate::model::FinishReason;
use crate::steps::visit;
use crate::thoughts;
use crate::tools::ToolSet;

/// A fenced block.
#[derive(Debug, Clone)]
pub(crate) struct Fence {
    pub(crate) start: usize,
    pub(crate) body: usize,
    pub(crate) body_end: usize,
    pub(crate) end: usize,
    pub(crate) lang: String,
    pub(crate) closed: bool,
}

impl Fence {
    /// Whether its language is one that a call can be written in.
    pub(crate) fn holds_calls(&self) -> bool {
        CALL_LANGS.contains(&self.lang.as_str())
    }

    /// What stands behind the last block that is looked at: code in no language of calls.
    fn rest(at: usize, end: usize) -> Self {
        Self {
            start: at,
            body: at,
            body_end: end,
            end,
            lang: "code".to_owned(),
            closed: false,
        }
    }
}

/// The text of one reply and what is known about it.
pub(crate) struct Doc<'a> {
    pub(crate) text: &'a str,
    pub(crate) tools: &'a ToolSet,
    pub(crate) finish: FinishReason,
    pub(crate) fences: Vec<Fence>,
    /// Inline code, quoted lines: sorted, apart.
    pub(crate) quoted: Vec<[usize; 2]>,
    /// Private reasoning that something else follows.
    thought: Vec<[usize; 2]>,
    /// Comments and what was struck out.
    pub(crate) hidden: Vec<[usize; 2]>,
    /// Where the first word is.
    pub(crate) first_word: usize,
    /// Forms that are only shown, in their order.
    shown: std::cell::RefCell<Vec<[usize; 2]>>,
    /// Where private reasoning opens that nothing closes.
    pub(crate) open_thought: Option<usize>,
    /// Bytes that may still be read again.
    rereads_left: std::cell::Cell<usize>,
    /// Whether sentences were left out since nothing more might be read.
    pub(crate) gave_up: std::cell::Cell<bool>,
    /// Where the call before ended.
    pub(crate) call_end: std::cell::Cell<usize>,
    pub(crate) closers: crate::forms::LastClosers,
}

/// Marks that open inline code; of more, nobody writes any.
const INLINE_MARKS_MAX: usize = 3;

/// Languages of a block that can hold a call which is meant.
const CALL_LANGS: &[&str] = &[
    "",
    "json",
    "json5",
    "jsonc",
    "tool_call",
    "tool_calls",
    "tool_code",
    "tool",
    "tools",
    "tool_use",
    "function_call",
    "function_calls",
    "xml",
    "action",
    "call",
    "text",
    "plaintext",
    "output",
];

impl<'a> Doc<'a> {
    pub(crate) fn new(text: &'a str, tools: &'a ToolSet, finish: FinishReason) -> Self {
        let mut doc = Self {
            text,
            tools,
            finish,
            fences: Vec::new(),
            quoted: Vec::new(),
            thought: thoughts::followed(text, finish),
            hidden: crate::hidden::regions(text),
            first_word: text.len() - text.trim_start().len(),
            shown: std::cell::RefCell::default(),
            open_thought: thoughts::open_thought(text),
            rereads_left: std::cell::Cell::new(text.len() * REREAD_FACTOR_MAX + 65_536),
            gave_up: std::cell::Cell::new(false),
            call_end: std::cell::Cell::new(0),
            closers: crate::forms::LastClosers::default(),
        };
        doc.find_regions();
        doc
    }

    /// Takes from what may be read again; false when it is used up.
    pub(crate) fn may_read(&self, bytes: usize) -> bool {
        visit(bytes);
        let left = self.rereads_left.get();
        self.rereads_left.set(left.saturating_sub(bytes));
        left > 0
    }

    fn find_regions(&mut self) {
        let text = self.text;
        let mut at = 0;
        let mut open: Option<(Fence, &str)> = None;
        while at < text.len() {
            if self.fences.len() >= BLOCKS_MAX {
                open = Some((Fence::rest(at, text.len()), ""));
                break;
            }
            let line_end =
                memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |n| at + n + 1);
            let line = &text[at..line_end];
            visit(line.len());
            let trimmed = line.trim();
            if let Some((fence, mark)) = &mut open {
                if trimmed.starts_with(*mark)
                    && trimmed.bytes().all(|byte| byte == mark.as_bytes()[0])
                {
                    fence.body_end = at;
                    fence.end = line_end;
                    fence.closed = true;
                    self.fences.extend(open.take().map(|(fence, _)| fence));
                }
            } else if let Some(mark) = ["```", "~~~"]
                .into_iter()
                .find(|mark| trimmed.starts_with(mark))
            {
                let info = trimmed.trim_start_matches(mark.as_bytes()[0] as char);
                if !info.contains('`') {
                    let lang = info
                        .split_whitespace()
                        .next()
                        .unwrap_or("")
                        .to_ascii_lowercase();
                    // `` ```json {"name": …} `` on one line: the body starts after the language.
                    let lead = line.len() - line.trim_start().len() + mark.len();
                    let inline = info.trim_start()[lang.len().min(info.trim_start().len())..]
                        .trim_start()
                        .starts_with(['{', '[', '<']);
                    let body = if inline || lang.starts_with(['{', '[', '<']) {
                        at + lead + info.find(['{', '[', '<']).unwrap_or(0)
                    } else {
                        line_end
                    };
                    let lang = if lang.starts_with(['{', '[', '<']) {
                        String::new()
                    } else {
                        lang
                    };
                    let fence = Fence {
                        start: at,
                        body,
                        body_end: text.len(),
                        end: text.len(),
                        lang,
                        closed: false,
                    };
                    open = Some((fence, mark));
                } else if let Some(close) = info.rfind("```") {
                    // A whole block on one line.
                    let lead = line.len() - line.trim_start().len() + 3;
                    let lang: String = info
                        .chars()
                        .take_while(char::is_ascii_alphanumeric)
                        .collect();
                    self.fences.push(Fence {
                        start: at,
                        body: at + lead + lang.len(),
                        body_end: at + lead + close,
                        end: line_end,
                        lang: lang.to_ascii_lowercase(),
                        closed: true,
                    });
                }
            } else if let Some(mark) = fence_behind_label(line) {
                open = Some((
                    Fence {
                        start: at + mark,
                        body: line_end,
                        body_end: text.len(),
                        end: text.len(),
                        lang: line[mark + 3..].trim().to_ascii_lowercase(),
                        closed: false,
                    },
                    "```",
                ));
            } else if trimmed.starts_with('>') && !trimmed.starts_with(">>>") {
                self.quoted.push([at, line_end]);
            } else {
                self.find_inline_code(at, line);
            }
            at = line_end;
        }
        self.fences.extend(open.map(|(fence, _)| fence));
    }

    /// Code between marks: as many close it as open it.
    fn find_inline_code(&mut self, at: usize, line: &str) {
        let mut from = 0;
        while let Some([open, inner]) = next_marks(line, from) {
            from = inner;
            // Longer rows close nothing, so that a line is looked through only so often.
            if inner - open > INLINE_MARKS_MAX {
                continue;
            }
            let mut look = inner;
            while let Some([close, end]) = next_marks(line, look) {
                look = end;
                if end - close == inner - open {
                    self.quoted.push([at + open, at + end]);
                    from = end;
                    break;
                }
            }
            visit(look - inner);
        }
    }

    pub(crate) fn fence_at(&self, at: usize) -> Option<&Fence> {
        let next = self.fences.partition_point(|fence| fence.end <= at);
        self.fences.get(next).filter(|fence| fence.start <= at)
    }

    /// Whether a structured form at this place is shown, not meant.
    /// What stands before `since` belongs to an earlier call and says nothing about this one.
    pub(crate) fn is_inert(&self, at: usize, since: usize) -> bool {
        if self.in_thought(at)
            || self.is_hidden(at, since)
            || self.is_commented(at, since)
            || self.is_output(at, since)
            || self.is_reference(at, since)
        {
            return true;
        }
        if let Some(fence) = self.fence_at(at) {
            return !fence.holds_calls() && !self.is_all_a_list(fence)
                || !self.text[fence.body.min(at)..at].trim().is_empty()
                    && !self.calls_before(fence, at)
                || self.shows_example(fence.start, since, self.after(fence.end));
        }
        self.in_quoted(at) || self.shows_example(at, since, "")
    }

    fn shows_example(&self, at: usize, since: usize, after: &str) -> bool {
        let lead = self.lead(at, since);
        let is_thought = cues::is_thought(lead.line);
        // A thought says why, in whatever words. Only one that introduces something can show it.
        if (!is_thought || cues::introduces(lead.line)) && cues::shows_example(lead, after) {
            return true;
        }
        if !is_thought {
            return false;
        }
        // A thought belongs to the action behind it: what introduces it introduces both.
        let said = self.text[..at].trim_end().len();
        let lead = self.lead(said - lead.line.len(), since);
        cues::introduces(lead.line) && cues::shows_example(lead, "")
    }

    /// Whether this place is in a comment or struck out. What opens inside of an earlier call, before
    /// `since`, is that call's text.
    pub(crate) fn is_hidden(&self, at: usize, since: usize) -> bool {
        let next = self.hidden.partition_point(|[_, end]| *end <= at);
        let region = self.hidden.get(next);
        region.is_some_and(|[start, _]| (since..=at).contains(start))
    }

    /// Whether the line is a comment up to this place.
    fn is_commented(&self, at: usize, since: usize) -> bool {
        let line = line_start(self.text, at).max(since.min(at));
        self.text[line..at].trim_start().starts_with("//")
    }

    /// Whether the chapter is called like a tool and describes it before this place.
    fn is_reference(&self, at: usize, since: usize) -> bool {
        let lead = self.lead(at, since);
        let heading = lead.heading.trim();
        let name = heading.trim_matches(['#', '`', '*', ' ']);
        heading.starts_with('#')
            && lead.line.trim() != heading
            && lead.line.trim_end().ends_with('.')
            && !cues::is_own(lead)
            && self.tools.find(name).is_some()
    }

    /// Whether a label above, in the same paragraph, says that a tool or a program wrote this.
    fn is_output(&self, at: usize, since: usize) -> bool {
        let at = self.fence_at(at).map_or(at, |fence| fence.start);
        let from = floor(
            self.text,
            at.saturating_sub(CONTEXT_BYTES_MAX).max(since.min(at)),
        );
        cues::ends_in_output(&self.text[from..at])
    }

    /// Remembers a form that is only shown.
    pub(crate) fn show(&self, span: [usize; 2]) {
        self.shown.borrow_mut().push(span);
    }

    /// Whether this place belongs to a form that is only shown.
    pub(crate) fn is_shown(&self, at: usize) -> bool {
        within(&self.shown.borrow(), at)
    }

    /// What the words before a form say about who means it. What a quotation mark opens right
    /// before it is a quotation, unless that is all there is and nobody closes it, or it is JSON
    /// that was encoded once more.
    pub(crate) fn standing(&self, [at, end]: [usize; 2], since: usize) -> cues::Standing {
        let before = &self.text[..at];
        let quoted = before.strip_suffix(['"', '\u{201c}']);
        let closed = self.text[end..].starts_with(['"', '\u{201d}'])
            && !self.text[at..].starts_with(['{', '[']);
        if quoted.is_some_and(|before| closed || !before.trim().is_empty()) {
            return cues::Standing::Reported;
        }
        let at = self.fence_at(at).map_or(at, |fence| fence.start);
        let lead = self.lead(at, since);
        if cues::is_thought(lead.line)
            && !cues::introduces(lead.line)
            && !lead.line.trim_end().ends_with('?')
        {
            return cues::Standing::Meant;
        }
        cues::standing(lead)
    }

    /// Whether the block began with a call, so that what follows can be one more.
    fn calls_before(&self, fence: &Fence, at: usize) -> bool {
        fence.lang == "tool_code"
            || self.text[fence.body.min(at)..at]
                .trim_start()
                .starts_with(['{', '[', '<'])
    }

    pub(crate) fn in_thought(&self, at: usize) -> bool {
        self.thought_end(at).is_some()
    }

    /// Where the last private reasoning before this place ends.
    pub(crate) fn thought_before(&self, at: usize) -> usize {
        let next = self.thought.partition_point(|[_, end]| *end <= at);
        next.checked_sub(1).map_or(0, |last| self.thought[last][1])
    }

    /// Where the private reasoning ends that this place is in.
    pub(crate) fn thought_end(&self, at: usize) -> Option<usize> {
        let next = self.thought.partition_point(|[_, end]| *end <= at);
        let [start, end] = self.thought.get(next)?;
        (*start <= at).then_some(*end)
    }

    /// Inline code or a quoted line, unless it is all there is, or is a line of its own behind words of
    /// the model's own doing: some write their calls so.
    pub(crate) fn in_quoted(&self, at: usize) -> bool {
        let next = self.quoted.partition_point(|[_, end]| *end <= at);
        let Some([start, end]) = self.quoted.get(next).filter(|[start, _]| *start <= at) else {
            return false;
        };
        if !self.text[*start..].starts_with('`') {
            return true;
        }
        let alone = self.text[..*start].trim().is_empty() && self.text[*end..].trim().is_empty();
        let line = line_start(self.text, *start);
        let own_line = self.text[line..*start].trim().is_empty()
            && line_rest(self.text, *end).trim().is_empty();
        !(alone || own_line && cues::announces(self.lead(*start, 0)))
    }

    /// What stands before this place and speaks about it.
    pub(crate) fn lead(&self, at: usize, since: usize) -> cues::Lead<'a> {
        let from = floor(
            self.text,
            at.saturating_sub(CONTEXT_BYTES_MAX).max(since.min(at)),
        );
        let before = &self.text[from..at];
        let mut said = before.trim_end();
        let mut line = said.rfind('\n').map_or(0, |found| found + 1);
        // The mark of a list's item says nothing; the line above does.
        if line > 0 && !said[line..].contains(char::is_alphabetic) {
            said = said[..line].trim_end();
            line = said.rfind('\n').map_or(0, |found| found + 1);
        }
        let heading = said
            .lines()
            .rfind(|line| is_heading(line))
            .unwrap_or_default();
        cues::Lead {
            line: &said[line..],
            same_line: !before[said.len()..].contains('\n'),
            heading,
        }
    }

    /// The first line with words after this place.
    pub(crate) fn after(&self, at: usize) -> &'a str {
        let to = floor(self.text, (at + CONTEXT_BYTES_MAX).min(self.text.len()));
        let tail = self.text[at.min(to)..to].trim_start();
        tail.lines().next().unwrap_or("")
    }
}

/// The next row of the marks of inline code: where it starts and ends.
fn next_marks(line: &str, from: usize) -> Option<[usize; 2]> {
    let bytes = line.as_bytes();
    let open = from + memchr::memchr(b'`', &bytes[from..])?;
    let count = bytes[open..].iter().take_while(|byte| **byte == b'`');
    Some([open, open + count.count()])
}

/// ``Action Input: ```json`` opens a block, too: where its marks start.
fn fence_behind_label(line: &str) -> Option<usize> {
    let line = line.trim_end();
    let head =
        line.trim_end_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    let label = head.strip_suffix("```")?;
    (label.trim_end().ends_with(':') && !label.contains('`')).then_some(label.len())
}

fn within(ranges: &[[usize; 2]], at: usize) -> bool {
    let next = ranges.partition_point(|[_, end]| *end <= at);
    ranges.get(next).is_some_and(|[start, _]| *start <= at)
}

/// `## Example`, or a line that is all bold.
fn is_heading(line: &str) -> bool {
    let line = line.trim();
    line.starts_with('#') || line.starts_with("**") && line.ends_with("**") && line.len() > 4
}

/// The nearest character boundary at or before `at`.
pub(crate) fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Where the line of `at` starts; a line is looked back only so far, so that one long line does
/// not make the walk quadratic.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    let from = floor(text, at.saturating_sub(CONTEXT_BYTES_MAX));
    memchr::memrchr(b'\n', &text.as_bytes()[from..at]).map_or(from, |found| from + found + 1)
}

/// The rest of the line behind `at`, looked at only so far.
pub(crate) fn line_rest(text: &str, at: usize) -> &str {
    let to = floor(text, (at + CONTEXT_BYTES_MAX).min(text.len())).max(at);
    let rest = &text[at..to];
    rest.find('\n').map_or(rest, |found| &rest[..found])
}

/// The first of these words in `bytes`: where, and which. Looks in growing windows, so that the
/// cost follows the distance of the first one and not of those that are not there.
pub(crate) fn first_of(bytes: &[u8], words: &[&str]) -> Option<(usize, usize)> {
    let longest = words.iter().map(|word| word.len()).max().unwrap_or(0);
    let mut window = 256;
    loop {
        let size = window.min(bytes.len());
        visit(size * words.len());
        let found = words
            .iter()
            .enumerate()
            .filter_map(|(which, word)| {
                memmem::find(&bytes[..size], word.as_bytes()).map(|at| (at, which))
            })
            .min();
        match found {
            Some((at, _)) if at + longest <= size || size == bytes.len() => return found,
            None if size == bytes.len() => return None,
            _ => window = window.saturating_mul(4),
        }
    }
}
