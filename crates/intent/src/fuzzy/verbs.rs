//! Verbs, and what they want from the rest of their clause.

use super::Wish;
use super::lead::strip_word;
use super::words::{address, is_path, path, quoted};
use crate::cues::has_words;
use crate::doc::Doc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Search,
    Find,
    Fetch,
    Get,
    Open,
    Read,
    Write,
    Create,
    Run,
    Browse,
    Screenshot,
    Use,
}

const VERBS: &[(&str, Verb)] = &[
    ("search", Verb::Search),
    ("searching", Verb::Search),
    ("look up", Verb::Search),
    ("looking up", Verb::Search),
    ("query", Verb::Search),
    ("querying", Verb::Search),
    ("google", Verb::Search),
    ("googling", Verb::Search),
    ("do a web search", Verb::Search),
    ("perform a web search", Verb::Search),
    ("perform a search", Verb::Search),
    ("do a search", Verb::Search),
    ("web search", Verb::Search),
    ("run a web search", Verb::Search),
    ("run a search", Verb::Search),
    ("look for", Verb::Find),
    ("find", Verb::Find),
    ("finding", Verb::Find),
    ("looking for", Verb::Find),
    ("fetch", Verb::Fetch),
    ("fetching", Verb::Fetch),
    ("retrieve", Verb::Fetch),
    ("retrieving", Verb::Fetch),
    ("download", Verb::Fetch),
    ("downloading", Verb::Fetch),
    ("scrape", Verb::Fetch),
    ("visit", Verb::Fetch),
    ("visiting", Verb::Fetch),
    ("pull up", Verb::Get),
    ("get", Verb::Get),
    ("getting", Verb::Get),
    ("access", Verb::Get),
    ("grab", Verb::Get),
    ("load", Verb::Open),
    ("loading", Verb::Open),
    ("open", Verb::Open),
    ("opening", Verb::Open),
    ("check", Verb::Open),
    ("checking", Verb::Open),
    ("view", Verb::Open),
    ("viewing", Verb::Open),
    ("look at", Verb::Open),
    ("looking at", Verb::Open),
    ("take a look at", Verb::Open),
    ("show", Verb::Open),
    ("inspect", Verb::Open),
    ("inspecting", Verb::Open),
    ("examine", Verb::Open),
    ("examining", Verb::Open),
    ("review", Verb::Open),
    ("read", Verb::Read),
    ("reading", Verb::Read),
    ("cat", Verb::Read),
    ("write", Verb::Write),
    ("writing", Verb::Write),
    ("save", Verb::Write),
    ("saving", Verb::Write),
    ("store", Verb::Write),
    ("output", Verb::Create),
    ("create", Verb::Create),
    ("creating", Verb::Create),
    ("run", Verb::Run),
    ("running", Verb::Run),
    ("execute", Verb::Run),
    ("executing", Verb::Run),
    ("exec", Verb::Run),
    ("browse", Verb::Browse),
    ("browsing", Verb::Browse),
    ("navigate", Verb::Browse),
    ("navigating", Verb::Browse),
    ("go to", Verb::Browse),
    ("take a screenshot", Verb::Screenshot),
    ("taking a screenshot", Verb::Screenshot),
    ("screenshot", Verb::Screenshot),
    ("use", Verb::Use),
    ("using", Verb::Use),
    ("call", Verb::Use),
    ("calling", Verb::Use),
    ("invoke", Verb::Use),
    ("invoking", Verb::Use),
];

/// Programs that people name without quotation marks.
const PROGRAMS: &[&str] = &[
    "ls",
    "git",
    "cargo",
    "npm",
    "npx",
    "yarn",
    "pnpm",
    "python",
    "python3",
    "pip",
    "pip3",
    "node",
    "make",
    "docker",
    "kubectl",
    "curl",
    "wget",
    "grep",
    "find",
    "cat",
    "pytest",
    "go",
    "rustc",
    "echo",
    "cd",
    "mkdir",
    "rm",
    "cp",
    "mv",
    "sed",
    "awk",
    "bash",
    "sh",
    "uname",
    "whoami",
    "pwd",
    "date",
    "df",
    "du",
    "ps",
    "top",
    "java",
    "mvn",
    "gradle",
    "terraform",
    "ansible",
    "ruff",
    "mypy",
    "black",
    "tsc",
    "deno",
    "bun",
    "just",
];

fn verb_of(lower: &str) -> Option<(Verb, usize)> {
    VERBS
        .iter()
        .filter_map(|(word, verb)| {
            strip_word(lower, word).map(|tail| (*verb, lower.len() - tail.len(), word.len()))
        })
        .max_by_key(|(_, _, len)| *len)
        .map(|(verb, at, _)| (verb, at))
}

pub(super) fn starts_with_verb(lower: &str) -> bool {
    verb_of(lower).is_some()
}

/// What a clause that starts with a verb wants.
pub(super) fn wish(doc: &Doc<'_>, text: &str, lower: &str, order: bool) -> Option<Wish> {
    let (verb, at) = verb_of(lower)?;
    let (rest, low) = (&text[at..], &lower[at..]);
    if at == lower.len() && verb != Verb::Screenshot {
        return None;
    }
    match verb {
        Verb::Search => search(rest, low, false),
        Verb::Find => search(rest, low, true),
        Verb::Fetch | Verb::Get => fetch(rest, low, verb == Verb::Fetch),
        Verb::Open => open(rest, low),
        Verb::Read => read(rest, low),
        Verb::Write | Verb::Create => write(rest, low, verb == Verb::Create),
        Verb::Run => run(rest, low, order),
        Verb::Browse => {
            let url = address(rest)?;
            Some(
                Wish::new("browser")
                    .arg("action", "navigate")
                    .arg("url", &url),
            )
        }
        Verb::Screenshot => {
            let wish = Wish::new("browser").arg("action", "screenshot");
            Some(match address(rest) {
                Some(url) => wish.arg("url", &url),
                None => wish,
            })
        }
        Verb::Use => named(doc, rest, low),
    }
}

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

fn search(rest: &str, low: &str, find: bool) -> Option<Wish> {
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
    ];
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
    // "Search engines index the web" is about searching.
    const ABOUT: &[&str] = &[
        "is", "are", "was", "engine", "engines", "results", "terms", "queries", "has", "can",
        "will", "works",
    ];
    if head.first().is_some_and(|word| ABOUT.contains(word)) {
        return None;
    }
    let (query, low) = (&rest[at..], &low[at..]);
    if let Some(given) = quoted(query).filter(|given| query.find(given).is_some_and(|at| at <= 24))
    {
        return Some(Wish::new("web_search").arg("query", given).bonus(0.05));
    }
    let end = QUERY_ENDS
        .iter()
        .filter_map(|end| low.find(end))
        .min()
        .unwrap_or(query.len());
    let query = trim_object(&query[..end]);
    let vague = matches!(
        query.to_ascii_lowercase().as_str(),
        "" | "it"
            | "that"
            | "this"
            | "them"
            | "more"
            | "more information"
            | "information"
            | "answers"
            | "engine"
            | "results"
            | "the answer"
            | "something"
    );
    if vague {
        return None;
    }
    Some(
        Wish::new("web_search")
            .arg("query", query)
            .bonus(if find { -0.05 } else { 0.0 }),
    )
}

fn trim_object(text: &str) -> &str {
    text.trim()
        .trim_end_matches(['.', '!', ',', ':', ';', '…'])
        .trim()
        .trim_matches(['"', '\'', '`', '*', '“', '”'])
        .trim()
}

/// Something that earlier results will name.
fn reference(low: &str) -> Option<&str> {
    const NOUNS: &[&str] = &[
        "result", "results", "url", "urls", "page", "pages", "link", "links", "article", "site",
        "website", "webpage", "content", "contents", "one", "it", "them", "that", "hit", "source",
        "sources", "web page",
    ];
    let head = trim_object(low);
    let words: Vec<&str> = head.split_whitespace().collect();
    let near = words
        .iter()
        .take(5)
        .any(|word| NOUNS.contains(&word.trim_matches(|letter: char| !letter.is_alphanumeric())));
    (near && words.len() <= 12).then_some(head)
}

fn fetch(rest: &str, low: &str, strong: bool) -> Option<Wish> {
    if let Some(url) = address(rest) {
        return Some(Wish::new("web_fetch").arg("url", &url));
    }
    if let (Some(path), true) = (path(rest), low.contains("file") || low.contains("content")) {
        return Some(Wish::new("read").arg("path", path).bonus(-0.05));
    }
    strong.then(|| reference(low).map(|what| Wish::new("web_fetch").open("url", what)))?
}

fn open(rest: &str, low: &str) -> Option<Wish> {
    if let Some(url) = address(rest) {
        if has_words(low, "browser") {
            return Some(
                Wish::new("browser")
                    .arg("action", "navigate")
                    .arg("url", &url),
            );
        }
        return Some(Wish::new("web_fetch").arg("url", &url));
    }
    if let Some(path) = path(rest) {
        return Some(Wish::new("read").arg("path", path));
    }
    let first = [
        "the first result",
        "the top result",
        "the first link",
        "the first url",
    ]
    .iter()
    .find(|words| low.starts_with(**words))?;
    Some(Wish::new("web_fetch").open("url", first))
}

fn read(rest: &str, low: &str) -> Option<Wish> {
    if let Some(url) = address(rest) {
        return Some(Wish::new("web_fetch").arg("url", &url));
    }
    if let Some(path) = path(rest) {
        return Some(Wish::new("read").arg("path", path));
    }
    // A name in marks is a file when the sentence says so.
    let named = quoted(rest).filter(|_| has_words(low, "file") || has_words(low, "contents"));
    named.map(|name| Wish::new("read").arg("path", name))
}

fn write(rest: &str, low: &str, create: bool) -> Option<Wish> {
    let found = path(rest);
    let mut wish = Wish::new("write");
    if let Some(path) = found {
        wish = wish.arg("path", path);
        let content = quoted(rest).filter(|content| *content != path && !is_path(content));
        if let Some(content) = content {
            wish = wish.arg("content", content);
        } else {
            let what = low.split(" to ").next().unwrap_or("").trim();
            if !create && !what.is_empty() && what.len() < 60 {
                wish = wish.open("content", what);
            }
        }
        return Some(wish);
    }
    let to_file = [
        "to file",
        "to a file",
        "to the file",
        "to disk",
        "it to",
        "as a file",
        "in a file",
        "into a file",
    ]
    .iter()
    .any(|words| has_words(low, words));
    (to_file && !create).then(|| {
        wish.open("path", trim_object(low))
            .open("content", "what was found")
    })
}

fn run(rest: &str, low: &str, order: bool) -> Option<Wish> {
    let said = ["command", "shell", "bash", "script", "terminal"]
        .iter()
        .any(|word| has_words(low, word));
    if let Some(command) = quoted(rest) {
        // "Run `npm install` to install the dependencies." is advice.
        let after = low.rfind(['`', '"', '\'']).map_or("", |at| &low[at + 1..]);
        if order && (after.trim_start().starts_with("to ") || after.contains(" to install")) {
            return None;
        }
        let program = command.split_whitespace().next().unwrap_or("");
        let likely =
            rest.contains('`') || said || PROGRAMS.contains(&program) || program.starts_with("./");
        return likely.then(|| Wish::new("exec").arg("command", command));
    }
    let mut at = 0;
    for word in [
        "the",
        "command",
        "shell command",
        "bash command",
        "following command",
        "a",
        "this",
    ] {
        at = low.len() - strip_word(&low[at..], word).unwrap_or(&low[at..]).len();
    }
    let command = rest[at..].trim_start_matches([':', ' ']);
    let low = &low[low.len() - command.len()..];
    let program = command.split_whitespace().next().unwrap_or("");
    if PROGRAMS.contains(&program)
        && !matches!(program, "make" | "go" | "date" | "just" | "top" | "find")
        || PROGRAMS.contains(&program) && said
    {
        let end = [" to ", " and ", " in order ", " so "]
            .iter()
            .filter_map(|end| low.find(end))
            .min()
            .unwrap_or(command.len());
        return Some(
            Wish::new("exec")
                .arg("command", trim_object(&command[..end]))
                .bonus(-0.05),
        );
    }
    let announced = said && rest.trim_end().ends_with(':');
    announced.then(|| Wish::new("exec").open("command", "the block below"))
}

/// "use `web_search` to find X", "call `get_weather` with city=Paris".
fn named(doc: &Doc<'_>, rest: &str, low: &str) -> Option<Wish> {
    let low_name = low.strip_prefix("the ").unwrap_or(low);
    let at = low.len() - low_name.len();
    let word_end = low_name
        .find(|letter: char| letter.is_whitespace() || matches!(letter, ',' | '(' | ':'))
        .unwrap_or(low_name.len());
    let name = low_name[..word_end].trim_matches(['`', '"', '\'', '*', '.', ',']);
    // One common word is no tool's name unless the sentence says that it is one.
    let tail = strip_word(
        low_name[word_end..]
            .trim_start_matches(['`', ' ', '*'])
            .trim_start(),
        "tool",
    );
    if !name.contains('_') && tail.is_none() && !low_name.starts_with('`') {
        return None;
    }
    let tool = doc.tools.find(name)?;
    let tail = tail.unwrap_or(low_name[word_end..].trim_start());
    let tail_at = low.len() - tail.len();
    let (tail_text, tail_low) = (&rest[tail_at.max(at)..], &low[tail_at.max(at)..]);
    let mut wish = Wish::new(&tool.name).bonus(0.1);
    if let Some(purpose) = strip_word(tail_low, "to") {
        let from = tail_low.len() - purpose.len();
        let inner =
            verb_of(purpose).and_then(|_| self::wish(doc, &tail_text[from..], purpose, false));
        if let Some(inner) = inner.filter(|inner| {
            doc.tools
                .find(&inner.tool)
                .is_some_and(|found| found.name == tool.name)
        }) {
            wish.args = inner.args;
            wish.open = inner.open;
            return Some(wish);
        }
    }
    for word in ["with", "for", "on", "to", "using", "and"] {
        if let Some(inner) = strip_word(tail_low, word) {
            return with_arguments(tool, &tail_text[tail_low.len() - inner.len()..], wish);
        }
    }
    if let (true, Some(given)) = (tail_text.starts_with([':', '(']), quoted(tail_text)) {
        return Some(wish.arg(tool.main_argument()?, given));
    }
    tool.required().next().is_none().then_some(wish)
}

fn with_arguments(tool: &crate::ToolSpec, text: &str, mut wish: Wish) -> Option<Wish> {
    for part in text.split([',', ';']).flat_map(|part| part.split(" and ")) {
        if let Some((key, value)) = part.split_once('=').or_else(|| part.split_once(": ")) {
            let key = key
                .split_whitespace()
                .last()
                .unwrap_or("")
                .trim_matches(['`', '"', '\'']);
            let known = tool.property(key).is_some()
                || tool
                    .properties()
                    .any(|(name, _)| crate::guide::same_argument(name, key));
            if known {
                wish = wish.arg(key, trim_object(value));
            }
        }
    }
    if wish.args.is_empty() {
        let main = tool.main_argument()?;
        let key = format!("{main} ");
        let value = match (quoted(text), text.to_ascii_lowercase().find(&key)) {
            (Some(given), _) => given,
            (None, Some(at)) => trim_object(&text[at + key.len()..]),
            (None, None) => address(text).map_or_else(|| trim_object(text), |_| trim_object(text)),
        };
        if value.is_empty() {
            return None;
        }
        wish = wish.arg(main, value);
    }
    Some(wish)
}
