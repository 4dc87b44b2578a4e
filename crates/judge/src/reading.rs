//! What the reader finds in a text.

use std::ops::Range;
use std::sync::Arc;

use crate::word::Word;

/// What a shell starts by itself from a text, as far as the text says so.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// Simple commands that the shell could start. Commands behind wrappers stand beside their
    /// wrapper, so `nice git push` is two commands.
    pub commands: Vec<Simple>,
    /// Parts of the text that the reader can not take apart.
    pub unreadable: Vec<Unread>,
}

/// One simple command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Simple {
    /// The program and its arguments.
    pub words: Vec<Word>,
    /// Files that the command's output is redirected to.
    pub targets: Vec<Word>,
    /// Text that is fed to the command: here-documents, here-strings, and what `echo` pipes into it.
    pub fed: Vec<String>,
    /// Where the command stands. A command in another one's words has the place of that one.
    pub place: Range<usize>,
    /// Whether the words come from a text that the grammar does not take. Each of them may then be
    /// the program.
    pub loose: bool,
    /// The standard input of the whole text, where the command has no other.
    pub(crate) input: Option<Arc<str>>,
    pub(crate) level: usize,
}

impl Simple {
    /// The program's name without its directory, where it is certain.
    pub fn program(&self) -> Option<&str> {
        self.words.first()?.basename()
    }

    /// The command on one line, with unknown parts as they are written.
    pub fn shown(&self) -> String {
        let words: Vec<_> = self.words.iter().map(Word::shown).collect();
        words.join(" ")
    }

    pub(crate) fn with_words(&self, words: Vec<Word>) -> Self {
        Self {
            words,
            level: self.level + 1,
            ..self.clone()
        }
    }
}

/// A part of a text that the reader can not take apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unread {
    /// Where the part stands in the text.
    pub place: Range<usize>,
    /// The part itself.
    pub text: String,
    /// Which commands it could be.
    pub could_be: CouldBe,
}

/// Which commands an unread part could be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CouldBe {
    /// Any command: the program is only known when the text runs.
    Anything,
    /// What the environment's variable holds, as in `$EDITOR file`: nothing that the text decides.
    Environment,
    /// The commands that stand in [`Reading::commands`] and are marked as loose, and no others.
    ItsWords,
}
