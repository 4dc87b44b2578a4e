//! What the model says, in whatever language, that it is about to do.
//!
//! A wish names a tool and gives it something ([`named`]), or says in plain English what is done
//! ([`verbs`]): an order ("Search for X"), a plan in the first person ("I'll fetch …", "we need to read …") or
//! something under way ("Reading …"). Negation, past, conditions, questions, advice to somebody else and quoted
//! text are none ([`mood`]). Code blocks are never read, only taken as the content of a write or the
//! command of a run that announces them.

mod anchors;
mod announce;
mod blocks;
mod clause;
mod commands;
mod context;
mod fill;
mod foreign;
mod glance;
mod lead;
mod lines;
mod lists;
mod literals;
mod mood;
mod more;
mod named;
mod pairs;
mod phrases;
mod search;
mod second_thoughts;
mod sentence;
mod stand;
mod statements;
mod table;
mod unmarked;
mod verbs;
mod wished;
mod words;

pub(crate) use announce::announces;

use crate::doc::Doc;
use crate::json::Ending;
use crate::limits::{INTENTS_MAX, SENTENCE_BYTES_MAX};
use crate::model::{FinishReason, Strategy};
use crate::raw::{Args, Given, RawCall, Unknown};
use crate::steps::visit;
use glance::Glance;
use wished::Wished;

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
    let labelled = lines::calls(doc);
    let sentences = sentence::sentences(doc);
    let mut wished = Wished::default();
    let mut advice = Advice::default();
    let mut lower = String::new();
    for (number, sentence) in sentences.iter().enumerate() {
        if wished.calls.len() >= INTENTS_MAX {
            break;
        }
        let text = sentence.text(doc);
        visit(text.len());
        if text.len() > SENTENCE_BYTES_MAX {
            continue;
        }
        // Same length, so offsets fit both.
        lower.clear();
        lower.push_str(text);
        lower.make_ascii_lowercase();
        let seen = Glance::of(&lower, doc.tools);
        advice.see(number, seen);
        let start = sentence.span[0];
        let is_labelled = || {
            labelled
                .iter()
                .any(|call| (call.span[0]..call.span[1]).contains(&start))
        };
        if doc.is_hidden(start, 0) || doc.is_shown(start) || is_labelled() {
            continue;
        }
        wished.turn(number, &lower);
        let before = &sentences[..number];
        let around = [before, &sentences[number + 1..]];
        if sentence.question {
            // "We need exec for this, but which command?" plans before it asks.
            if let Some(plan) = sentence.before_question(doc) {
                let lower = &lower[..plan.text(doc).len()];
                let seen = Glance::of(lower, doc.tools);
                let named = named::wishes(doc, &plan, around, (lower, seen), &mut || false);
                wished.asked.extend(named.asked);
            }
            continue;
        }
        let named = named::wishes(doc, sentence, around, (&lower, seen), &mut || {
            advice.given(doc, before)
        });
        let mut calls = Vec::new();
        let may_lead = seen.may_lead && !words::asks_reader(&lower) && !lines::is_log(&lower);
        if may_lead {
            let spoken = Spoken {
                sentence,
                text,
                lower: &lower,
                before,
                seen,
                addressed: seen.may(glance::READER) && words::addresses_reader(&lower),
            };
            spoken.wishes(doc, &mut advice, &mut calls);
        }
        wished.asked.extend(named.asked);
        let mut calls = better(doc, named.calls, calls);
        for call in &mut calls {
            drop_filler(call, text);
        }
        calls.retain(|call| {
            !words::introduces_example(&lower[..call.span[0].saturating_sub(start)])
        });
        let may_look = may_lead || seen.may(glance::ARROW) && blocks::has_arrow(&lower);
        if calls.is_empty() && may_look && !advice.given(doc, before) {
            match blocks::led_up_to(doc, sentence, &lower, seen) {
                Some(call) => calls.push(call),
                None => calls.extend(
                    blocks::looked_at(doc, sentence, before, (&lower, seen))
                        .into_iter()
                        .flatten(),
                ),
            }
        }
        wished.add(number, (start, &lower), calls);
    }
    let mut calls: Vec<RawCall> = wished
        .calls
        .into_iter()
        .map(|(_, call)| call)
        .chain(labelled)
        .chain(blocks::rows(doc))
        .collect();
    calls.sort_by_key(|call| call.span[0]);
    if calls.is_empty() && !wished.asked.is_empty() && !advice.speaks_to_reader(doc, &sentences) {
        // What is planned and can not be made is asked back, when there is nothing else to do.
        calls.extend(wished.asked.into_iter().take(1));
    }
    for call in &mut calls {
        if doc.finish == FinishReason::Length && is_last(doc.text, call.span) {
            call.ending = call.ending.max(Ending::OpenString);
        }
    }
    calls
}

/// Takes away what is no value but the rest of the sentence: "search the web to be sure". The call is then
/// asked back. What stands in marks was meant.
fn drop_filler(call: &mut RawCall, text: &str) {
    let is_marked = |value: &str| {
        let before = text.find(value).map(|at| &text[..at]);
        before.is_some_and(|before| before.ends_with(['"', '\'', '`', '\u{201c}', '\u{ab}', '*']))
    };
    call.args.named.retain_mut(|(name, value)| {
        let Given::Text(value) = value else {
            return true;
        };
        if name != "query" || is_marked(value) {
            return true;
        }
        let bare = value.trim_start_matches([':', '-', ' ']).to_owned();
        *value = bare;
        !words::goes_on(value)
    });
}

/// Of two readings of a sentence the one that gives more of its calls something.
fn better(doc: &Doc<'_>, named: Vec<RawCall>, spoken: Vec<RawCall>) -> Vec<RawCall> {
    let is_whole = |call: &&RawCall| {
        let has = |argument: &str| {
            let named = &call.args.named;
            named
                .iter()
                .any(|(name, _)| crate::guide::same_argument(name, argument) || name == argument)
        };
        let tool = doc.tools.find(&call.name);
        !call.args.positional.is_empty() || tool.is_some_and(|tool| tool.required().all(has))
    };
    let whole = |calls: &[RawCall]| calls.iter().filter(is_whole).count();
    if whole(&named) > 0
        && whole(&named) >= whole(&spoken)
        && (named.len() >= spoken.len() || whole(&spoken) == 0)
        || spoken.is_empty()
    {
        named
    } else {
        spoken
    }
}

/// Whether the text so far gave advice to a reader. Looked up only when an order wants to know,
/// and each sentence once.
#[derive(Default)]
struct Advice {
    /// Sentences that can be advice, and how many of them were looked at.
    hints: Vec<(usize, Glance)>,
    seen: usize,
    found: bool,
}

impl Advice {
    /// Remembers a sentence that can be advice.
    fn see(&mut self, number: usize, seen: Glance) {
        // What is left out between marks can leave a word.
        if seen.may(glance::READER | glance::STEPS | glance::QUOTE) {
            self.hints.push((number, seen));
        }
    }

    fn given(&mut self, doc: &Doc<'_>, before: &[sentence::Sentence]) -> bool {
        while !self.found
            && let Some((number, seen)) = self.hints.get(self.seen)
            && let Some(sentence) = before.get(*number)
        {
            let said = Self::said(doc, sentence);
            let may_address = seen.may(glance::READER | glance::QUOTE);
            self.found =
                may_address && words::addresses_reader(&said) || words::announces_steps(&said);
            self.seen += 1;
        }
        self.found
    }

    /// Whether any sentence that was read speaks to a reader.
    fn speaks_to_reader(&self, doc: &Doc<'_>, sentences: &[sentence::Sentence]) -> bool {
        let mut hints = self.hints.iter().map(|(number, _)| &sentences[*number]);
        hints.any(|sentence| words::addresses_reader(&Self::said(doc, sentence)))
    }

    fn said(doc: &Doc<'_>, sentence: &sentence::Sentence) -> String {
        let text = sentence.text(doc);
        visit(text.len());
        words::without_quoted(&text.to_ascii_lowercase())
    }
}

/// One sentence, as it was written and in lower case: same length, so offsets fit both.
struct Spoken<'a> {
    sentence: &'a sentence::Sentence,
    text: &'a str,
    lower: &'a str,
    /// The sentences before it.
    before: &'a [sentence::Sentence],
    seen: Glance,
    /// Whether it speaks to a reader, so that an order in it is one for the reader.
    addressed: bool,
}

impl Spoken<'_> {
    fn wishes(&self, doc: &Doc<'_>, advice: &mut Advice, calls: &mut Vec<RawCall>) {
        for [start, end] in clause::segments(self.lower, self.seen) {
            let said = &self.lower[start..end];
            visit(said.len());
            let Some(lead) = lead::of(said, self.seen) else {
                continue;
            };
            let for_reader = lead.order && (self.addressed || advice.given(doc, self.before));
            if for_reader || lead.gerund && (self.addressed || statements::is_statement(said)) {
                continue;
            }
            for part in clause::split(said, lead.end) {
                let found = self.clause(doc, part.map(|at| at + start), &lead, calls);
                // "Open a terminal and run `ls`": an order that no tool can begin is not for one.
                if !found && lead.order {
                    break;
                }
            }
        }
    }

    /// Reads one clause; false when it wants nothing.
    fn clause(
        &self,
        doc: &Doc<'_>,
        [from, to]: [usize; 2],
        lead: &lead::Lead,
        calls: &mut Vec<RawCall>,
    ) -> bool {
        let (text, lower) = (&self.text[from..to], &self.lower[from..to]);
        if self.seen.may(glance::DENIAL | glance::QUOTE) && words::is_denied(lower) {
            return false;
        }
        let Some(mut wish) = verbs::wish(doc, text, lower, lead.order) else {
            return false;
        };
        let told = wish
            .args
            .last()
            .and_then(|(_, value)| text.find(value.as_str()).map(|at| at + value.len()));
        // "exec `ls` を実行する必要はない"
        let is_foreign = !lower.is_ascii();
        if is_foreign && told.is_some_and(|at| mood::is_denied_behind(&lower[at..])) {
            return false;
        }
        // "I'll see what a.txt says" asks.
        if (lead.order || !lower.contains("what "))
            && told.is_some_and(|at| {
                mood::tells_outcome(lower[at..].trim_start_matches(['`', '"', '\'', ')']))
            })
        {
            return false;
        }
        let mut end = self.sentence.span[0] + to;
        take_block(doc, &mut wish, self.sentence, lower, &mut end);
        let more = more::objects(&wish, text);
        for wish in std::iter::once(wish).chain(more) {
            let span = [self.sentence.span[0] + from, end];
            let mut call = RawCall::new(&wish.tool, Args::default(), span, Strategy::Fuzzy)
                .confidence(lead.sure + wish.bonus);
            call.args.named = wish
                .args
                .into_iter()
                .map(|(name, value)| (name, Given::Text(value)))
                .collect();
            call.open = wish.open;
            call.unknown = Unknown::Nothing;
            if doc.finish == FinishReason::Length && is_last(doc.text, span)
                || in_open_block(doc, end)
            {
                call.ending = Ending::OpenString;
            }
            calls.push(call);
        }
        true
    }
}

/// Whether nothing that says more follows: a full stop at the very end can be that of a file's
/// name, a block can be about to open, and a quotation can still be open.
fn is_last(text: &str, [start, end]: [usize; 2]) -> bool {
    let rest = text[end..].trim();
    let open = |mark| !text[start..].matches(mark).count().is_multiple_of(2);
    rest.is_empty()
        || !rest.contains('\n') && (rest.starts_with(['`', '~']) || open('`') || open('"'))
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
    let runs = wish.tool == "exec" && wish.args.is_empty();
    if runs && let Some((command, until)) = lines::command_below(doc, sentence.span[1]) {
        wish.args.push(("command".to_owned(), command));
        wish.open.clear();
        *end = until;
        return;
    }
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

#[cfg(test)]
mod tests {
    use super::{Doc, read};
    use crate::model::FinishReason;
    use crate::tools::ToolSet;

    #[test]
    fn wishes_are_read_as_long_as_anything_may_be_read() {
        let tools = ToolSet::default();
        let text = "Je vais rechercher \"abc def\" maintenant.";
        let doc = Doc::new(text, &tools, FinishReason::Stop);
        assert_eq!(read(&doc).len(), 1);
        assert!(!doc.gave_up.get());
        doc.may_read(1 << 30);
        assert!(read(&doc).is_empty());
        assert!(doc.gave_up.get());
    }
}
