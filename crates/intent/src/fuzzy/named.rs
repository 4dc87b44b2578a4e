//! Wishes that name a tool, in whatever language: its name, what it is given, and the mood around it.

use std::sync::LazyLock;

use super::anchors::{self, Anchor};
use super::fill::{self, Filled, Place, Takes, takes, wanted};
use super::literals::{Kind, Literal, literals};
use super::mood::{self, Around, Stand};
use super::sentence::Sentence;
use super::{foreign, lines, lists, words};
use crate::doc::Doc;
use crate::forms::call_object::{Reading, calls_of};
use crate::forms::pythonic;
use crate::json::{self, Ending};
use crate::model::{FinishReason, Strategy};
use crate::raw::{Args, Given, RawCall, Unknown};
use crate::tools::ToolSpec;

/// How sure a wish is whose name can be nothing but a tool's, and any other.
const DISTINCT: f64 = 0.65;
const EVERYDAY: f64 = 0.6;
/// Words between a name and what it is given, at most.
const GAP_WORDS_MAX: usize = 6;
/// Words of a sentence that points to what was said before.
const POINTING_WORDS_MAX: usize = 9;
/// Sentences that are looked back to.
const LOOK_BACK: usize = 2;

/// What one sentence wants of the tools that it names.
#[derive(Default)]
pub(super) struct Named {
    pub(super) calls: Vec<RawCall>,
    /// Calls that are plainly planned, and nothing of what they need is there.
    pub(super) asked: Vec<RawCall>,
    /// What names were given, in the sentence.
    used: Vec<[usize; 2]>,
}

/// A sentence with what was found in it.
struct Said<'a, 'd> {
    doc: &'a Doc<'d>,
    sentence: &'a Sentence,
    earlier: &'a [Sentence],
    next: Option<&'a Sentence>,
    text: &'a str,
    literals: Vec<Literal>,
    /// The text in lower case, without what is in marks: same length.
    masked: String,
    /// Whether an order in it is one for the reader.
    for_reader: bool,
}

pub(super) fn wishes(
    doc: &Doc<'_>,
    sentence: &Sentence,
    [earlier, later]: [&[Sentence]; 2],
    lower: &str,
    advised: &mut dyn FnMut() -> bool,
) -> Named {
    let text = sentence.text(doc);
    let mut named = Named::default();
    let names = anchors::are_possible(doc, text);
    if !names && !may_be_foreign(text) {
        return named;
    }
    doc.may_read(text.len());
    let literals = literals(doc, text);
    let found = anchors::anchors(doc, text, &literals);
    let verbs = foreign::anchors(doc, text, &literals);
    let has_object = literals.iter().any(Literal::is_json);
    if found.is_empty() && verbs.is_empty() && !has_object && !foreign::may_ask(lower) {
        return named;
    }
    let masked = masked(lower, &literals, &found);
    let for_reader =
        words::addresses_reader(&masked) || found.iter().any(|it| !it.distinct) && advised();
    let said = Said {
        doc,
        sentence,
        earlier,
        next: later.first(),
        text,
        literals,
        masked,
        for_reader,
    };
    if lines::is_log(&said.masked) || mood::is_labelled_foreign(&said.masked.to_lowercase()) {
        return named;
    }
    let stands: Vec<Stand> = found.iter().map(|anchor| said.stand(anchor)).collect();
    let mut from = 0;
    let mut reach = 0;
    for (number, anchor) in found.iter().enumerate() {
        let at = sentence.span[0] + anchor.span[0];
        if doc.is_hidden(at, 0) || doc.is_shown(at) || said.is_commented(anchor.span[0]) {
            continue;
        }
        if anchor.span[0] < reach || said.is_inside_command(&found[..number], anchor) {
            continue;
        }
        let stop = (number + 1..found.len())
            .find(|next| {
                let other = &found[*next];
                (stands[*next] > Stand::Word || other.distinct)
                    && !said.is_inside_command(&found[..*next], other)
                    && !(other.tool.name == anchor.tool.name && said.is_near(anchor, other))
            })
            .map_or(text.len(), |next| found[next].span[0]);
        let had = named.calls.len();
        if let Some(end) = said.read(anchor, stands[number], [from, stop], &mut named) {
            reach = end;
            if named.calls.len() > had {
                from = end;
            }
        }
    }
    said.verbs(&verbs, &mut named);
    said.objects(&mut named);
    named
}

/// Whether a sentence can give a verb of another language something to the letter: a cheap look.
fn may_be_foreign(text: &str) -> bool {
    text.bytes()
        .any(|byte| matches!(byte, b'.' | b'`' | b'"' | b'/') || byte >= 0xe2)
}

/// The sentence with what is in marks blotted out, but for names.
fn masked(lower: &str, literals: &[Literal], anchors: &[Anchor<'_>]) -> String {
    let mut masked = lower.to_owned();
    for literal in literals {
        let is_name = anchors.iter().any(|anchor| anchor.span == literal.span);
        let [from, to] = literal.span;
        if !is_name {
            masked.replace_range(from..to, &"\"".repeat(to - from));
        }
    }
    masked
}

impl Said<'_, '_> {
    fn stand(&self, anchor: &Anchor<'_>) -> Stand {
        let [from, to] = anchor.span;
        mood::stand(&self.masked[..from].to_lowercase(), &self.masked[to..])
    }

    /// Whether a name is a part of what another name is given: the program of a command, or a value.
    fn is_inside_command(&self, before: &[Anchor<'_>], anchor: &Anchor<'_>) -> bool {
        before.iter().any(|other| {
            let between = self.masked[other.span[1]..anchor.span[0]].trim();
            let last = between
                .rsplit([' ', '=', ':'])
                .find(|word| !word.is_empty());
            if last.is_some_and(|word| other.tool.property(word).is_some()) && !anchor.distinct {
                return true;
            }
            wanted(other.tool)
                .iter()
                .any(|name| takes(name) == Takes::Command)
                && other.tool.name != anchor.tool.name
                && matches!(
                    between,
                    "with"
                        | ""
                        | ":"
                        | "command"
                        | "command:"
                        | "with command"
                        | "with the command"
                        | "to"
                        | "mit"
                        | "avec"
                        | "con"
                        | "med"
                )
        })
    }

    /// "use exec to run", "do a web_search: search for": the second name is of the same wish.
    fn is_near(&self, anchor: &Anchor<'_>, other: &Anchor<'_>) -> bool {
        let between = &self.masked[anchor.span[1]..other.span[0]];
        between.split_whitespace().count() <= 2 && !between.contains(['"', ',', ';', '.', '(', ':'])
    }

    /// Whether the sentence is a comment in some code from before this place on.
    fn is_commented(&self, at: usize) -> bool {
        let before = &self.masked[..at];
        before.starts_with("// ") || before.contains(" // ") || before.contains(" # todo")
    }

    fn place(&self, span: [usize; 2]) -> Place<'_> {
        Place {
            text: self.text,
            literals: &self.literals,
            span,
        }
    }

    /// Reads one name and what it is given; where that ends, when something was found.
    fn read(
        &self,
        anchor: &Anchor<'_>,
        stand: Stand,
        [from, stop]: [usize; 2],
        named: &mut Named,
    ) -> Option<usize> {
        let [start, behind_name] = anchor.span;
        let called = self.called(anchor);
        let behind = self.text[behind_name..stop].trim_start_matches(['*', '`']);
        let may_be_free = stand == Stand::Called
            || anchor.distinct && (stand > Stand::Word || behind.starts_with([':', '：']));
        let is_called = called.is_some();
        let mut filled = called.unwrap_or_else(|| {
            fill::right(anchor.tool, &self.place([behind_name, stop]), may_be_free)
        });
        let near = filled.start.is_none_or(|at| {
            self.masked[behind_name.min(at)..at]
                .split_whitespace()
                .count()
                <= GAP_WORDS_MAX
        });
        let complete = |filled: &Filled| wanted(anchor.tool).iter().all(|name| filled.has(name));
        if filled.start.is_none() && stand > Stand::Word && self.points_back(behind_name) {
            for sentence in self.earlier.iter().rev().take(LOOK_BACK) {
                if self.take_earlier(sentence, anchor.tool, &mut filled) {
                    filled.start = Some(behind_name);
                    break;
                }
            }
        }
        if filled.start.is_none() && stand > Stand::Word && self.take_next(anchor.tool, &mut filled)
        {
            filled.start = Some(behind_name);
        }
        // `read(path)` names what it takes.
        if !is_called && filled.keyed && behind.starts_with('(') {
            return None;
        }
        let strong = is_called || filled.keyed && complete(&filled);
        let (stand, written) = if strong {
            (Stand::Called, stand)
        } else {
            (stand, stand)
        };
        let clause = &self.masked[mood::clause_start(&self.masked[..start])..start].to_lowercase();
        let for_reader = !anchor.distinct && self.for_reader && !mood::is_own(clause);
        if std::env::var("HFD").is_ok() {
            eprintln!(
                "DBG0 {:?} {:?} stand {stand:?} near {near} strong {strong} filled {:?}",
                anchor.tool.name, self.masked, filled.args
            );
        }
        if stand == Stand::Word
            && !anchor.distinct
            && self.is_opened(anchor, clause)
            && filled.start.is_none()
        {
            named
                .asked
                .push(self.call(anchor.tool, Args::default(), anchor.span, EVERYDAY));
        }
        if stand == Stand::Word && !anchor.distinct || !near || for_reader && !is_called {
            return None;
        }
        let behind = self.masked[filled.end.min(stop)..stop].trim_start();
        let is_purpose = behind.starts_with("to ") && !mood::is_own(clause);
        if is_purpose
            && (is_called || written <= Stand::Order && !anchor.distinct && self.runs(anchor.tool))
            || is_called && self.text[..start].ends_with('[')
        {
            return None;
        }
        if !anchor.distinct
            && !strong
            && stand <= Stand::Order
            && !self.may_order(anchor, named, &filled)
        {
            return None;
        }
        let around = Around {
            clause,
            before: &self.masked[..start].to_lowercase(),
            after: &self.masked[behind_name..stop].to_lowercase(),
            behind: &self.masked[filled.end.min(stop)..stop].to_lowercase(),
            distinct: anchor.distinct,
        };
        if std::env::var("HFD").is_ok() {
            eprintln!(
                "DBG {:?} stand {stand:?} filled {:?} against {:?} clause {:?} behind {:?}",
                anchor.tool.name,
                filled.args,
                mood::against(&around),
                around.clause,
                around.behind
            );
        }
        if mood::against(&around).is_some() {
            named.used.push([start, filled.end.max(behind_name)]);
            return Some(filled.end);
        }
        let end = filled.end;
        if stand == Stand::Called || anchor.distinct || stand == Stand::Planned {
            self.look_around(anchor, stand, from, &mut filled);
        }
        let whole = complete(&filled);
        let missing = wanted(anchor.tool)
            .into_iter()
            .filter(|name| !filled.has(name));
        let only_text = filled
            .start
            .is_some_and(|at| self.is_target(behind_name, at))
            && {
                let mut missing = missing;
                missing.next().is_none_or(|name| takes(name) == Takes::Text)
                    && missing.next().is_none()
            };
        let given = !filled.args.named.is_empty() || !filled.args.positional.is_empty();
        if is_called || whole || given && (stand != Stand::Order && filled.end > 0 || only_text) {
            let from = filled.start.map_or(start, |at| at.min(start));
            named.used.push([from, filled.end.max(behind_name)]);
            named.calls.extend(self.calls(anchor, filled));
        } else if self.is_asked(anchor, stand, &around) {
            named.asked.push(self.call(
                anchor.tool,
                Args::default(),
                [start, end.max(behind_name)],
                EVERYDAY,
            ));
        }
        Some(end)
    }

    /// Whether a path is where something is written, and not only spoken of: "it to a.txt", "the file a.txt".
    fn is_target(&self, from: usize, to: usize) -> bool {
        let gap = self.masked[from.min(to)..to].trim().trim_end_matches(':');
        let last = gap.rsplit(char::is_whitespace).next().unwrap_or_default();
        gap.is_empty() || lists::list("before target").contains(&last)
    }

    /// Whether a tool runs commands.
    fn runs(&self, tool: &ToolSpec) -> bool {
        wanted(tool)
            .iter()
            .any(|name| takes(name) == Takes::Command)
    }

    /// "I will open the browser".
    fn is_opened(&self, anchor: &Anchor<'_>, clause: &str) -> bool {
        let said = clause.trim_end();
        let opens = [
            "it in the",
            "it with the",
            "page in the",
            "open the",
            "open a",
            "start the",
            "launch the",
            "open",
            "start",
        ];
        let own_name =
            self.text[anchor.span[0]..anchor.span[1]].eq_ignore_ascii_case(&anchor.tool.name);
        own_name
            && mood::is_own(clause)
            && opens.iter().any(|words| said.ends_with(words))
            && !self.for_reader
    }

    /// "read it.": what is meant stands before.
    fn points_back(&self, at: usize) -> bool {
        let rest = self.masked[at..].trim().trim_end_matches(['.', '!']);
        let mut words = rest.split_whitespace();
        let first = words
            .next()
            .unwrap_or_default()
            .trim_end_matches([',', ';']);
        matches!(first, "it" | "them" | "this" | "that")
            && (words.count() <= 2 || rest.contains(" to see") || rest.contains(" first"))
    }

    /// Whether an order is the model's to itself.
    fn may_order(&self, anchor: &Anchor<'_>, named: &Named, filled: &Filled) -> bool {
        let before = self.masked[..anchor.span[0]].trim_end();
        let joined = before.ends_with(" and") || before.ends_with(',');
        let label = before.ends_with(':') && is_foreign_label(before);
        filled.start.is_some()
            && !self.for_reader
            && !(joined
                && before.ends_with("and")
                && named.calls.is_empty()
                && before.len() > 4
                && !before.ends_with(". and"))
            && !label
    }

    /// Whether the sentence plainly plans a call of this tool.
    fn is_asked(&self, anchor: &Anchor<'_>, stand: Stand, around: &Around<'_>) -> bool {
        let plans = mood::is_planned(around.before) || mood::is_planned(around.clause);
        let next = around.before.trim().trim_matches([',', ':', ' ']);
        let ordered = stand == Stand::Order
            && ["next", "now", "then", "first", "so"]
                .iter()
                .any(|word| next.ends_with(word));
        let points = (stand == Stand::Planned || ordered)
            && mood::points_at(around.after, main_takes(anchor.tool));
        let strong =
            anchor.distinct || anchor.marked || points || mood::is_called_by_name(around.before);
        plans && strong && (stand > Stand::Order || ordered) && !self.for_reader
    }

    /// `read(path="a.txt")`.
    fn called(&self, anchor: &Anchor<'_>) -> Option<Filled> {
        let open = anchor.span[1];
        let rest = &self.text[open..];
        let lead = rest.len() - rest.trim_start_matches(' ').len();
        if !rest[lead..].starts_with('(') || lead > 1 {
            return None;
        }
        let offset = self.sentence.span[0];
        let (call, end) = pythonic::one(self.doc, offset + anchor.span[0], self.sentence.span[1])?;
        let is_name = |given: &Given| matches!(given, Given::Text(text) if anchor.tool.property(text).is_some() || !text.contains(['.', '/', '-', '_']));
        let known = |name: &String| {
            let mut properties = anchor.tool.properties();
            properties.any(|(own, _)| own == name || crate::guide::same_argument(own, name))
        };
        if !call.args.named.is_empty() && !call.args.named.iter().any(|(name, _)| known(name)) {
            return None;
        }
        let sketched = call.args.positional.iter().any(is_name)
            || call
                .args
                .named
                .iter()
                .any(|(name, given)| matches!(given, Given::Text(text) if text == name));
        let empty = call.args.named.is_empty() && call.args.positional.is_empty();
        if sketched || empty && lead > 0 || empty && !wanted(anchor.tool).is_empty() {
            return None;
        }
        Some(Filled {
            args: call.args,
            end: end - offset,
            keyed: true,
            start: Some(open),
            ..Filled::default()
        })
    }

    /// Looks for what is missing before the name, in the block or the list below, and in what was said before.
    fn look_around(&self, anchor: &Anchor<'_>, stand: Stand, from: usize, filled: &mut Filled) {
        let tool = anchor.tool;
        let main = wanted(tool).first().copied();
        let lacks = |filled: &Filled| main.is_some_and(|name| !filled.has(name));
        let any_lacks = wanted(tool).iter().any(|name| !filled.has(name));
        if stand > Stand::Word && (any_lacks && !filled.keyed || lacks(filled)) {
            fill::left(tool, &self.place([from, anchor.span[0]]), filled);
        }
        lines::block(self.doc, self.sentence, tool, filled);
        if lacks(filled)
            && self.text[anchor.span[1]..]
                .trim_end()
                .ends_with([':', '：'])
        {
            lines::list(self.doc, self.sentence.span[1], tool, filled);
        }
        let points = self.text[anchor.span[1]..].split_whitespace().count() <= POINTING_WORDS_MAX;
        if lacks(filled) && points && !self.masked.contains(" on their") {
            for sentence in self.earlier.iter().rev().take(LOOK_BACK) {
                if self.take_earlier(sentence, tool, filled) {
                    break;
                }
            }
        }
    }

    /// "Write the file now. Path: a.txt, content: …": the next sentence gives what the name needs.
    fn take_next(&self, tool: &ToolSpec, filled: &mut Filled) -> bool {
        let Some(next) = self.next.filter(|_| !self.is_cut()) else {
            return false;
        };
        let text = next.text(self.doc);
        let begins = tool.properties().any(|(name, _)| {
            let head = text
                .get(..name.len())
                .is_some_and(|head| head.eq_ignore_ascii_case(name));
            head && text[name.len()..].trim_start().starts_with([':', '='])
        });
        if !begins
            || text.len() > crate::limits::SENTENCE_BYTES_MAX
            || !self.doc.may_read(text.len())
        {
            return false;
        }
        let literals = literals(self.doc, text);
        let place = Place {
            text,
            literals: &literals,
            span: [0, text.len()],
        };
        let found = fill::right(tool, &place, false);
        if !found.keyed {
            return false;
        }
        filled.args = found.args;
        filled.keyed = true;
        true
    }

    /// The one value of the right kind in a sentence before.
    fn take_earlier(&self, sentence: &Sentence, tool: &ToolSpec, filled: &mut Filled) -> bool {
        let text = sentence.text(self.doc);
        if self.is_cut()
            || text.len() > crate::limits::SENTENCE_BYTES_MAX
            || !self.doc.may_read(text.len())
        {
            return false;
        }
        let wanted = wanted(tool);
        let Some(argument) = wanted.first() else {
            return false;
        };
        let literals = literals(self.doc, text);
        let place = Place {
            text,
            literals: &literals,
            span: [0, text.len()],
        };
        let keyed = fill::right(tool, &place, false);
        if keyed.keyed
            && takes(argument) != Takes::Text
            && keyed.has(argument)
            && keyed.start == Some(0)
        {
            filled.args = keyed.args;
            return true;
        }
        if !matches!(takes(argument), Takes::Path | Takes::Url | Takes::Command) {
            return false;
        }
        let mut fitting = literals.iter().filter(|literal| {
            let is_code = literal.kind == Kind::Code || takes(argument) != Takes::Command;
            is_code && fill::fits(argument, literal, &wanted)
        });
        let (Some(literal), None) = (fitting.next(), fitting.next()) else {
            return false;
        };
        filled
            .args
            .named
            .push(((*argument).to_owned(), Given::Text(literal.text.clone())));
        true
    }

    fn calls(&self, anchor: &Anchor<'_>, filled: Filled) -> Vec<RawCall> {
        let sure = if anchor.distinct { DISTINCT } else { EVERYDAY };
        let span = [anchor.span[0], filled.end.max(anchor.span[1])];
        std::iter::once(filled.args)
            .chain(filled.more)
            .map(|args| {
                let call = self.call(anchor.tool, args, span, sure);
                call.ending(if filled.open {
                    Ending::OpenString
                } else {
                    Ending::Whole
                })
            })
            .collect()
    }

    fn call(&self, tool: &ToolSpec, args: Args, [from, to]: [usize; 2], sure: f64) -> RawCall {
        let offset = self.sentence.span[0];
        // What closes the sentence belongs to its last wish.
        let rest = &self.text[to.min(self.text.len())..];
        let is_last = !rest.contains(char::is_alphanumeric);
        let to = if is_last || self.is_cut() {
            self.text.len()
        } else {
            to
        };
        let end = (offset + to).min(self.doc.text.len());
        let mut call =
            RawCall::new(&tool.name, args, [offset + from, end], Strategy::Fuzzy).confidence(sure);
        call.unknown = Unknown::Nothing;
        call
    }

    /// Whether the text was cut off in this sentence.
    fn is_cut(&self) -> bool {
        self.doc.finish == FinishReason::Length
            && self.sentence.span[1] == self.doc.text.trim_end().len()
    }

    /// What verbs of other languages are given, where no name was given it.
    fn verbs(&self, verbs: &[Anchor<'_>], named: &mut Named) {
        let offset = self.sentence.span[0];
        for (number, verb) in verbs.iter().enumerate() {
            let stop = verbs
                .get(number + 1)
                .map_or(self.text.len(), |next| next.span[0]);
            let first = self
                .literals
                .iter()
                .find(|literal| literal.span[0] >= verb.span[1]);
            let is_given = |at: usize| {
                named
                    .used
                    .iter()
                    .any(|[from, to]| (*from..*to).contains(&at))
            };
            let at = offset + verb.span[0];
            if is_given(verb.span[0])
                || first.is_none_or(|literal| is_given(literal.span[0]))
                || self.doc.is_hidden(at, 0)
                || self.doc.is_shown(at)
            {
                continue;
            }
            self.read(verb, Stand::Planned, [0, stop], named);
        }
        if named.calls.is_empty()
            && named.asked.is_empty()
            && let Some(tool) = foreign::asks(self.doc, &self.masked)
        {
            named
                .asked
                .push(self.call(tool, Args::default(), [0, self.text.len()], EVERYDAY));
        }
    }

    /// Calls that are written as JSON behind words that plan them.
    fn objects(&self, named: &mut Named) {
        let offset = self.sentence.span[0];
        for literal in self.literals.iter().filter(|literal| literal.is_json()) {
            let [from, to] = literal.span;
            let is_read = named
                .calls
                .iter()
                .any(|call| call.span[0] < offset + to && call.span[1] > offset + from);
            let before = &self.masked[..from];
            if is_read || !mood::is_planned(before) || self.doc.in_quoted(offset + from) {
                continue;
            }
            let around = Around {
                clause: &before[mood::clause_start(before.trim_end().trim_end_matches(':'))..],
                before,
                after: &self.masked[to..],
                behind: &self.masked[to..],
                distinct: true,
            };
            if mood::against(&around).is_some() {
                continue;
            }
            let Some(read) = json::read_at(self.doc.text, offset + from, offset + to) else {
                continue;
            };
            let reading = Reading {
                text: self.doc.text,
                tools: self.doc.tools,
                span: [offset + from, offset + to],
                tagged: false,
                strategy: Strategy::Fuzzy,
            };
            let calls = calls_of(read, reading).calls;
            named.calls.extend(
                calls
                    .into_iter()
                    .filter(|call| self.doc.tools.find(&call.name).is_some())
                    .map(|call| {
                        let mut call = call.confidence(DISTINCT);
                        call.unknown = Unknown::Nothing;
                        call
                    }),
            );
        }
    }
}

/// What the first of a tool's arguments takes.
fn main_takes(tool: &ToolSpec) -> Takes {
    wanted(tool)
        .first()
        .map_or(Takes::Other, |name| takes(name))
}

/// "My advice:", "The docs say:", "TODO:": what follows is no order to oneself.
fn is_foreign_label(before: &str) -> bool {
    static FOREIGN: LazyLock<&[&str]> = LazyLock::new(|| lists::list("foreign labels"));
    let from = mood::clause_start(before.trim_end_matches(':'));
    let clause = before[from..].trim();
    let first = clause
        .split(|letter: char| !letter.is_alphanumeric())
        .find(|word| !word.is_empty());
    let says = ["say", "tell them", "reply", "answer", "suggest", "mention"]
        .iter()
        .any(|word| crate::cues::has_words(clause, word));
    says || first.is_some_and(|word| FOREIGN.contains(&word)) && !mood::is_planned(clause)
}
