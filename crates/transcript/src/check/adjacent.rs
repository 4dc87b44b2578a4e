//! The rule of Anthropic's and the chat completions API: results follow their calls at once.
//!
//! Every entry is given an anchor: the message that results standing there would answer. A message
//! is its own anchor; results, settings and other neutral entries have the anchor of whom they
//! continue. So a result is in its place exactly when its anchor holds its call, in a list as well
//! as in a tree.

use std::cell::OnceCell;
use std::collections::{HashMap, VecDeque};

use hashbrown::HashTable;

use super::anywhere::fault;
use super::tree::Tree;
use super::{Bits, Fault, Found, PartedResults, compaction, is_broken, whole};
use crate::adapter::{Ids, Joins};
use crate::index::{Entry, Index, Item, Link, Number};
use crate::seen::{BlockKind, Kind};

/// No anchor: nothing was said yet.
pub(super) const NOBODY: Number = Number::MAX;

/// How many branches that used a call's id are looked at to find it on the way to an entry.
const REUSES_MAX: usize = 1_000;

pub(super) struct Walk<'i> {
    pub(super) index: &'i Index,
    joins: Joins,
    ids: Ids,
    anchors: Vec<Number>,
    /// Messages with results and more, and the message that their results answer.
    mixed: HashMap<Number, Number>,
    /// Messages that something follows which is not a result.
    closed: Bits,
    /// Calls that have their result.
    answered: Bits,
    /// The last call with each id.
    calls: HashTable<u32>,
    /// The call with the same id before a call.
    earlier: HashMap<u32, u32>,
    /// Calls whose id is that of an earlier one in their message, by the first of them, as long as they have
    /// no result; only where that is allowed.
    twins: HashMap<u32, VecDeque<u32>>,
    /// Built when somebody asks who came before whom.
    tree: OnceCell<Tree>,
    /// The first answer of each call, where branches make that matter.
    answer_of: HashMap<u32, u32>,
    /// Calls whose answer only stands in for a lost one, and that answer.
    stand_ins: HashMap<u32, u32>,
    /// Calls and the results that answer them, where somebody wants to know.
    answers: Vec<(u32, u32)>,
    keep_answers: bool,
    unmatched: Vec<(u32, Item)>,
    /// Whether nothing in the session has an id.
    is_without_ids: bool,
    /// Messages whose calls a result without an id answers.
    by_order: Bits,
}

pub(super) fn check(
    index: &Index,
    joins: Joins,
    ids: Ids,
    keep_answers: bool,
    found: &mut Vec<Found>,
) -> (Vec<(u32, u32)>, PartedResults) {
    let mut walk = Walk {
        index,
        joins,
        ids,
        anchors: Vec::with_capacity(index.len()),
        mixed: HashMap::new(),
        closed: Bits::new(index.len()),
        answered: Bits::new(index.items().count()),
        calls: HashTable::new(),
        earlier: HashMap::new(),
        twins: HashMap::new(),
        tree: OnceCell::new(),
        answer_of: HashMap::new(),
        stand_ins: HashMap::new(),
        answers: Vec::new(),
        keep_answers,
        unmatched: Vec::new(),
        is_without_ids: index.items().all(|item| item.id == 0),
        by_order: Bits::new(index.len()),
    };
    let mut before = None;
    let mut has_begun = false;
    for (number, entry) in (0..).zip(index.entries()) {
        if is_broken(entry, has_begun) {
            found.push(whole(number, Fault::BrokenParent));
        }
        let anchor = walk.step(number, entry, before, found);
        walk.anchors.push(anchor);
        has_begun |= entry.kind != Kind::Header;
        if !matches!(entry.kind, Kind::Invalid | Kind::Header) {
            before = Some(number);
        }
    }
    if index.is_over() {
        // The branch in use is the last entry's. Branches that somebody left may end anywhere.
        walk.close(walk.anchor(before));
    }
    for (compaction, kept) in index.kept_entries() {
        // Without an id of its own there is nothing that it could be pointed at instead.
        let has_id = index.entry(compaction).is_some_and(|entry| entry.id != 0);
        if kept.is_none() && has_id {
            found.push(whole(compaction, Fault::BrokenParent));
        }
    }
    walk.judge_unmatched(found);
    let parted = compaction::check(&walk, found);
    walk.missing(found);
    walk.forget_replaced(found);
    (walk.answers, parted)
}

impl Walk<'_> {
    fn anchor(&self, number: Option<Number>) -> Number {
        number
            .and_then(|number| self.anchors.get(number as usize).copied())
            .unwrap_or(NOBODY)
    }

    /// The message whose calls results in an entry answer.
    pub(super) fn asked(&self, number: Number) -> Number {
        let mixed = self.mixed.get(&number).copied();
        mixed.unwrap_or_else(|| self.anchor(Some(number)))
    }

    fn step(
        &mut self,
        number: Number,
        entry: Entry,
        before: Option<Number>,
        found: &mut Vec<Found>,
    ) -> Number {
        let parent = match entry.link {
            Link::To(parent) => Some(parent),
            Link::Root => None,
            // Agents go on with the entry before it.
            Link::Broken => before,
        };
        let anchor = self.anchor(parent);
        match entry.kind {
            Kind::Neutral | Kind::Header | Kind::Compaction | Kind::Invalid => anchor,
            Kind::Results => {
                self.results(number, anchor, found);
                anchor
            }
            Kind::Mixed => {
                self.mixed.insert(number, anchor);
                self.results(number, anchor, found);
                self.close(anchor);
                number
            }
            Kind::Message | Kind::Cut => {
                self.close(anchor);
                number
            }
            Kind::Assistant => {
                let anchor = if self.is_joined(entry, parent, anchor) {
                    anchor
                } else {
                    self.close(anchor);
                    number
                };
                self.calls(number, anchor, found);
                anchor
            }
        }
    }

    fn is_joined(&self, entry: Entry, parent: Option<Number>, anchor: Number) -> bool {
        let kind_of = |number: Number| self.index.entry(number).map(|entry| entry.kind);
        match self.joins {
            Joins::Never => false,
            Joins::Neighbours => parent.and_then(kind_of) == Some(Kind::Assistant),
            Joins::Groups => {
                entry.group != 0
                    && self
                        .index
                        .entry(anchor)
                        .is_some_and(|message| message.group == entry.group)
            }
        }
    }

    fn close(&mut self, anchor: Number) {
        if anchor != NOBODY {
            self.closed.set(anchor as usize);
        }
    }

    /// Takes an entry's calls.
    fn calls(&mut self, number: Number, anchor: Number, found: &mut Vec<Found>) {
        let index = self.index;
        let id_of = |at: &u32| index.item(*at as usize).map_or(0, |item| item.id);
        for at in index.items_of(number) {
            let (Some(item), Ok(place)) = (index.item(at), u32::try_from(at)) else {
                continue;
            };
            if item.id == 0 {
                continue;
            }
            let Some(call) = self
                .calls
                .find(item.id, |call| id_of(call) == item.id)
                .copied()
            else {
                self.calls.insert_unique(item.id, place, id_of);
                continue;
            };
            let holder = |call: u32| index.item(call as usize).map_or(0, |item| item.entry);
            let is_same_message =
                holder(call) == number || self.anchor(Some(holder(call))) == anchor;
            let is_used = match self.ids {
                Ids::Conversation => is_same_message || self.is_used(call, holder, number),
                Ids::Message => is_same_message,
                Ids::Nothing => false,
            };
            if item.kind == BlockKind::Call && is_used {
                found.push(fault(place, item, Fault::DuplicateToolCallId));
            }
            if is_same_message && self.ids == Ids::Nothing {
                self.twins.entry(call).or_default().push_back(place);
            } else if is_same_message {
                // One result answers both.
                self.answered.set(at);
            } else if let Some(last) = self.calls.find_mut(item.id, |call| id_of(call) == item.id) {
                self.earlier.insert(place, *last);
                *last = place;
            }
        }
    }

    /// Whether this call, or an earlier one with its id, is on the way to an entry.
    fn is_used(&self, call: u32, holder: impl Fn(u32) -> Number, number: Number) -> bool {
        let mut next = Some(call);
        for _ in 0..REUSES_MAX {
            let Some(call) = next else { return false };
            if self.is_ancestor(holder(call), number) {
                return true;
            }
            next = self.earlier.get(&call).copied();
        }
        false
    }

    /// Gives an entry's results to their calls.
    fn results(&mut self, number: Number, anchor: Number, found: &mut Vec<Found>) {
        let index = self.index;
        for at in index.items_of(number) {
            let (Some(item), Ok(place)) = (index.item(at), u32::try_from(at)) else {
                continue;
            };
            if self.is_by_order(item, anchor) {
                self.by_order.set(anchor as usize);
                continue;
            }
            match self.call_of(item, anchor) {
                Some(call) if self.answered.get(call as usize) => {
                    if self.is_answered_here(call, number) {
                        found.push(self.another(call, place, item));
                    }
                }
                Some(call) if item.marks.is_late => {
                    self.answered.set(call as usize);
                    found.push(Found {
                        call: Some(call),
                        ..fault(place, item, Fault::MisplacedToolResult)
                    });
                }
                Some(call) => self.answer(call, place, item),
                None => self.unmatched.push((place, item)),
            }
        }
    }

    /// Whether a result has no id because its server goes by the order of calls and results, as
    /// Ollama does: it names its tool, or the calls have no ids either. Nothing can be said of it
    /// then, nor of the calls of its message.
    fn is_by_order(&self, result: Item, anchor: Number) -> bool {
        let is_call_without_id = |at| {
            let item = self.index.item(at);
            item.is_some_and(|item| item.id == 0 && item.kind != BlockKind::Result)
        };
        self.ids == Ids::Message
            && result.id == 0
            && (result.marks.is_by_name
                || self.is_without_ids
                || anchor != NOBODY && self.index.items_of(anchor).any(is_call_without_id))
    }

    /// A result that is in its place.
    fn answer(&mut self, call: u32, place: u32, item: Item) {
        self.answered.set(call as usize);
        // Which branch an answer is on decides whether another one is too many.
        if self.index.has_branches() {
            self.answer_of.insert(call, place);
        }
        if item.marks.is_stand_in {
            self.stand_ins.insert(call, place);
        }
        if self.keep_answers {
            self.answers.push((call, place));
        }
    }

    /// One result too many. What only stands in for a result goes when the real one is there.
    fn another(&mut self, call: u32, place: u32, item: Item) -> Found {
        let duplicate = fault(place, item, Fault::DuplicateToolResult);
        if item.marks.is_stand_in {
            return duplicate;
        }
        let Some(stand_in) = self.stand_ins.remove(&call) else {
            return duplicate;
        };
        if item.marks.is_late {
            return Found {
                call: Some(call),
                ..duplicate
            };
        }
        self.answers.retain(|answer| *answer != (call, stand_in));
        self.answer(call, place, item);
        match self.index.item(stand_in as usize) {
            Some(item) => fault(stand_in, item, Fault::DuplicateToolResult),
            None => duplicate,
        }
    }

    /// The call of a message that a result answers. Of several with its id it is the first that has none.
    fn call_of(&mut self, result: Item, anchor: Number) -> Option<u32> {
        let first = self.first_call_of(result, anchor)?;
        if !self.answered.get(first as usize) {
            return Some(first);
        }
        let twin = self.twins.get_mut(&first).and_then(VecDeque::pop_front);
        twin.or(Some(first))
    }

    fn first_call_of(&self, result: Item, anchor: Number) -> Option<u32> {
        if result.id == 0 || anchor == NOBODY {
            return None;
        }
        let index = self.index;
        let id_of = |at: &u32| index.item(*at as usize).map_or(0, |item| item.id);
        let last = self
            .calls
            .find(result.id, |call| id_of(call) == result.id)
            .copied()?;
        let holder = index.item(last as usize)?.entry;
        if self.anchor(Some(holder)) == anchor {
            return Some(last);
        }
        // Another branch may have used the id since.
        index
            .items_of(anchor)
            .filter_map(|at| u32::try_from(at).ok())
            .find(|at| {
                index
                    .item(*at as usize)
                    .is_some_and(|item| item.id == result.id && item.kind != BlockKind::Result)
            })
    }

    /// Whether a call has its answer on the way to this entry, and not on another branch.
    fn is_answered_here(&self, call: u32, number: Number) -> bool {
        if !self.index.has_branches() || self.joins == Joins::Groups {
            return true;
        }
        let first = self.answer_of.get(&call);
        let entry_of = |place: u32| self.index.item(place as usize).map(|item| item.entry);
        first
            .and_then(|answer| entry_of(*answer))
            .is_none_or(|answer| self.is_ancestor(answer, number))
    }

    pub(super) fn is_ancestor(&self, earlier: Number, number: Number) -> bool {
        if !self.index.has_branches() {
            return true;
        }
        let tree = self.tree.get_or_init(|| Tree::new(self.index));
        tree.is_ancestor(earlier, number)
    }

    /// Results whose message does not hold their call: is it elsewhere?
    fn judge_unmatched(&mut self, found: &mut Vec<Found>) {
        let index = self.index;
        let mut open = None;
        let id_of = |at: &u32| index.item(*at as usize).map_or(0, |item| item.id);
        for (place, item) in std::mem::take(&mut self.unmatched) {
            let last = self.calls.find(item.id, |call| id_of(call) == item.id);
            let call = match last.copied() {
                Some(call) if self.answered.get(call as usize) && self.ids != Ids::Conversation => {
                    // An earlier message may have used the id as well.
                    let open = open.get_or_insert_with(|| self.open_calls());
                    let open = open.get_mut(&item.id).and_then(VecDeque::pop_front);
                    open.or(Some(call))
                }
                call => call,
            };
            found.push(match call {
                Some(call) if !self.answered.get(call as usize) => {
                    self.answered.set(call as usize);
                    Found {
                        call: Some(call),
                        ..fault(place, item, Fault::MisplacedToolResult)
                    }
                }
                Some(call) => Found {
                    // The real result of a call that something stands in for.
                    call: (!item.marks.is_stand_in && self.stand_ins.remove(&call).is_some())
                        .then_some(call),
                    ..fault(place, item, Fault::DuplicateToolResult)
                },
                None => fault(place, item, Fault::OrphanedToolResult),
            });
        }
    }

    /// The calls without a result, by id.
    fn open_calls(&self) -> HashMap<u64, VecDeque<u32>> {
        let mut open: HashMap<u64, VecDeque<u32>> = HashMap::new();
        for (at, item) in (0_u32..).zip(self.index.items()) {
            if item.kind == BlockKind::Call && !self.answered.get(at as usize) {
                open.entry(item.id).or_default().push_back(at);
            }
        }
        open
    }

    /// Calls that were passed over.
    fn missing(&self, found: &mut Vec<Found>) {
        for (at, item) in (0_u32..).zip(self.index.items()) {
            if item.kind != BlockKind::Call || self.answered.get(at as usize) {
                continue;
            }
            let message = self.anchor(Some(item.entry)) as usize;
            // Nothing came after the message but results, if anything: the others may still come.
            let is_by_order =
                self.ids == Ids::Message && (item.id == 0 || self.by_order.get(message));
            if self.closed.get(message) && !is_by_order {
                found.push(fault(at, item, Fault::MissingToolResult));
            }
        }
    }

    /// The last entry: its branch is the one in use.
    fn last(&self) -> Number {
        Number::try_from(self.index.len().saturating_sub(1)).unwrap_or(NOBODY)
    }

    /// Takes out the results too many that their host leaves out already: it begins a new branch with a copy
    /// that is marked, and keeps the old one for people.
    fn forget_replaced(&self, found: &mut Vec<Found>) {
        let is_unsent = |item: &Item| item.kind == BlockKind::UnsentResult && item.id != 0;
        let unsent = self.index.items().filter(is_unsent);
        let copies: HashMap<u64, Number> = unsent.map(|item| (item.id, item.entry)).collect();
        if copies.is_empty() {
            return;
        }
        found.retain(|found| {
            let result = match found.fault {
                Fault::OrphanedToolResult | Fault::DuplicateToolResult => found.item,
                _ => None,
            };
            let result = result.and_then(|at| self.index.item(at as usize));
            let copy = result.and_then(|result| copies.get(&result.id));
            // What continues the result did not replace it; and somebody may have gone back to it since.
            copy.is_none_or(|copy| *copy < found.entry || self.is_ancestor(found.entry, *copy))
                || self.is_ancestor(found.entry, self.last())
        });
    }
}
