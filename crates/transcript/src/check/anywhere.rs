//! The rule of the Responses API: a result comes anywhere behind its call.

use std::collections::HashMap;

use hashbrown::HashTable;

use super::{Bits, Fault, Found};
use crate::index::{Index, Item};
use crate::seen::{BlockKind, Kind, Reply};

pub(super) fn check(index: &Index, found: &mut Vec<Found>) -> Vec<(u32, u32)> {
    let mut answers = Vec::new();
    let mut calls: HashTable<u32> = HashTable::new();
    let mut answered = Bits::new(index.items().count());
    let mut stand_ins: HashMap<u32, u32> = HashMap::new();
    let mut unmatched = Vec::new();
    let id_of = |at: &u32| index.item(*at as usize).map_or(0, |item| item.id);
    let mut cut_items = 0;
    let mut reply = Reply::default();
    for (number, entry) in (0..).zip(index.entries()) {
        if entry.kind == Kind::Cut {
            // What came before is not sent any more.
            cut_items = index.items_of(number).start;
        }
        reply.step(entry.kind, number as usize, number as usize + 1);
        if entry.kind == Kind::Cut {
            let last = index.items_of(number).next_back();
            let last = last.and_then(|at| index.item(at));
            reply.is_going_on = last.is_none_or(|last| last.kind != BlockKind::Result);
        }
        for at in index.items_of(number) {
            let (Some(item), Ok(place)) = (index.item(at), u32::try_from(at)) else {
                continue;
            };
            let same = calls.find_mut(item.id, |call| id_of(call) == item.id);
            match (item.kind, same) {
                (BlockKind::Result, Some(call)) if *call as usize >= cut_items => {
                    let stand_in = stand_ins.get(call).filter(|_| !item.marks.is_stand_in);
                    if let Some(stand_in) = stand_in.copied() {
                        // The real one is there: what stood in for it is one too many.
                        stand_ins.remove(call);
                        answers.retain(|answer| *answer != (*call, stand_in));
                        answers.push((*call, place));
                        let old = index.item(stand_in as usize).unwrap_or(item);
                        found.push(fault(stand_in, old, Fault::DuplicateToolResult));
                    } else if answered.get(*call as usize) {
                        found.push(fault(place, item, Fault::DuplicateToolResult));
                    } else {
                        answers.push((*call, place));
                        if item.marks.is_stand_in {
                            stand_ins.insert(*call, place);
                        }
                    }
                    answered.set(*call as usize);
                }
                (BlockKind::Result, _) => unmatched.push((place, item)),
                (BlockKind::UnsentResult, _) => {}
                (_, Some(call)) => {
                    if *call as usize >= cut_items {
                        found.push(fault(place, item, Fault::DuplicateToolCallId));
                    }
                    *call = place;
                }
                (_, None) if item.id != 0 => {
                    calls.insert_unique(item.id, place, id_of);
                }
                _ => {}
            }
        }
    }
    for (place, item) in unmatched {
        found.push(judge(index, &calls, &mut answered, place, item));
    }
    for (at, item) in (0_u32..).zip(index.items()) {
        let may_run = !index.is_over() && !item.marks.is_past;
        let is_pending = may_run && item.entry as usize >= reply.first;
        // A call that was compacted away is not sent any more.
        let is_sent = at as usize >= cut_items;
        if is_sent && item.kind == BlockKind::Call && !answered.get(at as usize) && !is_pending {
            found.push(fault(at, item, Fault::MissingToolResult));
        }
    }
    answers
}

/// What a result is that no call came before.
fn judge(
    index: &Index,
    calls: &HashTable<u32>,
    answered: &mut Bits,
    place: u32,
    item: Item,
) -> Found {
    let id_of = |at: &u32| index.item(*at as usize).map_or(0, |item| item.id);
    let Some(call) = calls.find(item.id, |call| id_of(call) == item.id) else {
        return fault(place, item, Fault::OrphanedToolResult);
    };
    if answered.get(*call as usize) {
        return fault(place, item, Fault::DuplicateToolResult);
    }
    answered.set(*call as usize);
    if *call > place {
        return Found {
            call: Some(*call),
            ..fault(place, item, Fault::MisplacedToolResult)
        };
    }
    Found {
        is_compacted: true,
        ..fault(place, item, Fault::OrphanedToolResult)
    }
}

pub(super) const fn fault(place: u32, item: Item, fault: Fault) -> Found {
    Found {
        entry: item.entry,
        item: Some(place),
        fault,
        call: None,
        is_compacted: false,
    }
}
