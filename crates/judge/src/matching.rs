//! Whether a rule is met by a command.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::reading::Simple;
use crate::rules::{Checked, Pattern, Rule};
use crate::word::Word;

/// How surely a command meets a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Met {
    Surely,
    /// The word that decides what the program does is not known.
    Maybe,
}

/// Which rules the input of the whole text fits. It may be long, and many commands share it.
#[derive(Debug, Default)]
pub(crate) struct Inputs(HashMap<*const Checked, bool>);

impl Inputs {
    fn fits(&mut self, rule: &Checked, pattern: &Pattern, input: &str) -> bool {
        let key = std::ptr::from_ref(rule);
        *self.0.entry(key).or_insert_with(|| pattern.is_match(input))
    }
}

impl Checked {
    pub(crate) fn met(&self, simple: &Simple, inputs: &mut Inputs) -> Option<Met> {
        if let Some(target) = &self.target
            && simple.targets.iter().any(|it| target.is_match(&it.shown()))
        {
            return Some(Met::Surely);
        }
        let starts = if simple.loose { simple.words.len() } else { 1 };
        let met = |at| self.met_at(simple, at, inputs);
        (0..starts).find_map(met)
    }

    fn met_at(&self, simple: &Simple, at: usize, inputs: &mut Inputs) -> Option<Met> {
        let program = simple.words.get(at)?.basename()?;
        if !self.rule.program.iter().any(|it| it == program) {
            return None;
        }
        let arguments = simple.words.get(at + 1..)?;
        match verb(&self.rule.verb, program, arguments) {
            Verb::Is => self
                .behind_verb(simple, arguments, inputs)
                .then_some(Met::Surely),
            Verb::Hidden if !simple.loose && !self.excepted(arguments) => Some(Met::Maybe),
            Verb::Hidden | Verb::Other => None,
        }
    }

    /// Whether a word is there of which none may be there.
    fn excepted(&self, arguments: &[Word]) -> bool {
        let spelt = |option: &String| {
            let exact = |it: &Word| it.literal().is_some_and(|it| same(option, &it, false));
            arguments.iter().any(exact)
        };
        self.rule.none.iter().any(spelt)
    }

    fn behind_verb(&self, simple: &Simple, arguments: &[Word], inputs: &mut Inputs) -> bool {
        let Rule { all, any, .. } = &self.rule;
        let given = |option: &String| arguments.iter().any(|it| is_option(option, it));
        if !all.iter().all(given)
            || !(any.is_empty() || any.iter().any(given))
            || self.excepted(arguments)
        {
            return false;
        }
        if let Some(arg) = &self.arg
            && !arguments.iter().any(|it| arg.is_match(&it.shown()))
        {
            return false;
        }
        if self.line.is_none() && self.unless.is_none() && self.input.is_none() {
            return true;
        }
        let shown: Vec<Cow<'_, str>> = arguments.iter().map(Word::shown).collect();
        let line = shown.join(" ");
        if self.line.as_ref().is_some_and(|it| !it.is_match(&line))
            || self.unless.as_ref().is_some_and(|it| it.is_match(&line))
        {
            return false;
        }
        let fed = |input: &Pattern| {
            input.is_match(&line)
                || simple.fed.iter().any(|it| input.is_match(it))
                || simple
                    .input
                    .as_ref()
                    .is_some_and(|it| inputs.fits(self, input, it))
        };
        self.input.as_ref().is_none_or(fed)
    }
}

/// Enough letters of a long option are the option.
const LETTERS_MIN: usize = 5;

enum Verb {
    Is,
    Hidden,
    Other,
}

/// The words that may say what a program does: those in front of which only options and their
/// values stand.
pub(crate) fn verbs(arguments: &[Word]) -> Vec<&Word> {
    let mut found = Vec::new();
    let mut behind_option = false;
    for word in arguments {
        let shown = word.shown();
        if shown.starts_with(['-', '+']) && shown.len() > 1 {
            behind_option = !shown.contains('=') && !shown.starts_with('+');
            continue;
        }
        found.push(word);
        if !behind_option {
            break;
        }
        behind_option = false;
    }
    found
}

/// Whether the verbs stand in their places. `git -C dir push` has `push` in the first.
fn verb(verbs_wanted: &[String], program: &str, arguments: &[Word]) -> Verb {
    let Some((wanted, rest)) = verbs_wanted.split_first() else {
        return Verb::Is;
    };
    let mut hidden = false;
    let places = verbs(arguments);
    let count = places.len();
    for (place, word) in places.into_iter().enumerate() {
        if is_code(word, program, arguments) {
            break;
        }
        match word.literal() {
            Some(text) if wanted.split('|').any(|it| it == text) => {
                let at = arguments.iter().position(|it| std::ptr::eq(it, word));
                let behind = at
                    .and_then(|at| arguments.get(at + 1..))
                    .unwrap_or_default();
                match verb(rest, program, behind) {
                    Verb::Is => return Verb::Is,
                    Verb::Hidden => hidden = true,
                    Verb::Other => {}
                }
            }
            Some(_) => {}
            // The value of an option may well be unknown: `git -C "$dir" log`.
            None => hidden |= place + 1 == count,
        }
    }
    if hidden { Verb::Hidden } else { Verb::Other }
}

/// Whether a word is a program's text: `bun -e "…"`. What follows it are the text's own arguments.
fn is_code(word: &Word, program: &str, arguments: &[Word]) -> bool {
    let options: &[&str] = match program {
        "bun" | "node" | "deno" => &["-e", "--eval", "-p", "--print", "-pe"],
        "perl" | "ruby" => &["-e", "-ne", "-pe"],
        "python" | "python2" | "python3" => &["-c"],
        _ => return false,
    };
    let at = arguments.iter().position(|it| std::ptr::eq(it, word));
    let before = at.and_then(|at| arguments.get(at.checked_sub(1)?));
    before.is_some_and(|it| options.contains(&&*it.shown()))
}

/// Whether a word is an option, or holds its letter among others.
fn is_option(option: &str, word: &Word) -> bool {
    same(option, &word.shown(), true)
}

fn same(option: &str, word: &str, shortened: bool) -> bool {
    if word == option {
        return true;
    }
    if option.starts_with("--") {
        let name = word.split('=').next().unwrap_or_default();
        return name == option
            || shortened && name.len() >= LETTERS_MIN && option.starts_with(name);
    }
    if !option.starts_with('-') {
        return false;
    }
    let letters = word.strip_prefix('-').filter(|it| !it.starts_with('-'));
    let Some(letters) = letters else { return false };
    let mut signs = option.chars().skip(1);
    match (signs.next(), signs.next()) {
        (Some(letter), None) => {
            letters.contains(letter) && letters.chars().all(char::is_alphanumeric)
        }
        // `-delete`, `-auto-approve=true`
        _ => word.split('=').next() == Some(option),
    }
}
