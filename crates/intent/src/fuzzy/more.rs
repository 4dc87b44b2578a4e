//! "read a.txt and b.txt": more objects of the same verb.

use super::Wish;
use super::statements::starts_statement;
use super::words::{address, is_path};

const LINKS: &[&str] = &[
    ", and ",
    " and then ",
    ", then ",
    " and ",
    ", ",
    " as well as ",
    " & ",
];

/// One wish for each further object of the same kind behind the first one.
pub(super) fn objects(wish: &Wish, text: &str) -> Vec<Wish> {
    let ([(argument, first)], true) = (wish.args.as_slice(), wish.open.is_empty()) else {
        return Vec::new();
    };
    if !matches!(
        wish.tool.as_str(),
        "read" | "web_fetch" | "web_search" | "exec"
    ) {
        return Vec::new();
    }
    let Some(at) = text.find(first.as_str()) else {
        return Vec::new();
    };
    let mut rest = &text[at + first.len()..];
    let mut more = Vec::new();
    loop {
        let (marked, tail) = without_mark(rest);
        let Some(tail) = LINKS.iter().find_map(|link| tail.strip_prefix(link)) else {
            return more;
        };
        let Some((object, behind)) = object(tail, &wish.tool, marked) else {
            return more;
        };
        if starts_statement(behind) {
            return more;
        }
        more.push(
            Wish::new(&wish.tool)
                .arg(argument, &object)
                .bonus(wish.bonus),
        );
        rest = behind;
    }
}

/// The text behind a closing quotation mark, and whether there was one.
fn without_mark(text: &str) -> (bool, &str) {
    let tail = text.trim_start_matches(['"', '`', '\'', '”', ')', '*']);
    (tail.len() < text.len(), tail)
}

/// An object of this tool at the start of a text, and what stands behind it.
fn object<'a>(text: &'a str, tool: &str, marked: bool) -> Option<(String, &'a str)> {
    let pairs = [('"', '"'), ('`', '`'), ('\'', '\''), ('“', '”')];
    if let Some((open, close)) = pairs.iter().find(|(open, _)| text.starts_with(*open)) {
        let inner = &text[open.len_utf8()..];
        let end = inner.find(*close)?;
        let object = &inner[..end];
        let fits = match tool {
            "read" => is_path(object),
            "web_fetch" => address(object).is_some(),
            _ => marked && !object.trim().is_empty(),
        };
        return fits.then(|| (object.to_owned(), &inner[end..]));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let word = text[..end].trim_end_matches(['.', ',', ';', ':', '!']);
    let behind = &text[word.len()..];
    match tool {
        "read" => is_path(word).then(|| (word.to_owned(), behind)),
        "web_fetch" => address(word).map(|url| (url, behind)),
        _ => None,
    }
}
