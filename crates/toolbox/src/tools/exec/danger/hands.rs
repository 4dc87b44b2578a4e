//! Programs that hand a command on: a shell by another name, what runs its arguments, containers.

use super::arguments::OWN_NAME;
use super::elsewhere::Keeps;
use super::expansion::{Part, Variable, parts};
use super::runners::{
    BEGINNINGS_MAX, Place, Runner, beginnings, entrypoint, is_new, runners, stays,
};
use super::{COMPUTED, Certainty, Judge, SCRIPT_DEPTH_MAX, program};
use crate::tools::exec::shell::{Simple, Word};

/// Variables that hold a shell.
const SHELL_NAMES: &[&str] = &["SHELL", "BASH", OWN_NAME];
/// What the last command had for its last word.
const LAST_WORD: &str = "_";
/// How a function begins that `env` hands to a shell.
const EXPORTED: &str = "BASH_FUNC_";

impl Judge<'_> {
    /// Judges the command that a program hands on, where it stands among its arguments.
    pub(super) fn hands_on(
        &mut self,
        words: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        let before = simple.words.len().saturating_sub(words.len());
        self.exported(simple.words.get(..before).unwrap_or_default(), depth);
        let Some((first, args)) = words.split_first() else {
            return;
        };
        if names(first, &[LAST_WORD]) {
            self.raise("computed_command", whole, COMPUTED);
        }
        if self.is_shell(first) {
            let shell = plain("sh");
            let words = [shell].into_iter().chain(args.iter().cloned()).collect();
            self.handed(words, simple, all, depth);
        }
        let name = program(first);
        for runner in runners(name) {
            self.runner(runner, args, simple, all, depth, whole);
        }
        self.hands_script(name, args, simple, all, depth, whole);
    }

    /// Judges the command among the arguments of a program, or each that it may be.
    fn runner(
        &mut self,
        runner: &Runner,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
        whole: &str,
    ) {
        let found = beginnings(runner, args);
        if found.is_unsure {
            self.certainty = Certainty::MayRunMore;
        }
        if found.starts.len() > BEGINNINGS_MAX {
            self.raise("unreadable_command", whole, "can not be read in full");
        }
        for at in found.starts.into_iter().take(BEGINNINGS_MAX) {
            let (before, ran) = args.split_at(at.min(args.len()));
            match runner.place {
                Place::Here if stays(runner, before, ran) => {
                    self.handed_here(package(ran), simple, all, depth);
                }
                Place::Here => self.handed(package(ran), simple, all, depth),
                Place::Elsewhere => {
                    let keeps = if is_new(runner, before) && self.mounts_within(before) {
                        Keeps::Nothing
                    } else {
                        Keeps::Files
                    };
                    let ran = entrypoint(before).into_iter().chain(ran.iter().cloned());
                    self.contained(ran.collect(), keeps, simple, all, depth, whole);
                }
            }
        }
    }

    /// Judges a command that runs where its runner is, and nowhere else.
    fn handed_here(&mut self, words: Vec<Word>, simple: &Simple, all: &[Simple], depth: usize) {
        let aside = std::mem::take(&mut self.aside);
        self.handed(words, simple, all, depth);
        self.aside = aside;
    }

    pub(super) fn handed(
        &mut self,
        words: Vec<Word>,
        simple: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        if depth >= SCRIPT_DEPTH_MAX {
            let whole = super::shown(&words);
            self.raise("unreadable_command", &whole, "can not be read in full");
            return;
        }
        let handed = Simple {
            words,
            writes: Vec::new(),
            ..simple.clone()
        };
        self.in_child(|judge| judge.simple(&handed, all, depth + 1));
    }

    /// Whether a word stands for a shell: `$SHELL`, `$0`, `/proc/self/exe`.
    fn is_shell(&self, first: &Word) -> bool {
        let is_own = names(first, &[OWN_NAME]) && self.variables.contains_key(OWN_NAME);
        let is_running = first.text.starts_with("/proc/") && first.text.ends_with("/exe");
        is_running || (names(first, SHELL_NAMES) && !is_own)
    }

    /// Functions that `env` hands to a shell: `env 'BASH_FUNC_ls%%=() { …; }' bash -c ls`.
    fn exported(&mut self, words: &[Word], depth: usize) {
        for word in words {
            let named = word.text.strip_prefix(EXPORTED);
            let Some((name, body)) = named.and_then(|it| it.split_once('=')) else {
                continue;
            };
            self.certainty = Certainty::MayRunMore;
            let name = name.trim_end_matches(['%', '(', ')']);
            let body = body.trim_start_matches(['(', ')', ' ']);
            self.script(&format!("{name}() {body}"), depth + 1);
        }
    }
}

/// Whether a word is one of these variables and nothing else.
fn names(word: &Word, known: &[&str]) -> bool {
    let parts = parts(&word.text);
    word.has_variable
        && matches!(parts.as_slice(), [Part::Variable(Variable { name, .. })] if known.contains(name))
}

pub(super) fn plain(text: &str) -> Word {
    Word {
        text: text.to_owned(),
        ..Word::default()
    }
}

/// The command that comes with a package: `rimraf@5`, `@changesets/cli`.
fn package(ran: &[Word]) -> Vec<Word> {
    let mut words = ran.to_vec();
    if let Some(first) = words.first_mut().filter(|it| !it.has_variable) {
        let at = first.text.rfind('@').filter(|at| *at > 0);
        if let Some(at) = at {
            first.text.truncate(at);
        }
        if first.text == "@changesets/cli" {
            "changeset".clone_into(&mut first.text);
        }
    }
    words
}
