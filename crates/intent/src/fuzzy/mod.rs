//! Plain English: what the model says it is about to do.
//!
//! A sentence is a wish only when it says so: an order ("Search for X"), a plan in the first person
//! ("I'll fetch …", "we need to read …") or something under way ("Reading …"). Negation, past,
//! conditions, questions, advice to somebody else and quoted text are none. Code blocks are never
//! read, only taken as the content of a write or the command of a run that announces them.

mod clause;
mod lead;
mod phrases;
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
    let sentences = sentence::sentences(doc);
    let mut advice = Advice::default();
    for (number, sentence) in sentences.iter().enumerate() {
        if calls.len() >= INTENTS_MAX {
            break;
        }
        let text = sentence.text(doc);
        if sentence.question || text.len() > SENTENCE_BYTES_MAX || !lead::is_possible(text) {
            continue;
        }
        // Same length, so offsets fit both.
        let lower = text.to_ascii_lowercase();
        if words::addresses_reader(&lower) {
            continue;
        }
        let Some(lead) = lead::of(&lower) else {
            continue;
        };
        if lead.order && advice.given(doc, &sentences[..number]) {
            continue;
        }
        wishes(doc, sentence, &lower, &lead, &mut calls);
    }
    calls
}

/// Whether the text so far gave advice to a reader. Looked up only when an order wants to know,
/// and each sentence once.
#[derive(Default)]
struct Advice {
    seen: usize,
    found: bool,
}

impl Advice {
    fn given(&mut self, doc: &Doc<'_>, before: &[sentence::Sentence]) -> bool {
        while !self.found && self.seen < before.len() {
            let from = before[self.seen].span[0];
            let to = before[before.len() - 1].span[1];
            let Some(hint) = words::advice_hint(&doc.text[from..to]) else {
                self.seen = before.len();
                break;
            };
            // The hint can lie in the middle of a sentence, or between two.
            self.seen = before.partition_point(|sentence| sentence.span[1] <= from + hint);
            if let Some(sentence) = before.get(self.seen) {
                let text = sentence.text(doc);
                self.found =
                    text.len() <= SENTENCE_BYTES_MAX && words::advises(&text.to_ascii_lowercase());
                self.seen += 1;
            }
        }
        self.found
    }
}

fn wishes(
    doc: &Doc<'_>,
    sentence: &sentence::Sentence,
    lower: &str,
    lead: &lead::Lead,
    calls: &mut Vec<RawCall>,
) {
    let text = sentence.text(doc);
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
        if doc.finish == FinishReason::Length && end >= doc.text.trim_end().len() && !sentence.ended
        {
            call.ending = Ending::OpenString;
        }
        calls.push(call);
    }
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
    if fence.closed {
        *end = fence.end.min(doc.text.len());
    } else {
        wish.open
            .push((argument.to_owned(), "the block is not closed".to_owned()));
    }
}
