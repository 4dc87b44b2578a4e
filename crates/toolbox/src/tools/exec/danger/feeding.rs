//! The standard input, and what the commands make of it.

use std::collections::BTreeSet;

use super::deeds::removes_documents;
use super::elsewhere::removes_data;
use super::{Binding, DROPS_DATA, Judge};
use crate::tools::exec::shell::Word;

/// Commands that make arguments of the standard input, or get a text from further up their pipe, and
/// are followed; with more of them the command counts as unreadable.
pub(super) const FED_COMMANDS_MAX: usize = 16;

/// What something takes the standard input for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReadAs {
    Commands,
    /// A program in another language.
    Code,
    /// Rules for `make`.
    Rules,
    /// What a database is told.
    Statements,
    /// What a document store is told.
    Documents,
}

/// The standard input.
///
/// It is judged once, after everything else and in every directory seen: judging it wherever something
/// reads it would take as many times its length.
pub(super) struct Feeding<'a> {
    stdin: Option<&'a str>,
    /// What is made of it where the command that is judged runs, and what in the other place: here, or on
    /// another machine.
    uses: Uses,
    uses_there: Uses,
    /// Commands that were judged with a here-document from further up their pipe.
    pub(super) piped: usize,
}

#[derive(Debug, Default)]
struct Uses {
    read_as: BTreeSet<ReadAs>,
    /// Commands that get its words as arguments.
    argued: Vec<Vec<Word>>,
}

impl<'a> Feeding<'a> {
    pub(super) fn new(stdin: Option<&'a str>) -> Self {
        Self {
            stdin,
            uses: Uses::default(),
            uses_there: Uses::default(),
            piped: 0,
        }
    }

    pub(super) fn stdin(&self) -> Option<&'a str> {
        self.stdin
    }

    /// Something reads it as this, or may do so.
    pub(super) fn is_read_as(&mut self, what: ReadAs) {
        self.uses.read_as.insert(what);
    }

    /// A command gets its words as arguments.
    pub(super) fn argues(&mut self, words: &[Word]) {
        let argued = &mut self.uses.argued;
        let is_new = !argued.iter().any(|it| it == words);
        if self.stdin.is_some() && argued.len() <= FED_COMMANDS_MAX && is_new {
            argued.push(words.to_vec());
        }
    }

    /// From now on what is judged runs in the other place.
    pub(super) fn change_place(&mut self) {
        std::mem::swap(&mut self.uses, &mut self.uses_there);
    }
}

impl Judge<'_> {
    /// Judges the standard input as what the command makes of it.
    pub(super) fn standard_input(&mut self) {
        let Some(text) = self.feeding.stdin else {
            return;
        };
        self.binding = Binding::ToAll;
        self.input_read(text);
        self.elsewhere(|judge| judge.input_read(text));
        // Nothing that is started with its words reads it once more.
        self.feeding.stdin = None;
        self.input_argued(text);
        self.elsewhere(|judge| judge.input_argued(text));
    }

    /// Judges it as all that it is read as, each once, also what comes of that.
    fn input_read(&mut self, text: &str) {
        let mut judged = BTreeSet::new();
        while let Some(what) = self
            .feeding
            .uses
            .read_as
            .difference(&judged)
            .next()
            .copied()
        {
            judged.insert(what);
            let removes = match what {
                ReadAs::Commands => {
                    self.script(text, 1);
                    false
                }
                ReadAs::Code => {
                    self.code(text, 1);
                    false
                }
                ReadAs::Rules => {
                    self.rules(text, 1);
                    false
                }
                ReadAs::Statements => removes_data(text),
                ReadAs::Documents => removes_documents(text),
            };
            if removes {
                self.raise("irreversible_command", text, DROPS_DATA);
            }
        }
    }

    /// Judges the commands that get its words.
    fn input_argued(&mut self, text: &str) {
        let argued = std::mem::take(&mut self.feeding.uses.argued);
        if argued.len() > FED_COMMANDS_MAX {
            self.raise("unreadable_command", text, "is read by too many commands");
        }
        for words in argued.into_iter().take(FED_COMMANDS_MAX) {
            self.with_arguments(words, text, 1);
        }
    }
}
