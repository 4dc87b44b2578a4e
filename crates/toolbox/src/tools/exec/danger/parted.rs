//! Words that a variable parts: `git${IFS}push`.

use super::Judge;
use super::variables::SEPARATORS;
use crate::tools::exec::shell::{Simple, Splitting, Word};

impl Judge<'_> {
    /// Judges a command once more with what stands between words unless something else is set: outside
    /// of quotes it parts them, whatever it holds.
    pub(super) fn simple_parted(&mut self, simple: &Simple, all: &[Simple], depth: usize) {
        if !simple.words.iter().any(|word| texts(word).len() > 1) {
            return;
        }
        let parted = Simple {
            words: simple.words.iter().flat_map(parted).collect(),
            ..simple.clone()
        };
        self.simple_bound(&parted, all, depth);
        self.simple_resolved(&parted, all, depth);
        self.simple_spread(&parted, all, depth);
    }
}

fn parted(word: &Word) -> Vec<Word> {
    let texts = texts(word);
    if texts.len() < 2 {
        return vec![word.clone()];
    }
    let words = texts.into_iter().filter(|text| !text.is_empty());
    let words = words.map(|text| Word {
        has_variable: text.contains('$'),
        splitting: if text.contains('$') {
            Splitting::Splits
        } else {
            Splitting::Never
        },
        substitutions: Vec::new(),
        text,
        ..word.clone()
    });
    words.collect()
}

/// What stands before, between and behind what parts a word.
fn texts(word: &Word) -> Vec<String> {
    if word.splitting != Splitting::Splits {
        return vec![word.text.clone()];
    }
    let mut found = Vec::new();
    let mut text = String::new();
    let mut rest = word.text.as_str();
    while let Some((before, behind)) = rest.split_once('$') {
        text.push_str(before);
        if let Some(left) = behind_separators(behind) {
            found.push(std::mem::take(&mut text));
            rest = left;
        } else {
            text.push('$');
            rest = behind;
        }
    }
    text.push_str(rest);
    found.push(text);
    found
}

/// What is left of a word behind `IFS`, `{IFS}` or `{IFS%?}`.
fn behind_separators(text: &str) -> Option<&str> {
    let goes_on = |it: &str| it.starts_with(|sign: char| sign == '_' || sign.is_alphanumeric());
    if let Some(braced) = text.strip_prefix('{') {
        let behind = braced.strip_prefix(SEPARATORS).filter(|it| !goes_on(it))?;
        return behind.split_once('}').map(|(_, left)| left);
    }
    text.strip_prefix(SEPARATORS).filter(|it| !goes_on(it))
}
