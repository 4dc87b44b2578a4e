//! Lists of phrases that a text can begin with, looked up by their first byte, so that the many
//! sentences that begin with none of them cost next to nothing.

use super::lead::strip_word;

/// Phrases in lower case, by their first byte.
pub(super) struct Phrases {
    by_first: Vec<Vec<(&'static str, usize)>>,
}

impl Phrases {
    /// The number of a phrase is its place in this order.
    pub(super) fn new(phrases: impl IntoIterator<Item = &'static str>) -> Self {
        let mut by_first = vec![Vec::new(); 256];
        for (number, phrase) in phrases.into_iter().enumerate() {
            if let Some(first) = phrase.bytes().next() {
                by_first[usize::from(first)].push((phrase, number));
            }
        }
        for phrases in &mut by_first {
            phrases.sort_by_key(|(phrase, _)| usize::MAX - phrase.len());
        }
        Self { by_first }
    }

    /// The longest phrase that this text in lower case begins with: its number, and what follows.
    pub(super) fn strip<'t>(&self, lower: &'t str) -> Option<(usize, &'t str)> {
        let first = lower.bytes().next()?;
        self.by_first[usize::from(first)]
            .iter()
            .find_map(|(phrase, number)| Some((*number, strip_word(lower, phrase)?)))
    }

    /// Whether this text in lower case begins with one of them, be it as a word or not.
    pub(super) fn begin(&self, lower: &str) -> bool {
        let Some(first) = lower.bytes().next() else {
            return false;
        };
        self.by_first[usize::from(first)]
            .iter()
            .any(|(phrase, _)| lower.starts_with(phrase))
    }
}
