//! How a command hangs together with the one before it.

use super::Reader;

/// What has to come of the command before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::tools::exec) enum Joined {
    /// Nothing, or that is not known.
    #[default]
    Apart,
    /// The one of this index has to work: `a && b`.
    IfWorks(usize),
    /// It has to fail, or not to be reached: `a || b`.
    Otherwise,
}

/// What a command that comes next has to do with others.
#[derive(Clone, Copy, Default)]
pub(super) struct Link {
    /// Index of the command whose output it reads.
    pub(super) reads_from: Option<usize>,
    pub(super) joined: Joined,
}

impl Reader {
    /// Behind `|`, `|&` or `||`, of which the first sign was just taken.
    pub(super) fn behind_bar(&mut self, last: Option<usize>) -> Link {
        let next = self.peek(0);
        self.at += usize::from(matches!(next, Some('|' | '&')));
        match next {
            Some('|') => Link {
                reads_from: None,
                joined: Joined::Otherwise,
            },
            _ => Link {
                reads_from: last,
                joined: Joined::Apart,
            },
        }
    }

    /// Behind `;`, `&` or `&&`, of which the first sign was just taken.
    pub(super) fn behind_sign(&mut self, sign: char, last: Option<usize>) -> Link {
        let is_and = sign == '&' && self.peek(0) == Some('&');
        self.at += usize::from(is_and);
        let joined = last.filter(|_| is_and).map(Joined::IfWorks);
        Link {
            reads_from: None,
            joined: joined.unwrap_or_default(),
        }
    }
}
