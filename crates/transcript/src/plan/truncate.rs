//! Where to cut: the last point before which every call has its result.

use crate::check::{Fault, Pairs};
use crate::index::{Index, Number};

/// The first entry to cut off, when anything has to be.
pub(super) fn last_good(index: &Index, pairs: &Pairs) -> Option<Number> {
    let entry_of = |item: u32| index.item(item as usize).map_or(0, |item| item.entry);
    let mut end = pairs
        .found
        .iter()
        .filter(|found| !matches!(found.fault, Fault::InvalidLine | Fault::BrokenParent))
        // The compaction is mended.
        .filter(|found| !super::is_parted(pairs, found))
        .map(|found| {
            found
                .call
                .map_or(found.entry, |call| entry_of(call).min(found.entry))
        })
        .min()?;
    // A call before the cut whose result would be behind it has to go as well, and so on.
    let mut open: Vec<(Number, Number)> = pairs
        .answers
        .iter()
        .map(|(call, result)| (entry_of(*call), entry_of(*result)))
        .collect();
    open.sort_unstable_by_key(|(call, _)| std::cmp::Reverse(*call));
    for (call, result) in open {
        if call < end && result >= end {
            end = call;
        }
    }
    Some(end)
}
