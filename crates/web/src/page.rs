//! A page as readable Markdown.

use std::sync::Arc;

use dom_smoothie::{Config, Readability};
use encoding_rs::{Encoding, UTF_8};
use tokio::sync::{Semaphore, oneshot};

use crate::limits::{CHARSET_LOOK_BYTES, WEB_PAGE_NODES_MAX, WEB_READERS_MAX};
use crate::tidy::{tidy, without_tags};

/// What was made of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Readable {
    /// The page's title.
    pub title: Option<String>,
    /// Its text.
    pub text: String,
}

/// What these elements hold is no text.
const SKIPPED_TAGS: &[&str] = &["script", "style", "noscript", "iframe", "svg", "template"];

/// For the thread that reads a page: the readers go down by recursion.
const STACK_BYTES: usize = 32 * 1024 * 1024;

/// Readers at work, in the whole process.
static READERS: Semaphore = Semaphore::const_new(WEB_READERS_MAX);

/// The main part of an HTML page as Markdown. A page without one is taken whole, and one that is too
/// deep or too large for the readers is shown without its tags.
///
/// The reading has a thread of its own that nobody waits for at the process's end. A call that is given
/// up leaves its thread to finish, and the thread keeps its place among the readers until then.
pub async fn markdown(html: String, address: String) -> Readable {
    let html: Arc<str> = html.into();
    let place = READERS.acquire().await;
    let (answer, answered) = oneshot::channel();
    let page = html.clone();
    let reader = std::thread::Builder::new()
        .name("holdfast-page".to_owned())
        .stack_size(STACK_BYTES)
        .spawn(move || {
            let readable = readable(&page, &address);
            drop(place);
            // Nobody listens any more if the call was given up.
            let _ = answer.send(readable);
        });
    match reader {
        Ok(_detached) => answered.await.unwrap_or_else(|_| bare(&html)),
        Err(_) => bare(&html),
    }
}

fn bare(html: &str) -> Readable {
    Readable {
        title: None,
        text: without_tags(html),
    }
}

fn readable(html: &str, address: &str) -> Readable {
    match tidy(html) {
        Some(html) => read(&html, address),
        None => bare(html),
    }
}

fn read(html: &str, address: &str) -> Readable {
    let config = Config {
        max_elements_to_parse: WEB_PAGE_NODES_MAX,
        ..Config::default()
    };
    let read =
        Readability::new(html, Some(address), Some(config)).and_then(|mut page| page.parse());
    let (title, content) = match read {
        Ok(article) => (Some(article.title), article.content.to_string()),
        Err(_) => (None, html.to_owned()),
    };
    let text = dom_query::Document::from(content).md(Some(SKIPPED_TAGS));
    Readable {
        title: title.filter(|title| !title.trim().is_empty()),
        text: text.trim().to_owned(),
    }
}

/// The text of a body, and what can not be trusted in it.
pub struct Decoded {
    /// The text.
    pub text: String,
    /// That some of it could not be read, and why.
    pub note: Option<String>,
}

/// The text of a body, read as browsers do: by its byte order mark, else by the character set that
/// its headers name, else by the one that it names itself at its beginning, else as UTF-8.
pub fn text(body: &[u8], charset: Option<&str>) -> Decoded {
    let named = charset.map(str::to_owned).or_else(|| named_within(body));
    let known = named
        .as_deref()
        .and_then(|label| Encoding::for_label(label.as_bytes()));
    let (text, used, is_damaged) = known.unwrap_or(UTF_8).decode(body);
    let note = match (named, known) {
        (Some(label), None) if is_damaged => Some(format!(
            "its character set {label:?} is not known; what could not be read is \u{fffd}"
        )),
        _ if is_damaged => Some(format!(
            "not all of it is {}; what could not be read is \u{fffd}",
            used.name()
        )),
        _ => None,
    };
    Decoded {
        text: text.into_owned(),
        note,
    }
}

/// The character set in `<meta charset="…">` or `<meta … content="…; charset=…">`.
fn named_within(body: &[u8]) -> Option<String> {
    let head = &body[..body.len().min(CHARSET_LOOK_BYTES)];
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let mut rest = head.as_str();
    while let Some(at) = rest.find("<meta") {
        let tag = &rest[at..];
        let end = tag.find('>').unwrap_or(tag.len());
        if let Some((_, value)) = tag[..end].split_once("charset") {
            let value = value.trim_start().strip_prefix('=').unwrap_or_default();
            let value = value.trim_start().trim_start_matches(['"', '\'']);
            let is_over = |it: char| it.is_whitespace() || "\"';/>".contains(it);
            let label = value.split(is_over).next().unwrap_or_default();
            return Some(label.to_owned()).filter(|label| !label.is_empty());
        }
        rest = &tag[end..];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::WEB_PAGE_DEPTH_MAX;

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
        let page = readable(&html, "https://example.com/a");
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
    fn pages_are_read_in_their_own_character_set() {
        let table: [(&[u8], Option<&str>, &str); 9] = [
            (
                b"\x93quoted\x94 \x80",
                Some("windows-1252"),
                "\u{201c}quoted\u{201d} \u{20ac}",
            ),
            (b"gr\xfc\xdfe", Some("iso-8859-1"), "grüße"),
            (b"\x83\x65\x83\x58\x83\x67", Some("Shift_JIS"), "テスト"),
            (
                b"<meta charset=\"windows-1251\">\xcf\xf0\xe8\xe2\xe5\xf2",
                None,
                "Привет",
            ),
            (
                b"<META http-equiv=Content-Type content='text/html; charset=koi8-r'>\xf0\xd2\xc9",
                None,
                "При",
            ),
            // A mark at the beginning says more than anybody's words.
            (b"\xff\xfeh\0i\0", Some("utf-8"), "hi"),
            ("Grüezi".as_bytes(), None, "Grüezi"),
            ("Grüezi".as_bytes(), Some("no-such-set"), "Grüezi"),
            (b"", Some(""), ""),
        ];
        for (body, charset, expected) in table {
            let read = text(body, charset);
            assert!(read.text.ends_with(expected), "{:?}", read.text);
            assert_eq!(read.note, None, "{expected}");
        }
        for (body, charset, says) in [
            (&b"\xff\xfa"[..], None, "not all of it is UTF-8"),
            (
                b"\xff\xfa",
                Some("no-such-set"),
                "\"no-such-set\" is not known",
            ),
        ] {
            let read = text(body, charset);
            assert!(read.note.is_some_and(|note| note.contains(says)), "{says}");
        }
    }

    #[tokio::test]
    async fn nothing_panics() {
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
            let _ = readable(html, "https://example.com");
        }
        for deep in [
            "<div>",
            "<b>",
            "<ul><li>",
            "<table><tr><td>",
            "<div></x>",
            "<div><!--</div>-->",
            "<li><dd>",
            "<a href=x>",
            "<x-y>",
        ] {
            let html = format!("{}the end", deep.repeat(50_000));
            let page = markdown(html, "https://example.com".to_owned()).await;
            assert_eq!(page.text, "the end", "{deep}");
            let most = deep.repeat(WEB_PAGE_DEPTH_MAX / 3);
            let _ = markdown(most, "https://example.com".to_owned()).await;
        }
        assert_eq!(text(b"\xe4", Some("iso-8859-1")).text, "ä");
        assert_eq!(text(b"\xff", None).text, "\u{fffd}");
    }

    #[tokio::test]
    async fn no_more_pages_are_read_at_once_than_there_are_readers() {
        let count = u32::try_from(WEB_READERS_MAX).expect("a small number");
        let all = READERS.acquire_many(count).await.expect("is open");
        let page = markdown("<p>x".to_owned(), "https://example.com".to_owned());
        let mut page = std::pin::pin!(page);
        let waited = tokio::time::timeout(std::time::Duration::ZERO, page.as_mut()).await;
        assert!(waited.is_err(), "{waited:?}");
        drop(all);
        assert_eq!(page.await.text, "x");
    }
}
