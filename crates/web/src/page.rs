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

/// The main part of an HTML page as Markdown. A page without one is taken whole.
pub fn markdown(html: &str, address: &str) -> Readable {
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
        for html in ["", "<", "<html>", "\u{0}", "<p>x", &"<div>".repeat(5_000)] {
            let _ = markdown(html, "https://example.com");
        }
        assert_eq!(text(b"\xe4", Some("iso-8859-1")), "ä");
        assert_eq!(text(b"\xff", None), "\u{fffd}");
    }
}
