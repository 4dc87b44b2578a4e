//! Who came before whom, on every branch, told at once: the entries are numbered so that those who
//! continue an entry, or one who does, are a range behind it.

use crate::index::{Index, Link, Number};

pub(super) struct Tree {
    /// An entry's place, and the place behind all who continue it.
    ranges: Vec<(u32, u32)>,
}

impl Tree {
    pub(super) fn new(index: &Index) -> Self {
        let parents: Vec<Option<Number>> = (0..)
            .zip(index.entries())
            .map(|(number, entry): (Number, _)| match entry.link {
                Link::To(parent) => Some(parent).filter(|parent| *parent < number),
                // Agents go on with the entry before it.
                Link::Broken => number.checked_sub(1),
                Link::Root => None,
            })
            .collect();
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
