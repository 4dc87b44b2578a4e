//! The words that braces stand for, in shells that know them: `{a,b}c`.

use super::Judge;
use crate::tools::exec::shell::{Simple, StandsFor, Word};

/// Words that one word with braces may become, and its bytes; whoever uses more is asked about.
const WORDS_MAX: usize = 256;
const WORD_BYTES_MAX: usize = 512;

impl Judge<'_> {
    /// Judges the command once more with the words that its braces stand for. It is judged without,
    /// too: not every shell knows them.
    pub(super) fn simple_spread(&mut self, simple: &Simple, all: &[Simple], depth: usize) {
        let has_braces = |word: &Word| word.has_pattern() && word.text.contains('{');
        let mut words = simple.words.iter().chain(&simple.writes);
        if !words.any(has_braces) {
            return;
        }
        let spread = Simple {
            words: self.spread(&simple.words),
            writes: self.spread(&simple.writes),
            ..simple.clone()
        };
        self.simple_bound(&spread, all, depth);
        self.simple_resolved(&spread, all, depth);
    }

    fn spread(&mut self, words: &[Word]) -> Vec<Word> {
        let mut found = Vec::new();
        for word in words {
            if self.has_too_much() {
                break;
            }
            let Some(texts) = alternatives(word) else {
                let what = "stands for more words than are told apart";
                self.raise("unreadable_command", &word.text, what);
                found.push(word.clone());
                continue;
            };
            self.judged_bytes += texts.iter().map(|text| text.len() + 1).sum::<usize>();
            // Nothing at all is no word, unless it was one before.
            let is_word = |text: &String| !text.is_empty() || word.text.is_empty();
            let texts = texts.into_iter().filter(is_word);
            found.extend(texts.map(|text| Word {
                stands_for: if text.contains(['*', '?', '[']) {
                    word.stands_for
                } else {
                    StandsFor::Itself
                },
                text,
                ..word.clone()
            }));
        }
        found
    }
}

/// All that a word stands for by its braces, the innermost first; nothing where that is too much.
fn alternatives(word: &Word) -> Option<Vec<String>> {
    let mut found = vec![word.text.clone()];
    if !word.has_pattern() || !word.text.contains('{') {
        return Some(found);
    }
    if word.text.len() > WORD_BYTES_MAX {
        return None;
    }
    let mut at = 0;
    while let Some(text) = found.get(at) {
        let Some((before, within, behind)) = innermost(text) else {
            at += 1;
            continue;
        };
        let spread = choices(within).into_iter();
        let spread: Vec<String> = spread.map(|it| format!("{before}{it}{behind}")).collect();
        found.splice(at..=at, spread);
        if found.len() > WORDS_MAX {
            return None;
        }
    }
    Some(found)
}

/// The first pair of braces with nothing but a choice in it, with what is around it.
fn innermost(text: &str) -> Option<(&str, &str, &str)> {
    text.match_indices('}').find_map(|(end, _)| {
        let (before, within) = text.get(..end)?.rsplit_once('{')?;
        let is_choice = within.contains(',') || within.contains("..");
        let is_one = is_choice && !before.ends_with('$') && !within.contains('}');
        is_one.then(|| (before, within, text.get(end + 1..).unwrap_or_default()))
    })
}

/// What can stand in place of braces: `a,b`, or letters in a row. Of numbers the ends will do.
fn choices(within: &str) -> Vec<String> {
    if within.contains(',') {
        return within.split(',').map(str::to_owned).collect();
    }
    let mut ends = within.split("..");
    let (first, last) = (
        ends.next().unwrap_or_default(),
        ends.next().unwrap_or_default(),
    );
    let letter = |text: &str| text.parse::<char>().ok().filter(char::is_ascii);
    match (letter(first), letter(last)) {
        (Some(first), Some(last)) => {
            let (low, high) = (first.min(last), first.max(last));
            (low..=high).map(String::from).collect()
        }
        _ => vec![first.to_owned(), last.to_owned()],
    }
}
