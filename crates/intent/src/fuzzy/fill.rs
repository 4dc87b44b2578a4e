//! What a tool's name is given in its sentence: JSON, pairs, literals, or the rest of the clause.

use std::sync::LazyLock;

use serde_json::Value;

use super::lists;
use super::literals::{Kind, Literal, names_file};
use super::pairs::{coded, pairs};
use super::unmarked::{action, bare_file, command, free, recipient};
use crate::guide::same_argument;
use crate::raw::{Args, Given};
use crate::tools::ToolSpec;

/// What an argument takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Path,
    Url,
    Query,
    Command,
    Recipient,
    Text,
    Other,
}

pub(super) fn takes(argument: &str) -> Takes {
    // Most tools call their arguments so.
    match argument {
        "path" => return Takes::Path,
        "url" => return Takes::Url,
        "query" => return Takes::Query,
        "command" => return Takes::Command,
        "content" => return Takes::Text,
        _ => {}
    }
    let is = |other| same_argument(argument, other);
    if is("path") {
        Takes::Path
    } else if is("url") {
        Takes::Url
    } else if is("query") {
        Takes::Query
    } else if is("command") {
        Takes::Command
    } else if is("content")
        || is("old_string")
        || is("new_string")
        || matches!(argument, "message" | "title" | "prompt")
    {
        Takes::Text
    } else if matches!(
        argument,
        "to" | "recipient" | "receiver" | "channel" | "target"
    ) {
        Takes::Recipient
    } else {
        Takes::Other
    }
}

/// The arguments that a wish has to have, or may have in marks.
pub(super) fn wanted(tool: &ToolSpec) -> Vec<&str> {
    let mut names: Vec<&str> = tool.required().collect();
    if names.is_empty() {
        names.extend(tool.main_argument());
    }
    names
}

/// What was found, and how far it reaches.
#[derive(Debug, Default, Clone)]
pub(super) struct Filled {
    pub(super) args: Args,
    /// Further calls of the same tool, one for each further value of its one argument.
    pub(super) more: Vec<Args>,
    pub(super) end: usize,
    /// Whether arguments are given by their names.
    pub(super) keyed: bool,
    /// Where the first of what was given begins.
    pub(super) start: Option<usize>,
    /// Whether the block that it was taken from is still open.
    pub(super) open: bool,
    /// Where the list below the sentence ends, in the text.
    pub(super) until: usize,
}

impl Filled {
    pub(super) fn has(&self, argument: &str) -> bool {
        self.args
            .named
            .iter()
            .any(|(name, _)| name == argument || same_argument(name, argument))
    }

    /// Whether all that the tool has to have is there.
    pub(super) fn is_whole(&self, tool: &ToolSpec) -> bool {
        wanted(tool).iter().all(|name| self.has(name))
    }

    /// Whether at most one text is missing, which may follow later.
    pub(super) fn lacks_only_a_text(&self, tool: &ToolSpec) -> bool {
        let wanted = wanted(tool);
        let mut missing = wanted.iter().filter(|name| !self.has(name));
        missing.next().is_none_or(|name| takes(name) == Takes::Text) && missing.next().is_none()
    }

    pub(super) fn give(&mut self, argument: &str, value: &str, span: [usize; 2]) {
        self.args
            .named
            .push((argument.to_owned(), Given::Text(value.to_owned())));
        self.end = self.end.max(span[1]);
        self.start = Some(self.start.map_or(span[0], |start| start.min(span[0])));
    }
}

/// One place to look for arguments in.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) literals: &'a [Literal],
    pub(super) span: [usize; 2],
}

impl Place<'_> {
    pub(super) fn literals(&self) -> impl Iterator<Item = &Literal> {
        let [from, to] = self.span;
        self.literals
            .iter()
            .filter(move |literal| literal.span[0] >= from && literal.span[1] <= to)
    }
}

/// Reads what stands behind a name.
pub(super) fn right(tool: &ToolSpec, place: &Place<'_>, may_be_free: bool) -> Filled {
    let mut filled = Filled {
        end: place.span[0],
        ..Filled::default()
    };
    if object(tool, place, &mut filled) {
        return filled;
    }
    coded(tool, place, &mut filled);
    pairs(tool, place, &mut filled);
    recipient(tool, place, &mut filled);
    action(tool, place, &mut filled);
    command(tool, place, &mut filled);
    unnamed(tool, place, &mut filled);
    bare_file(tool, place, &mut filled);
    if may_be_free {
        free(tool, place, &mut filled);
    }
    filled
}

/// Reads what stands before a name, for what is missing.
pub(super) fn left(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let end = filled.end;
    unnamed(tool, place, filled);
    filled.end = filled.end.max(end);
}

/// One object of arguments.
fn object(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) -> bool {
    let Some(literal) = place.literals().find(|literal| literal.is_json()) else {
        return false;
    };
    let Kind::Json(Value::Object(map)) = &literal.kind else {
        return false;
    };
    let own = |key: &String| {
        tool.properties()
            .any(|(name, _)| name == key || same_argument(name, key))
    };
    if !map.keys().any(own) {
        return false;
    }
    filled.args = Args::from_map(map.clone());
    filled.end = literal.span[1];
    filled.start = Some(literal.span[0]);
    filled.keyed = true;
    true
}

/// Literals without names, by their kind and in the arguments' order.
fn unnamed(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let single = wanted.len() == 1;
    let mut last: Option<usize> = None;
    let given = filled.start.map(|start| [start, filled.end]);
    for literal in place.literals() {
        if literal.is_json()
            || given.is_some_and(|[from, to]| {
                filled.keyed && literal.span[0] < to && literal.span[1] > from
            })
        {
            continue;
        }
        if tool.property(&literal.text).is_some() {
            continue;
        }
        let free = wanted
            .iter()
            .chain(optional(tool).iter())
            .find(|name| !filled.has(name) && fits(name, literal, &wanted))
            .copied();
        if let Some(argument) = free {
            if single
                && argument == wanted[0]
                && filled.end > place.span[0]
                && !filled.args.named.is_empty()
            {
                continue;
            }
            let text = literal.text.clone();
            filled.give(argument, &text, literal.span);
            last = Some(literal.span[1]);
        } else if single
            && let Some(end) = last.filter(|end| is_listed(&place.text[*end..literal.span[0]]))
        {
            let _ = end;
            let argument = wanted[0];
            if fits(argument, literal, &wanted) && is_other(&filled.args, &literal.text) {
                let mut args = Args::default();
                args.named
                    .push((argument.to_owned(), Given::Text(literal.text.clone())));
                filled.more.push(args);
                filled.end = filled.end.max(literal.span[1]);
                last = Some(literal.span[1]);
            }
        }
    }
}

fn is_other(args: &Args, text: &str) -> bool {
    args.named
        .iter()
        .all(|(_, given)| !matches!(given, Given::Text(known) if known == text))
}

/// Arguments that need not be there and are given by what they take: a browser's address.
fn optional(tool: &ToolSpec) -> Vec<&str> {
    tool.properties()
        .map(|(name, _)| name.as_str())
        .filter(|name| takes(name) == Takes::Url)
        .collect()
}

/// Whether only the words of a list stand between two values.
fn is_listed(between: &str) -> bool {
    static WORDS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("between items"));
    between
        .split(|letter: char| {
            letter.is_whitespace()
                || matches!(
                    letter,
                    ',' | ';' | '&' | '|' | '、' | '，' | '-' | '*' | '(' | ')' | '.' | ':'
                )
        })
        .filter(|word| !word.is_empty())
        .all(|word| {
            WORDS.contains(&word.to_lowercase().as_str())
                || word.bytes().all(|byte| byte.is_ascii_digit())
        })
}

/// Whether a literal can be an argument's value.
pub(super) fn fits(argument: &str, literal: &Literal, wanted: &[&str]) -> bool {
    let others_take = |kind| wanted.iter().any(|name| takes(name) == kind);
    match (takes(argument), &literal.kind) {
        (Takes::Path, Kind::Path)
        | (Takes::Url, Kind::Url)
        | (Takes::Command, Kind::Command)
        | (Takes::Query | Takes::Command, Kind::Code | Kind::Quoted)
        | (Takes::Other, Kind::Quoted) => true,
        (Takes::Path, Kind::Code | Kind::Quoted) => names_file(&literal.text),
        (Takes::Url, Kind::Code | Kind::Quoted) => {
            super::words::address(&literal.text).is_some() && !literal.text.contains(' ')
        }
        (Takes::Text, Kind::Code | Kind::Quoted) => {
            !others_take(Takes::Path) || !names_file(&literal.text) || argument != "content"
        }
        (Takes::Recipient, Kind::Code | Kind::Quoted) => {
            literal.text.contains('@') && !literal.text.contains(' ')
                || literal.text.starts_with('#')
        }
        (Takes::Other, Kind::Code) => wanted.len() == 1,
        _ => false,
    }
}
