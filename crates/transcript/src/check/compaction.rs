//! What compactions take away. Only what a compaction keeps, and what came after it, is sent: a
//! result is worth nothing when its call is not sent with it.

use std::collections::{HashMap, HashSet};

use super::adjacent::{NOBODY, Walk};
use super::anywhere::fault;
use super::tree::ends_after;
use super::{Fault, Found, Parted, PartedResults};
use crate::index::{Item, Number};
use crate::limits::PARTED_FACTOR_MAX;
use crate::seen::BlockKind;

/// A compaction that something ends after, where what it sends begins, and the message before that
/// whose calls are not sent.
#[derive(Clone, Copy)]
struct Cut {
    compaction: Number,
    first: Number,
    message: Number,
    /// Whether the compaction can be told to keep the message as well.
    can_keep: bool,
}

/// Finds results that a compaction parts from their calls. Gives back those where the compaction can
/// be mended, so that nothing has to go.
pub(super) fn check(walk: &Walk<'_>, found: &mut Vec<Found>) -> PartedResults {
    let mut parted = PartedResults::new();
    if walk.index.compactions().is_empty() {
        return parted;
    }
    let cuts = cuts(walk);
    let judged: HashSet<u32> = found.iter().filter_map(|found| found.item).collect();
    let mut looks = walk.index.len().saturating_mul(PARTED_FACTOR_MAX);
    for (place, item) in (0_u32..).zip(walk.index.items()) {
        if item.kind != BlockKind::Result || judged.contains(&place) {
            continue;
        }
        let of_message = cuts.get(&walk.asked(item.entry));
        let mut by = Vec::new();
        for cut in of_message.into_iter().flatten() {
            looks = looks.saturating_sub(1);
            if looks > 0 && is_sent(walk, *cut, item) {
                by.push(*cut);
            }
        }
        if by.is_empty() {
            continue;
        }
        found.push(Found {
            is_compacted: true,
            ..fault(place, item, Fault::OrphanedToolResult)
        });
        if by.iter().all(|cut| cut.can_keep) {
            let mend = |cut: Cut| Parted {
                compaction: cut.compaction,
                message: cut.message,
            };
            parted.insert(place, by.into_iter().map(mend).collect());
        }
    }
    parted
}

/// Whether a compaction has a result sent.
fn is_sent(walk: &Walk<'_>, cut: Cut, item: Item) -> bool {
    let leads = |one: Number, other: Number| one <= other && walk.is_ancestor(one, other);
    leads(cut.first, item.entry)
        && (leads(item.entry, cut.compaction) || leads(cut.compaction, item.entry))
}

/// The compactions that begin behind a message with calls, by that message.
fn cuts(walk: &Walk<'_>) -> HashMap<Number, Vec<Cut>> {
    let kept: HashMap<Number, Option<Number>> = walk.index.kept_entries().into_iter().collect();
    let ends = ends_after(walk.index);
    let mut cuts: HashMap<Number, Vec<Cut>> = HashMap::new();
    for (compaction, _) in walk.index.compactions() {
        // One that another compaction follows on every branch decides nothing any more.
        if !ends.get(*compaction as usize) {
            continue;
        }
        let first = kept.get(compaction).copied().flatten();
        let first = first
            .filter(|first| first < compaction && walk.is_ancestor(*first, *compaction))
            .unwrap_or(*compaction);
        let message = walk.asked(first);
        if message == NOBODY || message == first {
            continue;
        }
        let has_id = walk.index.entry(message).is_some_and(|it| it.id != 0);
        cuts.entry(message).or_default().push(Cut {
            compaction: *compaction,
            first,
            message,
            can_keep: has_id && kept.contains_key(compaction),
        });
    }
    cuts
}
