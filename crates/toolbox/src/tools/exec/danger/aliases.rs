//! Names that the command line gives to other commands: `alias x='git push'`, `git config alias.x`.

use super::variables::FOLLOWED_MAX;
use super::{COMPUTED, Judge, SCRIPT_DEPTH_MAX, written};
use crate::tools::exec::shell::{self, Simple, Word};

impl Judge<'_> {
    /// Judges what `alias` makes names stand for, and notes it.
    pub(super) fn note_aliases(&mut self, args: &[Word], whole: &str, depth: usize) {
        for word in args {
            let Some((name, value)) = word.text.split_once('=') else {
                continue;
            };
            let is_computed = word.has_substitution && (value.is_empty() || value.starts_with('$'));
            if is_computed || name.contains('$') {
                self.raise("computed_command", whole, COMPUTED);
            }
            self.script(value, depth + 1);
            self.aliases.insert(name.to_owned(), value.to_owned());
        }
    }

    /// Judges what a name stands for, with the arguments it is given. Whether the shell knows the
    /// name by then depends on the shell, so it is judged as itself, too.
    pub(super) fn stands_for(
        &mut self,
        name: &str,
        args: &[Word],
        simple: &Simple,
        all: &[Simple],
        depth: usize,
    ) {
        // Taken out: one that names itself is not followed for ever.
        let Some(value) = self.aliases.remove(name) else {
            return;
        };
        self.followed += usize::from(!self.is_repeated && self.ways == 0);
        if self.followed > FOLLOWED_MAX || depth >= SCRIPT_DEPTH_MAX {
            self.raise("unreadable_command", name, "stands for too much");
            self.aliases.insert(name.to_owned(), value);
            return;
        }
        let commands = shell::read(&value).commands;
        if let [only] = commands.as_slice() {
            let meant = Simple {
                words: only.words.iter().chain(args).cloned().collect(),
                ..simple.clone()
            };
            self.simple(&meant, all, depth + 1);
        } else {
            self.script(&format!("{value} {}", written(args)), depth + 1);
        }
        self.aliases.insert(name.to_owned(), value);
    }
}
