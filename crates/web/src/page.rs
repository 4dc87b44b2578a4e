//! A page as readable Markdown.

use dom_smoothie::{Config, Readability};

/// What was made of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    /// The page's title.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
}

/// Elements of a page that is looked at; a larger one is turned into Markdown whole.
const ELEMENTS_MAX: usize = 100_000;

/// Elements inside elements. Both readers go down by recursion, and a page of nothing but opening
/// tags must not end the process; one that is deeper is shown without its tags.
const DEPTH_MAX: usize = 256;
/// For the thread that reads a page.
const STACK_BYTES: usize = 32 * 1024 * 1024;
/// Elements that end where the next one begins, or have no end.
const FLAT: &[&str] = &[
    "p", "li", "td", "tr", "th", "dt", "dd", "option", "tbody", "thead", "tfoot", "br", "img",
    "hr", "input", "meta", "link", "source", "area", "base", "col", "embed", "track", "wbr",
    "param",
];

/// The main part of an HTML page as Markdown. A page without one is taken whole.
pub fn markdown(html: &str, address: &str) -> Readable {
    let bare = || Readable {
        title: None,
        text: without_tags(html),
    };
    if depth(html) > DEPTH_MAX {
        return bare();
    }
    let (html, address) = (html.to_owned(), address.to_owned());
    let reader = std::thread::Builder::new()
        .name("holdfast-page".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || read(&html, &address));
    let read = reader.ok().and_then(|reader| reader.join().ok());
    read.unwrap_or_else(bare)
}

/// How deep elements lie in each other at most, if nobody closes them early.
fn depth(html: &str) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    for tag in html.split('<').skip(1) {
        let (closes, name) = match tag.strip_prefix('/') {
            Some(rest) => (true, rest),
            None => (false, tag),
        };
        let end = name.find(|sign: char| !sign.is_ascii_alphanumeric());
        let name = name[..end.unwrap_or(name.len())].to_ascii_lowercase();
        if name.is_empty() || FLAT.contains(&name.as_str()) {
            continue;
        }
        now = if closes {
            now.saturating_sub(1)
        } else {
            now + 1
        };
        most = most.max(now);
    }
    most
}

/// The text between the tags, blank lines and indentation left out.
fn without_tags(html: &str) -> String {
    let mut text = String::new();
    for (index, part) in html.split('<').enumerate() {
        let shown = match part.split_once('>') {
            Some((_, after)) if index > 0 => after,
            _ if index > 0 => "",
            _ => part,
        };
        text.push_str(shown);
    }
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

fn read(html: &str, address: &str) -> Readable {
    let config = Config {
        max_elements_to_parse: ELEMENTS_MAX,
        ..Config::default()
    };
    let read =
        Readability::new(html, Some(address), Some(config)).and_then(|mut page| page.parse());
    let (title, content) = match read {
        Ok(article) => (Some(article.title), article.content.to_string()),
        Err(_) => (None, html.to_owned()),
    };
    let converter = htmd::HtmlToMarkdown::builder()
        .skip_tags(vec![
            "script", "style", "noscript", "iframe", "svg", "template",
        ])
        .build();
    let text = converter.convert(&content).unwrap_or_default();
    Readable {
        title: title.filter(|title| !title.trim().is_empty()),
        text: text.trim().to_owned(),
    }
}

/// The text of a body in the character set it names. Anything but UTF-8 and Latin-1 is read as UTF-8
/// with what does not fit replaced.
pub fn text(body: &[u8], charset: Option<&str>) -> String {
    match charset {
        Some("iso-8859-1" | "latin1" | "us-ascii" | "windows-1252") => {
            body.iter().map(|byte| char::from(*byte)).collect()
        }
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_article_is_kept_and_the_rest_is_not() {
        let words =
            "Plain words that make up a paragraph of some length, with commas, so that it counts. ";
        let html = format!(
            "<html><head><title>A title</title><script>alert('never')</script></head><body>\
             <nav><a href='/x'>menu</a></nav><article><h1>Heading</h1><p>{0}{0}</p>\
             <p>{0}<a href='/more'>more</a></p><ul><li>one</li><li>two</li></ul><p>{0}</p></article>\
             <footer>imprint</footer></body></html>",
            words.repeat(3)
        );
        let page = markdown(&html, "https://example.com/a");
        assert_eq!(page.title.as_deref(), Some("A title"));
        assert!(
            page.text.contains("Plain words") && page.text.contains("one"),
            "{}",
            page.text
        );
        assert!(
            page.text.contains("https://example.com/more"),
            "{}",
            page.text
        );
        for gone in ["alert", "<p>", "<script"] {
            assert!(!page.text.contains(gone), "{gone}: {}", page.text);
        }
    }

    #[test]
    fn nothing_panics() {
        let cells = format!("<table>{}</table>", "<tr><td>x".repeat(5_000));
        for html in [
            "",
            "<",
            "<html>",
            "\u{0}",
            "<p>x",
            "</div></div>",
            "a<",
            "<é>",
            &cells,
        ] {
            let _ = markdown(html, "https://example.com");
        }
        for deep in [
            "<div>",
            "<b>",
            "<ul><li>",
            "<table><tr><td>",
            "<svg>",
            "<a href=x>",
            "<x-y>",
        ] {
            let page = markdown(
                &format!("{}the end", deep.repeat(50_000)),
                "https://example.com",
            );
            assert_eq!(page.text, "the end", "{deep}");
            let _ = markdown(&deep.repeat(DEPTH_MAX / 2), "https://example.com");
        }
        assert_eq!(text(b"\xe4", Some("iso-8859-1")), "ä");
        assert_eq!(text(b"\xff", None), "\u{fffd}");
    }
}
