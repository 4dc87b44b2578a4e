//! The rules: what makes a provider refuse a session.
//!
//! A result needs a call in the model's message before it; a call needs a result, unless it is in
//! the last message, where others of its calls may have theirs already; no id is used twice. Entries that name whom they continue form a tree, and
//! each branch is held to the rules by itself: a branch that somebody went back from is allowed to
//! end anywhere.

mod adjacent;
mod anywhere;
mod compaction;
mod plain;
mod tree;

use std::collections::HashMap;

pub(crate) use plain::Plain;

use crate::adapter::Pairing;
use crate::index::{Entry, Index, Link, Number};
use crate::seen::Kind;

/// What is wrong. The names are those of `holdfast scan --json`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// A line that is not JSON: half written, overwritten, or not text at all.
    InvalidLine,
    /// An entry continues one that is not there.
    BrokenParent,
    /// A result whose call is not there.
    OrphanedToolResult,
    /// A result that does not follow its call.
    MisplacedToolResult,
    /// A second result of a call.
    DuplicateToolResult,
    /// A call without a result.
    MissingToolResult,
    /// A call with the id of an earlier one.
    DuplicateToolCallId,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::InvalidLine,
        Self::BrokenParent,
        Self::OrphanedToolResult,
        Self::MisplacedToolResult,
        Self::DuplicateToolResult,
        Self::MissingToolResult,
        Self::DuplicateToolCallId,
    ];

    /// Its name in `--json`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InvalidLine => "invalid_line",
            Self::BrokenParent => "broken_parent",
            Self::OrphanedToolResult => "orphaned_tool_result",
            Self::MisplacedToolResult => "misplaced_tool_result",
            Self::DuplicateToolResult => "duplicate_tool_result",
            Self::MissingToolResult => "missing_tool_result",
            Self::DuplicateToolCallId => "duplicate_tool_call_id",
        }
    }
}

/// A fault and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Found {
    /// The entry it is in.
    pub entry: Number,
    /// The call or result, by its place in [`Index::items`]; none for a whole entry.
    pub item: Option<u32>,
    /// What is wrong.
    pub fault: Fault,
    /// The call that a misplaced result belongs to, by its place in [`Index::items`]; also that of a
    /// result which comes late, when something stands in for it.
    pub call: Option<u32>,
    /// Whether a compaction took the call away from its result.
    pub is_compacted: bool,
}

/// Which results belong to which calls, and what is wrong.
#[derive(Debug, Default)]
pub(crate) struct Pairs {
    /// What is wrong, in the order of the entries.
    pub(crate) found: Vec<Found>,
    /// Calls and the results that answer them, by their places, in the order of the results.
    pub(crate) answers: Vec<(u32, u32)>,
    /// Results that compactions part from their calls, though both are there: the compactions are
    /// wrong, and not the results.
    pub(crate) parted: PartedResults,
}

/// Results, by their places, and the compactions that part them from their calls.
pub(crate) type PartedResults = HashMap<u32, Vec<Parted>>;

/// A compaction, and the message that it has to keep as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Parted {
    pub(crate) compaction: Number,
    pub(crate) message: Number,
}

/// Everything that is wrong with a session, in the order of its entries.
pub fn check(index: &Index, pairing: Pairing) -> Vec<Found> {
    run(index, pairing, false).found
}

/// The same, with the results that are in their place.
pub(crate) fn pairs(index: &Index, pairing: Pairing) -> Pairs {
    run(index, pairing, true)
}

fn run(index: &Index, pairing: Pairing, keep_answers: bool) -> Pairs {
    let mut found: Vec<Found> = index
        .invalid()
        .iter()
        .map(|(entry, _)| whole(*entry, Fault::InvalidLine))
        .collect();
    let (answers, parted) = match pairing {
        Pairing::Adjacent(joins, ids) => {
            adjacent::check(index, joins, ids, keep_answers, &mut found)
        }
        Pairing::Anywhere => (anywhere::check(index, &mut found), HashMap::new()),
    };
    found.sort_unstable();
    found.dedup_by_key(|found| (found.entry, found.item, found.fault));
    Pairs {
        found,
        answers,
        parted,
    }
}

const fn whole(entry: Number, fault: Fault) -> Found {
    Found {
        entry,
        item: None,
        fault,
        call: None,
        is_compacted: false,
    }
}

/// Whether an entry continues one that is not there. The first of a session may continue another
/// session: nothing of this one is lost by that.
fn is_broken(entry: Entry, has_begun: bool) -> bool {
    entry.link == Link::Broken && has_begun && entry.kind != Kind::Invalid
}

/// One bit for each of many things.
#[derive(Debug, Default)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    pub(crate) fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }

    pub(crate) fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    pub(crate) fn get(&self, at: usize) -> bool {
        self.0
            .get(at / 64)
            .is_some_and(|word| word >> (at % 64) & 1 == 1)
    }
}

#[cfg(test)]
mod tests;
