//! Arguments that are given by their names: "with path X and content Y", "query: X", "url=…".

use std::sync::LazyLock;

use serde_json::Value;

use super::fill::{Filled, Place, Takes, takes};
use super::lists;
use super::literals::{Kind, Literal, bare_word, names_file};
use crate::guide::same_argument;
use crate::tools::ToolSpec;

/// `` `command: "ls"` ``: pairs in code.
pub(super) fn coded(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let named = |literal: &&Literal| {
        let head = literal.text.split([':', '=']).next().unwrap_or_default();
        head.len() < literal.text.len() && tool.property(head.trim_matches([' ', '"'])).is_some()
    };
    let code = place
        .literals()
        .filter(|literal| literal.kind == Kind::Code);
    for literal in code.filter(named) {
        let (key, value) = literal.text.split_once([':', '=']).unwrap_or_default();
        let value = value.trim().trim_matches(['"', '\'', '“', '”']);
        if !value.is_empty() && !value.contains("\", ") {
            filled.give(key.trim_matches([' ', '"']), value, literal.span);
            filled.keyed = true;
        }
    }
}

/// Words between a key and its value.
static COPULAS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("copulas"));

/// "with path X and content Y", "query: X", "url=…".
pub(super) fn pairs(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let keys = keys(tool, place);
    for (number, (key, [from, to])) in keys.iter().enumerate() {
        let stop = keys
            .get(number + 1)
            .map_or(place.span[1], |(_, [next, _])| *next);
        if filled.has(key) {
            continue;
        }
        let (value_at, sign) = value_start(place.text, *to, stop);
        if let Some((value, span)) = value(tool, key, place, [value_at, stop], sign) {
            filled.give(key, &value, [*from, span[1]]);
            filled.keyed = true;
        }
    }
}

/// The names of arguments that a place has, outside of literals.
fn keys<'t>(tool: &'t ToolSpec, place: &Place<'_>) -> Vec<(&'t str, [usize; 2])> {
    let [start, end] = place.span;
    let text = place.text;
    let mut found: Vec<(&str, [usize; 2])> = Vec::new();
    let mut at = start;
    while at < end {
        let Some(letter) = text[at..end].chars().next() else {
            break;
        };
        let whole = place
            .literals()
            .find(|literal| literal.span[0] == at && is_name_in_marks(tool, literal).is_none());
        if let Some(literal) = whole {
            at = literal.span[1];
            continue;
        }
        if !letter.is_alphanumeric() {
            at += letter.len_utf8();
            continue;
        }
        let size = text[at..end]
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')))
            .unwrap_or(end - at);
        let size = size.max(letter.len_utf8());
        let word = &text[at..at + size];
        let behind = text[at + size..end].trim_start_matches(['`', '"', '*', '\'']);
        let signed =
            behind.trim_start().starts_with(['=', ':', '：']) && !behind.starts_with("://");
        let lower = word.to_ascii_lowercase();
        let key = tool
            .properties()
            .map(|(name, _)| name.as_str())
            .find(|name| {
                *name == lower
                    || fold_is(name, &lower)
                    || signed && same_argument(name, &lower)
                    || lower.contains('_') && same_argument(name, &lower)
            });
        if let Some(key) = key.filter(|key| signed || is_key_here(key, text, [at, at + size], end))
        {
            found.push((key, [at, at + size]));
        }
        at += size;
    }
    found
}

fn fold_is(name: &str, word: &str) -> bool {
    name.contains('_') && crate::tools::fold(name) == word
}

fn is_name_in_marks<'t>(tool: &'t ToolSpec, literal: &Literal) -> Option<&'t str> {
    let name = |(name, _): (&'t String, _)| (*name == literal.text).then_some(name.as_str());
    (literal.kind == Kind::Code)
        .then(|| tool.properties().find_map(name))
        .flatten()
}

/// Whether a word without a sign behind it is a key: "path X" is one, "to X" only before a name.
fn is_key_here(key: &str, text: &str, [from, to]: [usize; 2], end: usize) -> bool {
    if matches!(takes(key), Takes::Recipient) {
        return key != "to";
    }
    let rest = text[to..end].trim_start();
    let article = text[..from].trim_end();
    let spoken = ["a", "an", "no", "which", "every"]
        .iter()
        .any(|word| article.ends_with(&format!(" {word}")));
    let verb = [
        "is ", "has ", "are ", "and ", "or ", "to ", "in ", "that ", "which ",
    ]
    .iter()
    .any(|word| rest.starts_with(word) && !rest.starts_with("is \"") && !rest.starts_with("is `"));
    !rest.is_empty() && !spoken && !verb
}

/// Where a value starts, and whether a sign stands before it.
fn value_start(text: &str, mut at: usize, stop: usize) -> (usize, bool) {
    let mut sign = false;
    loop {
        let rest = &text[at..stop];
        let lead = rest.len() - rest.trim_start_matches([' ', '*']).len();
        let rest = &rest[lead..];
        let copula = COPULAS.iter().find(|word| {
            // "text: the build is green": what follows a sign is the value.
            !(sign && word.ends_with(char::is_alphabetic))
                && rest.strip_prefix(**word).is_some_and(|tail| {
                    !word.ends_with(|letter: char| letter.is_ascii_alphabetic())
                        || tail.starts_with([' ', '"', '`'])
                })
        });
        match copula {
            Some(word) => {
                sign |= matches!(*word, "=" | ":" | "：");
                at += lead + word.len();
            }
            // The mark that closes a key in marks.
            None if lead == 0
                && rest.starts_with(['`', '*'])
                && text[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric())
                && !sign =>
            {
                at += 1;
            }
            None => return (at + lead, sign),
        }
    }
}

/// The value at a place, as this argument takes it.
fn value(
    tool: &ToolSpec,
    key: &str,
    place: &Place<'_>,
    [from, stop]: [usize; 2],
    sign: bool,
) -> Option<(String, [usize; 2])> {
    let here = place.literals().find(|literal| {
        literal.span[0] >= from && literal.span[0] <= from + 2 && literal.span[1] <= stop
    });
    let takes = takes(key);
    if let Some(literal) = here.filter(|literal| literal.is_marked()) {
        return Some((literal.text.clone(), literal.span));
    }
    if let Some(literal) = here.filter(|literal| {
        matches!(
            (&literal.kind, takes),
            (Kind::Path, Takes::Path) | (Kind::Url, Takes::Url)
        )
    }) {
        return Some((literal.text.clone(), literal.span));
    }
    let rest = &place.text[from..stop];
    let end = bare_end(rest, takes);
    let bare = rest[..end]
        .trim()
        .trim_end_matches(['.', ',', ';', '!', '。', '，', ' ']);
    let bare = without_linker(bare).trim_matches(['*', ' ']);
    if bare.is_empty() {
        return None;
    }
    let bare = match takes {
        Takes::Path => file_words(bare)?,
        Takes::Url => return super::words::address(bare).map(|url| (url, [from, from + end])),
        Takes::Other => bare_word(bare.split_whitespace().next()?),
        _ if lists::list("linkers").contains(&bare) => return None,
        Takes::Text if !sign => return None,
        _ => bare,
    };
    let known = tool
        .property(key)
        .and_then(|schema| schema.get("type"))
        .and_then(Value::as_str);
    if takes == Takes::Other
        && known != Some("string")
        && bare.parse::<f64>().is_err()
        && !matches!(bare, "true" | "false")
    {
        return None;
    }
    if bare.is_empty() || bare.starts_with('"') {
        return None;
    }
    let start = from + rest.find(bare).unwrap_or(0);
    Some((bare.to_owned(), [start, start + bare.len()]))
}

/// The words of a file's name at the start of a text.
fn file_words(text: &str) -> Option<&str> {
    let mut end = 0;
    for word in text.split_inclusive(char::is_whitespace).take(6) {
        end += word.len();
        let head = text[..end]
            .trim()
            .trim_end_matches(['.', ',', ';', ':', ')']);
        if names_file(head) {
            return Some(head);
        }
    }
    let first = bare_word(text.split_whitespace().next()?);
    let is_name = first.len() > 1
        && !first.starts_with('$')
        && !matches!(
            first,
            "it" | "the" | "that" | "this" | "from" | "to" | "of" | "given" | "is" | "and"
        );
    is_name.then_some(first)
}

/// Where a value without marks ends.
pub(super) fn bare_end(rest: &str, takes: Takes) -> usize {
    static ENDS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("value ends"));
    let ends =
        ENDS.iter()
            .filter(|_| takes != Takes::Command)
            .chain([&" and then ", &", then ", &"。"]);
    ends.filter_map(|end| rest.find(end))
        .min()
        .unwrap_or(rest.len())
}

/// A value without the word that leads on to the next pair.
pub(super) fn without_linker(mut text: &str) -> &str {
    static LINKS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("value links"));
    while let Some((head, last)) = text.rsplit_once(' ') {
        if !LINKS.contains(&last) {
            break;
        }
        text = head.trim_end_matches([' ', ',', '.']);
    }
    text
}
