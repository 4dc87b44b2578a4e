//! `commands.blocked` and `commands.allowed`: lists of programs with words that have to be there.
//!
//! The promise: the shell itself starts no such command from this text. What scripts and programs
//! start is the kernel's matter.

use std::collections::BTreeSet;

use crate::limits::SHOWN_CHARS_MAX;
use crate::reading::{CouldBe, Reading, Simple};
use crate::word::Word;

/// What a shell does itself and nobody would list.
const HARMLESS: &[&str] = &[
    ":", "[", "break", "builtin", "cd", "command", "continue", "coproc", "eval", "exec", "exit",
    "false", "getopts", "let", "popd", "pushd", "pwd", "read", "return", "set", "shift", "test",
    "time", "trap", "true", "umask", "wait",
];
/// Options that are the same in one letter and in a word.
const LONG: &[(&str, char)] = &[
    ("all", 'a'),
    ("delete", 'd'),
    ("force", 'f'),
    ("interactive", 'i'),
    ("quiet", 'q'),
    ("recursive", 'r'),
    ("recursive", 'R'),
    ("verbose", 'v'),
];

/// Why a list refuses a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The command, or the part that can not be read.
    pub command: String,
    /// What the list says of it.
    pub why: Why,
}

/// What a list says of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// The command is the rule's.
    Blocked,
    /// The part can not be read and could be the rule's command.
    Unreadable,
    /// The command is on no list of allowed ones.
    NotAllowed,
}

/// Whether a rule of `commands.blocked` refuses what the shell would start.
///
/// ```
/// use holdfast_judge::{Why, blocked, read};
/// let why = |text| blocked("git push", &read(text)).map(|it| it.why);
/// assert_eq!(why("true &>/dev/null git push"), None); // `git` and `push` are words for `true`.
/// assert_eq!(why("cd x; nice git push"), Some(Why::Blocked));
/// assert_eq!(why("git $X"), Some(Why::Unreadable));
/// assert_eq!(why("git commit -m \"$MESSAGE\""), None);
/// ```
pub fn blocked(rule: &str, reading: &Reading) -> Option<Refusal> {
    let mut may_be = None;
    for simple in &reading.commands {
        match fits(rule, simple) {
            Fit::Is => {
                let why = if simple.loose {
                    Why::Unreadable
                } else {
                    Why::Blocked
                };
                return Some(refusal(&simple.shown(), why));
            }
            Fit::MayBe => may_be = may_be.or(Some(simple.shown())),
            Fit::No => {}
        }
    }
    let any = |could_be: CouldBe| could_be == CouldBe::Anything;
    let unread = reading.unreadable.iter().find(|it| any(it.could_be));
    let part = may_be.or_else(|| unread.map(|it| it.text.clone()))?;
    Some(refusal(&part, Why::Unreadable))
}

/// Whether `commands.allowed` refuses what the shell would start. An empty list allows everything.
///
/// ```
/// use holdfast_judge::{Why, allowed, read};
/// let rules = ["ls".to_owned(), "git status".to_owned()];
/// assert_eq!(allowed(&rules, &read("cd x && ls -la")), None);
/// let why = |text| allowed(&rules, &read(text)).map(|it| it.why);
/// assert_eq!(why("ls; git push"), Some(Why::NotAllowed));
/// assert_eq!(why("$EDITOR x"), Some(Why::Unreadable));
/// ```
pub fn allowed(rules: &[String], reading: &Reading) -> Option<Refusal> {
    if rules.is_empty() {
        return None;
    }
    if let Some(unread) = reading.unreadable.first() {
        return Some(refusal(&unread.text, Why::Unreadable));
    }
    let harmless = |simple: &Simple| {
        let program = simple.words.first().and_then(Word::literal);
        program.is_some_and(|it| HARMLESS.contains(&&*it))
    };
    // A word that is only known when the text runs was tried with its values.
    let unknown = |simple: &Simple| simple.program().is_none();
    let listed = |simple: &Simple| rules.iter().any(|rule| fits(rule, simple) == Fit::Is);
    let mut commands = reading.commands.iter();
    let found = commands.find(|it| !harmless(it) && !unknown(it) && !listed(it))?;
    Some(refusal(&found.shown(), Why::NotAllowed))
}

fn refusal(command: &str, why: Why) -> Refusal {
    let command = command.chars().take(SHOWN_CHARS_MAX).collect();
    Refusal { command, why }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    Is,
    MayBe,
    No,
}

fn fits(rule: &str, simple: &Simple) -> Fit {
    let mut words = rule.split_whitespace();
    let Some(program) = words.next() else {
        return Fit::No;
    };
    let words: Vec<&str> = words.collect();
    let starts = if simple.loose { simple.words.len() } else { 1 };
    let mut best = Fit::No;
    for at in 0..starts.min(simple.words.len()) {
        match fits_at(program, &words, simple, at) {
            Fit::Is => return Fit::Is,
            Fit::MayBe => best = Fit::MayBe,
            Fit::No => {}
        }
    }
    best
}

fn fits_at(program: &str, words: &[&str], simple: &Simple, at: usize) -> Fit {
    let Some(first) = simple.words.get(at) else {
        return Fit::No;
    };
    let is_program = if program.contains('/') {
        first.literal().as_deref() == Some(program)
    } else {
        first.basename() == Some(program)
    };
    if !is_program {
        return Fit::No;
    }
    let arguments = simple.words.get(at + 1..).unwrap_or_default();
    let known: Vec<String> = arguments
        .iter()
        .filter_map(|it| it.literal().map(std::borrow::Cow::into_owned))
        .collect();
    if words.iter().all(|word| is_given(word, &known)) {
        return Fit::Is;
    }
    // Only the word that decides what a program does may be hidden so: what else a rule names is
    // often a file.
    let verb = words.first().is_some_and(|word| !word.starts_with('-'));
    let place = crate::matching::verbs(arguments);
    let hidden = place.iter().any(|word| word.literal().is_none());
    if verb && hidden { Fit::MayBe } else { Fit::No }
}

fn is_given(word: &str, arguments: &[String]) -> bool {
    let given = given(arguments);
    let spelt = letters(word);
    if !spelt.is_empty() {
        return spelt.chars().all(|letter| given.contains(&letter));
    }
    let long = word.strip_prefix("--");
    let short = LONG.iter().find(|(name, _)| Some(*name) == long);
    arguments.iter().any(|it| bare(it) == bare(word))
        || short.is_some_and(|(_, letter)| given.contains(letter))
}

/// The letters of an option: `-rf`, `-fr` and `-r -f` are the same.
fn letters(word: &str) -> &str {
    let letters = word.strip_prefix('-').unwrap_or_default();
    if letters.starts_with('-') {
        ""
    } else {
        letters
    }
}

/// The letters that are given, also by words, and by as much of a word as is enough (`--rec`).
fn given(arguments: &[String]) -> BTreeSet<char> {
    let mut given = BTreeSet::new();
    for argument in arguments {
        given.extend(letters(argument).chars());
        let word = argument.strip_prefix("--").filter(|word| !word.is_empty());
        let known = |(name, _): &&(&str, char)| word.is_some_and(|word| name.starts_with(word));
        given.extend(LONG.iter().filter(known).map(|(_, letter)| *letter));
    }
    if given.contains(&'R') {
        given.insert('r');
    }
    given
}

/// `dir` and `dir/` are the same, and so are `/` and `//`.
fn bare(word: &str) -> &str {
    let bare = word.trim_end_matches('/');
    if bare.is_empty() && !word.is_empty() {
        "/"
    } else {
        bare
    }
}
