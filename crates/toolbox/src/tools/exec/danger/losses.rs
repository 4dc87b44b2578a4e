//! Work that git does not keep and that is gone for good: what was never committed, or what nothing
//! points to any more.

use super::Judge;
use super::git::is_forced;
use super::options::{Options, firsts};
use super::tables::NO_LETTER;
use super::variables::Printed;
use crate::tools::exec::shell::{Splitting, Word};

const CLEANS: &str = "removes files that git does not keep";
const MAY_CLEAN: &str = "may remove files that git does not keep";
const UNCOMMITTED: &str = "throws away changes that were never committed";
const STASHED: &str = "throws away what was stashed";
const UNREACHABLE: &str = "takes away the last name of commits";
const REWRITES: &str = "writes the history anew";
const MAY_OVERWRITE: &str =
    "may overwrite or remove what others have, which is only known when it runs";

/// Commands of git that throw something away, with some arguments.
const LOSING: &[&str] = &[
    "clean",
    "reset",
    "checkout",
    "restore",
    "rm",
    "worktree",
    "stash",
    "branch",
    "reflog",
    "update-ref",
];

impl Judge<'_> {
    /// What a command of git throws away. `all` are its arguments, `args` those behind its name.
    pub(super) fn loses(&mut self, name: &str, all: &[Word], args: &[Word], whole: &str) {
        let options = Options::of(name, args);
        let everything = |judge: &Self| args.iter().any(|word| judge.is_everything(word));
        let is_first = |known: &[&str]| firsts(args).iter().any(|it| known.contains(&&*it.text));
        let force = options.has('f', "force");
        let what = match name {
            "clean" => return self.cleans(all, &options, whole),
            "reset" if options.has_name("hard") => UNCOMMITTED,
            "checkout" | "switch" if force || options.has_name("discard-changes") => UNCOMMITTED,
            "checkout" if everything(self) => UNCOMMITTED,
            "restore" if everything(self) && touches_files(&options) => UNCOMMITTED,
            // Without it the files stay.
            "rm" if force && everything(self) && !options.has_surely(NO_LETTER, "cached") => {
                UNCOMMITTED
            }
            "worktree" if is_first(&["remove"]) && force => UNCOMMITTED,
            "stash" if is_first(&["drop", "clear"]) => STASHED,
            "branch" if options.has_letter('D') => UNREACHABLE,
            "branch" if force && options.has('d', "delete") => UNREACHABLE,
            "reflog" if is_first(&["expire", "delete", "drop"]) => UNREACHABLE,
            "update-ref" if options.has_letter('d') => UNREACHABLE,
            "filter-branch" | "filter-repo" => REWRITES,
            _ => return,
        };
        self.raise("irreversible_command", whole, what);
    }

    /// `git clean`: named directories are like those of `rm`, everything is not, and what is ignored
    /// may be keys and local settings.
    fn cleans(&mut self, all: &[Word], options: &Options<'_>, whole: &str) {
        if options.has_surely('n', "dry-run") && !options.has_name("no-dry-run") {
            return;
        }
        let needs_no_force = all.iter().any(|word| {
            let text = word.text.to_ascii_lowercase();
            text.starts_with("clean.requireforce=")
        });
        let takes_ignored = options.has_letter('x') || options.has_letter('X');
        let mut paths = options.named.iter().chain(&options.may_be_named);
        let is_all = options.named.is_empty() || paths.any(|word| self.is_everything(word));
        if (needs_no_force || options.has('f', "force")) && (takes_ignored || is_all) {
            self.raise("destructive_command", whole, CLEANS);
        } else if options.own.iter().any(|word| self.may_be_option(word)) {
            self.raise("destructive_command", whole, MAY_CLEAN);
        }
    }

    /// A push of which some words are only known when it runs.
    pub(super) fn may_push_more(&mut self, args: &[Word], printed: Printed, whole: &str) {
        let is_name = |word: &Word| printed == Printed::Names && !word.has_variable;
        let mut own = Options::of("push", args).own.into_iter();
        if own.any(|word| !is_name(word) && self.may_be_option(word)) {
            self.raise("irreversible_command", whole, MAY_OVERWRITE);
        }
    }

    /// `git $x`, where nobody knows what that is: it may be each of those that lose something.
    pub(super) fn may_be_any(&mut self, name: &Word, all: &[Word], args: &[Word], whole: &str) {
        let is_unknown = self.may_be_option(name) || self.is_vague(name);
        if self.is_open(name) || (is_unknown && is_forced(args)) {
            self.raise("irreversible_command", whole, MAY_OVERWRITE);
        } else if is_unknown {
            for name in LOSING {
                self.loses(name, all, args, whole);
            }
        }
    }

    /// Whether it may be an option, and several.
    fn is_open(&mut self, word: &Word) -> bool {
        word.splitting == Splitting::Splits && self.may_be_option(word)
    }

    /// Whether a path of git's stands for all there is: `.`, `:/`, `*`.
    fn is_everything(&self, word: &Word) -> bool {
        let text = word.text.as_str();
        // Signs before a path say how it is meant: from the top, all but this.
        let is_magic = text.starts_with(':')
            && (text.starts_with(":!") || text.starts_with(":^") || text.contains("(exclude)"));
        let is_top = matches!(
            text,
            ":" | ":/" | ":/*" | ":/." | ":(top)" | ":(top)*" | ":(top)."
        );
        let from_here = self.as_from_here(word);
        is_magic || is_top || self.is_whole_workspace(from_here.as_ref().unwrap_or(word))
    }
}

/// Whether `git restore` works on the files, and not only on what is to be committed.
fn touches_files(options: &Options<'_>) -> bool {
    !options.has_surely('S', "staged") || options.has('W', "worktree")
}
