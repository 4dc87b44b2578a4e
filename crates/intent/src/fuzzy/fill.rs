//! What a tool's name is given in its sentence: JSON, pairs, literals, or the rest of the clause.

use std::sync::LazyLock;

use serde_json::Value;

use super::lists;
use super::literals::{Kind, Literal, bare_word, names_file};
use super::table::PROGRAMS;
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
}

impl Filled {
    pub(super) fn has(&self, argument: &str) -> bool {
        self.args
            .named
            .iter()
            .any(|(name, _)| name == argument || same_argument(name, argument))
    }

    fn give(&mut self, argument: &str, value: &str, span: [usize; 2]) {
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
    fn literals(&self) -> impl Iterator<Item = &Literal> {
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

/// `` `command: "ls"` ``: pairs in code.
fn coded(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
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
fn pairs(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
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
                    || same_argument(name, &lower) && lower.contains('_')
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
            rest.strip_prefix(**word).is_some_and(|tail| {
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
                at += 1
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
    if let Some(literal) =
        here.filter(|literal| literal.is_marked() && is_alone(place.text, literal, takes, stop))
    {
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

/// Whether text in marks is the whole value: in `grep "x" src` it is a part of a command.
fn is_alone(text: &str, literal: &Literal, takes: Takes, stop: usize) -> bool {
    let _ = (text, stop);
    takes != Takes::Command
        || literal.span[0] == 0
        || literal.kind == Kind::Code
        || !literal.text.is_empty()
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
fn bare_end(rest: &str, takes: Takes) -> usize {
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
fn without_linker(mut text: &str) -> &str {
    static LINKS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("value links"));
    while let Some((head, last)) = text.rsplit_once(' ') {
        if !LINKS.contains(&last) {
            break;
        }
        text = head.trim_end_matches([' ', ',', '.']);
    }
    text
}

/// "to Anna", "an Anna", "til Anna".
fn recipient(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    static TO: LazyLock<&[&str]> = LazyLock::new(|| lists::list("before recipient"));
    let wanted = wanted(tool);
    let Some(argument) = wanted
        .iter()
        .find(|name| takes(name) == Takes::Recipient && !filled.has(name))
    else {
        return;
    };
    let [start, end] = place.span;
    let mut before = "";
    let mut at = start;
    for word in place.text[start..end].split_inclusive(' ') {
        let from = at;
        at += word.len();
        let bare = word
            .trim()
            .trim_end_matches([',', ':', '.', ';', '"'])
            .trim_matches(['`', '"', '*', '\'']);
        let is_name = bare
            .starts_with(|letter: char| letter.is_uppercase() || matches!(letter, '#' | '@' | '+'))
            || bare.contains('@');
        // "message Tom": nothing stands between.
        let is_next = from == start && word.trim().is_empty();
        before = if is_next { "to" } else { before };
        if is_next {
            continue;
        }
        let is_sign = bare.starts_with(['@', '#']) && bare.len() > 2;
        if (TO.contains(&before) || is_sign) && is_name && bare.len() > 1 {
            let mut name = bare.to_owned();
            // "to Anna Berg".
            let next = place.text[at..end].split(' ').next().unwrap_or_default();
            if !word.trim().ends_with([',', ':', '.'])
                && next.starts_with(char::is_uppercase)
                && next.chars().all(char::is_alphabetic)
            {
                name = format!("{name} {next}");
            }
            filled.give(argument, &name, [from, from + word.trim_end().len()]);
            return;
        }
        before = word.trim();
        if before.starts_with(['"', '“', '`']) {
            return;
        }
    }
}

/// "browser open https://…": what is done, right behind the name.
fn action(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let is_action = |name: &&&str| {
        matches!(**name, "action" | "operation" | "method" | "mode") && !filled.has(name)
    };
    let Some(argument) = wanted.iter().find(is_action).copied() else {
        return;
    };
    let [start, end] = place.span;
    let rest = place.text[start..end].trim_start_matches([':', ' ', '-']);
    let word = bare_word(rest.split_whitespace().next().unwrap_or_default());
    let is_verb =
        (3..=12).contains(&word.len()) && word.bytes().all(|byte| byte.is_ascii_lowercase());
    let follows = place.literals().any(|literal| literal.kind == Kind::Url);
    if is_verb
        && follows
        && !lists::list("value links").contains(&word)
        && !matches!(word, "for" | "tool" | "action" | "url" | "via")
    {
        let from = end - rest.len();
        filled.give(argument, word, [from, from + word.len()]);
    }
}

/// A command line without marks, behind a colon or a program's name.
fn command(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let Some(argument) = wanted
        .iter()
        .find(|name| takes(name) == Takes::Command && !filled.has(name))
    else {
        return;
    };
    let [start, end] = place.span;
    let rest = &place.text[start..end];
    let said = [": ", "："]
        .iter()
        .filter_map(|sign| rest.find(sign).map(|at| at + sign.len()))
        .filter(|at| is_led_up_to(&rest[..*at]))
        .min();
    let lead = rest.len() - rest.trim_start().len();
    let from = said.unwrap_or(lead);
    let tail = rest[from..].trim_start();
    let tail_at = start + from + (rest[from..].len() - tail.len());
    if tail.starts_with(['`', '"', '“', '\'', '*', '{'])
        || place.literals().any(|literal| literal.kind == Kind::Code)
    {
        return;
    }
    let program = tail.split_whitespace().next().unwrap_or_default();
    let tail = [" and then ", ", then ", "。", " — ", "，"]
        .iter()
        .filter_map(|end| tail.find(end))
        .min()
        .map_or(tail, |end| &tail[..end]);
    let tail = tail
        .trim_end()
        .trim_end_matches(['.', ',', ';', '!'])
        .trim_end();
    let second = tail.split_whitespace().nth(1).unwrap_or_default();
    let is_shell = program.starts_with("./")
        || tail.contains(" -")
        || tail.contains(" | ")
        || tail.contains(['$', '>', '&'])
        || tail.contains('/');
    let is_program = PROGRAMS.contains(&program)
        && !matches!(
            second,
            "is" | "and" | "would" | "should" | "can" | "has" | "was"
        );
    let is_word = program.starts_with(|letter: char| {
        letter.is_ascii_lowercase()
            || matches!(letter, '.' | '/' | '~' | '_')
            || letter.is_ascii_uppercase() && tail.contains('=')
    });
    let likely = if said.is_some() {
        is_word || is_shell
    } else {
        (is_program || program.starts_with("./")) && !is_only(program, tail)
    };
    if likely && !tail.is_empty() {
        filled.give(argument, tail, [tail_at, tail_at + tail.len()]);
    }
}

/// "date" alone is a word.
fn is_only(program: &str, tail: &str) -> bool {
    program == tail
        && matches!(
            program,
            "date" | "make" | "go" | "top" | "find" | "just" | "black"
        )
}

/// Whether few words lead up to a colon.
fn is_led_up_to(text: &str) -> bool {
    text.split_whitespace().count() <= 6 && !text.contains(['"', '`', '{'])
}

/// "read VERSION": a file's name in capitals right behind the tool's.
fn bare_file(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let [argument] = wanted.as_slice() else {
        return;
    };
    if takes(argument) != Takes::Path || filled.has(argument) {
        return;
    }
    let [start, end] = place.span;
    let rest = place.text[start..end].trim_start_matches([':', ' ', '*', '`']);
    let rest = rest.strip_prefix("the ").unwrap_or(rest);
    let rest = rest.strip_prefix("file ").unwrap_or(rest);
    let word = bare_word(rest.split_whitespace().next().unwrap_or_default());
    let is_name = word.len() > 3
        && word
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || matches!(byte, b'_' | b'-'));
    if is_name {
        let from = end - rest.len();
        filled.give(argument, word, [from, from + word.len()]);
    }
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
        (Takes::Path, Kind::Path) | (Takes::Url, Kind::Url) => true,
        (Takes::Path, Kind::Code | Kind::Quoted) => names_file(&literal.text),
        (Takes::Url, Kind::Code | Kind::Quoted) => {
            super::words::address(&literal.text).is_some() && !literal.text.contains(' ')
        }
        (Takes::Query | Takes::Command, Kind::Code | Kind::Quoted) => true,
        (Takes::Text, Kind::Code | Kind::Quoted) => {
            !others_take(Takes::Path) || !names_file(&literal.text) || argument != "content"
        }
        (Takes::Recipient, Kind::Code | Kind::Quoted) => {
            literal.text.contains('@') && !literal.text.contains(' ')
                || literal.text.starts_with('#')
        }
        (Takes::Other, Kind::Code) => wanted.len() == 1,
        (Takes::Other, Kind::Quoted) => true,
        _ => false,
    }
}

/// Words before a free query.
static BEFORE_QUERY: LazyLock<&[&str]> = LazyLock::new(|| lists::list("before query"));

/// The rest of the clause as a query.
fn free(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let [argument] = wanted.as_slice() else {
        return;
    };
    if takes(argument) != Takes::Query || filled.has(argument) {
        return;
    }
    let [start, end] = place.span;
    let mut rest = &place.text[start..end];
    if rest.trim_start().starts_with([',', '.', 'の', 'は', '的'])
        || super::mood::tells_outcome(&rest.to_lowercase())
    {
        return;
    }
    loop {
        let trimmed = rest.trim_start_matches([' ', ':', '*', '-', '：', ',']);
        let tail = BEFORE_QUERY.iter().find_map(|word| {
            let tail = trimmed
                .get(..word.len())
                .filter(|head| head.eq_ignore_ascii_case(word))
                .map(|_| &trimmed[word.len()..])?;
            (tail.is_empty() || !word.is_ascii() || tail.starts_with([' ', ':'])).then_some(tail)
        });
        match tail {
            Some(tail) => rest = tail,
            None => {
                rest = trimmed;
                break;
            }
        }
    }
    let from = end - rest.len();
    let stop = bare_end(rest, Takes::Query);
    let query = without_linker(
        rest[..stop]
            .trim()
            .trim_end_matches(['.', ',', ';', '!', '…', ':']),
    );
    if is_query(query) {
        filled.give(argument, query, [from, from + query.len()]);
    }
}

fn is_query(query: &str) -> bool {
    static STARTS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("begins no query"));
    let mut words = query.split_whitespace();
    let first = words.next().unwrap_or_default().to_lowercase();
    let first = first.trim_end_matches(|letter: char| !letter.is_alphanumeric());
    query
        .chars()
        .filter(|letter| letter.is_alphanumeric())
        .count()
        >= 3
        && query.len() < 200
        && !STARTS.contains(&first)
        && !query.starts_with(['=', '/', '(', ')', '}', ']', '"', '`'])
        && !query.contains(['{', '}'])
        && (words.next().is_some()
            || query.chars().any(super::anchors::is_unspaced)
            || first.len() > 4)
        && !query.to_lowercase().contains("that place")
}
