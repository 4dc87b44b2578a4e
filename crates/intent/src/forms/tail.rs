//! Calls in a vendor's control tokens at the end of a reply. No prose before them takes them back: a
//! model writes such tokens to call, and nothing follows that could say otherwise.

use crate::doc::Doc;
use crate::json::Ending;
use crate::limits::{INTENTS_MAX, NAME_BYTES_MAX};
use crate::model::FinishReason;
use crate::problem::Problem;
use crate::raw::RawCall;
use crate::steps::visit;

use super::Scan;

/// Tags that stand around calls in pairs, besides tokens between bars.
const FRAMES: &[&str] = &[
    "]<]minimax[>[",
    "[TOOL_CALLS]",
    "[/TOOL_CALLS]",
    "<tool_call>",
    "<tool_calls>",
    "<function_calls>",
    "</s>",
    "<eos>",
    "<end_of_turn>",
    "<end_function_call>",
    "<turn|>",
    "<tool_call|>",
];
/// Tokens that a word stands behind which belongs to them (Kimi K3).
const FRAMES_WITH_WORDS: &[&str] = &["<|open|>", "<|close|>"];
const WORD_END: &str = "<|sep|>";

/// Where blanks and the tokens around calls end that stand at `from`.
fn frame_end(text: &str, from: usize) -> usize {
    let mut rest = text[from..].trim_start();
    while let Some(len) = frame_len(rest) {
        rest = rest[len..].trim_start();
    }
    visit(text.len() - rest.len() - from);
    text.len() - rest.len()
}

fn frame_len(rest: &str) -> Option<usize> {
    if let Some(frame) = FRAMES_WITH_WORDS
        .iter()
        .find(|frame| rest.starts_with(**frame))
    {
        let near = &rest[..crate::doc::floor(rest, frame.len() + NAME_BYTES_MAX)];
        let is_call = rest[frame.len()..].starts_with("call ");
        return near
            .find(WORD_END)
            .map(|at| at + WORD_END.len())
            .filter(|_| !is_call);
    }
    if let Some(frame) = FRAMES.iter().find(|frame| rest.starts_with(**frame)) {
        return Some(frame.len());
    }
    let near = &rest[..crate::doc::floor(rest, NAME_BYTES_MAX)];
    let closes = [("<|", "|>"), ("<｜", "｜>"), ("</", ">")];
    closes.iter().find_map(|(open, close)| {
        let inner = near.strip_prefix(open)?;
        let len = inner.find(close)?;
        let is_word = |letter: char| letter.is_alphanumeric() || "_-:▁｜|".contains(letter);
        inner[..len]
            .chars()
            .all(is_word)
            .then_some(open.len() + len + close.len())
    })
}

/// One form of the run that may reach the end of the reply.
struct Entry {
    /// Where its calls stand among all, or belong.
    place: usize,
    /// How many of them are there already.
    taken: usize,
    /// Those that the words around them have turned down.
    held: Vec<RawCall>,
}

/// The last run of calls in control tokens.
#[derive(Default)]
pub(super) struct Tail {
    entries: Vec<Entry>,
    start: usize,
    end: usize,
    /// How many calls it keeps that would else be dropped.
    held: usize,
    /// Whether there were more of them than a reply may hold.
    is_full: bool,
}

impl Tail {
    /// Takes one more form. `held` are calls that would else be dropped; of `calls` those from
    /// `place` on are its own.
    pub(super) fn push(
        &mut self,
        span: [usize; 2],
        place: usize,
        taken: usize,
        held: Vec<RawCall>,
    ) {
        let [start, end] = span;
        if self.entries.is_empty() {
            self.start = start;
        }
        self.end = end;
        self.is_full |= self.held + held.len() > INTENTS_MAX;
        if self.is_full && !held.is_empty() {
            return;
        }
        self.held += held.len();
        self.entries.push(Entry { place, taken, held });
    }

    /// Forgets the run when something else stands between it and `start`.
    pub(super) fn go_on(&mut self, doc: &Doc<'_>, start: usize) {
        if !self.entries.is_empty() && frame_end(doc.text, self.end) < start {
            *self = Self::default();
        }
    }

    /// Has the calls of the run be meant when nothing follows them. `said` is where the model said
    /// that it is done, if it did so before.
    pub(super) fn settle(mut self, doc: &Doc<'_>, scan: &mut Scan, said: Option<usize>) {
        // Of a reply that was cut off nobody knows what would have followed.
        if self.entries.is_empty()
            || doc.finish == FinishReason::Length
            || frame_end(doc.text, self.end) < doc.text.len()
        {
            return;
        }
        // Calls that were taken back since then are at none of these places.
        let mut next = scan.calls.len();
        for entry in self.entries.iter_mut().rev() {
            entry.place = entry.place.min(next);
            entry.taken = entry.taken.min(next - entry.place);
            next = entry.place;
        }
        let mut calls = Vec::with_capacity(scan.calls.len() + self.held);
        let mut taken = std::mem::take(&mut scan.calls).into_iter();
        let mut passed = 0;
        for entry in self.entries {
            calls.extend(taken.by_ref().take(entry.place - passed));
            calls.extend(entry.held);
            let own = taken.by_ref().take(entry.taken);
            calls.extend(own.map(|call| RawCall {
                doubtful: false,
                ..call
            }));
            passed = entry.place + entry.taken;
        }
        visit(calls.len());
        calls.extend(taken);
        if self.is_full || calls.len() > INTENTS_MAX {
            calls.truncate(INTENTS_MAX);
            scan.stopped = Some(Problem::TooManyIntents);
        }
        scan.calls = calls;
        if said.is_some_and(|said| said < self.start) {
            scan.done = false;
            scan.answer = None;
        }
    }
}

/// Whether calls are well-formed.
pub(super) fn are_plain(calls: &[RawCall]) -> bool {
    let is_plain = |call: &RawCall| call.ending == Ending::Whole && !call.ambiguous;
    !calls.is_empty() && calls.iter().all(is_plain)
}

/// The end of a closed block of a program in which a form begins that goes on behind it and is damaged.
/// A call that is well-formed can hold the marks that seem to close the block.
pub(super) fn leaves_block(
    doc: &Doc<'_>,
    start: usize,
    end: usize,
    calls: &[RawCall],
) -> Option<usize> {
    let fence = doc
        .fence_at(start)
        .filter(|fence| fence.closed && !fence.holds_calls())?;
    let is_damaged = !are_plain(calls) || calls.iter().any(|call| call.lost || call.repaired);
    (fence.start < start && end > fence.end && is_damaged).then_some(fence.end)
}

/// Where the last row of tokens around calls stands that was looked at.
#[derive(Default)]
pub(super) struct Frames {
    from: usize,
    to: usize,
}

impl Frames {
    /// Whether nothing but such tokens stands behind this place. Each row is walked once.
    pub(super) fn reach_end(&mut self, doc: &Doc<'_>, at: usize) -> bool {
        if !(self.from..self.to).contains(&at) {
            (self.from, self.to) = (at, frame_end(doc.text, at));
        }
        self.to == doc.text.len()
    }
}
