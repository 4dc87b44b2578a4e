//! A session as the checker and the planner see it: who continues whom, which calls and results
//! there are, and where it all stands in the file. No text is kept.

use std::collections::HashMap;

use hashbrown::HashTable;

use crate::chunks::Chunks;
use crate::json::{Invalid, Text};
use crate::limits::ENTRIES_MAX;
use crate::seen::{BlockKind, Kind, Marks, Parent, Seen, Span};

/// The number of an entry in its session, from 0.
pub type Number = u32;

/// Whom an entry continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Nobody.
    Root,
    /// This entry.
    To(Number),
    /// An entry that is not there.
    Broken,
}

/// In the byte of the kind: the entry holds more than calls and results.
const HAS_MORE: u64 = 0x80;
const ROOT: u32 = u32::MAX;
const BROKEN: u32 = u32::MAX - 1;

/// One entry, packed: sessions of millions of entries are held in memory.
#[derive(Debug, Clone, Copy)]
struct Packed {
    /// The offset in the file; in the highest byte, the kind and [`HAS_MORE`].
    offset_and_kind: u64,
    id: u64,
    parent: u32,
    first_item: u32,
    len: u32,
    group: u32,
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its first byte in the file.
    pub offset: u64,
    /// Its length in bytes, without the end of the line.
    pub len: u32,
    /// What it is.
    pub kind: Kind,
    /// Whether it holds more than calls and results.
    pub has_more: bool,
    /// A number for its id; 0 when it has none.
    pub id: u64,
    /// Whom it continues.
    pub link: Link,
    /// A number for the message that it is part of; 0 when a message is one entry.
    pub group: u32,
}

/// A call or a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Item {
    /// A number for the call's id; 0 when there is none.
    pub id: u64,
    /// The entry it stands in.
    pub entry: Number,
    /// What it is.
    pub kind: BlockKind,
    /// What is peculiar about it.
    pub marks: Marks,
}

/// See the [module](self).
#[derive(Debug, Clone, Default)]
pub struct Index {
    entries: Chunks<Packed>,
    items: Chunks<Item>,
    /// Lines that are not JSON, and why.
    invalid: Vec<(Number, Invalid)>,
    /// Compactions, and the entry each of them keeps first.
    kept: Vec<(Number, u64)>,
    /// Entries by id, built when somebody continues another entry than the last.
    by_id: Option<HashTable<Number>>,
    last: Option<Number>,
    has_parents: bool,
    is_over: bool,
    strange: Option<&'static str>,
}

impl Index {
    /// Says that nothing runs any more: calls at the end that have no result are cut off.
    pub const fn end_here(&mut self) {
        self.is_over = true;
    }

    /// Whether nothing runs any more.
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whose calls some entry holds that were passed over, because nobody can read them.
    pub const fn strange(&self) -> Option<&'static str> {
        self.strange
    }

    /// How many entries there are.
    pub const fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// An entry.
    #[inline]
    pub fn entry(&self, number: Number) -> Option<Entry> {
        self.entries.get(number as usize).map(Packed::unpack)
    }

    /// All entries in order.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.iter().map(Packed::unpack)
    }

    /// All calls and results in order.
    pub fn items(&self) -> impl Iterator<Item = Item> + '_ {
        self.items.iter()
    }

    /// A call or result by its place in [`Self::items`].
    #[inline]
    pub fn item(&self, at: usize) -> Option<Item> {
        self.items.get(at)
    }

    /// Where in [`Self::items`] an entry's calls and results are.
    pub fn items_of(&self, number: Number) -> std::ops::Range<usize> {
        let first = |number: usize| {
            self.entries
                .get(number)
                .map_or(self.items.len(), |entry| entry.first_item as usize)
        };
        first(number as usize)..first(number as usize + 1)
    }

    /// Lines that are not JSON.
    pub fn invalid(&self) -> &[(Number, Invalid)] {
        &self.invalid
    }

    /// Compactions with a number for the id of the entry that each of them keeps first.
    pub fn compactions(&self) -> &[(Number, u64)] {
        &self.kept
    }

    /// Compactions that name the entry they keep first, and that entry; none when it is not there.
    pub(crate) fn kept_entries(&self) -> Vec<(Number, Option<Number>)> {
        let mut last: HashMap<u64, Option<Number>> =
            self.kept.iter().map(|(_, id)| (*id, None)).collect();
        let mut compactions = self.kept.iter().peekable();
        let mut kept = Vec::new();
        for (number, entry) in (0..).zip(self.entries.iter()) {
            if let Some((_, id)) = compactions.next_if(|(compaction, _)| *compaction == number) {
                // One that names itself keeps nothing.
                let is_own = entry.id == *id;
                let found = if is_own {
                    Some(number)
                } else {
                    last.get(id).copied().flatten()
                };
                if *id != 0 {
                    kept.push((number, found));
                }
            }
            if compactions.peek().is_none() {
                break;
            }
            if let Some(last) = last.get_mut(&entry.id) {
                *last = Some(number);
            }
        }
        kept
    }

    /// Whether entries name whom they continue.
    pub const fn has_parents(&self) -> bool {
        self.has_parents
    }

    /// Whether some entry continues another one than the entry before it.
    pub const fn has_branches(&self) -> bool {
        self.by_id.is_some()
    }

    fn id_of(&self, number: Number) -> u64 {
        self.entries
            .get(number as usize)
            .map_or(0, |entry| entry.id)
    }

    /// Adds a line that is not JSON.
    pub fn push_invalid(&mut self, offset: u64, len: u32, why: Invalid) -> Result<(), TooLong> {
        let facts = Facts {
            offset,
            len,
            kind: Kind::Invalid,
            ..Facts::default()
        };
        let number = self.push_packed(facts, BROKEN)?;
        self.invalid.push((number, why));
        Ok(())
    }

    /// Adds an entry that an adapter has read.
    pub fn push(&mut self, offset: u64, entry: &[u8], seen: &Seen) -> Result<(), TooLong> {
        let hash = |span: Span| hash_of(span.text(entry));
        self.strange = self.strange.or(seen.strange);
        let facts = Facts {
            offset,
            len: u32::try_from(entry.len()).unwrap_or(u32::MAX),
            kind: seen.kind,
            has_more: seen.has_more,
            id: seen.id.map_or(0, hash),
            parent: match seen.parent {
                Parent::Before => ParentId::Before,
                Parent::Root => ParentId::Root,
                Parent::Named(span) => ParentId::Named(hash(span)),
            },
            group: seen.group.map_or(0, hash),
            kept: seen.kept.map_or(0, hash),
        };
        let blocks = seen.blocks.iter();
        self.add(
            facts,
            blocks.map(|block| (block.kind, block.marks, block.id.map_or(0, hash))),
        )
    }

    /// Adds an entry that was read in some other way.
    pub(crate) fn add(
        &mut self,
        facts: Facts,
        blocks: impl Iterator<Item = (BlockKind, Marks, u64)>,
    ) -> Result<(), TooLong> {
        let link = match facts.parent {
            ParentId::Before => self.last.unwrap_or(ROOT),
            ParentId::Root => ROOT,
            ParentId::Named(id) => self.resolve(id),
        };
        self.has_parents |= facts.parent != ParentId::Before;
        let id = facts.id;
        let number = self.push_packed(facts, link)?;
        for (kind, marks, id) in blocks {
            self.items.push(Item {
                id,
                entry: number,
                kind,
                marks,
            });
        }
        if facts.kind == Kind::Compaction {
            self.kept.push((number, facts.kept));
        }
        if id != 0
            && let Some(table) = &mut self.by_id
        {
            insert(table, &self.entries, id, number);
        }
        // A header is not part of the conversation: nobody continues it.
        if facts.kind != Kind::Header {
            self.last = Some(number);
        }
        Ok(())
    }

    fn push_packed(&mut self, facts: Facts, parent: u32) -> Result<Number, TooLong> {
        let number = self.entries.len();
        if number >= ENTRIES_MAX || self.items.len() >= ENTRIES_MAX {
            return Err(TooLong);
        }
        let more = if facts.has_more { HAS_MORE } else { 0 };
        #[expect(clippy::cast_possible_truncation, reason = "half of a hash is a hash")]
        let group = facts.group as u32;
        self.entries.push(Packed {
            offset_and_kind: facts.offset | (facts.kind as u64 | more) << 56,
            id: facts.id,
            parent,
            // Below `ENTRIES_MAX`, like the number.
            first_item: u32::try_from(self.items.len()).map_err(|_| TooLong)?,
            len: facts.len,
            group,
        });
        u32::try_from(number).map_err(|_| TooLong)
    }

    /// The entry with this id. Nearly always it is the last one.
    #[inline]
    fn resolve(&mut self, id: u64) -> u32 {
        if let Some(last) = self.last
            && self.id_of(last) == id
        {
            return last;
        }
        self.resolve_far(id)
    }

    #[cold]
    fn resolve_far(&mut self, id: u64) -> u32 {
        let entries = &self.entries;
        let table = self.by_id.get_or_insert_with(|| {
            let mut table = HashTable::new();
            for (number, entry) in (0..).zip(entries.iter()) {
                if entry.id != 0 {
                    insert(&mut table, entries, entry.id, number);
                }
            }
            table
        });
        let is_it = |number: &Number| id_at(entries, *number) == id;
        table.find(id, is_it).copied().unwrap_or(BROKEN)
    }
}

fn id_at(entries: &Chunks<Packed>, number: Number) -> u64 {
    entries.get(number as usize).map_or(0, |entry| entry.id)
}

/// The last of two entries with one id is the one that is found, as agents do it.
fn insert(table: &mut HashTable<Number>, entries: &Chunks<Packed>, id: u64, number: Number) {
    match table.find_mut(id, |found| id_at(entries, *found) == id) {
        Some(found) => *found = number,
        None => {
            table.insert_unique(id, number, |number| id_at(entries, *number));
        }
    }
}

/// The number for an id. Never 0, which stands for none.
#[inline]
pub(crate) fn hash_of(text: Text<'_>) -> u64 {
    text.hash().max(1)
}

/// Whom an entry says it continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ParentId {
    #[default]
    Before,
    Root,
    Named(u64),
}

/// An entry on its way into an index; see [`Entry`].
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Facts {
    pub(crate) offset: u64,
    pub(crate) len: u32,
    pub(crate) kind: Kind,
    pub(crate) has_more: bool,
    pub(crate) id: u64,
    pub(crate) parent: ParentId,
    pub(crate) group: u64,
    pub(crate) kept: u64,
}

/// The session has more entries than can be numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the session has more than {ENTRIES_MAX} entries")]
pub struct TooLong;

impl Packed {
    #[inline]
    fn unpack(self) -> Entry {
        let top = self.offset_and_kind >> 56;
        let kind = (top & !HAS_MORE) as usize;
        Entry {
            offset: self.offset_and_kind & (u64::MAX >> 8),
            len: self.len,
            kind: Kind::ALL.get(kind).copied().unwrap_or_default(),
            has_more: top & HAS_MORE != 0,
            id: self.id,
            link: match self.parent {
                ROOT => Link::Root,
                BROKEN => Link::Broken,
                number => Link::To(number),
            },
            group: self.group,
        }
    }
}
