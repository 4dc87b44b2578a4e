//! Which results can be removed so that nothing is lost: their call is not in the session, or they are a
//! copy of the result that stands behind it.

use std::collections::{BTreeSet, HashSet};

use super::is_parted;
use crate::adapter::{Joins, Pairing};
use crate::check::{Fault, Pairs, pairs};
use crate::index::{Facts, Index};
use crate::limits::REMOVAL_ROUNDS_MAX;
use crate::seen::Kind;

/// The places of the results that go.
///
/// Where neighbours are one message, what goes may let two of them meet. Then the session is judged
/// again as it will be, so that a second repair finds nothing more.
pub(super) fn removable(index: &Index, pairing: Pairing, found: &Pairs) -> BTreeSet<u32> {
    let mut gone: BTreeSet<u32> = once(index, found).collect();
    if !matches!(pairing, Pairing::Adjacent(Joins::Neighbours, _)) {
        return gone;
    }
    for _ in 0..REMOVAL_ROUNDS_MAX {
        if gone.is_empty() {
            break;
        }
        let (left, places) = without(index, &gone);
        let found = pairs(&left, pairing);
        let more: Vec<u32> = once(&left, &found)
            .filter_map(|place| places.get(place as usize).copied())
            .collect();
        if more.is_empty() {
            break;
        }
        gone.extend(more);
    }
    gone
}

fn once(index: &Index, pairs: &Pairs) -> impl Iterator<Item = u32> {
    let said = |place: u32| {
        let item = index.item(place as usize)?;
        // Nobody asked what it says.
        (item.marks.says != 0).then_some((item.id, item.marks.says))
    };
    let answers = pairs.answers.iter();
    let in_place: HashSet<_> = answers.filter_map(|(_, it)| said(*it)).collect();
    pairs.found.iter().filter_map(move |found| {
        let place = found.item.filter(|_| !is_parted(pairs, found))?;
        // What only stands in for a result says nothing that would be lost.
        let item = index.item(place as usize);
        let is_stand_in = item.is_some_and(|item| item.marks.is_stand_in);
        let goes = match found.fault {
            Fault::OrphanedToolResult => !found.is_compacted,
            Fault::DuplicateToolResult => {
                is_stand_in || said(place).is_some_and(|said| in_place.contains(&said))
            }
            _ => false,
        };
        goes.then_some(place)
    })
}

/// The session without some results, and where what is left of them was. Its entries do not name each
/// other.
fn without(index: &Index, gone: &BTreeSet<u32>) -> (Index, Vec<u32>) {
    let (mut left, mut places) = (Index::default(), Vec::new());
    if index.is_over() {
        left.end_here();
    }
    for (number, entry) in (0..).zip(index.entries()) {
        let items = index.items_of(number);
        let had_items = !items.is_empty();
        let mut blocks = Vec::new();
        for (at, item) in items.filter_map(|at| Some((u32::try_from(at).ok()?, index.item(at)?))) {
            if !gone.contains(&at) {
                blocks.push((item.kind, item.marks, item.id));
                places.push(at);
            }
        }
        let is_emptied = had_items && blocks.is_empty();
        let kind = match entry.kind {
            Kind::Invalid => continue,
            Kind::Results if is_emptied => continue,
            Kind::Mixed if is_emptied => Kind::Message,
            kind => kind,
        };
        let facts = Facts {
            kind,
            has_more: entry.has_more,
            ..Facts::default()
        };
        // It is shorter than one that fits.
        if left.add(facts, blocks.into_iter()).is_err() {
            break;
        }
    }
    (left, places)
}
