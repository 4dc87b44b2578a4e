//! Plain English: what the model says it is about to do.
//!
//! A sentence is a wish only when it says so: an order ("Search for X"), a plan in the first person
//! ("I'll fetch …", "we need to read …") or something under way ("Reading …"). Negation, past,
//! conditions, questions, advice to somebody else and quoted text are none. Code blocks are never
//! read, only taken as the content of a write or the command of a run that announces them.

mod clause;
mod lead;
mod search;
mod sentence;
mod table;
mod verbs;
mod words;

use crate::doc::Doc;
use crate::json::Ending;
use crate::limits::{INTENTS_MAX, SENTENCE_BYTES_MAX};
use crate::model::{FinishReason, Strategy};
use crate::raw::{Args, Given, RawCall};

/// What one clause wants.
#[derive(Debug, Default)]
pub(crate) struct Wish {
    tool: String,
    args: Vec<(String, String)>,
    /// Arguments that are named but not given: "the first result".
    open: Vec<(String, String)>,
    /// Added to the confidence of the lead.
    bonus: f64,
}

impl Wish {
    fn new(tool: &str) -> Self {
        Self {
            tool: tool.to_owned(),
            ..Self::default()
        }
    }

    fn arg(mut self, name: &str, value: &str) -> Self {
        self.args.push((name.to_owned(), value.to_owned()));
        self
    }

    fn open(mut self, name: &str, text: &str) -> Self {
        self.open.push((name.to_owned(), text.to_owned()));
        self
    }

    fn bonus(mut self, bonus: f64) -> Self {
        self.bonus += bonus;
        self
    }
}

pub(crate) fn read(doc: &Doc<'_>) -> Vec<RawCall> {
    let mut calls: Vec<RawCall> = Vec::new();
    let mut advice = false;
    for sentence in sentence::sentences(doc) {
        let [start, end] = sentence.span;
        if calls.len() >= INTENTS_MAX || end - start > SENTENCE_BYTES_MAX {
            continue;
        }
        let text = &doc.text[start..end];
        // Same length, so offsets fit both.
        let lower = text.to_ascii_lowercase();
        let addressed = words::addresses_reader(&lower);
        if !sentence.question && !addressed {
            wishes(doc, &sentence, text, &lower, advice, &mut calls);
        }
        advice |= addressed || words::announces_steps(&lower);
    }
    calls
}

fn wishes(
    doc: &Doc<'_>,
    sentence: &sentence::Sentence,
    text: &str,
    lower: &str,
    advice: bool,
    calls: &mut Vec<RawCall>,
) {
    let Some(lead) = lead::of(lower) else { return };
    if lead.order && advice {
        return;
    }
    for part in clause::split(lower, lead.end) {
        let [from, to] = part;
        if words::is_denied(&lower[from..to]) {
            continue;
        }
        let Some(mut wish) = verbs::wish(doc, &text[from..to], &lower[from..to], lead.order) else {
            continue;
        };
        let at = sentence.span[0] + from;
        let mut end = sentence.span[0] + to;
        take_block(doc, &mut wish, sentence, &lower[from..to], &mut end);
        let mut call = RawCall::new(&wish.tool, Args::default(), [at, end], Strategy::Fuzzy)
            .confidence(lead.sure + wish.bonus);
        call.args.named = wish
            .args
            .into_iter()
            .map(|(name, value)| (name, Given::Text(value)))
            .collect();
        call.open = wish.open;
        call.unknown_ok = false;
        if doc.finish == FinishReason::Length && is_last(doc.text, end) || in_open_block(doc, end) {
            call.ending = Ending::OpenString;
        }
        calls.push(call);
    }
}

/// Whether nothing that says more follows: a full stop at the very end can be that of a file's
/// name, and a block can be about to open.
fn is_last(text: &str, end: usize) -> bool {
    let rest = text[end..].trim();
    rest.is_empty() || rest.starts_with(['`', '~']) && !rest.contains('\n')
}

fn in_open_block(doc: &Doc<'_>, end: usize) -> bool {
    end == doc.text.len()
        && doc
            .fences
            .last()
            .is_some_and(|fence| !fence.closed && fence.start < end)
}

/// A block right behind the sentence is the content of a write or the command of a run.
fn take_block(
    doc: &Doc<'_>,
    wish: &mut Wish,
    sentence: &sentence::Sentence,
    lower: &str,
    end: &mut usize,
) {
    let next = doc
        .fences
        .partition_point(|fence| fence.start < sentence.span[1]);
    let Some(fence) = doc.fences.get(next) else {
        return;
    };
    if !doc.text[sentence.span[1]..fence.start]
        .trim_matches(|letter: char| letter.is_whitespace() || matches!(letter, ':' | '.'))
        .is_empty()
    {
        return;
    }
    let argument = match wish.tool.as_str() {
        "write" => "content",
        "exec" => "command",
        _ => return,
    };
    let taken = wish.args.iter().any(|(name, _)| name == argument);
    if taken
        || argument == "command"
            && !lower.contains("command")
            && !lower.contains("following")
            && !lower.contains("this")
            && !lower.contains("script")
    {
        return;
    }
    let body = &doc.text[fence.body.min(fence.body_end)..fence.body_end];
    let body = if argument == "command" {
        body.trim_end()
    } else {
        body
    };
    wish.args.push((argument.to_owned(), body.to_owned()));
    wish.open.retain(|(name, _)| name != argument);
    *end = fence.end.min(doc.text.len());
}
