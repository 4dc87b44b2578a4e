//! What commands within others read: `a | (b; c)`, `{ b; c; } < f`, `a | while b; do c; done`.

use super::functions::compound;
use super::joined::Link;
use super::{Open, Quoting, Reader, Simple, Word};

/// The word that stands for the end of a subshell where something reads from it, or is given to it.
pub(in crate::tools::exec) const SUBSHELL_END: &str = ")";

/// Commands that belong together.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    /// Index of the command whose output they read.
    reads_from: Option<usize>,
    /// Where the first of them stands.
    first: usize,
}

/// The groups around the command that is read: those of each list or subshell, outermost first. What ends
/// without having begun there ends none of another.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    open: Vec<Vec<Group>>,
}

impl Inputs {
    fn around(&self) -> Option<Group> {
        self.open.last().and_then(|groups| groups.last()).copied()
    }

    /// What a command reads that comes behind this link.
    fn behind(&self, link: Link) -> Option<usize> {
        let around = self.around().and_then(|group| group.reads_from);
        link.reads_from.or(around)
    }

    /// A list or a subshell begins.
    pub(super) fn enter(&mut self, link: Link, first: usize) {
        let reads_from = self.behind(link);
        self.open.push(vec![Group { reads_from, first }]);
    }

    /// It ends.
    fn leave(&mut self) -> Option<Group> {
        self.open.pop()?.first().copied()
    }

    /// So many are left that have not ended.
    pub(super) fn leave_to(&mut self, open: usize) {
        self.open.truncate(open);
    }

    /// How many have not ended.
    pub(super) fn depth(&self) -> usize {
        self.open.len()
    }

    fn begin(&mut self, link: Link, first: usize) {
        let reads_from = self.behind(link);
        if let Some(groups) = self.open.last_mut() {
            groups.push(Group { reads_from, first });
        }
    }

    fn end(&mut self) -> Option<Group> {
        let groups = self.open.last_mut().filter(|groups| groups.len() > 1)?;
        groups.pop()
    }
}

impl Simple {
    /// Whether it is told what to read.
    fn is_given(&self) -> bool {
        self.input.is_some() || !self.reads.is_empty()
    }

    /// Whether it reads something else than what all of the command line reads.
    pub(in crate::tools::exec) fn is_fed(&self) -> bool {
        self.is_given() || self.reads_from.is_some()
    }
}

impl Reader {
    /// Says what a command reads, and begins or ends the groups that it begins or ends.
    pub(super) fn takes_input(&mut self, simple: &mut Simple, link: Link, has_documents: bool) {
        let at = self.script.commands.len();
        let (begun, ended) = compound(simple);
        let mut group = None;
        for _ in 0..ended {
            group = self.inputs.end().or(group);
        }
        for _ in 0..begun {
            self.inputs.begin(link, at);
        }
        simple.reads_from = self.inputs.behind(link);
        let is_given = has_documents || simple.is_given();
        if let Some(group) = group.filter(|_| is_given) {
            self.gives(group.first, at);
        }
        if is_given && let Some(first) = simple.ends_subshell {
            self.gives(first, at);
        }
    }

    /// What is given to the end of a group is read by all in it that read nothing else.
    fn gives(&mut self, first: usize, end: usize) {
        for simple in self.script.commands.iter_mut().skip(first) {
            if !simple.is_fed() {
                simple.reads_from = Some(end);
            }
        }
    }

    /// A subshell ends, of which the bracket was just taken. It is a command of its own where what comes
    /// next reads from it, or says where it reads or writes.
    pub(super) fn end_subshell(&mut self, open: &mut Open) {
        let group = self.inputs.leave();
        let mut rest = self.rest.iter().skip(self.at);
        let next = rest.find(|sign| !matches!(sign, ' ' | '\t'));
        let then = rest.next();
        let goes_on = match next {
            Some('|') => then != Some(&'|'),
            Some('&') => then == Some(&'>'),
            Some(sign) => matches!(sign, '<' | '>') || sign.is_ascii_digit(),
            None => false,
        };
        if goes_on {
            open.simple.words.push(Word {
                text: SUBSHELL_END.to_owned(),
                // No keyword, and nothing else either.
                quoting: Quoting::Quoted,
                ..Word::default()
            });
            open.simple.ends_subshell = group.map(|group| group.first);
        }
    }
}
