//! The word that decides what a program does: `git push`, `kubectl -n prod delete`.

use super::input::is_replaced;
use super::tables::{ACTIONS, GIT_VALUED, PAIRS};
use super::{Judge, program, shown};
use crate::tools::exec::shell::{Simple, Splitting, Word};

const MAY_ACT: &str = "may do what can not be undone, which is only known when it runs";

/// The word that decides, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deciding<'w> {
    Named(&'w Word),
    /// It is there, and only known when it runs.
    Unknown,
    /// There is none, or each that may be it may be the value of an option.
    Missing,
}

impl Judge<'_> {
    /// The word among a program's arguments that decides what it does.
    pub(super) fn deciding<'w>(&mut self, name: &str, args: &'w [Word]) -> Deciding<'w> {
        let mut may_be_value = false;
        for word in args {
            if word.text.starts_with(['-', '+']) {
                may_be_value = may_hold_next(name, &word.text);
                continue;
            }
            let is_unknown = self.may_be_option(word) || self.is_vague(word);
            if !std::mem::take(&mut may_be_value) {
                return if is_unknown {
                    Deciding::Unknown
                } else {
                    Deciding::Named(word)
                };
            }
            // It may be more than the value.
            let is_computed = word.has_substitution || self.is_known(word);
            if is_unknown && is_computed && word.splitting == Splitting::Splits {
                return Deciding::Unknown;
            }
        }
        Deciding::Missing
    }

    /// Judges a program by that word.
    pub(super) fn acts(&mut self, name: &str, args: &[Word], whole: &str) {
        let has = |words: &[&str]| args.iter().any(|word| words.contains(&word.text.as_str()));
        for (_, actions, what) in ACTIONS.iter().filter(|(known, ..)| *known == name) {
            if has(actions) {
                self.raise("irreversible_command", whole, what);
            }
        }
        for (_, of, actions, what) in PAIRS.iter().filter(|(known, ..)| *known == name) {
            if has(&[*of]) && has(actions) {
                self.raise("irreversible_command", whole, what);
            }
        }
        // What git may do is told apart by what else stands there.
        let is_judged = name != "git" && may_act(name);
        if is_judged && self.deciding(name, args) == Deciding::Unknown {
            self.raise("irreversible_command", whole, MAY_ACT);
        }
    }

    /// `… | xargs git`: the word comes from elsewhere, to the command behind such a wrapper.
    pub(super) fn is_given_action(&mut self, behind: &[Word], simple: &Simple) {
        let Some((first, args)) = behind.split_first() else {
            return;
        };
        let name = program(first);
        let is_elsewhere = match self.deciding(name, args) {
            Deciding::Named(word) => is_replaced(word, &simple.words),
            Deciding::Missing => true,
            // That is asked about whatever comes.
            Deciding::Unknown => false,
        };
        if !is_elsewhere {
            return;
        }
        self.open.insert(name.to_owned());
        // What comes may be an option as well.
        if may_act(name) || ACTIONS.iter().any(|(known, ..)| *known == name) {
            self.raise("irreversible_command", &shown(&simple.words), MAY_ACT);
        }
    }
}

/// Whether the next word may be the value of an option.
fn may_hold_next(name: &str, option: &str) -> bool {
    match name {
        "git" => GIT_VALUED.contains(&option),
        _ => option.starts_with('-') && option != "--" && !option.contains('='),
    }
}

/// Whether some word makes a program do what can not be undone.
fn may_act(name: &str) -> bool {
    let is_word = |actions: &[&str]| actions.iter().any(|it| !it.starts_with('-'));
    let mut actions = ACTIONS.iter();
    matches!(name, "git" | "aws")
        || actions.any(|(known, actions, _)| *known == name && is_word(actions))
        || PAIRS.iter().any(|(known, ..)| *known == name)
}

#[cfg(test)]
mod tests {
    use super::super::evasions::{asked, not_asked};

    const ASKED: &[&str] = &[
        "cat l | xargs git",
        "cat l | xargs git --no-pager",
        "cat l | xargs git -C sub",
        "cat l | xargs kubectl",
        "cat l | xargs kubectl -n prod",
        "cat l | xargs aws",
        "cat l | xargs docker --context x",
        "cat l | xargs crontab",
        "cat l | xargs -I {} git {}",
        "cat l | xargs -IX git X",
        "kubectl \"$x\" pod a",
        "kubectl -n prod \"$x\" pod a",
        "cargo +nightly \"$x\"",
        "kubectl -- \"$x\" pod a",
        "aws --region=x \"$y\"",
        "git --no-pager $x",
    ];

    const NOT_ASKED: &[&str] = &[
        "cat l | xargs git blame",
        "cat l | xargs git --no-pager blame",
        "cat l | xargs git -C sub blame",
        "cat l | xargs kubectl -n prod describe",
        "cat l | xargs -n 1 cargo +nightly test",
        "cat l | xargs wc -l",
        "cat l | xargs -I {} git blame {}",
        "kubectl -n \"$ns\" get pods",
        "cargo +nightly test \"$x\"",
        "crontab $x",
    ];

    #[test]
    fn the_word_that_decides_has_to_be_known() {
        let wrong = not_asked(&[("irreversible_command", ASKED)]);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        let wrong = asked(NOT_ASKED);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
