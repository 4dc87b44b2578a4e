//! Files that a command names itself: what it writes over, removes, or locks out of.

use super::elsewhere::Keeps;
use super::paths::is_device;
use super::{Judge, wipes};
use crate::tools::exec::shell::{Simple, Splitting, Word};

pub(super) const UNCERTAIN: &str = "works through a directory that is only known when it runs";

impl Judge<'_> {
    pub(super) fn overwrites(&mut self, simple: &Simple, whole: &str) {
        for target in &simple.writes {
            if is_device(&target.text) {
                self.raise("destructive_command", whole, "writes to a device");
            } else if self.keeps == Keeps::Files && self.leaves(target) {
                let what = "writes to a file outside the workspace";
                self.raise(
                    "destructive_command",
                    &format!("{whole} > {}", target.shown()),
                    what,
                );
            }
        }
    }

    /// Removing, or changing owners and modes, which locks out as well as removal does.
    pub(super) fn removal(&mut self, name: &str, args: &[Word], whole: &str) {
        let recursive = wipes::is_recursive(args);
        let is_printed = |word: &Word| word.splitting == Splitting::Splits && !word.has_pattern();
        let may_recurse = recursive
            || args
                .iter()
                .any(|word| is_printed(word) && self.may_be_option(word));
        if self.keeps == Keeps::Nothing && !may_recurse && is_of_files(name, args) {
            return;
        }
        // What has no name is not there.
        let is_named = |word: &&Word| !word.text.is_empty() && !word.text.starts_with('-');
        for target in args.iter().filter(is_named) {
            let from_here = self.as_from_here(target);
            let target = from_here.as_ref().unwrap_or(target);
            if self.leaves(target) {
                self.raise(
                    "destructive_command",
                    whole,
                    "reaches outside the workspace",
                );
            } else if recursive && self.is_uncertain_directory(target) {
                self.raise("destructive_command", whole, UNCERTAIN);
            } else if (may_recurse && name == "rm" || empties(name, target))
                && self.is_whole_workspace(target)
            {
                self.raise("destructive_command", whole, "removes the whole workspace");
            } else if name == "rm" && self.is_repository(target) {
                self.raise("destructive_command", whole, wipes::REPOSITORY);
            } else {
                continue;
            }
            return;
        }
    }

    pub(super) fn disk_dump(&mut self, args: &[Word], whole: &str) {
        for target in args {
            if let Some(path) = target.text.strip_prefix("of=") {
                let target = Word {
                    text: path.to_owned(),
                    ..target.clone()
                };
                if is_device(path) || (self.keeps == Keeps::Files && self.leaves(&target)) {
                    self.raise(
                        "destructive_command",
                        whole,
                        "overwrites a device or a file outside the workspace",
                    );
                }
            }
        }
    }
}

/// `truncate -s0 *`: without a directory to work through it takes a pattern to be everything.
fn empties(name: &str, target: &Word) -> bool {
    name == "truncate" && target.has_pattern()
}

/// Whether a command without directories to work through does nothing but to files that it names, or only
/// changes their modes. What is moved may be a directory.
fn is_of_files(name: &str, args: &[Word]) -> bool {
    match name {
        "chmod" | "chown" | "chgrp" => true,
        "mv" => false,
        _ => !args.iter().any(Word::has_pattern),
    }
}
