//! What a search is for.

use std::sync::LazyLock;

use super::Wish;
use super::lead::strip_word;
use super::verbs::trim_object;
use super::words::{path, quoted};
use crate::cues::{WordSet, has_words};

/// Ends of a query: how, where and why the search is made.
const QUERY_ENDS: &[&str] = &[
    " using ",
    " via ",
    " with web_search",
    " with the search",
    " with a web search",
    " on the web",
    " on the internet",
    " online",
    " on google",
    " to see ",
    " to find ",
    " to get ",
    " to check ",
    " to verify ",
    " to understand ",
    " to learn ",
    " to gather ",
    " to confirm ",
    " so that ",
    " so i ",
    " because ",
    " and see ",
    " and summarize",
    " first",
    " on duckduckgo",
];

/// Things to search that are not the web.
const LOCAL: &[&str] = &[
    "file",
    "files",
    "codebase",
    "code",
    "repo",
    "repository",
    "directory",
    "folder",
    "logs",
    "log",
    "project",
    "document",
    "bug",
    "function",
    "class",
    "module",
    "line",
    "text",
    "database",
    "memory",
    "way",
    "cause",
    "solution",
    "out",
    "root",
    "where",
    "workspace",
    "array",
    "list",
    "string",
    "page",
    "approach",
    "value",
    "values",
    "word",
    "words",
    "minimum",
    "maximum",
    "number",
    "derivative",
    "sum",
    "error",
    "issue",
    "problem",
    "reason",
    "time",
    "balance",
    "difference",
    "pattern",
    "right",
    "middle",
];

/// "Search engines index the web" is about searching.
const ABOUT: &[&str] = &[
    "is", "are", "was", "engine", "engines", "results", "terms", "queries", "has", "can", "will",
    "works",
];

/// Words that make "find …" a matter for the web.
const ON_THE_WEB: &[&str] = &[
    "news",
    "latest",
    "recent",
    "information",
    "article",
    "articles",
    "docs",
    "documentation",
    "price",
    "weather",
    "about",
    "online",
    "web",
    "website",
    "current",
    "internet",
    "results",
    "reviews",
    "release",
    "tutorial",
    "paper",
    "papers",
    "population",
    "capital",
    "definition",
    "meaning",
    "history",
    "best",
    "cheapest",
    "nearest",
    "largest",
    "tallest",
    "restaurants",
    "hotels",
    "flights",
    "tickets",
    "details",
    "facts",
    "statistics",
    "today",
];

static ABOUT_THE_WORLD: LazyLock<WordSet> = LazyLock::new(|| WordSet::new(ON_THE_WEB));

/// Objects that say nothing.
const VAGUE: &[&str] = &[
    "",
    "it",
    "that",
    "this",
    "them",
    "more",
    "more information",
    "information",
    "answers",
    "engine",
    "results",
    "the answer",
    "the right words",
    "the right answer",
    "words",
    "an answer",
    "a solution",
    "clues",
    "something",
];

/// Words that say when or how, not what.
const EMPTY: &[&str] = &[
    "now",
    "again",
    "online",
    "further",
    "more",
    "first",
    "instead",
    "quickly",
    "carefully",
    "then",
    "once",
    "the",
    "web",
    "internet",
    "and",
    "for",
    "right",
    "away",
    "immediately",
];

/// The query without the words at its end that say when.
fn without_when(query: &str) -> &str {
    [" now", " again", " instead", " right away"]
        .iter()
        .find_map(|end| {
            let head = query.len().checked_sub(end.len())?;
            let tail = query.get(head..)?;
            tail.eq_ignore_ascii_case(end)
                .then(|| trim_object(&query[..head]))
        })
        .unwrap_or(query)
}

/// "find out who won the cup": the question is the query, when it is one about the world.
fn find_out(rest: &str, low: &str) -> Option<Wish> {
    const QUESTIONS: &[&str] = &[
        "who", "when", "which", "what", "where", "how many", "how much", "how old", "how tall",
        "how far", "how long", "how big",
    ];
    let asked = strip_word(low, "out")?;
    let asked = strip_word(asked, "online").unwrap_or(asked);
    QUESTIONS.iter().find_map(|word| strip_word(asked, word))?;
    let query = trim_object(&rest[rest.len() - asked.len()..]);
    let plain = |word: &str| {
        word.trim_matches(|letter: char| !letter.is_alphanumeric())
            .to_owned()
    };
    let here = asked.split_whitespace().map(plain).any(|word| {
        LOCAL.contains(&word.as_str())
            || matches!(word.as_str(), "you" | "your" | "user" | "i" | "we")
    });
    let names = query
        .split_whitespace()
        .skip(1)
        .any(|word| word.starts_with(char::is_uppercase));
    let about = names || ABOUT_THE_WORLD.is_in(asked);
    (about && !here && path(query).is_none())
        .then(|| Wish::new("web_search").arg("query", query).bonus(-0.05))
}

/// "… with query 'x'": the query itself.
fn stated_query<'a>(text: &'a str, low: &str) -> Option<&'a str> {
    let at = [" with query ", " with the query ", " query="]
        .iter()
        .find_map(|words| low.find(words).map(|at| at + words.len()))?;
    quoted(&text[at..]).filter(|given| text[at..].find(given).is_some_and(|at| at <= 4))
}

pub(super) fn search(rest: &str, low: &str, find: bool, order: bool) -> Option<Wish> {
    if find
        && !order
        && let Some(wish) = find_out(rest, low)
    {
        return Some(wish);
    }
    let mut at = 0;
    for word in [
        "the web",
        "the internet",
        "the net",
        "google",
        "online",
        "web",
        "up",
        "on the web",
        "internet",
    ] {
        at = low.len() - strip_word(&low[at..], word).unwrap_or(&low[at..]).len();
    }
    let after_place = at;
    for word in [
        "for information about",
        "for information on",
        "information about",
        "information on",
        "for",
        "about",
    ] {
        if let Some(tail) = strip_word(&low[at..], word) {
            at = low.len() - tail.len();
            break;
        }
    }
    let head: Vec<&str> = low[after_place.min(at)..]
        .split_whitespace()
        .take(4)
        .collect();
    let said_for = at > after_place;
    let local = head
        .iter()
        .take(if said_for && !find { 0 } else { 3 })
        .any(|word| LOCAL.contains(&word.trim_matches(|letter: char| !letter.is_alphanumeric())));
    if local || find && path(rest).is_some() {
        return None;
    }
    if head.first().is_some_and(|word| ABOUT.contains(word)) {
        return None;
    }
    // "Find x such that 2x = 4" is a task, not a search; "find the CEO of Mistral" is one.
    let names_something = !order
        && rest
            .split_whitespace()
            .any(|word| word.starts_with(|letter: char| letter.is_uppercase()) && word.len() > 1);
    if find && quoted(rest).is_none() && !names_something && !ABOUT_THE_WORLD.is_in(low) {
        return None;
    }
    let (query, low) = (&rest[at..], &low[at..]);
    if let Some(given) = stated_query(query, low) {
        return Some(Wish::new("web_search").arg("query", given).bonus(0.05));
    }
    let near = if find { 10 } else { 24 };
    if let Some(given) =
        quoted(query).filter(|given| query.find(given).is_some_and(|at| at <= near))
    {
        return Some(Wish::new("web_search").arg("query", given).bonus(0.05));
    }
    // "find a better word: \"x\"": what is in marks is found already.
    if find && query.contains(['"', '“', '`']) {
        return None;
    }
    let query = query.trim_start_matches([':', ' ']);
    let low = &low[low.len() - query.len()..];
    let end = QUERY_ENDS
        .iter()
        .filter_map(|end| low.find(end))
        .min()
        .unwrap_or(query.len());
    let query = without_when(trim_object(&query[..end]));
    let low = &low[..end];
    if order && is_statement(low, said_for) {
        return None;
    }
    let said = query.to_ascii_lowercase();
    let vague =
        VAGUE.contains(&said.as_str()) || said.split_whitespace().all(|word| EMPTY.contains(&word));
    if vague {
        return None;
    }
    Some(
        Wish::new("web_search")
            .arg("query", query)
            .bonus(if find { -0.05 } else { 0.0 }),
    )
}

/// "Query planning is hard", "Search trees have …": statements about searches.
fn is_statement(low: &str, said_for: bool) -> bool {
    let asks = [
        "who", "what", "how", "where", "when", "which", "whether", "why", "if",
    ];
    let states = [
        "is", "are", "was", "were", "matters", "means", "helps", "depends",
    ];
    let of_nouns = ["have", "has", "had", "need", "work", "works"];
    let near = || {
        low.split_whitespace()
            .take(4)
            .any(|word| of_nouns.contains(&word))
    };
    !asks.iter().any(|word| strip_word(low, word).is_some())
        && (states.iter().any(|word| has_words(low, word)) || !said_for && near())
}
