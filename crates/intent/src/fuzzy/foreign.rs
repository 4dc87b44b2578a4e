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
];
/// How far what a verb is given may stand from it.
const GAP_BYTES_MAX: usize = 60;

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

/// The verbs of a sentence that are given what their tool takes, as if they named it.
pub(super) fn anchors<'t>(doc: &Doc<'t>, text: &str, literals: &[Literal]) -> Vec<Anchor<'t>> {
    let mut found: Vec<Anchor<'t>> = Vec::new();
    let given = literals.iter().filter(|literal| !literal.is_json());
    for literal in given {
        let end = literal.span[0];
        let from = look_from(text, end);
        let before = &text[from..end];
        let Some(([start, stop], place)) = last_verb(before) else {
            continue;
        };
        let (_, name, takes) = VERBS[place];
        // Whatever reads a file opens an address as well.
        let name = match (&literal.kind, takes) {
            (Kind::Url, Takes::Path | Takes::Url | Takes::Query) if name != "write" => "web_fetch",
            (Kind::Path, Takes::Path)
            | (Kind::Quoted, Takes::Query)
            | (Kind::Code, Takes::Command | Takes::Query) => name,
            (Kind::Code | Kind::Quoted, Takes::Path)
                if super::literals::names_file(&literal.text) =>
            {
                name
            }
            _ => continue,
        };
        let span = [from + start, from + stop];
        // A verb counts once, whatever part of it a later look sees.
        let is_known = found.last().is_some_and(|last| last.span[1] > span[0]);
        if let Some(tool) = doc.tools.find(name).filter(|_| !is_known) {
            found.push(Anchor {
                span,
                tool,
                distinct: false,
                marked: false,
            });
        }
    }
    found
}

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
    let mut last = None;
    let mut at = 0;
    for word in text.split_inclusive(|letter: char| !letter.is_alphabetic()) {
        let bare = word.trim_end_matches(|letter: char| !letter.is_alphabetic());
        if let Some(place) = BY_WORD.get(bare.to_lowercase().as_str()) {
            last = Some(([at, at + bare.len()], *place));
        }
        at += word.len();
    }
    let unspaced = UNSPACED
        .iter()
        .filter_map(|(word, place)| text.rfind(word).map(|at| ([at, at + word.len()], *place)))
        .max();
    last.max(unspaced)
}

static FILES: LazyLock<WordSet> = LazyLock::new(|| lists::word_set("files"));

/// Whether a sentence speaks of a file in another language.
pub(super) fn may_ask(lower: &str) -> bool {
    FILES.is_in(lower)
}

/// The tool of a sentence that plans to read a file and does not say which.
pub(super) fn asks<'t>(doc: &Doc<'t>, masked: &str) -> Option<&'t ToolSpec> {
    if masked.contains('"') || !FILES.is_in(masked) {
        return None;
    }
    let lower = masked.to_lowercase();
    let ([start, _], place) = last_verb(&lower)?;
    let clause = &lower[super::mood::clause_start(&lower[..start])..];
    let plans = super::mood::is_planned(clause) && super::mood::is_free_of_doubt(clause, &lower);
    let (_, name, takes) = VERBS[place];
    (takes == Takes::Path && plans)
        .then(|| doc.tools.find(name))
        .flatten()
}
