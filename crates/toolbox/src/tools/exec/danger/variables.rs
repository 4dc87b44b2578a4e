//! What becomes of words that hold what the command line itself sets: `c='rm -rf x'; $c`,
//! `f=-f; git push $f`.

use std::collections::BTreeMap;

use super::expansion::{Form, Part, Variable, parts};
use super::{Judge, SCRIPT_DEPTH_MAX, program, written};
use crate::tools::exec::COMMAND_BYTES_MAX;
use crate::tools::exec::shell::{Simple, Splitting, Word, with_home};

/// Variables, aliases and functions that are followed; a command line that runs more counts as
/// unreadable.
pub(super) const FOLLOWED_MAX: usize = 64;
/// Words that one word may become and that are told apart.
pub(super) const MEANINGS_MAX: usize = 256;
/// Bytes of a value that is kept, as many as a command has; a longer one may be anything.
pub(super) const VALUE_BYTES_MAX: usize = COMMAND_BYTES_MAX;
/// Defaults within defaults that are followed: `${a:-${b:-c}}`.
pub(super) const DEFAULTS_DEPTH_MAX: usize = 8;
/// What is between words unless the command says otherwise.
pub(super) const SEPARATORS: &str = "IFS";
/// The name under which the arguments of a script or a function are kept.
pub(super) const ARGUMENTS: &str = "@";
/// Arguments that have a name of their own.
pub(super) const NUMBERED: [&str; 9] = ["1", "2", "3", "4", "5", "6", "7", "8", "9"];
/// What every command finds set, and no option begins with.
const GIVEN: &[&str] = &["HOME", "PWD", "OLDPWD", "TMPDIR", "USER"];
/// What git prints a name with.
const NAMING: &[&str] = &["branch", "rev-parse", "symbolic-ref"];

/// Its options that leave it at that.
const NAMING_OPTIONS: &[&str] = &[
    "--show-current",
    "--abbrev-ref",
    "--short",
    "--verify",
    "-q",
];

/// What a variable was set to by the command line itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Set {
    To(String),
    /// To what another command prints, or a file holds.
    Computed,
    /// To what git calls a branch or a commit.
    ToName,
    /// To one of more values than are told apart, all of which stand in the command line.
    Untold,
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

/// What a part of a word may be.
struct Held {
    texts: Vec<String>,
    /// It may begin with anything.
    is_open: bool,
    /// Something in it is not known.
    is_vague: bool,
}

impl Held {
    fn known(text: &str) -> Self {
        Self {
            texts: vec![text.to_owned()],
            is_open: false,
            is_vague: false,
        }
    }

    fn unknown(text: &str) -> Self {
        Self {
            is_open: true,
            is_vague: true,
            ..Self::known(text)
        }
    }

    /// One more text that it may be. What is not known stands in it as it is written.
    fn push(&mut self, text: String) {
        let is_unknown = |part: &Part<'_>| match part {
            Part::Text(_) => false,
            Part::Unread => true,
            Part::Variable(Variable { name, form }) => {
                *form != Form::Length && !is_argument(name) && !GIVEN.contains(name)
            }
        };
        let parts = parts(&text);
        self.is_open |= parts.first().is_some_and(is_unknown);
        self.is_vague |= parts.iter().any(is_unknown);
        self.texts.push(text);
    }
}

impl Judge<'_> {
    /// Judges a command that is a variable, if the command line says what that holds.
    pub(super) fn follow(&mut self, first: &Word, args: &[Word], whole: &str, depth: usize) {
        let parts = parts(&first.text);
        let is_made = |part: &Part<'_>| match part {
            Part::Text(_) => false,
            // What a command prints is judged where it is handed over.
            Part::Unread => first.text.contains("${"),
            Part::Variable(variable) => matches!(variable.form, Form::Changed(_)),
        };
        if parts.iter().any(is_made) {
            // `${c#x}`, `${!c}`
            self.raise("computed_command", whole, super::COMPUTED);
        }
        let [Part::Variable(variable)] = parts.as_slice() else {
            return;
        };
        let name = kept_as(variable.name).to_owned();
        // Taken out: one that names itself is not followed for ever.
        let Some(sets) = self.variables.remove(&name) else {
            return;
        };
        // What a loop runs once more is counted by its commands.
        self.followed += usize::from(!self.is_repeated && self.ways == 0);
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
            _ => None,
        });
        if matches!(form, Form::List(_)) {
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
                let Meanings { texts, has_more } = self.meanings(word);
                if has_more || self.is_untold(word) {
                    let what = "may hold more than is told apart";
                    self.raise("unreadable_command", &word.text, what);
                }
                let meant = texts.into_iter();
                found.extend(meant.flat_map(|text| self.expanded(word, text)));
            } else {
                found.push(word.clone());
            }
        }
        Some(found)
    }

    /// Whether something is known of what a word may become.
    pub(super) fn is_known(&self, word: &Word) -> bool {
        let is_set = |part: &Part<'_>| match part {
            Part::Variable(Variable { name, form }) => {
                self.variables.contains_key(kept_as(name))
                    || matches!(form, Form::Or(_) | Form::Set(_))
            }
            Part::Text(_) | Part::Unread => false,
        };
        word.has_variable
            && !self.has_too_much()
            && (parts(&word.text).iter().any(is_set) || vanishes(&word.text))
    }

    fn is_untold(&self, word: &Word) -> bool {
        parts(&word.text).iter().any(|part| match part {
            Part::Variable(Variable { name, .. }) => {
                let sets = self.variables.get(kept_as(name));
                sets.is_some_and(|sets| sets.contains(&Set::Untold))
            }
            Part::Text(_) | Part::Unread => false,
        })
    }

    /// A word that has become this text: outside of quotes it may be several.
    pub(super) fn expanded(&self, word: &Word, text: String) -> Vec<Word> {
        let texts = match word.splitting {
            Splitting::Never | Splitting::Alternative => vec![text],
            Splitting::Splits => self.split(&text),
        };
        let words = texts.into_iter().map(|text| Word {
            has_variable: text.contains('$'),
            splitting: Splitting::Alternative,
            substitutions: Vec::new(),
            text,
            ..word.clone()
        });
        words.collect()
    }

    pub(super) fn split(&self, text: &str) -> Vec<String> {
        let signs = self.variables.get(SEPARATORS).into_iter().flatten();
        let signs: String = signs
            .filter_map(|set| match set {
                Set::To(signs) => Some(signs.as_str()),
                _ => None,
            })
            .collect();
        let is_between = |sign: char| sign.is_whitespace() || signs.contains(sign);
        let words = text.split(is_between).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    }

    /// Whether a word may become an option that nobody knows before it runs.
    pub(super) fn may_be_option(&mut self, word: &Word) -> bool {
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
        let is_open = behind_sign.first().is_some_and(|part| {
            // What a command prints stands there as a sign that may look like a variable's.
            let is_printed = word.has_substitution && !matches!(part, Part::Text(_));
            is_printed || self.part(part, false, 0).is_open
        });
        // What splits may bring an option wherever it stands: `v$(cat f)`.
        is_open
            || (word.splitting == Splitting::Splits && self.is_vague(word))
            || self.meanings(word).has_more
    }

    /// Whether something in a word is only known when it runs.
    pub(super) fn is_vague(&mut self, word: &Word) -> bool {
        if word.has_substitution {
            return word.text.contains('$');
        }
        word.has_variable
            && parts(&word.text)
                .iter()
                .any(|part| self.has_too_much() || self.part(part, false, 0).is_vague)
    }

    /// Everything that a word may be. What is not known stays as it is written.
    pub(super) fn texts(&mut self, word: &Word) -> Vec<String> {
        self.meanings(word).texts
    }

    fn meanings(&mut self, word: &Word) -> Meanings {
        let text = word.meant();
        if !word.has_variable && !word.has_substitution {
            return Meanings {
                texts: vec![text.into_owned()],
                has_more: false,
            };
        }
        self.meanings_within(&text, 0)
    }

    fn meanings_within(&mut self, text: &str, depth: usize) -> Meanings {
        let mut found = Meanings {
            texts: vec![String::new()],
            has_more: false,
        };
        let vanishes = vanishes(text);
        for part in parts(text) {
            let held = self.part(&part, vanishes, depth);
            found.append(&held.texts);
            self.judged_bytes += found.texts.iter().map(|it| it.len() + 1).sum::<usize>();
            if self.is_too_much() {
                return Meanings {
                    texts: vec![text.to_owned()],
                    has_more: true,
                };
            }
        }
        found
    }

    /// What a part of a word may be. One of a name may hold nothing, and vanish.
    fn part(&mut self, part: &Part<'_>, vanishes: bool, depth: usize) -> Held {
        let Variable { name, form } = match part {
            Part::Text(text) => return Held::known(text),
            Part::Unread => return Held::unknown("$"),
            Part::Variable(variable) => variable,
        };
        let mut held = match form {
            Form::Length => return Held::known("0"),
            _ => self.kept(kept_as(name)),
        };
        self.judged_bytes += held.texts.iter().map(|it| it.len() + 1).sum::<usize>();
        let (Form::Or(instead) | Form::Set(instead)) = form else {
            if matches!(form, Form::Changed(_)) {
                held.push(format!("${{{name}}}"));
            }
            if held.texts.is_empty() && vanishes {
                held.texts.push(String::new());
            } else if held.texts.is_empty() {
                held.texts.push(format!("${{{name}}}"));
            }
            return held;
        };
        // A home is one here, too, unless it is quoted, of which nothing is left to see.
        let instead = with_home(instead);
        if depth < DEFAULTS_DEPTH_MAX {
            for text in self.meanings_within(&instead, depth + 1).texts {
                held.push(text);
            }
        } else {
            held.push(format!("${{{name}}}"));
        }
        held
    }

    /// What a variable may hold.
    fn kept(&self, name: &str) -> Held {
        let Some(sets) = self.variables.get(name) else {
            // Without arguments there are none, and those of a function come with its calls.
            let is_open = !is_argument(name) && !GIVEN.contains(&name);
            return Held {
                texts: Vec::new(),
                is_open,
                is_vague: is_open,
            };
        };
        let mut held = Held {
            texts: Vec::new(),
            is_open: false,
            is_vague: false,
        };
        for set in sets {
            held.push(match set {
                Set::To(text) => text.clone(),
                Set::ToName => String::from("HEAD"),
                Set::Computed | Set::Untold => format!("${{{name}}}"),
            });
            if matches!(set, Set::Computed | Set::Untold) {
                (held.is_open, held.is_vague) = (true, true);
            }
        }
        held
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
pub(super) fn kept_as(name: &str) -> &str {
    let is_number = name.len() > 1 && name.chars().all(|sign| sign.is_ascii_digit());
    // Those that have no name of their own may be any of them.
    if name == "*" || is_number {
        ARGUMENTS
    } else {
        name
    }
}

pub(super) fn is_argument(name: &str) -> bool {
    let name = kept_as(name);
    name == ARGUMENTS || NUMBERED.contains(&name)
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
    let is_plain =
        |word: &Word| !word.text.starts_with('-') || NAMING_OPTIONS.contains(&word.text.as_str());
    let is_naming = |at: &usize| {
        let words = all.get(*at).map(|it| it.words.as_slice());
        matches!(words, Some([git, naming, rest @ ..])
            if program(git) == "git" && NAMING.contains(&naming.text.as_str())
                && rest.iter().all(is_plain))
    };
    if !simple.inside.is_empty() && simple.inside.iter().all(is_naming) {
        Printed::Names
    } else {
        Printed::Anything
    }
}
