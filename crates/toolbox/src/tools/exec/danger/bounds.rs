//! How much of a command line is judged: a few signs may stand for whatever is long, over and over.

use super::{Binding, Judge, REASONS_MAX};
use crate::tools::exec::shell::{Simple, Word};

/// Commands that are judged, each as often as it is run, and bytes of scripts and of what words mean
/// that are read for them; a command line that stands for more counts as unreadable.
const JUDGED_COMMANDS_MAX: usize = 32 * 1024;
pub(super) const JUDGED_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Bytes that are looked at for words, each from each directory that it may be meant in, for what commands
/// are fed, and for reasons, with all of the command that they are given for.
const LOOKED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How much longer it takes to look for statements in a text than to copy it.
pub(super) const STATEMENT_COST: usize = 8;
/// What it takes to keep a word, however short it is.
pub(super) const WORD_BYTES: usize = 64;

/// Whether all of a command line is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// It stands for too much, which was said.
    Cut,
}

impl Judge<'_> {
    /// Whether a command line stands for more than is judged.
    pub(super) fn is_too_much(&mut self) -> bool {
        let is_much = self.has_too_much();
        if is_much && self.extent == Extent::Whole && self.found.len() <= REASONS_MAX {
            self.extent = Extent::Cut;
            // Covers what is left out, for this very command only.
            let before = std::mem::replace(&mut self.binding, Binding::ToAll);
            self.push("unreadable_command", "…", "stands for more than is read");
            self.binding = before;
        }
        is_much
    }

    pub(super) fn has_too_much(&self) -> bool {
        self.judged_commands > JUDGED_COMMANDS_MAX
            || self.judged_bytes > JUDGED_BYTES_MAX
            || self.looked_bytes > LOOKED_BYTES_MAX
    }

    /// Counts the words of a command, and the text that it is fed, which goes wherever they go; whether
    /// they are still looked at.
    pub(super) fn may_look_at(&mut self, simple: &Simple) -> bool {
        let per_word = self.placed_bytes() + WORD_BYTES;
        let bytes = |word: &Word| word.text.len().saturating_add(per_word);
        let words = simple.words.iter().chain(&simple.writes);
        let fed = simple.input.as_ref().map_or(0, String::len);
        let looked = words.map(bytes).fold(fed, usize::saturating_add);
        self.may_look(looked)
    }

    /// Counts a text that is looked through; whether it still is.
    pub(super) fn may_look(&mut self, bytes: usize) -> bool {
        self.looked_bytes = self.looked_bytes.saturating_add(bytes);
        !self.is_too_much()
    }

    /// Counts a text that is read as commands; whether it still is. One that turns out to be none took
    /// its time as well.
    pub(super) fn may_read(&mut self, text: &str) -> bool {
        self.judged_bytes = self.judged_bytes.saturating_add(text.len() + 1);
        !self.is_too_much()
    }

    /// Counts a reason, which is bound to all of its command and to where that may run; whether it is
    /// still told apart from others.
    pub(super) fn may_raise(&mut self, subject: &str) -> bool {
        self.may_look(self.placed_bytes().saturating_add(subject.len()))
    }

    /// The length of all directories that a command may be in.
    fn placed_bytes(&self) -> usize {
        let places = self.places.iter().flatten();
        places.map(|place| place.as_os_str().len()).sum()
    }
}
