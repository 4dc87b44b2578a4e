//! What brackets are for.

use super::expand::NAME_BYTES_MAX;
use super::joined::Link;
use super::{Open, Quoting, Reader, Script, StandsFor};

/// Signs of a sum among which its end is looked for.
const SUM_SIGNS_MAX: usize = 1024;
/// Brackets within brackets that are told apart: what stands in them is looked at where each ends.
const BRACKETS_DEPTH_MAX: usize = 32;

/// What a bracket is for.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Bracket {
    /// Commands, from this one on.
    Subshell(usize),
    /// Words of an array, by its name, or numbers: no file is looked for.
    Values(Option<String>),
    /// Numbers, to every shell: `$((1<<2))`. Nothing in it is read or written.
    Sum,
}

impl Script {
    /// There is more to it than is read.
    pub(super) fn goes_deep(&mut self) {
        (self.is_unreadable, self.is_deep) = (true, true);
    }
}

impl Bracket {
    /// Whether it holds values, to all shells or to some.
    pub(super) fn holds_values(&self) -> bool {
        matches!(self, Self::Values(_) | Self::Sum)
    }

    /// Whether it is `((…))` or the like: to some shells it holds numbers, to others commands.
    pub(super) fn may_be_sum(&self) -> bool {
        matches!(self, Self::Values(None))
    }
}

impl Reader {
    /// Notes the bracket just taken. What is deeper than is told apart is read all the same.
    pub(super) fn begin_bracket(
        &mut self,
        array: Option<String>,
        link: Link,
        brackets: &mut Vec<Bracket>,
    ) {
        if brackets.len() < BRACKETS_DEPTH_MAX {
            let bracket = self.bracket(array, brackets.last());
            if let Bracket::Subshell(first) = bracket {
                self.inputs.enter(link, first);
            }
            brackets.push(bracket);
        } else {
            self.script.goes_deep();
        }
    }

    /// What the bracket just taken is for: `a=(…)` and `((…))` hold values.
    fn bracket(&self, array: Option<String>, around: Option<&Bracket>) -> Bracket {
        let before = |count| self.at.checked_sub(count).and_then(|at| self.rest.get(at));
        let is_sum = || {
            let is_first = around.is_none() && before(2) == Some(&'(');
            is_first && before(3) == Some(&'$') && self.ends_as_sum()
        };
        if around == Some(&Bracket::Sum) || is_sum() {
            Bracket::Sum
        } else if array.is_some() || before(2) == Some(&'(') {
            Bracket::Values(array)
        } else {
            Bracket::Subshell(self.script.commands.len())
        }
    }

    /// Whether the bracket just taken ends right before the one around it: `$((…))`, and not
    /// `$((…) …)`, which is a command. Where brackets may mean something else that is not told.
    fn ends_as_sum(&self) -> bool {
        let (mut open, mut braces) = (1_usize, 0_usize);
        let mut before = '(';
        for (at, sign) in self
            .rest
            .iter()
            .skip(self.at)
            .take(SUM_SIGNS_MAX)
            .enumerate()
        {
            match sign {
                '(' | ')' if braces > 0 => return false,
                '(' if before == '$' => return false,
                '(' => open += 1,
                ')' => open -= 1,
                '{' => braces += 1,
                '}' => braces = braces.saturating_sub(1),
                '\'' | '"' | '`' | '\\' => return false,
                _ => {}
            }
            if open == 0 {
                return self.peek(at + 1) == Some(')');
            }
            before = *sign;
        }
        false
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
            self.script.goes_deep();
            return None;
        }
        Some(name.trim_end_matches('+').to_owned())
    }
}
