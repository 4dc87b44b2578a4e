//! Lists of phrases that a text can begin with, looked up by their first byte, so that the many
//! sentences that begin with none of them cost next to nothing.

use super::lead::strip_word;

/// A phrase and its number.
type Phrase = (&'static str, usize);

/// Phrases in lower case, by their first two bytes.
pub(super) struct Phrases {
    by_start: Vec<Vec<Phrase>>,
}

impl Phrases {
    /// The number of a phrase is its place in this order.
    pub(super) fn new(phrases: impl IntoIterator<Item = &'static str>) -> Self {
        let mut by_start = vec![Vec::new(); STARTS];
        for (number, phrase) in phrases.into_iter().enumerate() {
            if let Some(start) = start(phrase) {
                by_start[start].push((phrase, number));
            }
        }
        for phrases in &mut by_start {
            phrases.sort_by_key(|(phrase, _)| usize::MAX - phrase.len());
        }
        Self { by_start }
    }

    /// The longest phrase that this text in lower case begins with: its number, and what follows.
    pub(super) fn strip<'t>(&self, lower: &'t str) -> Option<(usize, &'t str)> {
        self.near(lower)
            .iter()
            .find_map(|(phrase, number)| Some((*number, strip_word(lower, phrase)?)))
    }

    /// Whether this text in lower case begins with one of them, be it as a word or not.
    pub(super) fn begin(&self, lower: &str) -> bool {
        self.near(lower)
            .iter()
            .any(|(phrase, _)| lower.starts_with(phrase))
    }

    /// Those that can begin this text.
    fn near(&self, lower: &str) -> &[Phrase] {
        start(lower).map_or(&[], |start| &self.by_start[start])
    }
}

/// How many beginnings of two letters are told apart.
const STARTS: usize = 32 * 32;

/// The beginning of a text of two bytes or more.
fn start(text: &str) -> Option<usize> {
    let [first, second, ..] = text.as_bytes() else {
        return None;
    };
    Some(usize::from(first & 31) * 32 + usize::from(second & 31))
}
