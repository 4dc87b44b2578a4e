//! What attacks say.
//!
//! A rule begins with one of its words. Those are found in one pass over the text; the rest of the
//! rule is tried right behind each, anchored and over a bounded stretch, so that no text is slow.

use std::sync::{LazyLock, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use regex::Regex;

use super::table::{PARTS, RULES};
use super::{Best, EXCERPT_CHARS_MAX, RULE_PLACES_MAX, SignalKind};

/// How much of the text behind a rule's word is looked at.
const REACH_BYTES: usize = 400;

struct Compiled {
    words: AhoCorasick,
    /// By the number of a word: the rule it begins.
    rule_of: Vec<usize>,
    rules: Vec<(SignalKind, f64, Rest)>,
}

/// What stands behind a rule's word. Compiled when that word is first found: most texts have none.
struct Rest {
    source: &'static str,
    regex: OnceLock<Regex>,
}

impl Rest {
    #[expect(
        clippy::expect_used,
        reason = "constant patterns, compiled by a test of this module"
    )]
    fn regex(&self) -> &Regex {
        self.regex.get_or_init(|| {
            let whole = PARTS
                .iter()
                .fold(self.source.to_owned(), |rest, (name, part)| {
                    rest.replace(name, part)
                });
            Regex::new(&format!(r"(?i)\A(?:{whole})")).expect("the pattern is valid")
        })
    }
}

#[expect(
    clippy::expect_used,
    reason = "constant words, built by every test of this module"
)]
static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let mut words = Vec::new();
    let mut rule_of = Vec::new();
    let mut rules = Vec::new();
    for (number, (kind, confidence, begins, rest)) in RULES.iter().enumerate() {
        for word in *begins {
            words.push(*word);
            rule_of.push(number);
        }
        let rest = Rest {
            source: rest,
            regex: OnceLock::new(),
        };
        rules.push((*kind, *confidence, rest));
    }
    let words = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::Standard)
        .build(&words)
        .expect("the words are few");
    Compiled {
        words,
        rule_of,
        rules,
    }
});

/// Looks for what attacks say.
pub(super) fn scan(text: &str, best: &mut Best) {
    let compiled = &*COMPILED;
    let mut places = vec![0_usize; compiled.rules.len()];
    for word in compiled.words.find_overlapping_iter(text) {
        let Some(&number) = compiled.rule_of.get(word.pattern().as_usize()) else {
            continue;
        };
        let (Some((kind, confidence, rest)), Some(seen)) =
            (compiled.rules.get(number), places.get_mut(number))
        else {
            continue;
        };
        if *seen >= RULE_PLACES_MAX || !begins_a_word(text, word.start()) {
            continue;
        }
        *seen += 1;
        let end = text.floor_char_boundary(word.end() + REACH_BYTES);
        let behind = &text[word.end()..end];
        if let Some(found) = rest.regex().find(behind) {
            let whole = &text[word.start()..word.end() + found.end()];
            best.note(*kind, *confidence, || excerpt(whole));
        }
    }
}

/// Whether a place is where a word could begin; marks begin anywhere.
fn begins_a_word(text: &str, at: usize) -> bool {
    let is_mark = !text[at..].starts_with(|sign: char| sign.is_alphanumeric());
    is_mark || !text[..at].ends_with(|sign: char| sign.is_alphanumeric() || sign == '_')
}

/// A finding in its own words, short and on one line.
pub(super) fn excerpt(found: &str) -> String {
    let words: Vec<&str> = found.split_whitespace().collect();
    let line = words.join(" ");
    line.chars()
        .filter(|sign| !sign.is_control())
        .take(EXCERPT_CHARS_MAX)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_valid() {
        for (_, _, rest) in &COMPILED.rules {
            assert!(!rest.regex().as_str().is_empty());
        }
    }
}
