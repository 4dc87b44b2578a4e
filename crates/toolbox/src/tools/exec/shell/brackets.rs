//! What brackets are for.

use super::expand::NAME_BYTES_MAX;
use super::{Open, Quoting, Reader, StandsFor};

/// Brackets within brackets that are told apart: what stands in them is looked at where each ends.
const BRACKETS_DEPTH_MAX: usize = 32;

/// What a bracket is for.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Bracket {
    /// Commands, from this one on.
    Subshell(usize),
    /// Words of an array, by its name, or numbers: no file is looked for.
    Values(Option<String>),
}

impl Reader {
    /// Notes the bracket just taken. What is deeper than is told apart is read all the same.
    pub(super) fn begin_bracket(&mut self, array: Option<String>, brackets: &mut Vec<Bracket>) {
        if brackets.len() < BRACKETS_DEPTH_MAX {
            brackets.push(self.bracket(array));
        } else {
            self.script.is_unreadable = true;
        }
    }

    /// What the bracket just taken is for: `a=(…)` and `((…))` hold values.
    fn bracket(&self, array: Option<String>) -> Bracket {
        let before = self.at.checked_sub(2).and_then(|at| self.rest.get(at));
        if array.is_some() || before == Some(&'(') {
            Bracket::Values(array)
        } else {
            Bracket::Subshell(self.script.commands.len())
        }
    }

    /// A bracket that nothing began ends what is compared in `case … in a|*.b)`, which is no command.
    pub(super) fn is_case(&mut self, last: Option<usize>) {
        let mut next = last;
        while let Some(simple) = next.and_then(|at| self.script.commands.get_mut(at)) {
            // What is before `in` is a command all the same, and may begin with a brace.
            let is_case = simple.words.iter().any(|word| word.text == "case");
            let last_in = simple.words.iter().rposition(|word| word.text == "in");
            let before = last_in.filter(|_| is_case).map_or(0, |at| at + 1);
            for word in simple.words.iter_mut().skip(before) {
                word.stands_for = StandsFor::Itself;
                // Nor does a brace among them begin or end anything.
                word.quoting = Quoting::Quoted;
            }
            next = simple.reads_from;
        }
    }

    /// The array that a bracket behind these words fills: `a=(…)`. Each line of it has its name, so
    /// that of one whose name is too long nothing is known.
    pub(super) fn array(&mut self, open: &Open) -> Option<String> {
        let name = open.word.as_ref()?.text.strip_suffix('=')?;
        if name.len() > NAME_BYTES_MAX {
            self.script.is_unreadable = true;
            return None;
        }
        Some(name.trim_end_matches('+').to_owned())
    }
}
