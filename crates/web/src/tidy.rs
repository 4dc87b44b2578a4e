//! A page's tags, put in order before a parser sees them.
//!
//! A parser of HTML mends what is broken, and a page can be broken so that mending it takes forever:
//! elements that nobody closes nest without end, and closing tags in comments hide that from whoever
//! counts. So the page is read once from front to back and written anew: comments, scripts and foreign
//! content are left out, every element is closed, and attributes are quoted. What comes out is nested as
//! deep as it looks, and a page that is too deep or too large has no tidy form.

use crate::limits::{WEB_PAGE_BYTES_MAX, WEB_PAGE_DEPTH_MAX, WEB_PAGE_NODES_MAX};

/// One piece of a page.
#[derive(Debug, PartialEq, Eq)]
enum Token<'a> {
    Text(&'a str),
    Open(String, Vec<(String, &'a str)>),
    Close(String),
}

/// Elements that never have an end.
const VOID: &[&str] = &[
    "area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param",
    "source", "track", "wbr", "keygen", "image",
];
/// Elements that are left out with all that is in them.
const DROPPED: &[&str] = &[
    "script", "style", "svg", "iframe", "noscript", "template", "noembed", "noframes",
];
/// Elements whose tags are left out: they switch a parser to other rules.
const UNWRAPPED: &[&str] = &[
    "math",
    "frameset",
    "frame",
    "plaintext",
    "xmp",
    "select",
    "option",
    "optgroup",
    "form",
    "applet",
    "marquee",
    "object",
    "listing",
    "textarea",
];
/// Elements that a parser opens again after others were closed over them.
const FORMATTING: &[&str] = &[
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
];
/// What the readers look at.
const KEPT: &[&str] = &[
    "href", "src", "alt", "title", "id", "class", "lang", "dir", "datetime", "content", "name",
    "property", "rel", "role", "itemprop", "itemtype", "start", "align", "colspan", "rowspan",
];
const TABLE: &[&str] = &[
    "table", "caption", "tbody", "thead", "tfoot", "tr", "td", "th",
];
/// Elements that begin a line of their own, and end a paragraph.
const BLOCK: &[&str] = &[
    "p",
    "div",
    "ul",
    "ol",
    "dl",
    "li",
    "dt",
    "dd",
    "section",
    "article",
    "aside",
    "header",
    "footer",
    "main",
    "nav",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "blockquote",
    "pre",
    "figure",
    "table",
    "hr",
    "address",
    "details",
    "fieldset",
];

/// The pieces from front to back. Each byte is looked at a bounded number of times: a search that finds
/// nothing is the last one.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn cut(&mut self, at: usize) -> &'a str {
        let (before, after) = self.rest.split_at(at.min(self.rest.len()));
        self.rest = after;
        before
    }

    /// Goes on after the first `sign`, or to the end.
    fn skip_past(&mut self, sign: &str) {
        let end = self.rest.find(sign).map(|at| at + sign.len());
        self.cut(end.unwrap_or(self.rest.len()));
    }

    fn name(&mut self) -> String {
        let ends = |sign: char| sign.is_whitespace() || matches!(sign, '/' | '>' | '<');
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        self.cut(end).to_ascii_lowercase()
    }

    /// The attributes that are kept; the rest of the tag is passed over.
    fn attributes(&mut self) -> Vec<(String, &'a str)> {
        let mut kept = Vec::new();
        loop {
            let between = |sign: char| sign.is_whitespace() || sign == '/';
            self.rest = self.rest.trim_start_matches(between);
            if self.rest.is_empty() {
                return Vec::new();
            }
            if self.rest.starts_with('>') {
                self.cut(1);
                return kept;
            }
            let ends = |sign: char| sign.is_whitespace() || matches!(sign, '/' | '>' | '=');
            // A name may begin with `=`, so that every round goes on.
            let first = self.rest.chars().next().map_or(1, char::len_utf8);
            let end = self.rest[first..].find(ends).map(|at| at + first);
            let name = self.cut(end.unwrap_or(self.rest.len()));
            self.rest = self.rest.trim_start();
            let value = match self.rest.strip_prefix('=') {
                Some(after) => {
                    self.rest = after.trim_start();
                    self.value()
                }
                None => "",
            };
            let name = name.to_ascii_lowercase();
            let is_new = |(known, _): &(String, &str)| *known != name;
            if KEPT.contains(&name.as_str()) && kept.iter().all(is_new) {
                kept.push((name, value));
            }
        }
    }

    fn value(&mut self) -> &'a str {
        let quote = self.rest.chars().next();
        if let Some(quote @ ('"' | '\'')) = quote {
            self.cut(1);
            let end = self.rest.find(quote).unwrap_or(self.rest.len());
            let value = self.cut(end);
            self.cut(1);
            return value;
        }
        let ends = |sign: char| sign.is_whitespace() || sign == '>';
        let end = self.rest.find(ends).unwrap_or(self.rest.len());
        self.cut(end)
    }

    /// Goes on after the end of an element whose content is left out.
    fn drop_element(&mut self, name: &str) {
        loop {
            self.skip_past("</");
            let found = self.rest.get(..name.len());
            if self.rest.is_empty() || found.is_some_and(|at| at.eq_ignore_ascii_case(name)) {
                break;
            }
        }
        self.skip_past(">");
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let begins = self.rest.find('<').unwrap_or(self.rest.len());
            if begins > 0 {
                return Some(Token::Text(self.cut(begins)));
            }
            let mut signs = self.rest.chars().skip(1);
            match (signs.next()?, signs.next()) {
                ('!', _) if self.rest.starts_with("<!--") => {
                    self.cut("<!--".len());
                    self.skip_past("-->");
                }
                ('!' | '?', _) => self.skip_past(">"),
                ('/', Some(sign)) if sign.is_ascii_alphabetic() => {
                    self.cut(2);
                    let name = self.name();
                    self.skip_past(">");
                    return Some(Token::Close(name));
                }
                (sign, _) if sign.is_ascii_alphabetic() => {
                    self.cut(1);
                    let name = self.name();
                    let attributes = self.attributes();
                    if !DROPPED.contains(&name.as_str()) {
                        return Some(Token::Open(name, attributes));
                    }
                    self.drop_element(&name);
                }
                _ => return Some(Token::Text(self.cut(1))),
            }
        }
    }
}

/// The page written anew.
#[derive(Default)]
struct Tidy {
    html: String,
    open: Vec<String>,
    formatting: usize,
    nodes: usize,
}

impl Tidy {
    fn close_to(&mut self, at: usize) {
        while self.open.len() > at {
            let Some(name) = self.open.pop() else { return };
            self.formatting -= usize::from(FORMATTING.contains(&name.as_str()));
            self.html.extend(["</", &name, ">"]);
        }
    }

    /// The nearest of these that is open, as long as none of `stops` lies over it.
    fn nearest(&self, names: &[&str], stops: &[&str]) -> Option<usize> {
        let reached = |name: &String| {
            let name = name.as_str();
            names.contains(&name) || stops.contains(&name)
        };
        let at = self.open.iter().rposition(reached)?;
        names.contains(&self.open[at].as_str()).then_some(at)
    }

    /// Ends what ends where this element begins.
    fn end_before(&mut self, name: &str) {
        let cells = &["button", "table", "td", "th", "caption"];
        let lists = &["ul", "ol", "menu", "dl", "table", "td", "th"];
        let ended = match name {
            "li" => self.nearest(&["li"], lists),
            "dt" | "dd" => self.nearest(&["dt", "dd"], lists),
            "td" | "th" => self.nearest(&["td", "th"], &["tr", "table"]),
            "tr" => self.nearest(&["tr"], &["table"]),
            "tbody" | "thead" | "tfoot" => self.nearest(&["tbody", "thead", "tfoot"], &["table"]),
            "a" | "nobr" => self.nearest(&[name], cells),
            _ => None,
        };
        let paragraph = || self.nearest(&["p"], cells);
        let is_block = BLOCK.contains(&name);
        if let Some(at) = ended.or_else(|| is_block.then(paragraph).flatten()) {
            self.close_to(at);
        }
    }

    fn begin(&mut self, name: String, attributes: Vec<(String, &str)>) {
        self.end_before(&name);
        self.html.extend(["<", &name]);
        for (key, value) in attributes {
            let value = value.replace('"', "&quot;").replace('<', "&lt;");
            self.html.extend([" ", &key, "=\"", &value, "\""]);
        }
        self.html.push('>');
        if !VOID.contains(&name.as_str()) {
            self.formatting += usize::from(FORMATTING.contains(&name.as_str()));
            self.open.push(name);
        }
    }

    fn end(&mut self, name: &str) {
        let stops: &[&str] = if TABLE.contains(&name) {
            &["table"]
        } else {
            &["table", "td", "th"]
        };
        if let Some(at) = self.nearest(&[name], stops) {
            self.close_to(at);
        }
    }

    fn fits(&self) -> bool {
        self.open.len() <= WEB_PAGE_DEPTH_MAX
            && self.nodes <= WEB_PAGE_NODES_MAX
            && self.html.len() <= WEB_PAGE_BYTES_MAX
    }
}

/// Whether a parser takes this for a name as it stands here.
fn is_plain(name: &str) -> bool {
    let is_sign = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | ':');
    name.chars().all(is_sign) && !UNWRAPPED.contains(&name)
}

/// The page in order; nothing for one that is too deep or too large for the readers.
pub(crate) fn tidy(html: &str) -> Option<String> {
    let mut tidy = Tidy::default();
    for token in (Tokens { rest: html }) {
        match token {
            Token::Text("<") => tidy.html.push_str("&lt;"),
            Token::Text(text) => tidy.html.push_str(text),
            Token::Open(name, attributes) if is_plain(&name) => tidy.begin(name, attributes),
            Token::Close(name) if is_plain(&name) => tidy.end(&name),
            Token::Open(..) | Token::Close(_) => {}
        }
        // A parser may open each formatting element anew after any tag.
        tidy.nodes += 1 + tidy.formatting;
        if !tidy.fits() {
            return None;
        }
    }
    tidy.close_to(0);
    Some(tidy.html)
}

/// The text between the tags, blank lines and indentation left out.
pub(crate) fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for token in (Tokens { rest: html }) {
        match token {
            Token::Text(part) => text.push_str(part),
            Token::Open(name, _) | Token::Close(name) => {
                let breaks = name == "br" || name == "tr" || BLOCK.contains(&name.as_str());
                text.push_str(if breaks { "\n" } else { "" });
            }
        }
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_out_is_closed_and_in_order() {
        for (html, tidied) in [
            ("<div>a</x>b", "<div>ab</div>"),
            ("<x><div></x>a", "<x><div></div></x>a"),
            ("<ul><li>a<li>b</ul>c", "<ul><li>a</li><li>b</li></ul>c"),
            ("<p>a<p>b<div>c", "<p>a</p><p>b</p><div>c</div>"),
            ("<!--</div>--><br/>a < b", "<br>a &lt; b"),
            ("<script>if (a</b>) '</div>'</script>x", "x"),
            ("<svg><path/></svg><math><input>x", "<input>x"),
            (
                "<a href='x\"y' onclick=z title=\"</a>\">t",
                "<a href=\"x&quot;y\" title=\"&lt;/a>\">t</a>",
            ),
            (
                "<table><tr><td>a</div><td>b<tr><td>c</table>",
                "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>",
            ),
            ("<div a=\"b", "<div></div>"),
            ("<é>", "&lt;é>"),
            ("<di<v>a", "<di>a</di>"),
            ("<div></div<p>a", "<div></div>a"),
            (
                "<li><dd>a<li><dd>b",
                "<li><dd>a</dd></li><li><dd>b</dd></li>",
            ),
        ] {
            assert_eq!(tidy(html).as_deref(), Some(tidied), "{html}");
        }
    }

    #[test]
    fn a_page_that_only_looks_flat_has_no_tidy_form() {
        for part in [
            "<div></x>",
            "<div><!--</div>-->",
            "<div><script></div></script>",
            "<div><style></div></style>",
            "<div title='</div>'>",
            "<div></ div>",
            "<span><table></span>",
            "<p><button>",
        ] {
            for count in [2_000, 20_000, 120_000] {
                assert_eq!(tidy(&part.repeat(count)), None, "{part}");
            }
        }
        // Formatting that a parser would open anew in every paragraph.
        let ids: Vec<_> = (0..200).map(|id| format!("<b id={id}>")).collect();
        let ids = ids.concat();
        assert_eq!(tidy(&format!("{ids}{}", "<i>x</i>".repeat(20_000))), None);
        assert_eq!(tidy(&"x".repeat(WEB_PAGE_BYTES_MAX + 1)), None);
        assert_eq!(tidy(&"<br>".repeat(WEB_PAGE_NODES_MAX + 1)), None);
        assert!(tidy(&"<div></div>".repeat(20_000)).is_some());
    }
}
