//! Where a sentence names a tool, and how the name stands there.

use super::literals::{Kind, Literal};
use crate::doc::Doc;
use crate::tools::ToolSpec;

/// Names of tools in one sentence that are looked at.
const NAMES_MAX: usize = 24;

/// A tool's name in a sentence.
pub(super) struct Anchor<'t> {
    pub(super) span: [usize; 2],
    pub(super) tool: &'t ToolSpec,
    /// Whether it can be nothing but a tool's name: no everyday word.
    pub(super) distinct: bool,
    /// Whether it stands in marks of its own.
    pub(super) marked: bool,
}

/// Whether a text can name a tool at all: a cheap look before the real one.
pub(super) fn are_possible(doc: &Doc<'_>, text: &str) -> bool {
    words(text).any(|[from, to]| {
        let word = &text[from..to];
        let tail = word.rsplit('.').next().unwrap_or(word);
        doc.tools.may_name(word) || doc.tools.may_name(tail)
    })
}

/// The names that stand outside of what is given to the letter.
pub(super) fn anchors<'t>(doc: &Doc<'t>, text: &str, literals: &[Literal]) -> Vec<Anchor<'t>> {
    let mut found: Vec<Anchor<'_>> = Vec::new();
    for [from, to] in words(text) {
        if found.len() >= NAMES_MAX {
            break;
        }
        let word = &text[from..to];
        let tail = word.rsplit('.').next().unwrap_or(word);
        if !doc.tools.may_name(word) && !doc.tools.may_name(tail)
            || found.last().is_some_and(|last| last.span[1] > from)
        {
            continue;
        }
        let next = literals.partition_point(|literal| literal.span[1] <= from);
        let within = literals.get(next).filter(|literal| literal.span[0] <= from);
        let marked = within.is_some_and(|literal| {
            literal.kind == Kind::Code
                && doc.tools.find(&literal.text).is_some()
                && !literal.text.contains(' ')
        });
        if within.is_some() && !marked || !stands_apart(text, from, to) {
            continue;
        }
        let span = if marked {
            within.map_or([from, to], |literal| literal.span)
        } else {
            [from, to]
        };
        // "web search" and "search memory" are names of two words.
        let rest = &text[to..];
        if let Some([1, end]) = words(rest).next().filter(|_| !marked)
            && rest.starts_with(' ')
            && let Some(tool) = doc.tools.find(&text[from..to + end])
        {
            found.push(Anchor {
                span: [from, to + end],
                tool,
                distinct: false,
                marked: false,
            });
            continue;
        }
        if let Some(tool) = tool_of(doc, word) {
            found.push(Anchor {
                span,
                tool,
                distinct: is_distinct(word),
                marked,
            });
        }
    }
    found
}

/// The sentence with what is in marks blotted out, but for names.
pub(super) fn masked(lower: &str, literals: &[Literal], anchors: &[Anchor<'_>]) -> String {
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

/// The tool of this name.
pub(super) fn tool_of<'t>(doc: &Doc<'t>, word: &str) -> Option<&'t ToolSpec> {
    doc.tools.find(word).or_else(|| in_namespace(doc, word))
}

/// `container.exec`: the tools of one host, named by where they run.
fn in_namespace<'t>(doc: &Doc<'t>, word: &str) -> Option<&'t ToolSpec> {
    const SPACES: &[&str] = &[
        "container",
        "mcp",
        "api",
        "agent",
        "assistant",
        "computer",
        "sandbox",
        "workspace",
        "local",
        "host",
        "web",
        "toolbox",
        "commentary",
    ];
    let (space, name) = word.rsplit_once('.')?;
    SPACES.contains(&space).then(|| doc.tools.find(name))?
}

/// Words that can be names: letters, digits and the signs that names have.
fn words(text: &str) -> impl Iterator<Item = [usize; 2]> + '_ {
    let bytes = text.as_bytes();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let mut at = 0;
    std::iter::from_fn(move || {
        let from = at + bytes[at..].iter().position(u8::is_ascii_alphabetic)?;
        let mut to = from
            + bytes[from..]
                .iter()
                .take_while(|byte| is_name(byte))
                .count();
        at = to;
        while to > from && matches!(bytes[to - 1], b'.' | b'-') {
            to -= 1;
        }
        Some([from, to])
    })
}

fn stands_apart(text: &str, from: usize, to: usize) -> bool {
    let before = text[..from].chars().next_back();
    let after = text[to..].chars().next();
    let is_part = |letter: char| {
        letter.is_ascii_alphanumeric()
            || matches!(
                letter,
                '/' | '\\' | '@' | '#' | '$' | '.' | '-' | '_' | '\'' | '’' | '~'
            )
    };
    let of_word = |letter: char| letter.is_alphabetic() && !is_unspaced(letter);
    !before.is_some_and(|letter| is_part(letter) && letter != '-' || of_word(letter))
        && !after.is_some_and(|letter| {
            matches!(letter, '/' | '\\' | '@' | '\'' | '’') || of_word(letter)
        })
}

/// Letters of languages that put no blanks between words.
pub(super) fn is_unspaced(letter: char) -> bool {
    matches!(letter, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// Whether nobody uses this word for anything but a tool.
fn is_distinct(word: &str) -> bool {
    word.contains(['_', '.'])
        || word.chars().skip(1).any(char::is_uppercase) && word.chars().any(char::is_lowercase)
}
