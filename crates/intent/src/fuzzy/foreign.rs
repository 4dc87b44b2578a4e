//! Verbs of other languages than English, each for the tool that does it.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::anchors::{Anchor, is_unspaced};
use super::fill::Takes;
use super::lists;
use super::literals::{Kind, Literal};
use crate::cues::WordSet;
use crate::doc::Doc;
use crate::tools::ToolSpec;

/// Names that the tools of these verbs go by, in every host.
const VERBS: &[(&str, &str, Takes)] = &[
    ("verbs of reading", "read", Takes::Path),
    ("verbs of searching", "web_search", Takes::Query),
    ("verbs of fetching", "web_fetch", Takes::Url),
    ("verbs of running", "exec", Takes::Command),
    ("verbs of writing", "write", Takes::Path),
    ("verbs of storing", "memory_store", Takes::Text),
    ("verbs of sending", "message", Takes::Recipient),
];
/// How far what a verb is given may stand from it.
const GAP_BYTES_MAX: usize = 60;
/// The same for a verb behind it.
const BEHIND_BYTES_MAX: usize = 40;

static BY_WORD: LazyLock<HashMap<&'static str, usize>> = LazyLock::new(|| {
    let words = |(place, (name, ..)): (usize, &(&str, &str, Takes))| {
        lists::list(name).iter().map(move |word| (*word, place))
    };
    VERBS.iter().enumerate().flat_map(words).collect()
});
/// Those that stand between others without blanks.
static UNSPACED: LazyLock<Vec<(&'static str, usize)>> = LazyLock::new(|| {
    let unspaced = |word: &str| word.chars().all(is_unspaced) && word.chars().count() > 1;
    let verbs = BY_WORD.iter().filter(|(word, _)| unspaced(word));
    verbs.map(|(word, place)| (*word, *place)).collect()
});

/// All of these verbs.
pub(super) fn verb_words() -> Vec<&'static str> {
    BY_WORD.keys().copied().collect()
}

/// All nouns for what a plan can leave open.
pub(super) fn nouns() -> Vec<&'static str> {
    ["files", "commands", "messages"]
        .iter()
        .flat_map(|name| lists::list(name))
        .copied()
        .collect()
}

/// The verbs of a sentence that are given what their tool takes, as if they named it.
pub(super) fn anchors<'t>(
    doc: &Doc<'t>,
    text: &str,
    lower: &str,
    literals: &[Literal],
) -> Vec<Anchor<'t>> {
    let mut found = Vec::new();
    let given = literals.iter().filter(|literal| !literal.is_json());
    for literal in given {
        let end = literal.span[0];
        let from = look_from(text, end);
        let before = &text[from..end];
        let ([start, stop], place) = match last_verb(before) {
            Some(([start, stop], place)) => ([from + start, from + stop], place),
            // "die Datei a.txt lesen", "a.txt 파일을 읽어야겠다": the verb closes the clause.
            None => match verb_behind(text, literal.span[1], literals) {
                Some(found) => found,
                None => continue,
            },
        };
        // A verb in a quotation is the quotation's.
        let quotes = |other: &Literal| {
            other.kind == Kind::Quoted && other.span[0] < start && stop < other.span[1]
        };
        if literals.iter().any(quotes) {
            continue;
        }
        let (_, name, takes) = VERBS[place];
        let remembers = REMEMBERED.is_in(lower);
        let (name, takes) = match (name, takes) {
            ("web_search", _) if remembers => ("memory_search", takes),
            ("write", _) if remembers && literal.kind == Kind::Quoted => {
                ("memory_store", Takes::Text)
            }
            ("memory_store", _) if !remembers => continue,
            known => known,
        };
        // Whatever reads a file opens an address as well.
        let name = match (&literal.kind, takes) {
            (Kind::Url, Takes::Path | Takes::Url | Takes::Query) if name != "write" => "web_fetch",
            (Kind::Path, Takes::Path)
            | (Kind::Quoted, Takes::Query | Takes::Text | Takes::Recipient)
            | (Kind::Command, Takes::Command)
            | (Kind::Code, Takes::Command | Takes::Query) => name,
            (Kind::Code | Kind::Command, Takes::Path)
                if name == "read" && super::commands::is_command(&literal.text) =>
            {
                "exec"
            }
            (Kind::Code | Kind::Quoted, Takes::Path)
                if super::literals::names_file(&literal.text) =>
            {
                name
            }
            _ => continue,
        };
        add(doc, [start, stop], name, &mut found);
    }
    if found.is_empty()
        && let Some(([start, end], tool)) = labelled(text, literals, REMEMBERED.is_in(lower))
    {
        add(doc, [start, end], tool, &mut found);
    }
    found
}

fn add<'t>(doc: &Doc<'t>, span: [usize; 2], name: &str, found: &mut Vec<Anchor<'t>>) {
    // A verb counts once, whatever part of it a later look sees.
    let overlaps = |anchor: &Anchor<'t>| anchor.span[0] < span[1] && span[0] < anchor.span[1];
    let is_known = found.iter().any(overlaps);
    if let Some(tool) = doc.tools.find(name).filter(|_| !is_known) {
        found.push(Anchor {
            span,
            tool,
            distinct: false,
            marked: false,
        });
    }
}

/// "wyszukać w internecie: kurs euro": a search, up to the colon before what is searched.
fn labelled(
    text: &str,
    literals: &[Literal],
    remembers: bool,
) -> Option<([usize; 2], &'static str)> {
    if remembers && let Some(span) = recalled(&text.to_ascii_lowercase()) {
        return Some((span, "memory_search"));
    }
    let colon = text.find([':', '：'])?;
    let from = crate::doc::floor(text, colon.saturating_sub(GAP_BYTES_MAX));
    let ([start, stop], place) = last_verb(&text[from..colon])?;
    let behind = &text[colon..];
    let is_bare = literals.iter().all(|literal| literal.span[1] <= colon);
    let has_words = behind.len() > 3 && !behind.contains('\n');
    let (_, name, takes) = VERBS[place];
    let name = if remembers && takes == Takes::Query {
        "memory_search"
    } else {
        name
    };
    let end = if takes == Takes::Recipient {
        from + stop
    } else {
        colon
    };
    (matches!(takes, Takes::Query | Takes::Recipient) && is_bare && has_words)
        .then_some(([from + start, end], name))
}

/// What stands before the thing that is looked for in memory.
const RECALLS: &[&str] = &[
    " memory for ",
    " memory about ",
    " memory: ",
    " memories for ",
    " memories about ",
];

/// Whether something can be looked for in memory: a cheap look.
pub(super) fn may_recall(lower: &str) -> bool {
    RECALLS.iter().any(|words| lower.contains(words))
}

/// "look in memory for a name": from the verb up to what is looked for.
fn recalled(text: &str) -> Option<[usize; 2]> {
    let at = RECALLS.iter().find_map(|words| {
        let at = text.find(words)?;
        Some([at, at + words[1..].find([' ', ':'])? + 1])
    })?;
    let from = crate::doc::floor(text, at[0].saturating_sub(GAP_BYTES_MAX / 2));
    let verb = [
        "look", "check", "search", "consult", "query", "recall", "dig", "go",
    ]
    .iter()
    .filter_map(|verb| text[from..at[0]].rfind(verb))
    .max()?;
    Some([from + verb, at[1]])
}

/// The verb that follows what it is given.
fn verb_behind(text: &str, end: usize, literals: &[Literal]) -> Option<([usize; 2], usize)> {
    let next = literals.iter().map(|literal| literal.span[0]);
    let stop = next.filter(|at| *at >= end).min().unwrap_or(text.len());
    let stop = crate::doc::floor(text, stop.min(end + BEHIND_BYTES_MAX));
    let mut behind = text.get(end..stop)?;
    // A word that is cut here is not the verb that it begins like.
    let of_word = |letter: char| letter.is_alphabetic() && !is_unspaced(letter);
    if text[stop..].starts_with(of_word) {
        behind = behind.trim_end_matches(of_word);
    }
    let behind = &behind[..behind
        .find([',', ';', ':', '.', '。', '，'])
        .unwrap_or(behind.len())];
    let ([from, to], place) = last_verb(behind)?;
    Some(([end + from, end + to], place))
}

/// Words for what one remembers.
static REMEMBERED: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("memory"));

/// Where the look for a verb begins: not within a word, whose tail can be another verb.
fn look_from(text: &str, end: usize) -> usize {
    let from = crate::doc::floor(text, end.saturating_sub(GAP_BYTES_MAX));
    let of_word = |letter: char| letter.is_alphabetic() && !is_unspaced(letter);
    if !text[..from].ends_with(of_word) {
        return from;
    }
    end - text[from..end].trim_start_matches(of_word).len()
}

/// The last verb of a text, and which it is.
fn last_verb(text: &str) -> Option<([usize; 2], usize)> {
    verbs(text).max()
}

fn verbs(text: &str) -> impl Iterator<Item = ([usize; 2], usize)> + '_ {
    let mut at = 0;
    let spaced = text
        .split_inclusive(|letter: char| !letter.is_alphabetic())
        .filter_map(move |word| {
            let bare = word.trim_end_matches(|letter: char| !letter.is_alphabetic());
            let span = [at, at + bare.len()];
            at += word.len();
            let place = BY_WORD.get(bare.to_lowercase().as_str())?;
            Some((span, *place))
        });
    let unspaced = UNSPACED
        .iter()
        .filter(|_| !text.is_ascii())
        .filter_map(|(word, place)| text.rfind(word).map(|at| ([at, at + word.len()], *place)));
    spaced.chain(unspaced)
}

/// Whether a verb is English, where orders and statements look alike.
pub(super) fn is_english(verb: &str) -> bool {
    static ENGLISH: LazyLock<&[&str]> = LazyLock::new(|| lists::list("english verbs"));
    ENGLISH.contains(&verb.to_lowercase().as_str())
}

/// What a plan names without saying which, and what its verb takes.
static NOUNS: LazyLock<[(Takes, WordSet); 3]> = LazyLock::new(|| {
    [
        (Takes::Path, lists::word_set("files")),
        (Takes::Command, lists::word_set("commands")),
        (Takes::Recipient, lists::word_set("messages")),
    ]
});

/// Whether a sentence speaks of a file, a command or a message.
pub(super) fn may_ask(lower: &str) -> bool {
    NOUNS.iter().any(|(_, nouns)| nouns.is_in(lower))
}

/// The tool of a sentence that plans to read a file, to run a command or to send a message, and
/// does not say which.
pub(super) fn asks<'t>(doc: &Doc<'t>, masked: &str) -> Option<&'t ToolSpec> {
    if masked.contains('"') || !may_ask(masked) {
        return None;
    }
    let lower = masked.to_lowercase();
    let ([start, _], place) = verbs(&lower).find(|(_, place)| {
        let takes = VERBS[*place].2;
        NOUNS
            .iter()
            .any(|(kind, nouns)| *kind == takes && nouns.is_in(&lower))
    })?;
    let clause = &lower[super::mood::clause_start(&lower[..start])..];
    let plans = super::mood::is_planned(clause) && super::mood::is_free_of_doubt(clause, &lower);
    plans.then(|| doc.tools.find(VERBS[place].1)).flatten()
}
