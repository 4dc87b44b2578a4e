//! The options that a command of git is given, told apart from what they hold and from what stands
//! beside them.

use super::tables::GIT_RUNS;
use crate::tools::exec::shell::{Splitting, Word};

/// Commands of git with the letters, and the names, of options that have a value: the rest of their
/// word, or the next one.
const VALUED: &[(&str, &str, &[&str])] = &[
    ("branch", "u", &["set-upstream-to"]),
    ("checkout", "bB", &["orphan"]),
    ("clean", "e", &["exclude"]),
    (
        "push",
        "o",
        &["push-option", "exec", "receive-pack", "repo"],
    ),
    ("restore", "s", &["source"]),
    ("switch", "cC", &["create", "force-create", "orphan"]),
    ("update-ref", "m", &[]),
    ("worktree", "bB", &["reason"]),
];

/// The words behind a command of git. Of words that variables were taken apart into, some may not be
/// there when it runs: what one of them seems to hold may be an option, or a name, of its own.
pub(super) struct Options<'w> {
    args: &'w [Word],
    given: Vec<Given<'w>>,
    /// What is neither an option nor what one holds.
    pub(super) named: Vec<&'w Word>,
    /// What may be a name, and may be something else.
    pub(super) may_be_named: Vec<&'w Word>,
    /// All words but those that an option holds for sure.
    pub(super) own: Vec<&'w Word>,
    /// Something before may hold the next words, or make names of them.
    is_doubtful: bool,
}

/// One option.
struct Given<'w> {
    spelt: Spelt<'w>,
    value: Option<&'w str>,
    /// Its value is one of the words from here on.
    values_from: Option<usize>,
    is_sure: bool,
}

enum Spelt<'w> {
    Letter(char),
    /// As much of its name as was enough to whoever wrote it.
    Name(&'w str),
}

impl<'w> Options<'w> {
    pub(super) fn of(command: &str, args: &'w [Word]) -> Self {
        let mut options = Self {
            args,
            given: Vec::new(),
            named: Vec::new(),
            may_be_named: Vec::new(),
            own: Vec::new(),
            is_doubtful: false,
        };
        let mut at = 0;
        while let Some(word) = args.get(at) {
            at += 1;
            options.own.push(word);
            if word.text == "--" && !options.is_unsure(word) {
                let rest = args.get(at..).unwrap_or_default();
                options.named.extend(rest);
                options.own.extend(rest);
                break;
            }
            if options.word(command, word) {
                at += options.hold(word, at);
            }
        }
        options
    }

    /// Takes one word; whether the next is its value.
    fn word(&mut self, command: &str, word: &'w Word) -> bool {
        let text = word.text.as_str();
        let is_sure = !self.is_unsure(word);
        if text.starts_with('-') && !is_sure {
            self.may_be_named.push(word);
        }
        if text == "--" {
            self.is_doubtful = true;
            false
        } else if let Some(long) = text.strip_prefix("--") {
            self.long(command, long, is_sure)
        } else if let Some(letters) = text.strip_prefix('-').filter(|it| !it.is_empty()) {
            self.short(command, letters, is_sure)
        } else {
            self.name(word);
            false
        }
    }

    /// Takes what is no option. What an option before it may hold is no name for sure.
    fn name(&mut self, word: &'w Word) {
        let held = |it: &Given<'_>| it.values_from.is_some();
        let is_held = self.given.last().is_some_and(held) && is_alternative(word);
        if is_held || self.is_doubtful {
            self.may_be_named.push(word);
        } else {
            self.named.push(word);
        }
    }

    fn is_unsure(&self, word: &Word) -> bool {
        self.is_doubtful || is_alternative(word)
    }

    /// Takes one with a name; whether the next word is its value.
    fn long(&mut self, command: &str, long: &'w str, is_sure: bool) -> bool {
        let (name, value) = match long.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (long, None),
        };
        self.give(Spelt::Name(name), value, is_sure);
        value.is_none() && names(command).any(|full| is_begun(full, name))
    }

    /// Takes as many as there are letters; whether the next word is the value of the last.
    fn short(&mut self, command: &str, letters: &'w str, is_sure: bool) -> bool {
        for (at, letter) in letters.char_indices() {
            let is_valued = has_value(command, letter);
            let behind = letters.get(at + letter.len_utf8()..);
            let value = behind.filter(|value| is_valued && !value.is_empty());
            self.give(Spelt::Letter(letter), value, is_sure);
            if is_valued {
                return value.is_none();
            }
        }
        false
    }

    fn give(&mut self, spelt: Spelt<'w>, value: Option<&'w str>, is_sure: bool) {
        self.given.push(Given {
            spelt,
            value,
            values_from: None,
            is_sure,
        });
    }

    /// The next word is what the last option holds; how many words are taken by that.
    fn hold(&mut self, option: &Word, at: usize) -> usize {
        let (Some(value), Some(given)) = (self.args.get(at), self.given.last_mut()) else {
            return 0;
        };
        if is_alternative(option) || is_alternative(value) {
            // Which of them it holds depends on what is there, so each is read by itself, too.
            given.values_from = Some(at);
            self.is_doubtful |= is_alternative(option);
            return 0;
        }
        given.value = Some(&value.text);
        // It may be several, of which only the first is the option's.
        if value.splitting == Splitting::Splits {
            self.own.push(value);
        }
        1
    }

    pub(super) fn has(&self, letter: char, name: &str) -> bool {
        self.has_letter(letter) || self.has_name(name)
    }

    pub(super) fn has_letter(&self, letter: char) -> bool {
        let mut given = self.given.iter();
        given.any(|it| matches!(it.spelt, Spelt::Letter(it) if it == letter))
    }

    /// Whether it is there whatever the variables hold: what spares a command has to be.
    pub(super) fn has_surely(&self, letter: char, name: &str) -> bool {
        let mut given = self.given.iter().filter(|it| it.is_sure);
        given.any(|it| match it.spelt {
            Spelt::Letter(it) => it == letter,
            Spelt::Name(spelt) => is_begun(name, spelt),
        })
    }

    /// As much of the name as is enough will do.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.spelt().any(|spelt| is_begun(name, spelt))
    }

    /// The names of those that have one, as they are spelt.
    pub(super) fn spelt(&self) -> impl Iterator<Item = &'w str> {
        self.given.iter().filter_map(|it| match it.spelt {
            Spelt::Name(name) => Some(name),
            Spelt::Letter(_) => None,
        })
    }

    /// What an option is given, each time.
    pub(super) fn values(&self, letter: char, name: &str) -> impl Iterator<Item = Option<&'w str>> {
        let is_it = move |it: &&Given<'_>| match it.spelt {
            Spelt::Letter(it) => it == letter,
            Spelt::Name(spelt) => is_begun(name, spelt),
        };
        let given = self.given.iter().filter(is_it);
        // The first will do: what is behind the others is behind it, too.
        let from = given.clone().find_map(|it| it.values_from);
        let behind = from.and_then(|from| self.args.get(from..));
        let any = behind.unwrap_or_default().iter();
        given
            .map(|it| it.value)
            .chain(any.map(|word| Some(word.text.as_str())))
    }
}

/// The first of some words, or all that may be the first.
pub(super) fn firsts(words: &[Word]) -> &[Word] {
    let alternatives = words.iter().take_while(|word| is_alternative(word)).count();
    words.get(..=alternatives).unwrap_or(words)
}

fn is_alternative(word: &Word) -> bool {
    word.splitting == Splitting::Alternative
}

/// Whether this is a name, or the beginning of it.
fn is_begun(name: &str, spelt: &str) -> bool {
    !spelt.is_empty() && name.starts_with(spelt)
}

/// The names of a command's options that have a value.
fn names(command: &str) -> impl Iterator<Item = &'static str> {
    let own = VALUED.iter().filter(move |(known, ..)| *known == command);
    let run = GIT_RUNS.iter().filter(move |(known, ..)| *known == command);
    let own = own.flat_map(|(_, _, names)| names.iter().copied());
    own.chain(run.map(|(_, _, name)| *name))
}

/// Whether a letter of a command's has a value.
fn has_value(command: &str, letter: char) -> bool {
    let own =
        |(known, letters, _): &(&str, &str, &[&str])| *known == command && letters.contains(letter);
    let run = |(known, of, _): &(&str, char, &str)| *known == command && *of == letter;
    VALUED.iter().any(own) || GIT_RUNS.iter().any(run)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<Word> {
        let texts = text.split(' ');
        texts
            .map(|text| Word {
                text: text.to_owned(),
                ..Word::default()
            })
            .collect()
    }

    #[test]
    fn what_an_option_holds_is_none() {
        let table = [
            ("clean", "-fd build", "force", "build"),
            ("clean", "-e -n -fdx", "f x", ""),
            ("clean", "-en -f", "f", ""),
            ("clean", "--exclude -n --forc .", "force", "."),
            ("clean", "-f -- -n", "f", "-n"),
            ("push", "-o -f origin", "o", "origin"),
            ("push", "-qof origin main", "q o", "origin main"),
            ("push", "--push-opt=-f --del o x", "delete", "o x"),
            ("checkout", "-bf main", "b", "main"),
        ];
        for (command, args, has, named) in table {
            let args = words(args);
            let options = Options::of(command, &args);
            for option in has.split(' ') {
                let letter = option.chars().next().unwrap_or_default();
                assert!(options.has(letter, option), "{command} {args:?}: {option}");
            }
            let found: Vec<&str> = options.named.iter().map(|it| it.text.as_str()).collect();
            assert_eq!(found.join(" "), named, "{command} {args:?}");
        }
        let args = words("-en -f");
        assert!(!Options::of("clean", &args).has('n', "dry-run"));
        let mut args = words("-o -f");
        assert!(!Options::of("push", &args).has('f', "force"));
        for word in &mut args {
            word.splitting = Splitting::Alternative;
        }
        assert!(Options::of("push", &args).has('f', "force"));
    }
}
