//! The arguments of scripts and functions.

use super::expansion::{Part, Variable, parts};
use super::variables::{ARGUMENTS, NUMBERED, Set, is_argument, kept_as};
use super::{COMPUTED, Judge};
use crate::tools::exec::shell::{Splitting, Word};

/// The name under which a script knows itself, which whoever starts it chooses.
pub(super) const OWN_NAME: &str = "0";

impl Judge<'_> {
    /// Notes the arguments of a script, by their numbers and together.
    pub(super) fn note_arguments(&mut self, values: &[Word]) {
        let mut is_shifted = false;
        for (at, number) in NUMBERED.iter().enumerate() {
            let Some(value) = values.get(at) else { break };
            self.note_values(number, std::slice::from_ref(value));
            is_shifted |= value.splitting == Splitting::Splits && self.is_vague(value);
            if is_shifted {
                break;
            }
        }
        self.note_values(ARGUMENTS, values);
        // One that may become several moves all that are behind it.
        for number in NUMBERED.iter().filter(|_| is_shifted) {
            self.note_each_argument(number);
            self.note(number, Set::Computed);
        }
    }

    /// Notes what each argument may be, by its number. One that may be several words, or none, moves all
    /// that are behind it.
    fn note_choices(&mut self, args: Vec<Vec<Vec<Word>>>) {
        let mut first = Vec::new();
        let mut others = Vec::new();
        let mut is_shifted = false;
        for choices in args {
            let is_one = choices.iter().all(|words| words.len() == 1);
            is_shifted |= choices.len() > 1 && !is_one;
            let mut choices = choices.into_iter();
            let words = choices.next().unwrap_or_default();
            let number = NUMBERED.get(first.len());
            first.extend(words);
            for word in choices.flatten() {
                others.push((number, word));
            }
        }
        self.note_arguments(&first);
        for (number, word) in others {
            let value = std::slice::from_ref(&word);
            self.note_values(ARGUMENTS, value);
            if let Some(number) = number {
                self.note_values(number, value);
            }
        }
        for number in NUMBERED.iter().filter(|_| is_shifted) {
            self.note_each_argument(number);
        }
    }

    /// Notes all arguments as what a variable may hold.
    pub(super) fn note_each_argument(&mut self, name: &str) {
        // Patterns among them are not noted.
        self.unclear.insert(name.to_owned());
        let sets = self.variables.get(ARGUMENTS).cloned().unwrap_or_default();
        for set in sets {
            self.note_listed(name, set);
        }
    }

    /// Judges something that is given these arguments, which nobody else has.
    pub(super) fn given(&mut self, args: &[Word], judge: impl FnOnce(&mut Self)) {
        // Some may be arguments of what is around it: `f "$1"` in a function.
        let args = args.iter().map(|word| self.choices(word)).collect();
        let names = || NUMBERED.into_iter().chain([ARGUMENTS]);
        let outer: Vec<Option<Vec<Set>>> = names().map(|it| self.variables.remove(it)).collect();
        // They are set anew each time and gone behind it: nothing new for a loop around it.
        let noted = self.noted;
        self.note_choices(args);
        self.noted = noted;
        judge(self);
        for (name, set) in names().zip(outer) {
            self.variables.remove(name);
            self.variables.extend(set.map(|set| (name.to_owned(), set)));
        }
    }

    /// Judges a script that is given these, its own name first, which nobody else has.
    pub(super) fn given_as(&mut self, args: &[Word], judge: impl FnOnce(&mut Self)) {
        let (name, args) = args.split_at(args.len().min(1));
        let outer = self.variables.remove(OWN_NAME);
        let noted = self.noted;
        self.note_values(OWN_NAME, name);
        self.noted = noted;
        self.given(args, judge);
        self.variables.remove(OWN_NAME);
        self.variables
            .extend(outer.map(|set| (OWN_NAME.to_owned(), set)));
    }

    /// A script that holds an argument of the one around it: what that runs is not known where that
    /// argument is not.
    pub(super) fn hands_argument_on(&mut self, script: &Word, whole: &str) {
        let is_computed = |part: &Part<'_>| match part {
            Part::Variable(Variable { name, .. }) => {
                let sets = self.variables.get(kept_as(name));
                (is_argument(name) || *name == OWN_NAME)
                    && sets.is_some_and(|sets| sets.contains(&Set::Computed))
            }
            Part::Text(_) | Part::Unread => false,
        };
        if script.has_variable && parts(&script.text).iter().any(is_computed) {
            self.raise("computed_command", whole, COMPUTED);
        }
    }

    /// Judges something of whose arguments nothing is known.
    pub(super) fn given_anything(&mut self, judge: impl FnOnce(&mut Self)) {
        self.given(&[], |it| {
            let noted = it.noted;
            let outer = it.variables.remove(OWN_NAME);
            for name in NUMBERED.into_iter().chain([ARGUMENTS, OWN_NAME]) {
                it.note(name, Set::Computed);
            }
            it.noted = noted;
            judge(it);
            it.variables.remove(OWN_NAME);
            it.variables
                .extend(outer.map(|set| (OWN_NAME.to_owned(), set)));
        });
    }
}
