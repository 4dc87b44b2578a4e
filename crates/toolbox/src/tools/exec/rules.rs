//! Which commands may run at all, as whoever runs Holdfast has listed them.
//!
//! A rule is a program with words that have to be there: `git`, `git push`, `rm -rf /`. It is held
//! against every command that a command line runs, also behind `sudo`, inside `sh -c` and behind
//! `find -exec`. A command line that can not be read in full breaks every rule.

use std::collections::BTreeSet;

use holdfast_contract::Reason;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::danger::{self, Judged};
use crate::tools::text::one_line;

/// Characters of a command in a reason.
const SUBJECT_CHARS_MAX: usize = 200;

/// What a shell does itself and nobody would list: it moves about and compares.
const HARMLESS: &[&str] = &[
    ":", "[", "cd", "exit", "false", "popd", "pushd", "pwd", "test", "true", "wait",
];

/// `permissions.commands`
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CommandRules {
    /// When it is not empty, only these commands run. Each is a program, or a program with words that
    /// have to be there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allowed: Vec<String>,
    /// Commands that never run, whoever asks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
}

impl CommandRules {
    /// Why a command line may not run.
    pub(super) fn forbid(&self, judged: &Judged<'_>) -> Option<Reason> {
        if self.allowed.is_empty() && self.blocked.is_empty() {
            return None;
        }
        let Some(runs) = danger::runs(judged) else {
            return Some(reason(
                "unreadable_command",
                judged.command,
                "can not be read in full, so it can not be held against the rules for commands",
            ));
        };
        let may_be = |rule: &&String| may_be_blocked(rule, &runs.open);
        if let Some(rule) = self.blocked.iter().find(may_be) {
            let why =
                format!("may be what the rule {rule:?} blocks: that is only known when it runs");
            return Some(reason("unreadable_command", judged.command, &why));
        }
        for run in &runs.commands {
            let whole = run.join(" ");
            if let Some(rule) = self.blocked.iter().find(|rule| fits(rule, run)) {
                let why = format!("is blocked by the rule {rule:?}");
                return Some(reason("blocked_command", &whole, &why));
            }
            let is_listed = self.allowed.is_empty()
                || self.allowed.iter().any(|rule| fits(rule, run))
                || run
                    .first()
                    .is_some_and(|it| HARMLESS.contains(&it.as_str()));
            if !is_listed {
                let why = "is not among the commands that are allowed";
                return Some(reason("command_not_allowed", &whole, why));
            }
        }
        None
    }
}

fn reason(code: &str, subject: &str, why: &str) -> Reason {
    let subject = one_line(subject, SUBJECT_CHARS_MAX);
    let text = format!("`{subject}` {why}");
    Reason::new(code, subject, text)
}

/// Whether one of these programs may come to do what the rule blocks.
fn may_be_blocked(rule: &str, open: &BTreeSet<String>) -> bool {
    let mut words = rule.split_whitespace();
    let program = words.next().and_then(|path| path.rsplit('/').next());
    // Only the word that decides what a program does may be hidden so: what else a rule names is often
    // a file.
    program.is_some_and(|program| open.contains(program))
        && words.next().is_some_and(|word| !word.starts_with('-'))
}

/// Whether a command is the rule's program with all of the rule's words.
fn fits(rule: &str, run: &[String]) -> bool {
    let mut words = rule.split_whitespace();
    let (Some(program), Some(ran)) = (words.next(), run.first()) else {
        return false;
    };
    let is_program = if program.contains('/') {
        ran == program
    } else {
        ran.rsplit('/').next() == Some(program)
    };
    let args = run.get(1..).unwrap_or_default();
    let given = given(args);
    is_program
        && words.all(|word| {
            let spelt = letters(word);
            let is_given = |letter: char| given.contains(&letter);
            if !spelt.is_empty() {
                return spelt.chars().all(is_given);
            }
            let long = word.strip_prefix("--");
            let short = LONG.iter().find(|(name, _)| Some(*name) == long);
            args.iter().any(|arg| bare(arg) == bare(word))
                || short.is_some_and(|(_, letter)| is_given(*letter))
        })
}

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
fn given(args: &[String]) -> BTreeSet<char> {
    let mut given = BTreeSet::new();
    for arg in args {
        given.extend(letters(arg).chars());
        let word = arg.strip_prefix("--").filter(|word| !word.is_empty());
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn code(rules: &CommandRules, command: &str) -> Option<String> {
        let judged = Judged {
            command,
            stdin: None,
            workspace: Path::new("/home/u/space"),
            working_dir: None,
            temporary: danger::Temporary::Anywhere,
        };
        rules.forbid(&judged).map(|reason| reason.code)
    }

    fn rules(allowed: &[&str], blocked: &[&str]) -> CommandRules {
        let owned = |list: &[&str]| list.iter().map(|it| (*it).to_owned()).collect();
        CommandRules {
            allowed: owned(allowed),
            blocked: owned(blocked),
        }
    }

    #[test]
    fn blocked_commands_are_found_wherever_they_stand() {
        let rules = rules(&[], &["rm -rf /", "shutdown", "git push"]);
        for command in [
            "rm -rf /",
            "rm -r -f //",
            "/bin/rm --one-file-system -fr /",
            "shutdown now",
            "sudo shutdown",
            "true && sh -c 'shutdown -h'",
            "echo $(shutdown)",
            "find . -exec shutdown ;",
            "FOO=1 nice git push origin main",
        ] {
            let found = code(&rules, command);
            assert_eq!(found.as_deref(), Some("blocked_command"), "{command}");
        }
        for command in [
            "read X < l; git $X",
            "git $(cat l)",
            "read Y; git -C x \"$Y\" origin",
            "cat l | xargs git",
            "git --no-pager \"$X\"",
            "cat l | xargs git -C sub",
            "git pull; cat l | xargs -n 2 git --no-pager",
        ] {
            let found = code(&rules, command);
            assert_eq!(found.as_deref(), Some("unreadable_command"), "{command}");
        }
        for command in [
            "rm -rf build",
            "rm -r /tmp/x",
            "git pull",
            "echo shutdown",
            "git commit -m \"$MESSAGE\"",
            "git checkout \"$B\"",
            "git ls-files | xargs git blame",
            "echo $X; ls $(cat l)",
            "find . -name '*.orig' -print0 | xargs -0 rm -f",
            "f=$(mktemp); rm \"$f\"",
        ] {
            assert_eq!(code(&rules, command), None, "{command}");
        }
    }

    #[test]
    fn with_a_list_of_allowed_commands_no_other_runs() {
        let rules = rules(&["git status", "ls", "cargo"], &["cargo publish"]);
        for command in ["ls -la", "cd src && git status", "cargo test | ls"] {
            assert_eq!(code(&rules, command), None, "{command}");
        }
        for (command, expected) in [
            ("git push", "command_not_allowed"),
            ("ls; curl x", "command_not_allowed"),
            ("ls | sh", "unreadable_command"),
            ("ls | sort", "command_not_allowed"),
            ("cargo publish", "blocked_command"),
            ("$X y", "unreadable_command"),
            ("$(echo rm) x", "unreadable_command"),
            ("ls 'unclosed", "unreadable_command"),
        ] {
            assert_eq!(
                code(&rules, command).as_deref(),
                Some(expected),
                "{command}"
            );
        }
    }

    #[test]
    fn without_rules_nothing_is_read() {
        assert_eq!(code(&CommandRules::default(), "$X 'unclosed"), None);
    }
}
