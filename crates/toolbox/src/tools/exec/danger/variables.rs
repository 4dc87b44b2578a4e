//! What the command line itself sets, and what becomes of words that hold it: `c='rm -rf x'; $c`,
//! `f=-f; git push $f`.

use std::collections::BTreeMap;

use super::expansion::{Form, Part, Variable, parts};
use super::wrappers::assigned;
use super::{Judge, SCRIPT_DEPTH_MAX, program, written};
use crate::tools::exec::shell::{Simple, Splitting, Word};

/// Variables, aliases and functions that are followed; a command line that runs more counts as
/// unreadable.
pub(super) const FOLLOWED_MAX: usize = 64;
/// Values of one variable that are told apart; one that is set to more may hold anything.
const VALUES_MAX: usize = 8;
/// Words that one word may become and that are told apart.
const MEANINGS_MAX: usize = 64;
/// Bytes of a value that is kept; a longer one may be anything.
const VALUE_BYTES_MAX: usize = 1024;
/// Bytes of all words with their values in them; a command line that makes more counts as unreadable,
/// and they are not looked at any more.
const RESOLVED_BYTES_MAX: usize = 1024 * 1024;
/// What is between words unless the command says otherwise.
const SEPARATORS: &str = "IFS";
/// The name under which the arguments of a script or a function are kept.
const ARGUMENTS: &str = "@";
/// Arguments that have a name of their own.
const NUMBERED: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
/// What every command finds set, and no option begins with.
const GIVEN: &[&str] = &["HOME", "PWD", "OLDPWD", "TMPDIR", "USER"];
/// What git prints a name with.
const NAMING: &[&str] = &["branch", "rev-parse", "symbolic-ref"];

/// What a variable was set to by the command line itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Set {
    To(String),
    /// To what another command prints, or a file holds.
    Computed,
    /// To what git calls a branch or a commit.
    ToName,
}

/// What the command line has set, each with all it may hold: which of them it holds depends on what
/// ran before.
pub(super) type Variables = BTreeMap<String, Vec<Set>>;

/// What a word may be when it runs, as far as that is known.
struct Meanings {
    texts: Vec<String>,
    /// There are more of them than are told apart.
    has_more: bool,
}

impl Judge<'_> {
    fn note(&mut self, name: &str, set: Set) {
        let known = self.variables.entry(name.to_owned()).or_default();
        let is_too_long = matches!(&set, Set::To(value) if value.len() > VALUE_BYTES_MAX);
        let set = if is_too_long || known.len() >= VALUES_MAX {
            Set::Computed
        } else {
            set
        };
        if !known.contains(&set) {
            known.push(set);
        }
    }

    /// Notes what the words before and behind a command set.
    pub(super) fn note_assignments(&mut self, words: &[Word], simple: &Simple, all: &[Simple]) {
        for word in words {
            let Some((name, value)) = assigned(word) else {
                continue;
            };
            if word.has_substitution {
                let is_name = value == "$" && printed(simple, all) == Printed::Names;
                self.note(name, if is_name { Set::ToName } else { Set::Computed });
                continue;
            }
            let held = Word {
                text: value.to_owned(),
                ..word.clone()
            };
            let before = self.added_to(name, word);
            for text in self.counted(&held) {
                for begun in &before {
                    self.note(name, Set::To(format!("{begun}{text}")));
                }
            }
        }
    }

    /// Everything that a word may be, as long as there is room for more of it.
    fn counted(&mut self, word: &Word) -> Vec<String> {
        if self.resolved_bytes > RESOLVED_BYTES_MAX {
            return vec![word.text.clone()];
        }
        let texts = self.meanings(word).texts;
        self.resolved_bytes += texts.iter().map(|text| text.len() + 1).sum::<usize>();
        if self.resolved_bytes > RESOLVED_BYTES_MAX {
            self.raise("unreadable_command", &word.text, "holds too many variables");
        }
        texts
    }

    /// What a variable may hold before a word that sets it: `a+=x` adds to that.
    fn added_to(&self, name: &str, word: &Word) -> Vec<String> {
        let is_added = |left: &str| left.ends_with('+');
        let adds = word
            .text
            .split_once('=')
            .is_some_and(|(it, _)| is_added(it));
        let sets = self.variables.get(name).into_iter().flatten();
        let mut found: Vec<String> = sets
            .filter(|_| adds)
            .filter_map(|set| match set {
                Set::To(text) => Some(text.clone()),
                Set::Computed | Set::ToName => None,
            })
            .collect();
        if found.is_empty() {
            found.push(String::new());
        }
        found
    }

    /// Notes what a builtin of the shell sets.
    pub(super) fn note_set(&mut self, name: &str, args: &[Word], simple: &Simple, all: &[Simple]) {
        let named = || args.iter().filter(|word| !word.text.starts_with('-'));
        match name {
            "export" | "declare" | "local" | "readonly" | "typeset" => {
                self.note_assignments(args, simple, all);
            }
            "for" | "select" => {
                let Some(variable) = args.first() else { return };
                let values = args.get(2..).unwrap_or_default();
                self.note_values(&variable.text, values);
            }
            "set" => {
                let behind = args.iter().skip_while(|word| word.text != "--").skip(1);
                let behind: Vec<Word> = behind.cloned().collect();
                let values = if behind.is_empty() {
                    named().cloned().collect()
                } else {
                    behind
                };
                self.note_arguments(&values);
            }
            "read" | "mapfile" | "readarray" => {
                let fed = self.fed(simple, all);
                let is_fed =
                    simple.reads_from.is_some() || !simple.reads.is_empty() || self.loop_is_fed;
                let variables: Vec<&str> = named().map(|word| word.text.as_str()).collect();
                // Else it is the standard input, which is judged by itself.
                if fed.is_unknown || (fed.text.is_none() && is_fed) {
                    for name in &variables {
                        self.note(name, Set::Computed);
                    }
                }
                self.note_read(&variables, &fed.text.unwrap_or_default());
            }
            "printf" if args.first().is_some_and(|word| word.text == "-v") => {
                if let Some(variable) = args.get(1) {
                    self.note(&variable.text, Set::Computed);
                }
            }
            _ => {}
        }
    }

    /// Each line may be the one that is read; of several variables each gets a part of it.
    fn note_read(&mut self, names: &[&str], text: &str) {
        for name in names {
            for line in text.lines() {
                self.note(name, Set::To(line.to_owned()));
                if names.len() > 1 {
                    for word in line.split_whitespace() {
                        self.note(name, Set::To(word.to_owned()));
                    }
                }
            }
        }
    }

    /// Notes the words as what a variable may hold. Of one that is a pattern nothing is known.
    pub(super) fn note_values(&mut self, name: &str, values: &[Word]) {
        for word in values {
            if word.has_substitution {
                self.note(name, Set::Computed);
            } else if !word.has_pattern() {
                for text in self.counted(word) {
                    self.note(name, Set::To(text));
                }
            }
        }
    }

    /// Notes the arguments of a script, by their numbers and together.
    fn note_arguments(&mut self, values: &[Word]) {
        for (number, value) in NUMBERED.iter().zip(values) {
            self.note_values(number, std::slice::from_ref(value));
        }
        self.note_values(ARGUMENTS, values);
    }

    /// Judges something that is given these arguments, which nobody else has.
    pub(super) fn given(&mut self, args: &[Word], judge: impl FnOnce(&mut Self)) {
        // Some may be arguments of what is around it: `f "$1"` in a function.
        let args = self.resolved(args).unwrap_or_else(|| args.to_vec());
        let names = || NUMBERED.into_iter().chain([ARGUMENTS]);
        let outer: Vec<Option<Vec<Set>>> = names().map(|it| self.variables.remove(it)).collect();
        self.note_arguments(&args);
        judge(self);
        for (name, set) in names().zip(outer) {
            self.variables.remove(name);
            self.variables.extend(set.map(|set| (name.to_owned(), set)));
        }
    }

    /// Judges a command that is a variable, if the command line says what that holds.
    pub(super) fn follow(&mut self, first: &Word, args: &[Word], whole: &str, depth: usize) {
        let parts = parts(&first.text);
        let [Part::Variable(variable)] = parts.as_slice() else {
            return;
        };
        let name = kept_as(variable.name).to_owned();
        // Taken out: one that names itself is not followed for ever.
        let Some(sets) = self.variables.remove(&name) else {
            return;
        };
        self.followed += 1;
        let is_computed = |sets: &[Set]| sets.iter().any(|set| !matches!(set, Set::To(_)));
        let separators = self.variables.get(SEPARATORS).cloned().unwrap_or_default();
        if is_computed(&sets) || is_computed(&separators) {
            self.raise("computed_command", whole, super::COMPUTED);
        }
        if self.followed > FOLLOWED_MAX || depth >= SCRIPT_DEPTH_MAX {
            self.raise("unreadable_command", whole, "runs too many variables");
        } else {
            for value in self.scripts(&sets, &variable.form) {
                let script = format!("{value} {}", written(args));
                self.script(&script, depth + 1);
            }
        }
        self.variables.insert(name, sets);
    }

    /// What a variable holds, as commands: a list is one of them.
    fn scripts(&self, sets: &[Set], form: &Form<'_>) -> Vec<String> {
        let values = sets.iter().filter_map(|set| match set {
            Set::To(value) => Some(self.split(value).join(" ")),
            Set::Computed | Set::ToName => None,
        });
        if *form == Form::List {
            let together: Vec<String> = values.collect();
            vec![together.join(" ")]
        } else {
            values.collect()
        }
    }

    /// The words with what their variables hold in place of them, all that they may hold one behind
    /// the other; nothing when no variable in them is known.
    pub(super) fn resolved(&mut self, words: &[Word]) -> Option<Vec<Word>> {
        if !words.iter().any(|word| self.is_known(word)) {
            return None;
        }
        let mut found = Vec::new();
        for word in words {
            if self.is_known(word) {
                let meant = self.counted(word).into_iter();
                found.extend(meant.flat_map(|text| self.expanded(word, text)));
            } else {
                found.push(word.clone());
            }
        }
        Some(found)
    }

    /// Whether something is known of what a word may become.
    fn is_known(&self, word: &Word) -> bool {
        let is_set = |part: &Part<'_>| match part {
            Part::Variable(Variable { name, form }) => {
                self.variables.contains_key(kept_as(name)) || matches!(form, Form::Or(_))
            }
            Part::Text(_) | Part::Unread => false,
        };
        word.has_variable
            && self.resolved_bytes <= RESOLVED_BYTES_MAX
            && (parts(&word.text).iter().any(is_set) || vanishes(&word.text))
    }

    /// A word that has become this text: outside of quotes it may be several.
    fn expanded(&self, word: &Word, text: String) -> Vec<Word> {
        let texts = match word.splitting {
            Splitting::Never => vec![text],
            Splitting::Splits => self.split(&text),
        };
        let words = texts.into_iter().map(|text| Word {
            has_variable: text.contains('$'),
            splitting: Splitting::Never,
            text,
            ..word.clone()
        });
        words.collect()
    }

    fn split(&self, text: &str) -> Vec<String> {
        let signs = self.variables.get(SEPARATORS).into_iter().flatten();
        let signs: String = signs
            .filter_map(|set| match set {
                Set::To(signs) => Some(signs.as_str()),
                Set::Computed | Set::ToName => None,
            })
            .collect();
        let is_between = |sign: char| sign.is_whitespace() || signs.contains(sign);
        let words = text.split(is_between).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    }

    /// Whether a word may become an option that nobody knows before it runs.
    pub(super) fn may_be_option(&self, word: &Word) -> bool {
        if !word.has_variable && !word.has_substitution {
            return false;
        }
        let parts = parts(&word.text);
        let behind_sign = match parts.as_slice() {
            [Part::Text(text), behind @ ..]
                if text.starts_with(['-', '+']) && !text.contains('=') =>
            {
                behind
            }
            all => all,
        };
        let is_open = behind_sign.first().is_some_and(|part| match part {
            Part::Text(_) => false,
            Part::Unread => true,
            Part::Variable(variable) => self.held(variable, &word.text).1,
        });
        is_open || self.meanings(word).has_more
    }

    /// Everything that a word may be. What is not known stays as it is written.
    fn meanings(&self, word: &Word) -> Meanings {
        let mut found = Meanings {
            texts: vec![String::new()],
            has_more: false,
        };
        if !word.has_variable && !word.has_substitution {
            found.texts = vec![word.text.clone()];
            return found;
        }
        for part in parts(&word.text) {
            found.append(&match part {
                Part::Text(text) => vec![text.to_owned()],
                Part::Unread => vec!["$".to_owned()],
                Part::Variable(variable) => self.held(&variable, &word.text).0,
            });
        }
        found
    }

    /// What a variable in a word may hold, and whether that may be anything else.
    fn held(&self, variable: &Variable<'_>, word: &str) -> (Vec<String>, bool) {
        let name = kept_as(variable.name);
        let mut texts = Vec::new();
        let mut is_open = variable.form == Form::Changed;
        let sets = self.variables.get(name);
        for set in sets.into_iter().flatten() {
            match set {
                Set::To(text) => {
                    is_open |= text.starts_with('$');
                    texts.push(text.clone());
                }
                Set::Computed => is_open = true,
                Set::ToName => texts.push(String::from("HEAD")),
            }
        }
        match variable.form {
            Form::Length => return (vec!["0".to_owned()], false),
            Form::Or(instead) => {
                is_open |= instead.starts_with('$');
                texts.push(instead.to_owned());
            }
            Form::AsItIs | Form::List | Form::Changed => {}
        }
        // Without arguments there are none, and those of a function come with its calls.
        let is_argument = name == ARGUMENTS || NUMBERED.contains(&name);
        if sets.is_none() {
            is_open |= !is_argument && !GIVEN.contains(&name);
        }
        if texts.is_empty() && vanishes(word) {
            texts.push(String::new());
        }
        if texts.is_empty() {
            texts.push(format!("${{{name}}}"));
        }
        (texts, is_open)
    }
}

impl Meanings {
    /// One more part behind each of them.
    fn append(&mut self, texts: &[String]) {
        let before = std::mem::take(&mut self.texts);
        let all = before.iter().flat_map(|begun| {
            let whole = texts.iter().map(move |text| format!("{begun}{text}"));
            whole.filter(|text| text.len() <= VALUE_BYTES_MAX)
        });
        self.texts = all.take(MEANINGS_MAX).collect();
        self.has_more |= self.texts.len() < before.len() * texts.len();
    }
}

/// The name under which a variable is kept.
fn kept_as(name: &str) -> &str {
    if name == "*" { ARGUMENTS } else { name }
}

/// Whether a variable stands within a name, where one that holds nothing leaves no trace: `gi${x}t`.
fn vanishes(text: &str) -> bool {
    let is_sign = |sign: char| sign == '-' || sign.is_ascii_alphanumeric();
    let parts = parts(text);
    parts.windows(3).any(|around| match around {
        [Part::Text(before), Part::Variable(_), Part::Text(behind)] => {
            before.ends_with(is_sign) && behind.starts_with(is_sign)
        }
        _ => false,
    })
}

/// What stands in place of `$(…)` in a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printed {
    /// Only what git calls a branch or a commit.
    Names,
    Anything,
}

/// What the commands inside a command print.
pub(super) fn printed(simple: &Simple, all: &[Simple]) -> Printed {
    let is_naming = |at: &usize| {
        let words = all.get(*at).map(|it| it.words.as_slice());
        matches!(words, Some([git, naming, ..])
            if program(git) == "git" && NAMING.contains(&naming.text.as_str()))
    };
    if !simple.inside.is_empty() && simple.inside.iter().all(is_naming) {
        Printed::Names
    } else {
        Printed::Anything
    }
}
