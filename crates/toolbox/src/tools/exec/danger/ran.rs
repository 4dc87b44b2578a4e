//! The commands that a command line runs, for rules that name some.

use std::collections::BTreeSet;

use holdfast_contract::Reason;

use super::deciding::Deciding;
use super::{Certainty, Judge, Judged, judge, program};
use crate::tools::exec::shell::Word;

/// What a command line runs.
pub(in crate::tools::exec) struct Runs {
    /// Every command, without its wrappers.
    pub(in crate::tools::exec) commands: Vec<Vec<String>>,
    /// Programs of which the word that decides what they do is only known when they run.
    pub(in crate::tools::exec) open: BTreeSet<String>,
}

/// What a command line runs; nothing when that is not known before it runs.
pub(in crate::tools::exec) fn runs(judged: &Judged<'_>) -> Option<Runs> {
    let Judge {
        found,
        runs,
        open,
        certainty,
        ..
    } = judge(judged);
    let is_unknown =
        |reason: &Reason| matches!(&*reason.code, "unreadable_command" | "computed_command");
    let is_known = certainty == Certainty::Known
        && !found.iter().any(is_unknown)
        && runs.iter().all(|run| !run.is_empty());
    is_known.then_some(Runs {
        commands: runs,
        open,
    })
}

impl Judge<'_> {
    /// Notes a command that is run.
    pub(super) fn note_run(&mut self, words: &[Word]) {
        let is_known = words
            .first()
            .is_some_and(|first| !first.has_variable && !first.has_pattern());
        let texts = words.iter().map(|word| word.text.clone());
        self.runs.push(texts.filter(|_| is_known).collect());
        if let Some((first, args)) = words.split_first()
            && self.deciding(program(first), args) == Deciding::Unknown
        {
            self.open.insert(program(first).to_owned());
        }
    }
}
