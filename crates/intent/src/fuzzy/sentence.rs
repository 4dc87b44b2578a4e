//! Sentences outside of code, quotations and private reasoning.

use memchr::memmem;

use crate::doc::Doc;
use crate::limits::QUOTED_BYTES_MAX;

pub(super) struct Sentence {
    pub(super) span: [usize; 2],
    pub(super) question: bool,
}

impl Sentence {
    pub(super) fn text<'a>(&self, doc: &Doc<'a>) -> &'a str {
        &doc.text[self.span[0]..self.span[1]]
    }

    /// What a question says before it turns to ask.
    pub(super) fn before_question(&self, doc: &Doc<'_>) -> Option<Self> {
        let text = self.text(doc);
        let turns = [
            ", but ", " - but ", "; but ", ", aber ", ", mais ", ", pero ", ", mas ", ", men ",
            ", но ", ", only ",
        ];
        let at = turns.iter().filter_map(|turn| text.rfind(turn)).max()?;
        Some(Self {
            span: [self.span[0], self.span[0] + at],
            question: false,
        })
    }
}

pub(super) fn sentences(doc: &Doc<'_>) -> Vec<Sentence> {
    let mut found = Vec::new();
    let mut at = 0;
    let text = doc.text;
    while at < text.len() {
        if let Some(fence) = doc.fence_at(at) {
            at = fence.end.max(at + 1);
            continue;
        }
        // What is said behind a thought can stand in the line that the thought ends in.
        if let Some(end) = doc.thought_end(at) {
            at = end.max(at + 1);
            continue;
        }
        let line_end =
            memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |next| at + next + 1);
        let line = &text[at..line_end];
        crate::steps::visit(line.len());
        let trimmed = line.trim_start();
        // Quotations, tables, headings and source code have no wishes.
        let skip = trimmed.starts_with(['>', '|', '#', '{', '}', '<', '$', '%', '/', '@'])
            || line.starts_with("    ") && !found.is_empty()
            || line.starts_with('\t');
        if !skip {
            split_line(text, at, line_end, &mut found);
        }
        at = line_end;
    }
    found
}

fn split_line(text: &str, start: usize, end: usize, found: &mut Vec<Sentence>) {
    let bytes = text.as_bytes();
    let mut from = start;
    let mut at = start;
    while let Some(next) = bytes[at..end]
        .iter()
        .position(|byte| IS_SIGN[usize::from(*byte)])
    {
        at += next;
        let byte = bytes[at];
        at += 1;
        if matches!(byte, b'`' | b'"') {
            // What is in marks belongs to its sentence.
            let near = &bytes[at..end.min(at + QUOTED_BYTES_MAX)];
            let Some(close) = memchr::memchr(byte, near) else {
                continue;
            };
            at += close + 1;
            // A quotation that ends its own sentence ends the one around it before a new one.
            let is_said =
                byte == b'"' && close > 0 && matches!(near[close - 1], b'.' | b'!' | b'?');
            if is_said
                && bytes[at..end].first() == Some(&b' ')
                && bytes.get(at + 1).is_some_and(u8::is_ascii_uppercase)
            {
                push(text, from, at, found);
                from = at;
            }
        } else if !byte.is_ascii() {
            let sign = &text[at - 1..end];
            let closer = [
                ("“", "”"),
                ("„", "“"),
                ("«", "»"),
                ("「", "」"),
                ("『", "』"),
            ]
            .iter()
            .find(|(open, _)| sign.starts_with(open));
            if let Some((open, close)) = closer {
                let inner = at - 1 + open.len();
                let near = &bytes[inner..end.min(inner + QUOTED_BYTES_MAX)];
                at = inner
                    + memmem::find(near, close.as_bytes()).map_or(0, |found| found + close.len());
            } else if let Some(stop) = ["。", "！", "？", "；"]
                .iter()
                .find(|stop| sign.starts_with(*stop))
            {
                at += stop.len() - 1;
                push(text, from, at, found);
                from = at;
            }
        } else if byte == b'{' {
            if let Some(object) = crate::json::skim(&text[..end], at - 1) {
                crate::steps::visit(object - at);
                at = object.min(end);
            }
        } else if ends_sentence(bytes, from, at - 1, end) {
            push(text, from, at, found);
            from = at;
        }
    }
    push(text, from, end, found);
}

/// Bytes that can end a sentence or begin a quotation; the last two begin such signs of other languages.
const IS_SIGN: [bool; 256] = {
    let mut signs = [false; 256];
    let mut at = 0;
    while at < SIGNS.len() {
        signs[SIGNS[at] as usize] = true;
        at += 1;
    }
    signs
};
const SIGNS: &[u8] = b".!?;`\"{\xe2\xe3\xef\xc2";

fn ends_sentence(bytes: &[u8], from: usize, at: usize, end: usize) -> bool {
    let next = bytes.get(at + 1).copied();
    if at + 1 < end
        && !next.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'*' | b')' | b'"'))
    {
        return false;
    }
    if bytes[at] != b'.' {
        return true;
    }
    // The folder that one is in: "find . -name".
    let before = &bytes[from..at];
    if before.last().is_some_and(u8::is_ascii_whitespace) && at + 1 < end {
        return false;
    }
    // The number of a list item or of a day, or an abbreviation.
    let word = before
        .rsplit(u8::is_ascii_whitespace)
        .next()
        .unwrap_or(before);
    let is_number = word.iter().all(u8::is_ascii_digit);
    let goes_on = || {
        bytes[at + 1..end]
            .iter()
            .find(|byte| !byte.is_ascii_whitespace())
            .is_some_and(u8::is_ascii_lowercase)
    };
    !(is_number && (word.len() == before.len() || word.len() <= 2 && goes_on() || word.is_empty())
        || matches!(
            word,
            b"e.g" | b"i.e" | b"etc" | b"vs" | b"Dr" | b"Mr" | b"z.B" | b"ca" | b"no"
        ))
}

fn push(text: &str, from: usize, to: usize, found: &mut Vec<Sentence>) {
    let raw = &text[from..to];
    let start = from + (raw.len() - raw.trim_start().len());
    let trimmed = raw.trim();
    if trimmed.len() > 3 {
        found.push(Sentence {
            span: [start, start + trimmed.len()],
            question: trimmed.ends_with(['?', '？']),
        });
    }
}
