//! Who came before whom, on every branch, told at once: the entries are numbered so that those who
//! continue an entry, or one who does, are a range behind it.

use super::Bits;
use crate::index::{Index, Link, Number};
use crate::seen::Kind;

pub(super) struct Tree {
    /// An entry's place, and the place behind all who continue it.
    ranges: Vec<(u32, u32)>,
}

/// Whom each entry continues.
fn parents(index: &Index) -> Vec<Option<Number>> {
    (0..)
        .zip(index.entries())
        .map(|(number, entry): (Number, _)| match entry.link {
            Link::To(parent) => Some(parent).filter(|parent| *parent < number),
            // Agents go on with the entry before it.
            Link::Broken => number.checked_sub(1),
            Link::Root => None,
        })
        .collect()
}

/// The entries that some branch ends after without another compaction in between.
pub(super) fn ends_after(index: &Index) -> Bits {
    let mut is_continued = Bits::new(index.len());
    let mut ends = Bits::new(index.len());
    for (number, parent) in parents(index).into_iter().enumerate().rev() {
        if !is_continued.get(number) {
            ends.set(number);
        }
        let Some(parent) = parent else { continue };
        is_continued.set(parent as usize);
        let entry = Number::try_from(number).ok().and_then(|it| index.entry(it));
        if ends.get(number) && entry.is_some_and(|entry| entry.kind != Kind::Compaction) {
            ends.set(parent as usize);
        }
    }
    ends
}

impl Tree {
    pub(super) fn new(index: &Index) -> Self {
        let parents = parents(index);
        let mut sizes = vec![1_u32; parents.len()];
        for (at, parent) in parents.iter().enumerate().rev() {
            let size = sizes[at];
            if let Some(sum) = parent.and_then(|parent| sizes.get_mut(parent as usize)) {
                *sum = sum.saturating_add(size);
            }
        }
        // Who continues an entry gets the next place in its range that is free.
        let mut free = vec![0_u32; parents.len()];
        let mut free_at_root = 0;
        let mut ranges = Vec::with_capacity(parents.len());
        for (at, (parent, size)) in parents.iter().zip(sizes).enumerate() {
            let next = match parent {
                Some(parent) => &mut free[*parent as usize],
                None => &mut free_at_root,
            };
            let start = *next;
            *next = start.saturating_add(size);
            free[at] = start.saturating_add(1);
            ranges.push((start, start.saturating_add(size)));
        }
        Self { ranges }
    }

    /// Whether an entry is another one, or on the way to it.
    pub(super) fn is_ancestor(&self, earlier: Number, number: Number) -> bool {
        let range = |number: Number| self.ranges.get(number as usize).copied();
        match (range(earlier), range(number)) {
            (Some((start, end)), Some((place, _))) => start <= place && place < end,
            _ => false,
        }
    }
}
