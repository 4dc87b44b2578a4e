//! Changes inside an entry: another parent, or a block less. Every other byte stays.

use std::ops::Range;

use crate::format::Format;
use crate::json::Invalid;
use crate::read;

/// The entry with another parent (as JSON) and without some of its blocks.
pub(super) fn alter(
    format: Format,
    mut text: Vec<u8>,
    parent: Option<&[u8]>,
    cut: &[usize],
) -> Result<Vec<u8>, Invalid> {
    let seen = read::entry(format, &text)?;
    let mut blocks: Vec<Range<usize>> = cut
        .iter()
        .filter_map(|block| seen.blocks.get(*block))
        .map(|block| block.start as usize..block.end as usize)
        .collect();
    blocks.sort_unstable_by_key(|block| block.start);
    if !blocks.is_empty() {
        text = without(&text, &blocks);
    }
    // Cutting moved what stands behind: the place is looked up again.
    let place = read::entry(format, &text)?.parent_value;
    if let (Some(parent), Some((start, end))) = (parent, place) {
        text.splice(start as usize..end as usize, parent.iter().copied());
    }
    Ok(text)
}

/// The compaction with another entry (its id as JSON) that it keeps first.
pub(super) fn keep(format: Format, mut text: Vec<u8>, kept: &[u8]) -> Result<Vec<u8>, Invalid> {
    if let Some(span) = read::entry(format, &text)?.kept {
        // With its quotation marks.
        let place = span.start as usize - 1..span.end as usize + 1;
        text.splice(place, kept.iter().copied());
    }
    Ok(text)
}

/// The member that holds a chat completion's calls.
const CALLS: &[u8] = b"\"tool_calls\"";

/// The text without some items of its lists, in one pass.
fn without(text: &[u8], items: &[Range<usize>]) -> Vec<u8> {
    let mut gone: Vec<Range<usize>> = Vec::new();
    for item in items {
        let mut range = with_comma(text, item.clone());
        // Neighbours go as one, so that the last of a list finds the comma before all of them.
        if let Some(before) = gone.pop_if(|before| before.end >= item.start) {
            range = with_comma(text, before.start..item.end);
        }
        gone.push(range);
    }
    let mut left = Vec::with_capacity(text.len());
    let mut at = 0;
    for range in gone {
        let range = with_emptied_calls(text, range);
        left.extend_from_slice(&text[at..range.start.max(at)]);
        at = range.end.max(at);
    }
    left.extend_from_slice(&text[at..]);
    left
}

/// The range, or the member that it is all of: providers refuse a list of calls that is empty.
fn with_emptied_calls(text: &[u8], gone: Range<usize>) -> Range<usize> {
    let (before, behind) = (last_sign(text, gone.start), next_sign(text, gone.end));
    if text.get(before) != Some(&b'[') || text.get(behind) != Some(&b']') {
        return gone;
    }
    let colon = last_sign(text, before);
    if text.get(colon) != Some(&b':') {
        return gone;
    }
    let key_end = last_sign(text, colon);
    match (key_end + 1).checked_sub(CALLS.len()) {
        Some(key) if text.get(key..=key_end) == Some(CALLS) => with_comma(text, key..behind + 1),
        _ => gone,
    }
}

/// The range, and a comma behind or before it.
fn with_comma(text: &[u8], range: Range<usize>) -> Range<usize> {
    let behind = next_sign(text, range.end);
    if text.get(behind) == Some(&b',') {
        // White space behind the comma goes too, so that no gap is left.
        return range.start..next_sign(text, behind + 1);
    }
    let before = last_sign(text, range.start);
    if text.get(before) == Some(&b',') {
        return before..range.end;
    }
    range
}

/// The first byte at or behind a place that is not white space.
fn next_sign(text: &[u8], mut at: usize) -> usize {
    while text.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// The last byte before a place that is not white space.
fn last_sign(text: &[u8], mut at: usize) -> usize {
    while at > 0 && text[at - 1].is_ascii_whitespace() {
        at -= 1;
    }
    at.saturating_sub(1)
}
