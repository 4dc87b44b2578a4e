//! What stands around a name and what it is given: an order or a plan, and what is said before and behind.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::anchors::{self, Anchor};
use super::fill::{self, Filled, Place, Takes, takes, wanted};
use super::literals::{Kind, Literal, literals};
use super::mood::{self, Around};
use super::named::{Named, Said};
use super::sentence::Sentence;
use super::stand::{self, Stand};
use super::{lines, lists};
use crate::doc::Doc;
use crate::json;
use crate::raw::{Args, Given};
use crate::tools::ToolSpec;

/// Words of a sentence that points to what was said before.
const POINTING_WORDS_MAX: usize = 9;

/// Words for more than one thing that was said before.
const MANY: &[&str] = &[
    "them", "both", "all", "these", "those", "each", "beide", "alle", "les deux", "ambos", "todos",
    "tutti",
];

/// Sentences that are looked back to for commands.
const COMMANDS_BACK: usize = 8;

/// Sentences that are looked back to.
const LOOK_BACK: usize = 2;

impl Said<'_, '_> {
    /// Whether a path is where something is written, and not only spoken of: "it to a.txt", "the file a.txt".
    pub(super) fn is_target(&self, from: usize, to: usize) -> bool {
        let gap = self.masked[from.min(to)..to].trim().trim_end_matches(':');
        let last = gap.rsplit(char::is_whitespace).next().unwrap_or_default();
        gap.is_empty() || lists::list("before target").contains(&last)
    }

    /// "I will open the browser".
    pub(super) fn is_opened(&self, anchor: &Anchor<'_>, clause: &str) -> bool {
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
    pub(super) fn points_back(&self, at: usize) -> bool {
        let rest = self.masked[at..].trim().trim_end_matches(['.', '!', ':']);
        let mut words = rest.split_whitespace();
        let first = words
            .next()
            .unwrap_or_default()
            .trim_end_matches([',', ';']);
        matches!(first, "it" | "them" | "this" | "that")
            && (words.count() <= 2 || rest.contains(" to see") || rest.contains(" first"))
    }

    /// Takes what "it" was before, or what the next sentence gives.
    pub(super) fn take_beside(&self, anchor: &Anchor<'_>, filled: &mut Filled) {
        let behind_name = anchor.span[1];
        lines::labels(self.doc, self.sentence.span[1], anchor.tool, filled);
        if filled.start.is_some() {
            return;
        }
        if self.points_back(behind_name) && anchor.span[0] > 0 {
            // "Now for a.txt: read it."
            fill::left(anchor.tool, &self.place([0, anchor.span[0]]), filled);
            if filled.start.is_some() {
                return;
            }
        }
        let mut before = self.earlier.iter().rev().take(LOOK_BACK);
        if self.take_all(anchor, filled) {
            filled.start = Some(behind_name);
            return;
        }
        let is_found = self.points_back(behind_name)
            && before.any(|sentence| self.take_earlier(sentence, anchor.tool, filled));
        if is_found || self.take_next(anchor.tool, filled) {
            filled.start = Some(behind_name);
        }
    }

    /// "Run them one by one.", "Fetch both.": all of the kind that stand before.
    fn take_all(&self, anchor: &Anchor<'_>, filled: &mut Filled) -> bool {
        let own = self.literals.iter().any(Literal::is_marked);
        let words = self.masked.split_whitespace().count();
        let is_plural = MANY
            .iter()
            .any(|word| crate::cues::has_words(&self.masked, word));
        if own || words > POINTING_WORDS_MAX || !is_plural || self.is_cut() {
            return false;
        }
        let wanted = wanted(anchor.tool);
        let [argument] = wanted.as_slice() else {
            return false;
        };
        let is_one = |literal: &Literal| match takes(argument) {
            Takes::Command => {
                literal.kind == Kind::Command
                    || literal.kind == Kind::Code && super::commands::is_command(&literal.text)
            }
            Takes::Path => literal.kind == Kind::Path,
            Takes::Url => literal.kind == Kind::Url,
            _ => false,
        };
        let mut found = Vec::new();
        for (number, sentence) in self.earlier.iter().rev().take(COMMANDS_BACK).enumerate() {
            let text = sentence.text(self.doc);
            if text.len() > crate::limits::SENTENCE_BYTES_MAX || !self.doc.may_read(text.len()) {
                return false;
            }
            let mut commands: Vec<String> = literals(self.doc, text)
                .into_iter()
                .filter(is_one)
                .map(|literal| literal.text)
                .collect();
            if commands.is_empty() && (number > 0 || !found.is_empty()) {
                break;
            }
            commands.append(&mut found);
            found = commands;
        }
        let mut given = found
            .into_iter()
            .map(|command| ((*argument).to_owned(), Given::Text(command)));
        let Some(first) = given.next() else {
            return false;
        };
        filled.args.named.push(first);
        filled.more.extend(given.map(|given| {
            let mut args = Args::default();
            args.named.push(given);
            args
        }));
        true
    }

    /// Whether an order is the model's to itself.
    pub(super) fn may_order(&self, anchor: &Anchor<'_>, named: &Named, filled: &Filled) -> bool {
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
    pub(super) fn is_asked(&self, anchor: &Anchor<'_>, stand: Stand, around: &Around<'_>) -> bool {
        let plans = mood::is_planned(around.before) || mood::is_planned(around.clause);
        let next = around.before.trim().trim_matches([',', ':', ' ']);
        let ordered = stand == Stand::Order
            && ["next", "now", "then", "first", "so"]
                .iter()
                .any(|word| next.ends_with(word));
        let points = (stand == Stand::Planned || ordered)
            && stand::points_at(around.after, main_takes(anchor.tool));
        let strong =
            anchor.distinct || anchor.marked || points || stand::is_called_by_name(around.before);
        plans && strong && (stand > Stand::Order || ordered) && !self.for_reader
    }

    /// Looks for what is missing before the name, in the block or the list below, and in what was said before.
    pub(super) fn look_around(
        &self,
        anchor: &Anchor<'_>,
        stand: Stand,
        from: usize,
        filled: &mut Filled,
    ) {
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
    pub(super) fn take_next(&self, tool: &ToolSpec, filled: &mut Filled) -> bool {
        if self.take_object(tool, filled) {
            return true;
        }
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

    /// The object of arguments that stands below the sentence, be it that its last mark is missing.
    fn take_object(&self, tool: &ToolSpec, filled: &mut Filled) -> bool {
        let end = self.sentence.span[1];
        let rest = &self.doc.text[end..];
        let at = end + rest.len() - rest.trim_start_matches([' ', ':', '\n', '\r']).len();
        if !self.doc.text[at..].starts_with('{') || !self.doc.may_read(self.doc.text.len() - at) {
            return false;
        }
        let Some(read) = json::read_at(self.doc.text, at, self.doc.text.len()) else {
            return false;
        };
        let serde_json::Value::Object(map) = read.value else {
            return false;
        };
        let own = |key: &String| {
            tool.properties()
                .any(|(name, _)| name == key || crate::guide::same_argument(name, key))
        };
        if map.is_empty() || !map.keys().all(own) {
            return false;
        }
        filled.args = Args::from_map(map);
        filled.keyed = true;
        filled.open = read.ending > json::Ending::MissingClosers;
        filled.until = read.end;
        true
    }

    /// The one value of the right kind in a sentence before.
    pub(super) fn take_earlier(
        &self,
        sentence: &Sentence,
        tool: &ToolSpec,
        filled: &mut Filled,
    ) -> bool {
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
        if wanted.len() > 1 && keyed.is_whole(tool) && takes(argument) != Takes::Text {
            filled.args = keyed.args;
            return true;
        }
        // "The query would be \"x\". Let me search that."
        let is_query = takes(argument) == Takes::Query
            && ["query", "search term", "keywords", "look up"]
                .iter()
                .any(|word| crate::cues::has_words(&text.to_lowercase(), word));
        if !is_query && !matches!(takes(argument), Takes::Path | Takes::Url | Takes::Command) {
            return false;
        }
        let mut fitting = literals.iter().filter(|literal| {
            let is_code = matches!(literal.kind, Kind::Code | Kind::Command);
            (is_code || takes(argument) != Takes::Command) && fill::fits(argument, literal, &wanted)
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
    says || !crate::cues::has_words(clause, "plan")
        && first.is_some_and(|word| FOREIGN.contains(&word))
        && !mood::is_planned(clause)
}

/// "Executing it.", "I'll do that.": the tool that runs what was said before.
pub(super) fn pointed_run<'t>(
    doc: &Doc<'t>,
    earlier: &[Sentence],
    lower: &str,
) -> Option<Anchor<'t>> {
    static RUNS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("runs it"));
    if lower.split_whitespace().count() > POINTING_WORDS_MAX {
        return None;
    }
    let (at, words) = RUNS.iter().find_map(|words| {
        let at = lower.find(words)?;
        let stands = !lower[..at].ends_with(char::is_alphanumeric)
            && !lower[at + words.len()..].starts_with(char::is_alphanumeric);
        stands.then_some((at, words))
    })?;
    let begins = !lower[..at].contains(char::is_alphanumeric)
        || mood::is_planned(&lower[..at]) && mood::is_own(&lower[..at])
        || super::lead::without_fillers(lower).len() == lower.len() - at;
    // "I'll do that in my answer" runs nothing.
    let tail = lower[at + words.len()..].trim_start();
    let goes_on = |letter: char| letter.is_alphanumeric();
    if tail.starts_with(goes_on)
        && !lists::list("behind runs it")
            .iter()
            .any(|it| tail.starts_with(it))
    {
        return None;
    }
    let tool = doc.tools.find("exec")?;
    let before = earlier.last()?.text(doc);
    if !begins || before.len() > crate::limits::SENTENCE_BYTES_MAX || !doc.may_read(before.len()) {
        return None;
    }
    let is_command = |literal: &Literal| {
        literal.kind == Kind::Command
            || literal.kind == Kind::Code && super::commands::is_command(&literal.text)
    };
    literals(doc, before)
        .iter()
        .any(is_command)
        .then_some(Anchor {
            span: [at, at + words.len()],
            tool,
            distinct: true,
            marked: true,
        })
}

/// "We'll call it with …": the one tool that the sentence before names.
pub(super) fn pointed_at<'t>(
    doc: &Doc<'t>,
    earlier: &[Sentence],
    text: &str,
    lower: &str,
) -> Option<Anchor<'t>> {
    const CALLS: &[&str] = &[
        "call it with",
        "use it with",
        "call it on",
        "use it on",
        "call it:",
        "use it:",
        "use it to read",
        "use it for",
    ];
    let at = CALLS.iter().find_map(|words| {
        lower
            .find(words)
            .map(|at| at + words.find(" it").unwrap_or(0) + 1)
    })?;
    let before = earlier.last()?.text(doc);
    if before.len() > crate::limits::SENTENCE_BYTES_MAX
        || !doc.may_read(before.len())
        || text.len() < at + 2
    {
        return None;
    }
    let mut names = anchors::anchors(doc, before, &literals(doc, before))
        .into_iter()
        .filter(|name| name.distinct || name.marked);
    let (name, None) = (names.next()?, names.next()) else {
        return None;
    };
    Some(Anchor {
        span: [at, at + 2],
        ..name
    })
}

/// Whether a sentence can point at something to be run: a cheap look.
pub(super) fn may_point(lower: &str) -> bool {
    lower.len() < 80
        && lists::list("runs it")
            .iter()
            .any(|words| lower.contains(words))
}

/// Whether a sentence can point at a tool: a cheap look.
pub(super) fn may_point_at(lower: &str) -> bool {
    static POINTS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| ["call it", "use it"].map(Finder::new));
    let goes_on = |rest: &str| {
        [" with", " on", ":", " to read", " for"]
            .iter()
            .any(|words| rest.starts_with(words))
    };
    POINTS.iter().any(|finder| {
        let len = finder.needle().len();
        let mut hits = finder.find_iter(lower.as_bytes());
        hits.any(|at| goes_on(&lower[at + len..]))
    })
}
