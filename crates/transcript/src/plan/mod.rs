//! Repair, decided: entries in, edits out. Nothing here reads or writes a file.
//!
//! | strategy | what it does |
//! |---|---|
//! | `remove_orphans` | removes results whose call is not there, and copies of a result that is in its place; everything else stays a finding |
//! | `reconstruct` | also moves misplaced results to their calls, answers calls that have no result, and removes calls that use an id again |
//! | `truncate` | cuts back to the last point where every call has its result |
//!
//! Every strategy sets lines aside that are not JSON and joins broken chains to the entry before.
//! An entry that stays keeps its bytes, except for its links: whom it continues, and what a
//! compaction keeps first; only where an entry holds
//! more than the block that has to go is that block cut out of it.

mod edits;
mod removal;
mod truncate;

use std::collections::BTreeMap;

use crate::adapter::Pairing;
use crate::check::{Fault, Found, Pairs, pairs};
use crate::index::{Index, Number};
use crate::seen::BlockKind;

/// How to repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Remove results that do not belong.
    #[default]
    RemoveOrphans,
    /// Make every call and result a pair.
    Reconstruct,
    /// Cut back to where everything was right.
    Truncate,
}

impl Strategy {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RemoveOrphans, Self::Reconstruct, Self::Truncate];

    /// Its name in configurations and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RemoveOrphans => "remove_orphans",
            Self::Reconstruct => "reconstruct",
            Self::Truncate => "truncate",
        }
    }

    /// Whether it may leave a fault: removing results mends no call, and a result whose call is there
    /// is not removed. That also holds where a compaction took the call away.
    pub const fn leaves(self, fault: Fault, is_compacted: bool) -> bool {
        matches!(self, Self::RemoveOrphans)
            && match fault {
                Fault::MissingToolResult
                | Fault::DuplicateToolCallId
                | Fault::MisplacedToolResult
                | Fault::DuplicateToolResult => true,
                Fault::OrphanedToolResult => is_compacted,
                Fault::InvalidLine | Fault::BrokenParent => false,
            }
    }
}

/// Whom an entry will continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewParent {
    /// Nobody.
    Root,
    /// This entry.
    Entry(Number),
    /// The last of what is inserted behind this entry.
    InsertedBehind(Number),
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It goes from where it is.
    Drop,
    /// It stays, with these changes.
    Alter {
        /// Whom it continues from now on.
        parent: Option<NewParent>,
        /// Blocks that go, by their place in the entry.
        cut: Vec<usize>,
        /// The entry that a compaction keeps first from now on.
        kept: Option<Number>,
    },
}

/// What comes behind an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Insert {
    /// A synthetic result of this call (a place in [`Index::items`]).
    Answer(u32),
    /// An entry that stood elsewhere.
    Moved(Number),
    /// A result that stood in an entry with other things (a place in [`Index::items`]).
    Extracted(u32),
}

/// What to do with a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Entries that change.
    pub changes: BTreeMap<Number, Change>,
    /// What comes behind an entry, in order.
    pub inserts: BTreeMap<Number, Vec<Insert>>,
    /// The first entry of those that are cut off at the end.
    pub end: Option<Number>,
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty() && self.inserts.is_empty() && self.end.is_none()
    }
}

/// How much a repair changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Changes {
    /// Entries that went.
    pub removed: usize,
    /// Results that stand elsewhere now.
    pub moved: usize,
    /// Entries that stayed where they were with a link or a block changed.
    pub altered: usize,
    /// Results that were made for calls that had none.
    pub added: usize,
}

impl Changes {
    /// What a plan does to a session.
    pub fn of(plan: &Plan, index: &Index) -> Self {
        let inserts = || plan.inserts.values().flatten();
        let entries_moved = inserts().filter(|insert| matches!(insert, Insert::Moved(_)));
        let dropped = plan
            .changes
            .values()
            .filter(|change| **change == Change::Drop);
        let cut_off = plan
            .end
            .map_or(0, |end| index.len().saturating_sub(end as usize));
        let added = inserts().filter(|insert| matches!(insert, Insert::Answer(_)));
        let added = added.count();
        Self {
            removed: (dropped.count() + cut_off).saturating_sub(entries_moved.count()),
            moved: inserts().count() - added,
            altered: plan
                .changes
                .values()
                .filter(|change| **change != Change::Drop)
                .count(),
            added,
        }
    }
}

impl std::ops::AddAssign for Changes {
    fn add_assign(&mut self, other: Self) {
        self.removed += other.removed;
        self.moved += other.moved;
        self.altered += other.altered;
        self.added += other.added;
    }
}

/// What to do with a session so that a provider takes it.
pub fn plan(index: &Index, pairing: Pairing, strategy: Strategy) -> Plan {
    let pairs = pairs(index, pairing);
    let mut edits = edits::Edits::new(index, pairing);
    for found in &pairs.found {
        match (found.fault, found.item) {
            (Fault::InvalidLine, _) => edits.drop_entry(found.entry),
            (Fault::BrokenParent, _) => edits.mend(found.entry),
            (_, Some(item)) => {
                let parted = pairs.parted.get(&item).into_iter().flatten();
                parted.for_each(|it| edits.keep(it.compaction, it.message));
            }
            _ => {}
        }
    }
    match strategy {
        Strategy::RemoveOrphans => {
            for item in removal::removable(index, pairing, &pairs) {
                edits.cut(item);
            }
        }
        Strategy::Reconstruct => reconstruct(index, &pairs, &mut edits),
        Strategy::Truncate => edits.cut_off(truncate::last_good(index, &pairs)),
    }
    edits.finish()
}

/// Whether a compaction keeps a result and not its call, though both are still there: then the
/// compaction is wrong, and not the result. Codex's calls are gone with everything before them.
fn is_parted(pairs: &Pairs, found: &Found) -> bool {
    found
        .item
        .is_some_and(|item| pairs.parted.contains_key(&item))
}

fn reconstruct(index: &Index, pairs: &Pairs, edits: &mut edits::Edits<'_>) {
    // Calls first: what happens to a result depends on whether its call stays.
    for found in &pairs.found {
        let Some(item) = found.item else { continue };
        let has_id = index.item(item as usize).is_some_and(|item| item.id != 0);
        let is_unusable = found.fault == Fault::MissingToolResult && !has_id;
        if found.fault == Fault::DuplicateToolCallId || is_unusable {
            edits.cut(item);
        }
    }
    for (call, result) in &pairs.answers {
        if edits.is_cut(*call) {
            edits.cut(*result);
        }
    }
    for found in &pairs.found {
        match (found.fault, found.item) {
            _ if is_parted(pairs, found) => {}
            (
                Fault::OrphanedToolResult | Fault::DuplicateToolResult | Fault::MisplacedToolResult,
                Some(item),
            ) => match found.call {
                Some(call) if !edits.is_cut(call) && is_call(index, call) => {
                    edits.move_behind(item, call);
                    // What stood in for it until now.
                    let answers = pairs.answers.iter();
                    let stand_in = answers.filter(|(of, _)| *of == call);
                    stand_in.for_each(|(_, result)| edits.cut(*result));
                }
                _ => edits.cut(item),
            },
            (Fault::MissingToolResult, Some(item)) if !edits.is_cut(item) => edits.answer(item),
            _ => {}
        }
    }
}

fn is_call(index: &Index, item: u32) -> bool {
    index
        .item(item as usize)
        .is_some_and(|item| item.kind != BlockKind::Result)
}
