//! What a sentence gives to the letter: text in marks, code, JSON, addresses, paths.

use serde_json::Value;

use super::words::{address, is_path};
use crate::doc::Doc;
use crate::json;
use crate::steps::visit;

/// Objects of one sentence that are tried as JSON.
const OBJECTS_MAX: usize = 8;
/// Words of a path that has blanks.
const PATH_WORDS_MAX: usize = 5;

/// What a literal is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind {
    Json(Value),
    /// Between the marks of code, or in bold letters.
    Code,
    /// Between quotation marks.
    Quoted,
    Url,
    Path,
    /// A command line without marks.
    Command,
}

/// One literal: where it stands in its sentence, marks and all, and its text without them.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    pub(super) span: [usize; 2],
    pub(super) kind: Kind,
    pub(super) text: String,
}

impl Literal {
    pub(super) fn is_marked(&self) -> bool {
        matches!(self.kind, Kind::Code | Kind::Quoted)
    }

    pub(super) fn is_json(&self) -> bool {
        matches!(self.kind, Kind::Json(_))
    }
}

/// Pairs of quotation marks.
pub(super) const MARKS: &[(char, char)] = &[
    ('"', '"'),
    ('“', '”'),
    ('„', '“'),
    ('«', '»'),
    ('‹', '›'),
    ('「', '」'),
    ('『', '』'),
    ('《', '》'),
    ('‘', '’'),
    ('\'', '\''),
];

/// The literals of a sentence, in their order and apart.
pub(super) fn literals(doc: &Doc<'_>, text: &str) -> Vec<Literal> {
    let mut found: Vec<Literal> = Vec::new();
    let mut objects = 0;
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let literal = match letter {
            '`' => code(text, at),
            '*' if text[at..].starts_with("**") => bold(text, at),
            '{' | '[' if objects < OBJECTS_MAX => {
                objects += 1;
                object(doc, text, at)
            }
            _ => quotation(text, at, letter),
        };
        if let Some(literal) = literal {
            at = literal.span[1];
            found.push(literal);
            continue;
        }
        if letter.is_whitespace() || !begins_word(text, at) {
            at += letter.len_utf8();
            continue;
        }
        let end = word_end(text, at);
        if let Some(stop) = super::commands::command_end(text, at) {
            at = found_command(text, [at, stop], &mut found);
            continue;
        }
        match word(doc, text, at, end) {
            Some(literal) => {
                at = literal.span[1];
                found.push(literal);
            }
            None => at = next_inner(text, at, end),
        }
    }
    found
}

/// Takes a command line; where it ends.
fn found_command(text: &str, span: [usize; 2], found: &mut Vec<Literal>) -> usize {
    found.push(Literal {
        span,
        kind: Kind::Command,
        text: text[span[0]..span[1]].to_owned(),
    });
    span[1]
}

/// Behind a word, or in it where marks open.
fn next_inner(text: &str, at: usize, end: usize) -> usize {
    let opens = |letter: char| {
        matches!(
            letter,
            '`' | '{' | '[' | '"' | '“' | '„' | '«' | '「' | '『' | '\''
        )
    };
    let first = text[at..].chars().next().map_or(1, char::len_utf8);
    text[at + first..end]
        .find(opens)
        .map_or(end, |inner| at + first + inner)
        .max(at + first)
}

fn begins_word(text: &str, at: usize) -> bool {
    let before = text[..at].chars().next_back();
    before.is_none_or(|letter| !letter.is_ascii_alphanumeric())
}

fn code(text: &str, at: usize) -> Option<Literal> {
    let count = text[at..].bytes().take_while(|byte| *byte == b'`').count();
    let marks = &text[at..at + count];
    let inner = at + count;
    let found = text[inner..].find(marks);
    visit(found.unwrap_or(text.len() - inner));
    let close = inner + found?;
    marked(text, [at, close + count], [inner, close], Kind::Code)
}

fn bold(text: &str, at: usize) -> Option<Literal> {
    let inner = at + 2;
    let found = text[inner..].find("**");
    visit(found.unwrap_or(text.len() - inner));
    let close = inner + found?;
    let body = text[inner..close].trim_matches('`');
    if body.ends_with(':') || body.starts_with(char::is_whitespace) {
        return None;
    }
    marked(text, [at, close + 2], [inner, close], Kind::Code)
}

fn marked(text: &str, span: [usize; 2], [from, to]: [usize; 2], kind: Kind) -> Option<Literal> {
    let body = text[from..to].trim();
    let body = if kind == Kind::Code {
        body.trim_matches('`')
    } else {
        body
    };
    (!body.is_empty()).then(|| Literal {
        span,
        kind,
        text: body.to_owned(),
    })
}

/// An object, or a list of objects.
fn object(doc: &Doc<'_>, text: &str, at: usize) -> Option<Literal> {
    let inner = text[at + 1..].trim_start();
    if !inner.starts_with(['"', '\'', '{', '“']) && !inner.contains(':') {
        return None;
    }
    let read = json::read_at(text, at, text.len())?;
    doc.may_read(read.end - at);
    let is_call = match &read.value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.first().is_some_and(Value::is_object),
        _ => false,
    };
    is_call.then(|| Literal {
        span: [at, read.end],
        kind: Kind::Json(read.value),
        text: String::new(),
    })
}

fn quotation(text: &str, at: usize, letter: char) -> Option<Literal> {
    let (open, close) = MARKS.iter().find(|(open, _)| *open == letter)?;
    let is_word = |letter: char| letter.is_ascii_alphanumeric();
    let before = text[..at].chars().next_back();
    // An apostrophe, or the sign of inches.
    if matches!(open, '"' | '\'' | '‘') && before.is_some_and(is_word) {
        return None;
    }
    let inner = at + open.len_utf8();
    // „…" and „…”: many type another mark at the end.
    let close = match letter {
        '„' => text[inner..]
            .chars()
            .find(|letter| matches!(letter, '“' | '”' | '"'))
            .map_or('“', |letter| letter),
        _ => *close,
    };
    let close = &close;
    let mut from = inner;
    loop {
        let found = text[from..].find(*close);
        visit(found.unwrap_or(text.len() - from));
        let end = from + found?;
        let after = end + close.len_utf8();
        let next = text[after..].chars().next();
        let ends = !(matches!(close, '\'' | '’') && next.is_some_and(is_word));
        if ends && !text[inner..end].ends_with('\\') {
            return marked(text, [at, after], [inner, end], Kind::Quoted);
        }
        from = after;
    }
}

/// Where a word ends: at a blank, or at a mark that no word has.
fn word_end(text: &str, at: usize) -> usize {
    let first = text[at..].chars().next().map_or(0, char::len_utf8);
    text[at + first..]
        .find(|letter: char| {
            letter.is_whitespace()
                || matches!(
                    letter,
                    '`' | '"'
                        | '“'
                        | '”'
                        | '«'
                        | '»'
                        | '「'
                        | '」'
                        | '，'
                        | '。'
                        | '、'
                        | '；'
                        | '：'
                )
        })
        .map_or(text.len(), |end| at + first + end)
}

fn word(doc: &Doc<'_>, text: &str, at: usize, end: usize) -> Option<Literal> {
    let mut start = at;
    // "打开https://…": an address begins where it says so.
    if let Some(scheme) = text[at..end].find("http").filter(|from| *from > 0) {
        let lead = &text[at..at + scheme];
        if !lead.contains(['/', '?']) {
            start = at + scheme;
        }
    }
    let raw = &text[start..end];
    let trimmed = raw.trim_start_matches(['(', '[', '<', '*', '_']);
    start += raw.len() - trimmed.len();
    if trimmed.contains("](") || trimmed.contains("://") || trimmed.starts_with("www.") {
        // Where words have no blanks between them, an address ends with its own letters.
        let own = trimmed
            .find(super::anchors::is_unspaced)
            .filter(|at| *at > 8);
        let url = address(&trimmed[..own.unwrap_or(trimmed.len())])?;
        let stop = trimmed
            .find(&url)
            .map_or(end, |from| start + from + url.len());
        return Some(Literal {
            span: [start, stop.max(start + 1)],
            kind: Kind::Url,
            text: url,
        });
    }
    let mut bare = bare_word(before_unspaced(trimmed));
    if raw.starts_with('_') {
        bare = bare.trim_end_matches('_');
    }
    // `functions.read` is a name.
    // A folder's name can be the first half of a file's.
    let is_folder = bare.len() == trimmed.len()
        && !bare
            .rsplit(['/', '\\'])
            .next()
            .unwrap_or_default()
            .contains('.');
    if is_folder && let Some(spaced) = spaced_path(text, start, end) {
        return Some(spaced);
    }
    if is_path(bare) && super::anchors::tool_of(doc, bare).is_none() {
        return Some(path([start, start + bare.len()], bare));
    }
    spaced_path(text, start, end)
}

/// "a.txt,然后", "a.txt）": a word up to a mark that words without blanks follow.
fn before_unspaced(word: &str) -> &str {
    let is_mark = |letter: char| {
        matches!(
            letter,
            ',' | '.' | ';' | ':' | '!' | '?' | '(' | ')' | '[' | ']'
        ) || matches!(
            letter,
            '．' | '（' | '）' | '【' | '】' | '！' | '？' | '《' | '》'
        )
    };
    let Some(unspaced) = word.find(super::anchors::is_unspaced) else {
        return word;
    };
    let ends = |(at, letter): &(usize, char)| {
        let behind = &word[at + letter.len_utf8()..];
        let is_last = behind.is_empty() && !letter.is_ascii();
        is_mark(*letter) && (is_last || behind.starts_with(super::anchors::is_unspaced))
    };
    let end = word
        .char_indices()
        .filter(|(at, _)| at + '）'.len_utf8() >= unspaced)
        .find(ends);
    end.map_or(word, |(at, _)| &word[..at])
}

fn path(span: [usize; 2], text: &str) -> Literal {
    Literal {
        span,
        kind: Kind::Path,
        text: text.to_owned(),
    }
}

/// A word without the marks around it.
pub(super) fn bare_word(word: &str) -> &str {
    word.trim_start_matches(['(', '[', '<', '*'])
        .trim_end_matches([',', ';', ':', ')', ']', '>', '*', '!', '?', '.', '…'])
}

/// "notes/a b.txt": a folder, and words up to one with a file's ending.
fn spaced_path(text: &str, start: usize, end: usize) -> Option<Literal> {
    let first = &text[start..end];
    let slash = first.find(['/', '\\'])?;
    // "/home/anna/My Documents/a.txt": a folder's name goes on with a capital or a number.
    let is_rooted = slash == 0 && first.len() > 1;
    let folder = if is_rooted { first } else { &first[..slash] };
    let plain = |letter: char| letter.is_alphanumeric() || "_-.~/\\:".contains(letter);
    if folder.is_empty()
        || !first.chars().all(plain)
        || matches!(folder, "and" | "or" | "his" | "I" | "input" | "yes" | "n")
    {
        return None;
    }
    let mut from = end;
    for _ in 1..PATH_WORDS_MAX {
        let blank = text[from..].len() - text[from..].trim_start_matches(' ').len();
        if blank != 1 {
            return None;
        }
        let stop = word_end(text, from + 1);
        let word = bare_word(&text[from + 1..stop]);
        let goes_on = |letter: char| letter.is_uppercase() || letter.is_ascii_digit();
        if matches!(
            word,
            "and" | "or" | "to" | "with" | "for" | "then" | "now" | "in" | "from" | "plus" | "is"
        ) || word.contains("://")
            || is_rooted && !word.starts_with(goes_on)
        {
            return None;
        }
        if has_ending(word) {
            let stop = from + 1 + word.len();
            return Some(path([start, stop], &text[start..stop]));
        }
        from = stop;
    }
    None
}

fn has_ending(word: &str) -> bool {
    is_path(word) && !word.starts_with(['/', '~', '.'])
}

/// Whether a text in marks is the name of a file, be it with blanks.
pub(super) fn names_file(text: &str) -> bool {
    text.len() < 256 && !text.contains("://") && (is_path(text) || has_spaced_ending(text))
}

fn has_spaced_ending(text: &str) -> bool {
    let last = text.rsplit(char::is_whitespace).next().unwrap_or_default();
    let plain = |letter: char| letter.is_alphanumeric() || " _-.~/\\:()+&,'".contains(letter);
    last.len() < text.len()
        && text.chars().all(plain)
        && is_path(&last.replace(['(', ')'], ""))
        && !text.starts_with(['-', '.', ' '])
        // A command names a program before its file.
        && !super::table::PROGRAMS.contains(&text.split(' ').next().unwrap_or_default())
}
