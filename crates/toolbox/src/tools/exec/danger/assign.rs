//! What the command line sets: variables, lists, the arguments of scripts and functions.
//!
//! A variable may hold all that it is ever set to. What is not followed makes it hold anything.

use std::collections::BTreeSet;

use super::expansion::{Form, Part, Variable, parts};
use super::here::HERE;
use super::variables::{
    DEFAULTS_DEPTH_MAX, NUMBERED, Printed, SEPARATORS, Set, VALUE_BYTES_MAX, printed,
};
use super::wrappers::assigned;
use super::{Judge, Setters};
use crate::tools::exec::shell::{Quoting, Simple, Splitting, Word};

/// Values of one variable that are told apart; one that is set to more may hold anything.
const VALUES_MAX: usize = 64;
/// Values of one list that are told apart; whoever uses one of more of them is asked about.
const LISTED_MAX: usize = 256;
/// Bytes of a text whose lines are told apart where variables are read from it.
const READ_BYTES_MAX: usize = 16 * 1024;
/// Options of `declare` that change what is set, and options of `read` that cut what is read.
const CHANGES: &[char] = &['l', 'u', 'c', 'i'];
const CUTS: &[char] = &['n', 'N', 'd'];

/// Variables that name a file which a shell reads before it begins.
const READ_FIRST: &[&str] = &["BASH_ENV", "ENV"];
/// What sets variables in other ways than by what stands in the command line.
const SETS_ANYTHING: &[&str] = &[
    "declare",
    "typeset",
    "local",
    "let",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "select",
    "eval",
    "source",
    ".",
    "coproc",
    "alias",
    "enable",
];

impl Judge<'_> {
    pub(super) fn note(&mut self, name: &str, set: Set) {
        self.unclear.insert(bare(name).to_owned());
        self.keep(name, set, VALUES_MAX, Set::Computed);
    }

    /// Notes one of the values of a list.
    pub(super) fn note_listed(&mut self, name: &str, set: Set) {
        self.unclear.insert(bare(name).to_owned());
        self.keep(name, set, LISTED_MAX, Set::Untold);
    }

    /// Notes a value that stands in the command line as it is.
    fn note_plain(&mut self, name: &str, text: &str) {
        self.keep(name, Set::To(text.to_owned()), VALUES_MAX, Set::Computed);
    }

    fn keep(&mut self, name: &str, set: Set, at_most: usize, beyond: Set) {
        let name = bare(name);
        let known = self.variables.entry(name.to_owned()).or_default();
        let set = match set {
            Set::To(value) if value.len() > VALUE_BYTES_MAX => Set::Computed,
            set if known.len() < at_most || known.contains(&set) => set,
            _ => beyond,
        };
        // The name is kept with each of them for a moment.
        self.judged_bytes += name.len();
        if let Set::To(value) = &set {
            self.judged_bytes += value.len() + 1;
        }
        if !known.contains(&set) {
            known.push(set);
            self.noted += 1;
        }
    }

    /// Something sets a variable of which nobody knows the name: all that are known may be it.
    pub(super) fn note_any(&mut self) {
        self.setters = Setters::Unknown;
        let known = self.variables.keys().map(String::as_str);
        // This one decides much without being set.
        let names: BTreeSet<String> = known.chain([HERE]).map(str::to_owned).collect();
        self.judged_bytes += names.len();
        for name in names {
            if self.has_too_much() {
                return;
            }
            self.note(&name, Set::Computed);
        }
    }

    /// Notes what the words before and behind a command set.
    pub(super) fn note_assignments(&mut self, words: &[Word], simple: &Simple, all: &[Simple]) {
        for word in words {
            let Some((name, value)) = assigned(word) else {
                continue;
            };
            if READ_FIRST.contains(&name) {
                self.note_any();
            }
            if word.has_substitution {
                let is_name = value == "$" && printed(simple, all) == Printed::Names;
                self.note(name, if is_name { Set::ToName } else { Set::Computed });
                self.note_beginning(name, word, value);
                // What is only quoted in the way of some shells stands there all the same.
                if value.contains('$') {
                    continue;
                }
            }
            if is_plain(word, value) {
                self.note_plain(name, value);
                continue;
            }
            if self.is_repeated && grows(name, word) {
                self.note(name, Set::Computed);
                continue;
            }
            let held = Word {
                text: value.to_owned(),
                ..word.clone()
            };
            let before = self.added_to(name, word);
            for text in self.texts(&held) {
                for begun in &before {
                    if self.has_too_much() {
                        return;
                    }
                    self.note(name, Set::To(format!("{begun}{text}")));
                }
            }
        }
    }

    /// A value of which another command prints the rest leads where it begins: `/etc/x-$(…)`.
    fn note_beginning(&mut self, name: &str, word: &Word, value: &str) {
        let begun = Word {
            text: value.split('$').next().unwrap_or_default().to_owned(),
            has_variable: false,
            ..word.clone()
        };
        if !begun.text.is_empty() && self.leaves(&begun) {
            self.note(name, Set::To(begun.text));
        }
    }

    /// What a variable may hold before a word that sets it: `a+=x` adds to that.
    fn added_to(&self, name: &str, word: &Word) -> Vec<String> {
        let sets = self.variables.get(name).into_iter().flatten();
        let mut found: Vec<String> = sets
            .filter(|_| adds(word))
            .filter_map(|set| match set {
                Set::To(text) => Some(text.clone()),
                _ => None,
            })
            .collect();
        if found.is_empty() {
            found.push(String::new());
        }
        found
    }

    /// Notes what expansions in a command set: `${a:=b}`.
    pub(super) fn note_defaults(&mut self, simple: &Simple) {
        let words = simple.words.iter().chain(&simple.writes);
        let words = words.chain(&simple.reads).filter(|it| it.has_variable);
        let texts = words.map(|word| (word.text.as_str(), word.has_substitution));
        let input = simple.input.as_deref();
        let input = input.filter(|_| simple.input_quoting == Quoting::Bare);
        let input = input.map(|text| (text, true));
        for (text, is_computed) in texts.chain(input) {
            self.note_defaults_in(text, is_computed, 0);
        }
    }

    fn note_defaults_in(&mut self, text: &str, is_computed: bool, depth: usize) {
        self.judged_bytes += text.len();
        if self.has_too_much() {
            return;
        }
        if depth > DEFAULTS_DEPTH_MAX {
            if text.contains('=') {
                self.note_any();
            }
            return;
        }
        for part in parts(text) {
            let Part::Variable(Variable { name, form }) = part else {
                continue;
            };
            let (Form::Or(behind) | Form::Set(behind) | Form::Changed(behind) | Form::List(behind)) =
                form
            else {
                continue;
            };
            // There may be another within: `${a#${b:=c}}`.
            self.note_defaults_in(behind, is_computed, depth + 1);
            let Form::Set(instead) = form else {
                if behind.starts_with([':', '[']) && behind.contains('=') {
                    // A place is worked out, which may set something, too: `${a:b=1}`.
                    self.note_any();
                }
                continue;
            };
            if is_computed {
                self.note(name, Set::Computed);
            }
            let value = Word {
                text: instead.to_owned(),
                has_variable: instead.contains('$'),
                is_home: instead.starts_with('~'),
                ..Word::default()
            };
            for text in self.texts(&value) {
                self.note(name, Set::To(text));
            }
        }
    }

    /// Notes what a builtin of the shell sets.
    pub(super) fn note_set(&mut self, name: &str, args: &[Word], simple: &Simple, all: &[Simple]) {
        if SETS_ANYTHING.contains(&name) {
            self.setters = Setters::Unknown;
        }
        match name {
            "export" | "declare" | "local" | "readonly" | "typeset" | "let" => {
                self.note_declared(name, args, simple, all);
            }
            "for" | "select" => match args {
                // Without a list it goes through the arguments.
                [variable] => self.note_each_argument(&variable.text),
                [variable, _, values @ ..] if values.iter().all(|it| is_plain(it, &it.text)) => {
                    for value in values {
                        if self.has_too_much() {
                            return;
                        }
                        let set = Set::To(value.text.clone());
                        self.keep(&variable.text, set, LISTED_MAX, Set::Untold);
                    }
                }
                [variable, _, values @ ..] => self.note_values(&variable.text, values),
                [] => {}
            },
            "unset" => self.note_unset(args),
            "set" => {
                let behind = args.iter().skip_while(|word| word.text != "--").skip(1);
                let behind: Vec<Word> = behind.cloned().collect();
                let values = if behind.is_empty() {
                    named(args).cloned().collect()
                } else {
                    behind
                };
                self.note_arguments(&values);
            }
            "shift" => {
                self.is_shifted = true;
                for number in NUMBERED {
                    self.note_each_argument(number);
                }
            }
            "read" | "mapfile" | "readarray" => self.note_read(name, args, simple, all),
            "getopts" => {
                if let Some(variable) = args.get(1) {
                    self.note(&variable.text, Set::Computed);
                    self.note("OPTARG", Set::Computed);
                }
            }
            "printf" => self.note_printed(args),
            "wait" => self.note_waited(args),
            // Whatever is in there may set them, and name other programs.
            "." | "source" => self.note_any(),
            _ => {}
        }
    }

    fn note_declared(&mut self, name: &str, args: &[Word], simple: &Simple, all: &[Simple]) {
        self.note_assignments(args, simple, all);
        if !matches!(name, "export" | "readonly") {
            // One without a value holds nothing in a function.
            self.note_here(args);
        }
        let is_unnamed = |word: &&Word| {
            let left = word.text.split('=').next().unwrap_or_default();
            left.contains('$')
        };
        let unnamed: Vec<&Word> = args.iter().filter(is_unnamed).collect();
        // `declare -n a=b`: whatever is set to one is set to the other.
        let is_other_name = name != "export" && has_letter(args, &['n']);
        if is_other_name || unnamed.into_iter().any(|word| self.is_vague(word)) {
            self.note_any();
        }
        if name == "let" || has_letter(args, CHANGES) {
            for word in named(args) {
                let left = word.text.split(['=', '+', '-', '*']).next();
                self.note(left.unwrap_or_default(), Set::Computed);
            }
        }
    }

    /// `read` and its like. Without anything that feeds it, it is the standard input that is read, of
    /// which all there may be is judged by itself.
    fn note_read(&mut self, name: &str, args: &[Word], simple: &Simple, all: &[Simple]) {
        let fed = self.fed(simple, all);
        let is_fed = simple.reads_from.is_some() || !simple.reads.is_empty() || self.loop_is_fed;
        let stdin = self.feeding.stdin().filter(|_| !is_fed && !fed.is_unknown);
        let text = fed.text.as_deref().or(stdin);
        let mut names: Vec<&str> = named(args).map(|word| word.text.as_str()).collect();
        if names.is_empty() {
            names.push(if name == "read" { "REPLY" } else { "MAPFILE" });
        }
        if named(args).any(|word| word.has_variable && self.is_vague(word)) {
            self.note_any();
        }
        let mut separators = self.variables.get(SEPARATORS).into_iter().flatten();
        let is_cut = has_letter(args, CUTS) || separators.any(|set| !matches!(set, Set::To(_)));
        let is_raw = name != "read" || has_letter(args, &['r']);
        let is_known =
            |text: &&str| text.len() <= READ_BYTES_MAX && (is_raw || !text.contains('\\'));
        let known = text.filter(is_known);
        let is_unknown = fed.is_unknown || is_cut || known.is_none();
        for name in &names {
            // What nobody has set may be anything as it is.
            let is_held = *name == HERE || self.variables.contains_key(*name);
            let counts = is_fed || text.is_some() || is_held;
            if is_unknown && counts {
                self.note(name, Set::Computed);
            }
        }
        let is_parted = names.len() > 1 || has_letter(args, &['a']) || self.has_separators();
        self.note_lines(&names, is_parted, known.unwrap_or_default());
    }

    /// Each line may be the one that is read; of several variables each gets a part of it.
    fn note_lines(&mut self, names: &[&str], is_parted: bool, text: &str) {
        for name in names {
            for line in text.lines() {
                self.judged_bytes += line.len() + 1;
                if self.has_too_much() {
                    return;
                }
                let parts = if is_parted {
                    self.split(line)
                } else {
                    Vec::new()
                };
                let whole = [line.to_owned(), line.trim().to_owned()];
                for value in whole.into_iter().chain(parts) {
                    if self.has_too_much() {
                        return;
                    }
                    self.note(name, Set::To(value));
                }
            }
        }
    }

    /// Whether other signs than blanks stand between words.
    fn has_separators(&self) -> bool {
        let mut sets = self.variables.get(SEPARATORS).into_iter().flatten();
        sets.any(|set| *set != Set::To(String::new()))
    }

    /// `printf -v a …`
    fn note_printed(&mut self, args: &[Word]) {
        let (variable, values) = match args {
            [option, name, values @ ..] if option.text == "-v" => (name.clone(), values),
            [option, values @ ..] if option.text.starts_with("-v") => {
                let text = option.text.chars().skip(2).collect();
                let name = Word {
                    text,
                    ..option.clone()
                };
                (name, values)
            }
            _ => return,
        };
        if self.is_vague(&variable) {
            self.note_any();
        }
        self.note(&variable.text, Set::Computed);
        self.note_values(&variable.text, values);
    }

    /// `wait -p a`
    fn note_waited(&mut self, args: &[Word]) {
        let mut args = args.iter().skip_while(|word| !word.text.starts_with("-p"));
        let Some(option) = args.next() else { return };
        let joined = option.text.strip_prefix("-p").filter(|it| !it.is_empty());
        let name = joined.or_else(|| args.next().map(|word| word.text.as_str()));
        self.note(name.unwrap_or_default(), Set::Computed);
    }

    /// Notes the words as what a variable may hold. Of one that is a pattern nothing is known but where
    /// it leads.
    pub(super) fn note_values(&mut self, name: &str, values: &[Word]) {
        self.unclear.insert(bare(name).to_owned());
        for word in values {
            if word.has_substitution || (word.splitting == Splitting::Splits && self.is_vague(word))
            {
                self.note(name, Set::Computed);
            }
            if word.has_pattern() && !self.leaves(word) {
                continue;
            }
            if !word.has_substitution || !word.text.contains('$') {
                for text in self.texts(word) {
                    if self.has_too_much() {
                        return;
                    }
                    self.note_listed(name, Set::To(text));
                }
            }
        }
    }

    /// Notes the values of an array, of which each may say its place: `a=([1]=x)`.
    pub(super) fn note_array(&mut self, name: &str, values: &[Word]) {
        let values = values.iter().map(|word| Word {
            text: match word.text.split_once("]=") {
                Some((place, value)) if place.starts_with('[') => value.to_owned(),
                _ => word.text.clone(),
            },
            ..word.clone()
        });
        self.note_values(name, &values.collect::<Vec<Word>>());
    }
}

/// The name of a list without a place in it.
fn bare(name: &str) -> &str {
    name.split('[').next().unwrap_or_default()
}

/// Whether a word is set as it stands, and nothing in it stands for something else.
fn is_plain(word: &Word, value: &str) -> bool {
    !word.has_variable
        && !word.has_substitution
        && !word.is_home
        && !word.has_pattern()
        && !adds(word)
        && !value.is_empty()
        && !value.contains(['$', '`', '{', '~', '*', '?', '[', '('])
}

/// The words that are no options.
fn named(args: &[Word]) -> impl Iterator<Item = &Word> {
    args.iter().filter(|word| !word.text.starts_with('-'))
}

/// Whether one of these letters is among the options.
fn has_letter(args: &[Word], letters: &[char]) -> bool {
    let mut options = args.iter().filter(|word| word.text.starts_with('-'));
    options.any(|word| word.text.contains(letters))
}

/// `a+=x`
fn adds(word: &Word) -> bool {
    let left = word.text.split_once('=').map(|(left, _)| left);
    left.is_some_and(|left| left.ends_with('+'))
}

/// Whether a word sets a variable to something that it held before, and more: `a=$a.`.
fn grows(name: &str, word: &Word) -> bool {
    let is_it = |part: &Part<'_>| matches!(part, Part::Variable(it) if it.name == name);
    adds(word) || (word.has_variable && parts(&word.text).iter().any(is_it))
}
