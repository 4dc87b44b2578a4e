//! Collects what goes, moves and comes, and works out whom every entry continues afterwards.

use std::collections::{BTreeMap, BTreeSet};

use super::{Change, Insert, NewParent, Plan};
use crate::adapter::{Joins, Pairing};
use crate::index::{Index, Link, Number};
use crate::seen::Kind;

pub(super) struct Edits<'i> {
    index: &'i Index,
    pairing: Pairing,
    /// Calls and results that go, by their places.
    cut: BTreeSet<u32>,
    dropped: BTreeSet<Number>,
    /// Entries that continue nobody who is there.
    mended: BTreeSet<Number>,
    /// Results that move, and the entries they move behind.
    moved: BTreeMap<u32, Number>,
    inserts: BTreeMap<Number, Vec<Insert>>,
    /// Compactions, and the message that each of them has to keep first.
    kept: BTreeMap<Number, Number>,
    end: Option<Number>,
}

impl<'i> Edits<'i> {
    pub(super) fn new(index: &'i Index, pairing: Pairing) -> Self {
        Self {
            index,
            pairing,
            cut: BTreeSet::new(),
            dropped: BTreeSet::new(),
            mended: BTreeSet::new(),
            moved: BTreeMap::new(),
            inserts: BTreeMap::new(),
            kept: BTreeMap::new(),
            end: None,
        }
    }

    pub(super) fn drop_entry(&mut self, entry: Number) {
        self.dropped.insert(entry);
    }

    /// Joins an entry to the one before it.
    pub(super) fn mend(&mut self, entry: Number) {
        self.mended.insert(entry);
    }

    /// Has a compaction keep a message and everything behind it.
    pub(super) fn keep(&mut self, compaction: Number, message: Number) {
        let kept = self.kept.entry(compaction).or_insert(message);
        *kept = message.min(*kept);
    }

    pub(super) fn cut(&mut self, item: u32) {
        self.cut.insert(item);
    }

    pub(super) fn is_cut(&self, item: u32) -> bool {
        self.cut.contains(&item)
    }

    pub(super) fn cut_off(&mut self, end: Option<Number>) {
        self.end = end;
    }

    /// Answers a call with a synthetic result.
    pub(super) fn answer(&mut self, call: u32) {
        if let Some(item) = self.index.item(call as usize) {
            let behind = self.inserts.entry(self.last_of(item.entry)).or_default();
            if !behind.contains(&Insert::Answer(call)) {
                behind.push(Insert::Answer(call));
            }
        }
    }

    /// Moves a result to its call.
    pub(super) fn move_behind(&mut self, result: u32, call: u32) {
        if let Some(item) = self.index.item(call as usize) {
            self.moved.insert(result, self.last_of(item.entry));
        }
    }

    /// What an entry is to a model's message that spans its neighbours.
    fn span(&self, entry: Number) -> Span {
        let Some(kind) = self.index.entry(entry).map(|entry| entry.kind) else {
            return Span::Ends;
        };
        match (self.pairing, kind) {
            (Pairing::Anywhere | Pairing::Adjacent(Joins::Neighbours, _), Kind::Assistant) => {
                Span::Goes
            }
            // Set aside, so that its neighbours meet; and what the model thought between its calls.
            (_, Kind::Invalid) | (Pairing::Anywhere, Kind::Neutral) => Span::Between,
            _ => Span::Ends,
        }
    }

    /// The last entry of a message that spans neighbours: results come behind all of it, so that
    /// calls of it that still run are not passed over.
    fn last_of(&self, entry: Number) -> Number {
        let mut last = entry;
        if self.span(entry) == Span::Goes {
            for next in entry + 1.. {
                match self.span(next) {
                    Span::Goes => last = next,
                    Span::Between => {}
                    Span::Ends => break,
                }
            }
        }
        last
    }

    /// Puts it all together.
    pub(super) fn finish(mut self) -> Plan {
        self.drop_emptied();
        self.place_moved();
        self.place_behind_what_stays();
        let mut changes: BTreeMap<Number, Change> = self
            .dropped
            .iter()
            .map(|entry| (*entry, Change::Drop))
            .collect();
        for (entry, blocks) in self.cuts() {
            changes.entry(entry).or_insert(Change::Alter {
                parent: None,
                cut: blocks,
                kept: None,
            });
        }
        self.keep_what_stays(&mut changes);
        if self.index.has_parents()
            && !(self.dropped.is_empty() && self.inserts.is_empty() && self.mended.is_empty())
        {
            self.relink(&mut changes);
        }
        if let Some(end) = self.end {
            changes.retain(|entry, _| *entry < end);
            self.inserts.retain(|entry, _| *entry < end);
        }
        Plan {
            changes,
            inserts: self.inserts,
            end: self.end,
        }
    }

    /// The blocks of an entry that go, by their places in the entry.
    fn gone_of(&self, entry: Number) -> Vec<usize> {
        let items = self.index.items_of(entry);
        let first = items.start;
        items
            .filter(|at| {
                u32::try_from(*at)
                    .is_ok_and(|place| self.cut.contains(&place) || self.moved.contains_key(&place))
            })
            .map(|at| at - first)
            .collect()
    }

    fn touched(&self) -> BTreeSet<Number> {
        let places = self.cut.iter().chain(self.moved.keys());
        places
            .filter_map(|place| self.index.item(*place as usize))
            .map(|item| item.entry)
            .collect()
    }

    /// Drops the entries of which nothing is left.
    fn drop_emptied(&mut self) {
        for entry in self.touched() {
            let is_all = self.gone_of(entry).len() == self.index.items_of(entry).len();
            let holds_more = self
                .index
                .entry(entry)
                .is_some_and(|entry| entry.has_more || entry.kind == Kind::Cut);
            if is_all && !holds_more {
                self.dropped.insert(entry);
            }
        }
    }

    /// Moves whole entries where a result is alone, and takes it out where it is not.
    fn place_moved(&mut self) {
        for (place, behind) in std::mem::take(&mut self.moved) {
            let Some(item) = self.index.item(place as usize) else {
                continue;
            };
            let is_alone =
                self.index.items_of(item.entry).len() == 1 && self.dropped.contains(&item.entry);
            let insert = if is_alone {
                Insert::Moved(item.entry)
            } else {
                Insert::Extracted(place)
            };
            self.inserts.entry(behind).or_default().push(insert);
            // It still goes from where it was.
            self.cut.insert(place);
        }
    }

    /// Behind the part of a message that stays; what goes with a whole message needs no place.
    fn place_behind_what_stays(&mut self) {
        for (entry, inserts) in std::mem::take(&mut self.inserts) {
            let mut behind = Some(entry);
            while let Some(gone) = behind.filter(|entry| self.dropped.contains(entry)) {
                behind = gone
                    .checked_sub(1)
                    .filter(|_| self.spans_neighbours())
                    .filter(|before| self.span(*before) != Span::Ends);
            }
            if let Some(behind) = behind {
                self.inserts.entry(behind).or_default().extend(inserts);
            }
        }
    }

    fn spans_neighbours(&self) -> bool {
        matches!(
            self.pairing,
            Pairing::Anywhere | Pairing::Adjacent(Joins::Neighbours, _)
        )
    }

    fn cuts(&self) -> Vec<(Number, Vec<usize>)> {
        let entries = self.touched();
        entries
            .into_iter()
            .filter(|entry| !self.dropped.contains(entry))
            .map(|entry| (entry, self.gone_of(entry)))
            .collect()
    }

    /// Gives every compaction whose first entry went, or belongs to one before it, its new one.
    fn keep_what_stays(&self, changes: &mut BTreeMap<Number, Change>) {
        for (compaction, old) in self.index.kept_entries() {
            let new = match self.kept.get(&compaction).copied().or(old) {
                Some(wanted) if self.can_be_kept(wanted) => wanted,
                Some(wanted) => self.next_on_the_way(wanted, compaction),
                None => compaction,
            };
            let has_id = self.index.entry(compaction).is_some_and(|it| it.id != 0);
            if Some(new) != old && (new != compaction || has_id) {
                let change = changes.entry(compaction).or_insert(UNCHANGED);
                if let Change::Alter { kept, .. } = change {
                    *kept = Some(new);
                }
            }
        }
    }

    fn can_be_kept(&self, number: Number) -> bool {
        let entry = self.index.entry(number);
        !self.dropped.contains(&number) && entry.is_some_and(|entry| entry.id != 0)
    }

    /// What stays next behind an entry on the way to a compaction; the compaction itself when nothing
    /// does.
    fn next_on_the_way(&self, from: Number, compaction: Number) -> Number {
        let mut next = compaction;
        let mut at = self.parent(compaction);
        while let Some(number) = at.filter(|number| *number >= from) {
            if number == from {
                return next;
            }
            if self.can_be_kept(number) {
                next = number;
            }
            at = self.parent(number);
        }
        // It is not on the way: nothing before the compaction is kept.
        compaction
    }

    /// Whom an entry continues as it is.
    fn parent(&self, number: Number) -> Option<Number> {
        match self.index.entry(number)?.link {
            Link::To(parent) => Some(parent).filter(|parent| *parent < number),
            Link::Root => None,
            Link::Broken => (0..number).rev().find(|earlier| self.is_link(*earlier)),
        }
    }

    /// Gives every entry whose parent went, or got something behind it, its new parent.
    fn relink(&self, changes: &mut BTreeMap<Number, Change>) {
        let mut before = None;
        for (number, entry) in (0..).zip(self.index.entries()) {
            if self.end.is_some_and(|end| number >= end) {
                break;
            }
            if matches!(entry.kind, Kind::Invalid | Kind::Header) {
                continue;
            }
            let is_gone = self.dropped.contains(&number);
            if !is_gone && entry.link != Link::Broken || self.mended.contains(&number) {
                let parent = self.new_parent(number, entry.link, before);
                if !is_gone && Some(parent) != old_parent(entry.link) {
                    alter(changes, number, parent);
                }
            }
            before = Some(number);
        }
    }

    /// Whom an entry continues: past everything that went, to what was put behind.
    fn new_parent(&self, number: Number, link: Link, before: Option<Number>) -> NewParent {
        let mut parent = match link {
            Link::To(parent) => Some(parent),
            Link::Root => None,
            Link::Broken => before,
        };
        while let Some(gone) = parent.filter(|parent| self.dropped.contains(parent)) {
            parent = self.parent(gone);
        }
        let Some(parent) = parent else {
            return NewParent::Root;
        };
        if self.inserts.contains_key(&parent) && !self.is_same_message(parent, number) {
            NewParent::InsertedBehind(parent)
        } else {
            NewParent::Entry(parent)
        }
    }

    /// Whether others can continue this entry.
    fn is_link(&self, number: Number) -> bool {
        self.index
            .entry(number)
            .is_some_and(|entry| !matches!(entry.kind, Kind::Invalid | Kind::Header))
    }

    /// Entries of one message stay linked to each other; results hang beside them.
    fn is_same_message(&self, parent: Number, number: Number) -> bool {
        matches!(self.pairing, Pairing::Adjacent(Joins::Groups, _))
            && match (self.index.entry(parent), self.index.entry(number)) {
                (Some(parent), Some(entry)) => parent.group != 0 && parent.group == entry.group,
                _ => false,
            }
    }
}

/// See [`Edits::span`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Span {
    /// It is part of the message.
    Goes,
    /// It stands between parts of the message.
    Between,
    /// The message is over.
    Ends,
}

const UNCHANGED: Change = Change::Alter {
    parent: None,
    cut: Vec::new(),
    kept: None,
};

fn old_parent(link: Link) -> Option<NewParent> {
    match link {
        Link::To(parent) => Some(NewParent::Entry(parent)),
        Link::Root => Some(NewParent::Root),
        Link::Broken => None,
    }
}

fn alter(changes: &mut BTreeMap<Number, Change>, number: Number, to: NewParent) {
    let change = changes.entry(number).or_insert(UNCHANGED);
    if let Change::Alter { parent, .. } = change {
        *parent = Some(to);
    }
}
