//! Work that git does not keep and that is gone for good: what was never committed, or what nothing
//! points to any more.

use super::tables::GIT_VALUED_PUSH;
use super::variables::Printed;
use super::{Judge, git};
use crate::tools::exec::shell::{Splitting, Word};

const CLEANS: &str = "removes files that git does not keep";
const MAY_CLEAN: &str = "may remove files that git does not keep";
const UNCOMMITTED: &str = "throws away changes that were never committed";
const STASHED: &str = "throws away what was stashed";
const UNREACHABLE: &str = "takes away the last name of commits";
const REWRITES: &str = "writes the history anew";
const MAY_OVERWRITE: &str =
    "may overwrite or remove what others have, which is only known when it runs";

impl Judge<'_> {
    /// What a command of git throws away. `all` are its arguments, `args` those behind its name.
    pub(super) fn loses(&mut self, name: &str, all: &[Word], args: &[Word], whole: &str) {
        let everything = |judge: &Self| args.iter().any(|word| judge.is_everything(word));
        let first = args.first().map_or("", |word| word.text.as_str());
        let force = has(args, 'f', "force");
        let what = match name {
            "clean" => return self.cleans(all, args, whole),
            "reset" if has_name(args, "hard") => UNCOMMITTED,
            "checkout" | "switch" if force || has_name(args, "discard-changes") => UNCOMMITTED,
            "checkout" if everything(self) => UNCOMMITTED,
            "restore" if everything(self) && touches_files(args) => UNCOMMITTED,
            // Without it the files stay.
            "rm" if force && everything(self) && !has_name(args, "cached") => UNCOMMITTED,
            "worktree" if first == "remove" && force => UNCOMMITTED,
            "stash" if matches!(first, "drop" | "clear") => STASHED,
            "branch" if has_letter(args, 'D') => UNREACHABLE,
            "branch" if force && has(args, 'd', "delete") => UNREACHABLE,
            "reflog" if matches!(first, "expire" | "delete" | "drop") => UNREACHABLE,
            "update-ref" if has_letter(args, 'd') => UNREACHABLE,
            "filter-branch" | "filter-repo" => REWRITES,
            _ => return,
        };
        self.raise("irreversible_command", whole, what);
    }

    /// `git clean`: named directories are like those of `rm`, everything is not, and what is ignored
    /// may be keys and local settings.
    fn cleans(&mut self, all: &[Word], args: &[Word], whole: &str) {
        if has(&without_excluded(args), 'n', "dry-run") && !takes_back(args, "--no-dry-run") {
            return;
        }
        let needs_no_force = all.iter().any(|word| {
            let text = word.text.to_ascii_lowercase();
            text.starts_with("clean.requireforce=")
        });
        let takes_ignored = has_letter(args, 'x') || has_letter(args, 'X');
        let paths = cleaned(args);
        let is_all = paths.is_empty() || paths.iter().any(|word| self.is_everything(word));
        if (needs_no_force || has(args, 'f', "force")) && (takes_ignored || is_all) {
            self.raise("destructive_command", whole, CLEANS);
        } else if args.iter().any(|word| self.may_be_option(word)) {
            self.raise("destructive_command", whole, MAY_CLEAN);
        }
    }

    /// A push of which some words are only known when it runs.
    pub(super) fn may_push_more(&mut self, args: &[Word], printed: Printed, whole: &str) {
        let mut rest = args.iter();
        while let Some(word) = rest.next() {
            let is_name = printed == Printed::Names && !word.has_variable;
            if !is_name && self.may_be_option(word) {
                self.raise("irreversible_command", whole, MAY_OVERWRITE);
                return;
            }
            if GIT_VALUED_PUSH.contains(&word.text.as_str()) {
                rest.next();
            }
        }
    }

    /// `git $x`, where nobody knows what that is.
    pub(super) fn may_be_push(&mut self, name: &Word, args: &[Word], whole: &str) {
        if self.is_open(name) || (self.may_be_option(name) && git::is_forced(args)) {
            self.raise("irreversible_command", whole, MAY_OVERWRITE);
        }
    }

    /// Whether it may be an option, and several.
    fn is_open(&self, word: &Word) -> bool {
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
        is_magic || is_top || self.is_whole_workspace(word)
    }
}

/// Whether `git restore` works on the files, and not only on what is to be committed.
fn touches_files(args: &[Word]) -> bool {
    !has(args, 'S', "staged") || has(args, 'W', "worktree")
}

/// The paths that `git clean` is given.
fn cleaned(args: &[Word]) -> Vec<Word> {
    let mut words = without_excluded(args);
    words.retain(|word| !word.text.starts_with('-'));
    words
}

/// What `git clean` is given but for the patterns of what stays, which may look like options.
fn without_excluded(args: &[Word]) -> Vec<Word> {
    let mut kept = Vec::new();
    let mut rest = args.iter();
    while let Some(word) = rest.next() {
        let text = word.text.as_str();
        let is_short = text.starts_with('-') && !text.starts_with("--");
        kept.push(word.clone());
        if text == "--exclude" || (is_short && text.ends_with('e')) {
            rest.next();
        }
    }
    kept
}

/// Whether an option is taken back by its opposite.
fn takes_back(args: &[Word], opposite: &str) -> bool {
    options(args).any(|text| text == opposite)
}

/// Whether an option is given, by its letter or by as much of its name as is enough.
fn has(args: &[Word], letter: char, name: &str) -> bool {
    has_letter(args, letter) || has_name(args, name)
}

fn has_name(args: &[Word], name: &str) -> bool {
    let mut long = options(args).filter_map(|text| text.strip_prefix("--"));
    long.any(|long| !long.is_empty() && name.starts_with(long))
}

fn has_letter(args: &[Word], letter: char) -> bool {
    let short = options(args).filter(|text| !text.starts_with("--"));
    let mut letters = short.filter_map(|text| text.strip_prefix('-'));
    // Behind `e` is a value.
    letters.any(|all| {
        all.chars()
            .take_while(|it| *it != 'e')
            .any(|it| it == letter)
    })
}

fn options(args: &[Word]) -> impl Iterator<Item = &str> {
    let texts = args.iter().map(|word| word.text.as_str());
    texts.take_while(|text| *text != "--")
}
