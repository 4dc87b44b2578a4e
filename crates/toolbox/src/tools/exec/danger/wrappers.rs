//! The command behind the words that only wrap it.

use super::tables::{FLAGS, LOADER, RIGHTS, VALUED, WRAPPERS};
use super::{Certainty, Judge, program};
use crate::tools::exec::shell::Word;

impl Judge<'_> {
    /// The command behind its wrappers; the ones that change rights are reported on the way.
    pub(super) fn unwrapped<'w>(&mut self, words: &'w [Word], whole: &str) -> &'w [Word] {
        let mut rest = words;
        while let Some(first) = rest.first() {
            let name = started_by(program(first));
            let own_args = match WRAPPERS.iter().find(|(known, _)| *known == name) {
                _ if is_assignment(first) => 0,
                Some((_, own_args)) => *own_args,
                None if RIGHTS.contains(&name) => {
                    self.raise("other_rights", whole, "runs with other rights");
                    usize::from(name == "chroot")
                }
                None => return rest,
            };
            rest = rest.get(1..).unwrap_or_default();
            if !is_assignment(first) {
                rest = self.behind_options(name, own_args, rest, whole);
            }
        }
        rest
    }

    /// What is left behind a wrapper's options and its own arguments.
    fn behind_options<'w>(
        &mut self,
        name: &str,
        mut own_args: usize,
        mut rest: &'w [Word],
        whole: &str,
    ) -> &'w [Word] {
        while let Some(next) = rest.first() {
            let text = next.text.as_str();
            let is_option = text.starts_with('-') && text.len() > 1;
            let is_number = text.starts_with(|sign: char| sign.is_ascii_digit());
            if name == "env" && !is_option && text.contains('=') {
                // Whatever its name is: `env a-b=1 ls`.
                rest = rest.get(1..).unwrap_or_default();
                continue;
            }
            if !is_option && !is_number && own_args == 0 {
                break;
            }
            rest = rest.get(1..).unwrap_or_default();
            if !is_option {
                own_args = own_args.saturating_sub(1);
                continue;
            }
            if text == "--" {
                // Behind it are no more options.
                return rest.get(own_args..).unwrap_or_default();
            }
            if name == "env" {
                self.option_of_env(text, whole);
            }
            if VALUED.contains(&(name, text)) || ends_valued(name, text) {
                rest = rest.get(1..).unwrap_or_default();
            } else if !is_known_flag(name, text) {
                // The next word may be its value or the command.
                self.certainty = Certainty::MayRunMore;
            }
        }
        rest
    }

    fn option_of_env(&mut self, option: &str, whole: &str) {
        let letters = option.strip_prefix('-').filter(|it| !it.starts_with('-'));
        if letters.is_some_and(|it| it.contains('S')) || option.starts_with("--split") {
            let what = "takes a string apart into a command";
            self.raise("unreadable_command", whole, what);
        }
        let moves = letters.is_some_and(|it| it.contains('C')) || option.starts_with("--ch");
        if moves && !self.places.contains(&None) {
            self.places.push(None);
        }
    }
}

/// The name under which a wrapper is in the tables.
fn started_by(name: &str) -> &str {
    let is_loader = ["ld-linux", "ld-musl", "ld.so", "ld64.so"];
    if is_loader.iter().any(|known| name.starts_with(known)) {
        LOADER
    } else {
        name
    }
}

fn is_assignment(word: &Word) -> bool {
    assigned(word).is_some()
}

/// The variable that a word sets, and to what; also `a[1]=x` and `a+=x`.
pub(super) fn assigned(word: &Word) -> Option<(&str, &str)> {
    let (left, value) = word.text.split_once('=')?;
    let left = left.strip_suffix('+').unwrap_or(left);
    let name = left.split('[').next().unwrap_or_default();
    let is_sign = |sign: char| sign == '_' || sign.is_alphanumeric();
    let is_name = !name.is_empty() && name.chars().all(is_sign);
    is_name.then_some((name, value))
}

/// Whether the last of several letters has the next word as its value: `xargs -0I {}`.
fn ends_valued(name: &str, option: &str) -> bool {
    let flags = FLAGS.iter().find(|(known, ..)| *known == name);
    let Some((flags, (begun, last))) = flags.zip(option.char_indices().next_back()) else {
        return false;
    };
    let letters = option.get(1..begun).unwrap_or_default();
    let is_valued = VALUED.contains(&(name, format!("-{last}").as_str()));
    !option.starts_with("--")
        && !letters.is_empty()
        && letters.chars().all(|letter| flags.1.contains(letter))
        && is_valued
}

/// Whether the option is one that has no value, or has it within itself.
fn is_known_flag(name: &str, option: &str) -> bool {
    let holds_value = if let Some(long) = option.strip_prefix("--") {
        long.contains('=')
    } else {
        // `-oL`, `-n1`, `-5`: a letter that has a value, and the value.
        let short = option.get(..2).unwrap_or(option);
        let behind = option.strip_prefix('-').unwrap_or_default();
        VALUED.contains(&(name, short)) || behind.starts_with(|it: char| it.is_ascii_digit())
    };
    let all_flags = |flags: &str| {
        option.strip_prefix('-').is_some_and(|letters| {
            !letters.starts_with('-') && letters.chars().all(|letter| flags.contains(letter))
        })
    };
    holds_value
        || FLAGS.iter().any(|(known, short, long)| {
            *known == name && (all_flags(short) || long.contains(&option))
        })
}
