//! Verbs, and what they want from the rest of their clause.

use super::Wish;
use super::lead::strip_word;
use super::search::search;
use super::table::{PROGRAMS, Verb, verb_of};
use super::words::{address, is_path, path, quoted};
use crate::cues::has_words;
use crate::doc::Doc;

/// What a clause that starts with a verb wants.
pub(super) fn wish(doc: &Doc<'_>, text: &str, lower: &str, order: bool) -> Option<Wish> {
    let (verb, at) = verb_of(lower)?;
    let (rest, low) = (&text[at..], &lower[at..]);
    if at == lower.len() && verb != Verb::Screenshot {
        return None;
    }
    // "Write access to a.txt was denied" only looks like an order.
    // "Search done, article fetched", "Read of a.txt": what was done, and not what is to be.
    if order && (super::mood::tells_outcome(low) || strip_word(low, "of").is_some()) {
        return None;
    }
    let searches = matches!(verb, Verb::Search | Verb::Find);
    if order
        && (!searches && super::statements::is_report(low)
            || searches && super::statements::is_search_report(low))
    {
        return None;
    }
    let found = match verb {
        Verb::Search => search(rest, low, false, order),
        Verb::Find => search(rest, low, true, order),
        Verb::Fetch | Verb::Get => fetch(rest, low, verb == Verb::Fetch),
        Verb::Open => open(rest, low),
        Verb::See => (!order).then(|| open(rest, low)).flatten(),
        Verb::Read => read(rest, low),
        Verb::Write | Verb::Create => write(rest, low, verb == Verb::Create),
        Verb::Run => run(rest, low, order),
        Verb::Browse => address(rest).map(|url| {
            Wish::new("browser")
                .arg("action", "navigate")
                .arg("url", &url)
        }),
        Verb::Screenshot => {
            let wish = Wish::new("browser").arg("action", "screenshot");
            Some(match address(rest) {
                Some(url) => wish.arg("url", &url),
                None => wish,
            })
        }
        Verb::Use => named(doc, rest, low),
    };
    found.or_else(|| (!order).then(|| by_running(rest, low)).flatten())
}

/// "check the log by running `git log`", "check the disk with `df -h`".
fn by_running(rest: &str, low: &str) -> Option<Wish> {
    if !low.contains(" by ") && !low.contains('`') {
        return None;
    }
    let by = [" by running ", " by executing ", " by calling "]
        .iter()
        .find_map(|words| low.find(words).map(|at| at + words.len()));
    if let Some(at) = by {
        return run(&rest[at..], &low[at..], false);
    }
    let with = [" with `", " using `", " via `"]
        .iter()
        .find_map(|words| low.find(words).map(|at| at + words.len() - 1))?;
    let command = quoted(&rest[with..])?;
    let program = command.split_whitespace().next()?;
    PROGRAMS
        .contains(&program)
        .then(|| Wish::new("exec").arg("command", command))
}

/// The object without the marks around it.
pub(super) fn trim_object(text: &str) -> &str {
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
    if strip_word(low, "us").is_some() {
        return None;
    }
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
    if let Some(name) = named_file(rest, low) {
        return Some(Wish::new("read").arg("path", name));
    }
    Some(Wish::new("web_fetch").open("url", one_of_results(low)?))
}

/// "the first result", "the second link": a page that a search will name.
fn one_of_results(low: &str) -> Option<&str> {
    let head = trim_object(low);
    let tail = ["the", "that", "each", "every"]
        .iter()
        .find_map(|article| strip_word(head, article))
        .unwrap_or(head);
    let pointed = ["that", "this"]
        .iter()
        .find_map(|article| strip_word(head, article));
    let tail = [
        "first",
        "top",
        "second",
        "third",
        "best",
        "most relevant",
        "last",
        "next",
        "search",
        "official",
    ]
    .iter()
    .find_map(|which| strip_word(tail, which))
    .or(pointed)?;
    let tail = strip_word(tail, "search").unwrap_or(tail);
    let noun = tail
        .split(|letter: char| !letter.is_alphanumeric())
        .next()
        .unwrap_or("");
    matches!(
        noun,
        "result" | "results" | "link" | "hit" | "url" | "page" | "article" | "site" | "match"
    )
    .then_some(head)
}

/// A name in marks is a file when the sentence says so.
fn named_file<'a>(rest: &'a str, low: &str) -> Option<&'a str> {
    quoted(rest).filter(|_| has_words(low, "file") || has_words(low, "contents"))
}

fn read(rest: &str, low: &str) -> Option<Wish> {
    if let Some(url) = address(rest) {
        return Some(Wish::new("web_fetch").arg("url", &url));
    }
    if let Some(path) = path(rest) {
        return Some(Wish::new("read").arg("path", path));
    }
    if let Some(name) = named_file(rest, low) {
        return Some(Wish::new("read").arg("path", name));
    }
    Some(Wish::new("web_fetch").open("url", one_of_results(low)?))
}

fn write(rest: &str, low: &str, create: bool) -> Option<Wish> {
    let found = path(rest).filter(|path| is_target(rest, path));
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

/// Whether this path is where something is written, and not only spoken of: "to a.txt", "the file
/// a.txt", "a.txt with …".
fn is_target(rest: &str, path: &str) -> bool {
    let Some(at) = rest.find(path) else {
        return false;
    };
    let before = rest[..at]
        .trim_end_matches(|letter: char| {
            letter.is_whitespace() || matches!(letter, '`' | '"' | '\'' | '*' | '“')
        })
        .to_ascii_lowercase();
    let last = before.rsplit(char::is_whitespace).next().unwrap_or("");
    matches!(
        last.trim_end_matches(':'),
        "" | "to"
            | "into"
            | "in"
            | "as"
            | "at"
            | "file"
            | "named"
            | "called"
            | "the"
            | "new"
            | "under"
            | "it"
            | "onto"
    )
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
    // "web search" is a name of two words.
    let word_end = low_name[word_end..]
        .trim_start()
        .split(|letter: char| !letter.is_alphanumeric())
        .next()
        .filter(|second| !second.is_empty() && *second != "tool")
        .map(|second| word_end + low_name[word_end..].find(second).unwrap_or(0) + second.len())
        .filter(|end| doc.tools.find(&low_name[..*end]).is_some())
        .unwrap_or(word_end);
    let name = low_name[..word_end].trim_matches(['`', '"', '\'', '*', '.', ',']);
    // One common word is no tool's name unless the sentence says that it is one.
    let tail = strip_word(
        low_name[word_end..]
            .trim_start_matches(['`', ' ', '*'])
            .trim_start(),
        "tool",
    );
    let purpose = strip_word(low_name[word_end..].trim_start_matches(['`', ' ']), "to");
    // "call exec with `uptime`" gives the tool something.
    let given = strip_word(low_name[word_end..].trim_start(), "with")
        .is_some_and(|given| given.starts_with(['`', '"', '\'']));
    let said = name.contains('_') || tail.is_some() || given || low_name.starts_with('`');
    if !said && purpose.is_none() {
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
        // "… to find out who did it": what is to be found out is the query.
        let asked = [
            "find out",
            "find",
            "learn",
            "see",
            "determine",
            "get",
            "check",
        ]
        .iter()
        .find_map(|verb| strip_word(purpose, verb));
        if let (Some(asked), "web_search") = (asked, tool.name.as_str()) {
            let query = trim_object(&tail_text[tail_low.len() - asked.len()..]);
            return (!query.is_empty()).then(|| wish.arg("query", query));
        }
    }
    if !said {
        return None;
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

/// Whether bare words can be what this argument wants: "with a path to read" gives no path.
fn fits_argument(argument: &str, value: &str) -> bool {
    if crate::guide::same_argument(argument, "path") {
        return is_path(value) || path(value).is_some();
    }
    if crate::guide::same_argument(argument, "url") {
        return address(value).is_some();
    }
    !["a ", "an ", "the right ", "some "]
        .iter()
        .any(|article| value.to_ascii_lowercase().starts_with(article))
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
            (None, None) => trim_object(text),
        };
        if value.is_empty() || !fits_argument(main, value) {
            return None;
        }
        wish = wish.arg(main, value);
    }
    Some(wish)
}
