//! Arguments without names or marks: somebody's name, a verb, a command line, a file, the rest of a clause.

use std::sync::LazyLock;

use super::fill::{Filled, Place, Takes, takes, wanted};
use super::lists;
use super::literals::{Kind, bare_word};
use super::pairs::{bare_end, without_linker};
use super::table::PROGRAMS;
use crate::tools::ToolSpec;

/// Who sends, between the verb and its recipient: "schicke ich Anna".
static SUBJECTS: LazyLock<&[&str]> = LazyLock::new(|| lists::list("pronouns"));

/// "to Anna", "an Anna", "til Anna".
pub(super) fn recipient(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
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
    let mut is_head = true;
    let mut at = start;
    while at < end {
        let quoted = place.literals().find(|literal| literal.span[0] == at);
        if let Some(literal) = quoted.filter(|literal| literal.text.contains(' ')) {
            at = literal.span[1];
            before = "\"";
            continue;
        }
        let from = at;
        let rest = &place.text[from..end];
        let word = &rest[..rest.find(' ').map_or(rest.len(), |blank| blank + 1)];
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
        if matches!(before, "" | "to") && is_head && SUBJECTS.contains(&bare) {
            continue;
        }
        let is_first =
            start > 0 && before.is_empty() && !word.trim().starts_with(['"', '“', '„', '«', '`']);
        before = if is_next || is_first { "to" } else { before };
        if is_next {
            continue;
        }
        is_head = false;
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
        if !word.trim().is_empty() {
            before = word.trim();
        }
    }
}

/// "browser open https://…": what is done, right behind the name.
pub(super) fn action(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let is_action = |name: &&&str| {
        matches!(**name, "action" | "operation" | "method" | "mode") && !filled.has(name)
    };
    let Some(argument) = wanted.iter().find(is_action).copied() else {
        return;
    };
    let [start, end] = place.span;
    let rest = place.text[start..end].trim_start_matches([':', ' ', '-', '`']);
    let rest = rest.strip_prefix("tool ").unwrap_or(rest);
    let rest = rest.strip_prefix("to ").unwrap_or(rest);
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
pub(super) fn command(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
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
    let known = place
        .literals()
        .find(|literal| literal.kind == Kind::Command && literal.span[0] == tail_at);
    let tail = match known.filter(|_| said.is_none()) {
        Some(literal) => literal.text.as_str(),
        None => tail,
    };
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
    let is_program = (PROGRAMS.contains(&program) || known.is_some())
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
pub(super) fn bare_file(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
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

/// Words before a free query.
static BEFORE_QUERY: LazyLock<&[&str]> = LazyLock::new(|| lists::list("before query"));

/// The rest of the clause as a query.
pub(super) fn free(tool: &ToolSpec, place: &Place<'_>, filled: &mut Filled) {
    let wanted = wanted(tool);
    let [argument] = wanted.as_slice() else {
        return;
    };
    let [start, end] = place.span;
    let labels = place.text[start..end].starts_with([':', '：']);
    let is_text = takes(argument) == Takes::Text && labels;
    if takes(argument) != Takes::Query && !is_text || filled.has(argument) {
        return;
    }
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
        rest = tail.unwrap_or(trimmed);
        if tail.is_none() {
            break;
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
