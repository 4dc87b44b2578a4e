//! Wishes that name a tool, in whatever language: its name, what it is given, and the mood around it.

use super::anchors::{self, Anchor};
use super::fill::{self, Filled, Place, Takes, takes, wanted};
use super::glance::{self, Glance};
use super::literals::{Literal, literals};
use super::mood::{self, Around};
use super::sentence::Sentence;
use super::stand::{self, Stand};
use super::{context, foreign, lines, words};
use crate::doc::{Doc, floor};
use crate::forms::pythonic;
use crate::json::Ending;
use crate::limits::CONTEXT_BYTES_MAX;
use crate::model::{FinishReason, Strategy};
use crate::raw::{Args, Given, RawCall, Unknown};
use crate::tools::ToolSpec;

/// How sure a wish is whose name can be nothing but a tool's, and any other.
pub(super) const DISTINCT: f64 = 0.65;

const EVERYDAY: f64 = 0.6;

/// Words between a name and what it is given, at most.
const GAP_WORDS_MAX: usize = 6;

/// How the name of what one remembers ends.
const MEMORY: [&str; 2] = ["memory", "memories"];

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
pub(super) struct Said<'a, 'd> {
    pub(super) doc: &'a Doc<'d>,
    pub(super) sentence: &'a Sentence,
    pub(super) earlier: &'a [Sentence],
    pub(super) next: Option<&'a Sentence>,
    pub(super) text: &'a str,
    pub(super) literals: Vec<Literal>,
    /// The text in lower case, without what is in marks: same length.
    pub(super) masked: String,
    /// Whether an order in it is one for the reader.
    pub(super) for_reader: bool,
}

pub(super) fn wishes(
    doc: &Doc<'_>,
    sentence: &Sentence,
    [earlier, later]: [&[Sentence]; 2],
    (lower, seen): (&str, Glance),
    advised: &mut dyn FnMut() -> bool,
) -> Named {
    let text = sentence.text(doc);
    let mut named = Named::default();
    if !seen.may_wish(lower) {
        return named;
    }
    let may_ask = || seen.may(glance::NOUN) && foreign::may_ask(lower);
    // An everyday word with nothing to the letter is a name only where somebody plans.
    if !seen.may(glance::GIVES)
        && (!seen.may_lead && !seen.may(glance::ASSIGN) && words::is_english(lower)
            || !anchors::are_possible(doc, text) && !context::may_point(lower) && !may_ask())
    {
        return named;
    }
    if !doc.may_read(text.len()) {
        doc.gave_up.set(true);
        return named;
    }
    let literals = if seen.may_give() {
        literals(doc, text)
    } else {
        Vec::new()
    };
    let mut found = Vec::new();
    if seen.may(glance::NAME) {
        found = anchors::anchors(doc, text, &literals);
    }
    if found.is_empty() {
        found.extend(context::pointed_at(doc, earlier, text, lower));
        found.extend(context::pointed_run(doc, earlier, lower).filter(|_| found.is_empty()));
    }
    let mut verbs = Vec::new();
    if seen.may(glance::VERB | glance::MEMORY) {
        verbs = foreign::anchors(doc, text, lower, &literals);
    }
    let has_object = literals.iter().any(Literal::is_json);
    if found.is_empty() && verbs.is_empty() && !has_object && !may_ask() {
        return named;
    }
    let masked = anchors::masked(lower, &literals, &found);
    let for_reader = seen.may(glance::READER) && words::addresses_reader(&masked)
        || found.iter().any(|it| !it.distinct) && advised();
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
    let is_labelled =
        || seen.may(glance::COLON) && stand::is_labelled_foreign(&said.masked.to_lowercase());
    if lines::is_log(&said.masked) || is_labelled() {
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

impl Said<'_, '_> {
    fn stand(&self, anchor: &Anchor<'_>) -> Stand {
        let [from, to] = anchor.span;
        let window = floor(&self.masked, from.saturating_sub(CONTEXT_BYTES_MAX));
        // The beginning of a window is no sentence's.
        let cut = if window > 0 { "x " } else { "" };
        let before = format!("{cut}{}", self.masked[window..from].to_lowercase());
        if stand::is_in_brackets(&before, &self.masked[to..]) {
            return Stand::Called;
        }
        let is_handed = anchor.distinct && before.trim_end().ends_with("\" to");
        if is_handed || Self::runs(anchor.tool) && stand::is_place(&before) {
            return Stand::Called;
        }
        // "Since it exists, read it": the reason in front says nothing of how the name stands.
        let reason = super::lead::behind_reason(&self.masked);
        let is_first = reason.is_some_and(|tail| tail.len() == self.masked.len() - from);
        stand::stand(if is_first { "" } else { &before }, &self.masked[to..])
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

    /// "use exec to run", "do a `web_search`: search for": the second name is of the same wish.
    fn is_near(&self, anchor: &Anchor<'_>, other: &Anchor<'_>) -> bool {
        let between = &self.masked[anchor.span[1]..other.span[0]];
        between.split_whitespace().count() <= 2 && !between.contains(['"', ',', ';', '.', '(', ':'])
    }

    /// Whether the sentence is a comment in some code from before this place on.
    fn is_commented(&self, at: usize) -> bool {
        let before = &self.masked[..at];
        before.starts_with("// ") || before.contains(" // ") || before.contains(" # todo")
    }

    pub(super) fn place(&self, span: [usize; 2]) -> Place<'_> {
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
        let near = self.is_given_near(behind_name, &filled);
        if stand > Stand::Word {
            self.take_beside(anchor, &mut filled);
        }
        // `read(path)` names what it takes.
        if !is_called && filled.keyed && behind.starts_with('(') {
            return None;
        }
        let strong = is_called || filled.keyed && filled.is_whole(anchor.tool);
        let written = stand;
        let stand = if strong { Stand::Called } else { stand };
        // What stands further off says nothing of the name.
        let window = floor(&self.masked, start.saturating_sub(CONTEXT_BYTES_MAX));
        let before = self.masked[window..start].to_lowercase();
        let clause = &before[mood::clause_start(&before)..];
        let for_reader = !anchor.distinct && self.for_reader && !mood::is_own(clause);
        if stand == Stand::Word
            && !anchor.distinct
            && self.is_opened(anchor, clause)
            && filled.start.is_none()
        {
            named
                .asked
                .push(self.call(anchor.tool, Args::default(), anchor.span, EVERYDAY));
        }
        if stand == Stand::Word && !anchor.distinct || !near || for_reader && !strong {
            return None;
        }
        let behind = self.masked[filled.end.min(stop)..stop].trim_start();
        let is_purpose = behind.starts_with("to ") && !mood::is_own(clause);
        if is_purpose
            && (is_called || written <= Stand::Order && !anchor.distinct && Self::runs(anchor.tool))
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
        let told = stand <= Stand::Order && self.is_told(behind_name, filled.end, stop);
        if !is_called && told || self.lacks_recipient(anchor, &filled) {
            return None;
        }
        // "send to Bob the text: …" names an argument, and speaks of no text.
        let is_keyed = filled.keyed && filled.lacks_only_a_text(anchor.tool) && !anchor.distinct;
        let said_from = if is_keyed {
            filled.end.min(stop)
        } else {
            behind_name
        };
        let around = Around {
            clause,
            before: &before,
            after: &self.masked[said_from..stop].to_lowercase(),
            gap: &self.masked
                [behind_name..filled.start.unwrap_or(behind_name).clamp(behind_name, stop)]
                .to_lowercase(),
            behind: &self.masked[filled.end.min(stop)..stop].to_lowercase(),
            distinct: anchor.distinct,
        };
        if mood::against(&around).is_some() {
            named.used.push([start, filled.end.max(behind_name)]);
            return Some(filled.end);
        }
        let end = filled.end;
        if stand == Stand::Called || anchor.distinct || stand == Stand::Planned {
            self.look_around(anchor, stand, from, &mut filled);
        }
        let whole = filled.is_whole(anchor.tool);
        let targets = || {
            filled
                .start
                .is_some_and(|at| self.is_target(behind_name, at))
        };
        let only_text = targets() && filled.lacks_only_a_text(anchor.tool);
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

    /// Whether few words stand between a name and what it is given.
    fn is_given_near(&self, behind_name: usize, filled: &Filled) -> bool {
        filled.start.is_none_or(|at| {
            let gap = &self.masked[behind_name.min(at)..at];
            gap.split_whitespace().count() <= GAP_WORDS_MAX
        })
    }

    /// "Message to Karin was sent: …".
    fn is_told(&self, from: usize, end: usize, stop: usize) -> bool {
        mood::is_told(&self.masked[from..end.clamp(from, stop)])
    }

    /// "I send x": a verb of a tool that takes a recipient, and none is there.
    fn lacks_recipient(&self, anchor: &Anchor<'_>, filled: &Filled) -> bool {
        let is_whom = |name: &&str| takes(name) == Takes::Recipient;
        let [from, to] = anchor.span;
        wanted(anchor.tool)
            .into_iter()
            .find(is_whom)
            .is_some_and(|name| !filled.has(name))
            && filled.start.is_some()
            && self.doc.tools.find(&self.text[from..to]).is_none()
    }

    /// Whether a tool runs commands.
    pub(super) fn runs(tool: &ToolSpec) -> bool {
        wanted(tool)
            .iter()
            .any(|name| takes(name) == Takes::Command)
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

    fn calls(&self, anchor: &Anchor<'_>, filled: Filled) -> Vec<RawCall> {
        let sure = if anchor.distinct { DISTINCT } else { EVERYDAY };
        let span = [anchor.span[0], filled.end.max(anchor.span[1])];
        std::iter::once(filled.args)
            .chain(filled.more)
            .map(|args| {
                let mut call = self.call(anchor.tool, args, span, sure);
                call.span[1] = call.span[1].max(filled.until);
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
    pub(super) fn is_cut(&self) -> bool {
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
            // What is given stands behind the verb, right before it, or behind its colon.
            let behind = &self.text[verb.span[1]..];
            let spoken = &self.text[verb.span[0]..verb.span[1]];
            let is_labelled =
                behind.starts_with([':', '：']) || MEMORY.iter().any(|word| spoken.ends_with(word));
            let may_stand_alone = wanted(verb.tool)
                .iter()
                .any(|name| takes(name) == Takes::Recipient);
            let english = foreign::is_english(spoken.split(' ').next().unwrap_or_default());
            let before = self.literals.iter().rev();
            let first = self
                .literals
                .iter()
                .find(|literal| literal.span[0] >= verb.span[1])
                .or_else(|| before.into_iter().find(|it| it.span[1] <= verb.span[0]));
            let is_given = |at: usize| {
                named
                    .used
                    .iter()
                    .any(|[from, to]| (*from..*to).contains(&at))
            };
            let at = offset + verb.span[0];
            if is_given(verb.span[0])
                || first.map_or(!is_labelled && !may_stand_alone, |literal| {
                    is_given(literal.span[0])
                })
                || self.doc.is_hidden(at, 0)
                || self.doc.is_shown(at)
            {
                continue;
            }
            let stands = self.stand(verb);
            if english && (stands == Stand::Word || self.for_reader) {
                continue;
            }
            let stand = if is_labelled {
                Stand::Called
            } else {
                Stand::Planned
            };
            self.read(verb, stand, [0, stop], named);
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
}
