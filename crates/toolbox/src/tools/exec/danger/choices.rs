//! Each way in which a command may be meant. Where a variable may hold several values, the one it holds
//! decides what the words behind it are: `for c in status clean; do git $c -fdx; done`.

use super::expansion::{Form, Part, Variable, parts};
use super::input::is_interpreter;
use super::wrappers::assigned;
use super::{Judge, program};
use crate::tools::exec::shell::{Simple, Splitting, Word};

/// Ways of one command that are judged one by one. Of more, each value is judged with all that the
/// other words may be; where their order decides, somebody is asked.
const WAYS_MAX: usize = 1024;
/// Ways within ways that are followed: in functions, of what is called in several ways.
const WAYS_DEPTH_MAX: usize = 2;
/// Words of a list whose first ones may be gone that are told apart: each of them may be the first.
const CUT_WORDS_MAX: usize = 64;

impl Judge<'_> {
    /// Judges a command once more for each of the values that its variables may hold. `resolved` is the
    /// same command with all of them one behind the other.
    pub(super) fn simple_in_each_way(
        &mut self,
        simple: &Simple,
        resolved: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        // What it sets has been noted, whichever that is.
        if self.ways >= WAYS_DEPTH_MAX || simple.words.iter().all(|it| assigned(it).is_some()) {
            return;
        }
        let mut choices = Vec::new();
        for word in &simple.words {
            choices.push(self.choices(word));
        }
        let ways = choices.iter().map(Vec::len).fold(1, usize::saturating_mul);
        if ways <= 1 {
            return;
        }
        self.ways += 1;
        if ways <= WAYS_MAX {
            for way in 0..ways {
                let words = chosen(&choices, way);
                if !self.one_way(words, resolved, all, depth) {
                    break;
                }
            }
        } else {
            self.each_value(&choices, resolved, all, depth);
        }
        self.ways -= 1;
    }

    /// Judges each value with all that the other words may be.
    fn each_value(
        &mut self,
        choices: &[Vec<Vec<Word>>],
        resolved: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        if resolved.words.iter().any(|word| self.is_ordered(word)) {
            let what = "may mean more commands than are told apart";
            self.raise("unreadable_command", &super::written(&resolved.words), what);
        }
        let any = |words: &[Vec<Vec<Word>>]| -> Vec<Word> {
            words.iter().flatten().flatten().cloned().collect()
        };
        for (at, values) in choices.iter().enumerate() {
            for value in values.iter().filter(|_| values.len() > 1) {
                let mut words = any(choices.get(..at).unwrap_or_default());
                words.extend(value.iter().cloned());
                words.extend(any(choices.get(at + 1..).unwrap_or_default()));
                if !self.one_way(words, resolved, all, depth) {
                    return;
                }
            }
        }
    }

    /// Whether the order of the words behind it decides what it does.
    fn is_ordered(&self, word: &Word) -> bool {
        let name = program(word);
        matches!(name, "git" | "ssh")
            || is_interpreter(name)
            || self.functions.contains_key(&word.text)
            || self.called.contains_key(&word.text)
            || self.aliases.contains_key(&word.text)
    }

    /// Judges one of the ways; whether more of them can be.
    fn one_way(
        &mut self,
        words: Vec<Word>,
        resolved: &Simple,
        all: &[Simple],
        depth: usize,
    ) -> bool {
        self.judged_commands += 1;
        // Each word is looked at from each place.
        let bytes: usize = words.iter().map(|word| word.text.len() + 1).sum();
        self.judged_bytes += bytes.saturating_mul(self.places.len().max(1));
        if self.is_too_much() {
            return false;
        }
        let way = Simple {
            words,
            ..resolved.clone()
        };
        self.simple_bound(&way, all, depth);
        true
    }

    /// What a word may be, each with the words that it is then. All that a list holds is one of them.
    pub(super) fn choices(&mut self, word: &Word) -> Vec<Vec<Word>> {
        if !self.is_known(word) {
            return vec![vec![word.clone()]];
        }
        let texts = self.texts(word);
        let mut found: Vec<Vec<Word>> = Vec::new();
        for text in texts {
            let words = self.expanded(word, text);
            if !found.contains(&words) {
                found.push(words);
            }
        }
        if is_list(word) {
            let all: Vec<Word> = found.into_iter().flatten().collect();
            // Of one that was cut or moved on, the first may be gone.
            let is_cut = self.is_shifted || word.text.contains(':');
            if is_cut && all.len() > CUT_WORDS_MAX {
                let what = "may hold more than is told apart";
                self.raise("unreadable_command", &word.text, what);
                return vec![all];
            }
            let last = if is_cut { all.len() } else { 0 };
            let behind = (0..=last).map(|from| all.get(from..).unwrap_or_default().to_vec());
            return behind.collect();
        }
        for one in found.iter_mut().flatten() {
            // There is nothing in place of it now, but what is still unknown in it may be several.
            one.splitting = match word.splitting {
                Splitting::Splits if one.has_variable => Splitting::Splits,
                _ => Splitting::Never,
            };
        }
        found
    }
}

/// The words of one of the ways, by its number.
fn chosen(choices: &[Vec<Vec<Word>>], mut way: usize) -> Vec<Word> {
    let mut words = Vec::new();
    for values in choices {
        let count = values.len().max(1);
        words.extend(values.get(way % count).into_iter().flatten().cloned());
        way /= count;
    }
    words
}

/// Whether a word stands for all that a list holds, and not for one of them: `${a[1]}`.
pub(super) fn is_list(word: &Word) -> bool {
    let is_list = |part: &Part<'_>| match part {
        Part::Variable(Variable { name, form }) => {
            matches!(form, Form::List(_))
                && (matches!(*name, "@" | "*")
                    || ["[@]", "[*]"].iter().any(|it| word.text.contains(it)))
        }
        Part::Text(_) | Part::Unread => false,
    };
    parts(&word.text).iter().any(is_list)
}
