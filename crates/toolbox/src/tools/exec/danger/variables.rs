//! Commands that stand in variables: `c='rm -rf x'; $c`.

use super::wrappers::assigned;
use super::{Judge, SCRIPT_DEPTH_MAX, written};
use crate::tools::exec::shell::{Simple, Word};

/// Variables and aliases that are followed; a command line that runs more counts as unreadable.
pub(super) const FOLLOWED_MAX: usize = 64;
/// What is between words unless the command says otherwise.
const SEPARATORS: &str = "IFS";
/// The name under which the arguments of a script are kept.
const ARGUMENTS: &str = "@";

/// What a variable was set to by the command line itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Set {
    To(String),
    /// To what another command prints, or a file holds.
    Computed,
}

impl Judge<'_> {
    /// Notes what the words before and behind a command set.
    pub(super) fn note_assignments(&mut self, words: &[Word]) {
        for word in words {
            let Some((name, value)) = assigned(word) else {
                continue;
            };
            let set = if word.has_substitution {
                Set::Computed
            } else {
                Set::To(value.to_owned())
            };
            self.variables.insert(name.to_owned(), set);
        }
    }

    /// Notes what a builtin of the shell sets.
    pub(super) fn note_set(&mut self, name: &str, args: &[Word], simple: &Simple, all: &[Simple]) {
        let named = || args.iter().filter(|word| !word.text.starts_with('-'));
        match name {
            "export" | "declare" | "local" | "readonly" | "typeset" => self.note_assignments(args),
            "for" | "select" => {
                let Some(variable) = args.first() else { return };
                let values = args.get(2..).unwrap_or_default();
                self.note_values(&variable.text, values, "\n");
            }
            "set" => {
                let values: Vec<Word> = named().cloned().collect();
                if let Some(first) = values.first() {
                    self.note_values("1", std::slice::from_ref(first), " ");
                }
                self.note_values(ARGUMENTS, &values, " ");
            }
            "read" | "mapfile" | "readarray" => {
                let set = if let Some(text) = self.fed(simple, all).text {
                    Set::To(text)
                } else if simple.reads_from.is_some()
                    || !simple.reads.is_empty()
                    || self.loop_is_fed
                {
                    Set::Computed
                } else {
                    // The standard input, which is judged by itself.
                    return;
                };
                for variable in named() {
                    self.variables.insert(variable.text.clone(), set.clone());
                }
            }
            "printf" if args.first().is_some_and(|word| word.text == "-v") => {
                let variable = args.get(1).map(|word| word.text.clone());
                self.variables
                    .extend(variable.map(|it| (it, Set::Computed)));
            }
            _ => {}
        }
    }

    fn note_values(&mut self, name: &str, values: &[Word], between: &str) {
        let set = if values.iter().any(|word| word.has_substitution) {
            Set::Computed
        } else if values
            .iter()
            .any(|word| word.has_variable || word.has_pattern())
        {
            return;
        } else {
            let texts: Vec<&str> = values.iter().map(|word| word.text.as_str()).collect();
            Set::To(texts.join(between))
        };
        self.variables.insert(name.to_owned(), set);
    }

    /// Judges a command that is a variable, if the command line says what that holds.
    pub(super) fn follow(&mut self, first: &Word, args: &[Word], whole: &str, depth: usize) {
        let name = match variable(&first.text) {
            Some("*") => ARGUMENTS.to_owned(),
            Some(name) => name.to_owned(),
            None => return,
        };
        // Taken out: one that names itself is not followed for ever.
        let Some(set) = self.variables.remove(&name) else {
            return;
        };
        self.followed += 1;
        let separators = self.variables.get(SEPARATORS).cloned();
        match (&set, &separators) {
            (Set::Computed, _) | (_, Some(Set::Computed)) => {
                self.raise("computed_command", whole, super::COMPUTED);
            }
            _ if self.followed > FOLLOWED_MAX || depth >= SCRIPT_DEPTH_MAX => {
                self.raise("unreadable_command", whole, "runs too many variables");
            }
            (Set::To(value), separators) => {
                let mut text = value.clone();
                if let Some(Set::To(signs)) = separators {
                    text = text.replace(|sign| signs.contains(sign), " ");
                }
                let script = format!("{text} {}", written(args));
                self.script(&script, depth + 1);
            }
        }
        self.variables.insert(name, set);
    }
}

/// The variable that a word is, and nothing else: `$a`, `${a}`, `${a[@]}`.
fn variable(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('$')?;
    let braced = rest.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let name = braced.map_or(rest, |it| it.split('[').next().unwrap_or_default());
    let is_sign = |sign: char| sign == '_' || sign.is_alphanumeric();
    let is_name = !name.is_empty() && name.chars().all(is_sign);
    (is_name || matches!(name, "@" | "*")).then_some(name)
}
