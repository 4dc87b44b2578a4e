//! Lists of phrases that a text can begin with, looked up by their first byte, so that the many
//! sentences that begin with none of them cost next to nothing.

use super::lead::strip_word;

/// A phrase, its number, and its second byte, which tells most others apart.
type Phrase = (&'static str, usize, Option<u8>);

/// Phrases in lower case, by their first byte.
pub(super) struct Phrases {
    by_first: Vec<Vec<Phrase>>,
}

impl Phrases {
    /// The number of a phrase is its place in this order.
    pub(super) fn new(phrases: impl IntoIterator<Item = &'static str>) -> Self {
        let mut by_first = vec![Vec::new(); 256];
        for (number, phrase) in phrases.into_iter().enumerate() {
            if let Some(first) = phrase.bytes().next() {
                by_first[usize::from(first)].push((
                    phrase,
                    number,
                    phrase.as_bytes().get(1).copied(),
                ));
            }
        }
        for phrases in &mut by_first {
            phrases.sort_by_key(|(phrase, ..)| usize::MAX - phrase.len());
        }
        Self { by_first }
    }

    /// The longest phrase that this text in lower case begins with: its number, and what follows.
    pub(super) fn strip<'t>(&self, lower: &'t str) -> Option<(usize, &'t str)> {
        self.near(lower)
            .find_map(|(phrase, number, _)| Some((*number, strip_word(lower, phrase)?)))
    }

    /// Whether this text in lower case begins with one of them, be it as a word or not.
    pub(super) fn begin(&self, lower: &str) -> bool {
        self.near(lower)
            .any(|(phrase, ..)| lower.starts_with(phrase))
    }

    /// Those that can begin this text, by its first two bytes.
    fn near(&self, lower: &str) -> impl Iterator<Item = &Phrase> {
        let mut bytes = lower.bytes();
        let first = bytes.next().map_or(&[][..], |first| {
            self.by_first[usize::from(first)].as_slice()
        });
        let second = bytes.next();
        first
            .iter()
            .filter(move |(_, _, own)| own.is_none() || *own == second)
    }
}
