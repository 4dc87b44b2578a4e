//! Sentences outside of code, quotations and private reasoning.

#![expect(
    clippy::match_same_arms,
    reason = "one arm per case of the grammar reads as the grammar"
)]

use crate::doc::Doc;

pub(super) struct Sentence {
    pub(super) span: [usize; 2],
    pub(super) question: bool,
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
        let line_end =
            memchr::memchr(b'\n', &text.as_bytes()[at..]).map_or(text.len(), |next| at + next + 1);
        let line = &text[at..line_end];
        let trimmed = line.trim_start();
        // Quotations, tables, headings and source code have no wishes.
        let skip = trimmed.starts_with(['>', '|', '#', '{', '}', '<', '$', '%', '/', '@'])
            || doc.in_thought(at)
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
    let mut mark: Option<u8> = None;
    let mut at = start;
    while at < end {
        let byte = bytes[at];
        match mark {
            Some(open) if byte == open => mark = None,
            Some(_) => {}
            None if matches!(byte, b'`' | b'"')
                && memchr::memchr(byte, &bytes[at + 1..end.min(at + 400)]).is_some() =>
            {
                mark = Some(byte);
            }
            None if matches!(byte, b'.' | b'!' | b'?' | b';')
                && ends_sentence(bytes, from, at, end) =>
            {
                push(text, from, at + 1, found);
                from = at + 1;
            }
            None => {}
        }
        at += 1;
    }
    push(text, from, end, found);
}

fn ends_sentence(bytes: &[u8], from: usize, at: usize, end: usize) -> bool {
    let next = bytes.get(at + 1).copied();
    if at + 1 < end
        && !next.is_none_or(|byte| byte.is_ascii_whitespace() || matches!(byte, b'*' | b')' | b'"'))
    {
        return false;
    }
    // The number of a list item, or an abbreviation.
    let before = &bytes[from..at];
    let word = before
        .rsplit(u8::is_ascii_whitespace)
        .next()
        .unwrap_or(before);
    !(bytes[at] == b'.'
        && (word.iter().all(u8::is_ascii_digit)
            || matches!(word, b"e.g" | b"i.e" | b"etc" | b"vs" | b"Dr" | b"Mr")))
}

fn push(text: &str, from: usize, to: usize, found: &mut Vec<Sentence>) {
    let raw = &text[from..to];
    let start = from + (raw.len() - raw.trim_start().len());
    let trimmed = raw.trim();
    if trimmed.len() > 3 {
        found.push(Sentence {
            span: [start, start + trimmed.len()],
            question: trimmed.ends_with('?'),
        });
    }
}
