//! Looking for words: one or many at once, in a text of any case, as words and not inside others.

use aho_corasick::{AhoCorasick, AhoCorasickKind};

/// The same as [`has_words`] for a text in any case.
fn has_words_of(text: &str, words: &str) -> bool {
    has_words(&text.to_ascii_lowercase(), words)
}

/// Letters that are looked for all at once, in a text of any case, as words or inside of words.
pub(crate) struct Hints(Option<AhoCorasick>);

impl Hints {
    pub(crate) fn new<'w>(words: impl IntoIterator<Item = &'w &'static str>) -> Self {
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words);
        Self(finder.ok())
    }

    /// Where the first of them begins. Without a finder everything is a hint.
    pub(crate) fn find(&self, text: &str) -> Option<usize> {
        match &self.0 {
            Some(finder) => finder.find(text).map(|hit| hit.start()),
            None => Some(0),
        }
    }
}

/// Words that are looked for all at once, in a text of any case.
pub(crate) struct WordSet {
    finder: Option<AhoCorasick>,
    words: &'static [&'static str],
}

impl WordSet {
    pub(crate) fn new(words: &'static [&'static str]) -> Self {
        let finder = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .kind(Some(AhoCorasickKind::DFA))
            .build(words);
        Self {
            finder: finder.ok(),
            words,
        }
    }

    /// Whether one of them stands in the text, as words.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        let Some(finder) = &self.finder else {
            return self.words.iter().any(|words| has_words_of(text, words));
        };
        // Most texts have none of them, in whatever shape, and that is told faster.
        finder.is_match(text)
            && finder.find_overlapping_iter(text).any(|hit| {
                let words = self.words[hit.pattern().as_usize()];
                stand_apart(text.as_bytes(), hit.start(), words)
            })
    }
}

/// Whether `text` (in lower case) has these words as words: `example` is not in `example.com`.
pub(crate) fn has_words(text: &str, words: &str) -> bool {
    let bytes = text.as_bytes();
    memchr::memmem::find_iter(bytes, words.as_bytes()).any(|at| stand_apart(bytes, at, words))
}

/// Whether the words that were found at this place are no part of others.
fn stand_apart(bytes: &[u8], at: usize, words: &str) -> bool {
    let before = at.checked_sub(1).map(|at| bytes[at]);
    let after = bytes.get(at + words.len()).copied();
    let next = bytes.get(at + words.len() + 1).copied();
    let bound =
        |byte: Option<u8>| byte.is_none_or(|byte| !byte.is_ascii_alphanumeric() && byte != b'_');
    let in_address = matches!(after, Some(b'.' | b'/' | b'-' | b'\\'))
        && next.is_some_and(|byte| byte.is_ascii_alphanumeric())
        || matches!(before, Some(b'.' | b'/' | b'@' | b'\\'));
    bound(before)
        && (bound(after) && !in_address || words.ends_with([' ', ':']) || words == "illustrat")
}
