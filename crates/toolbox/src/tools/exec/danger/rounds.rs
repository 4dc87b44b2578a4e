//! Commands one behind the other, and those of loops once more.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;

use super::Judge;
use super::certain::is_straight;
use super::variables::Set;
use crate::tools::exec::shell::Simple;

/// Rounds of a loop that are followed; what it still changes by then may be anything.
const ROUNDS_MAX: usize = 8;

impl Judge<'_> {
    /// Judges some of the commands. What a later one of a loop sets, an earlier one may hold in its next
    /// round, so each loop is judged again as long as that changes anything. Those within it go along.
    pub(super) fn in_order(&mut self, all: &[Simple], ran: Range<usize>, depth: usize) {
        let (first, end) = (ran.start, ran.end.min(all.len()));
        let before = (first, self.noted, self.places.clone());
        let mut start = before.clone();
        let mut open = 0_usize;
        let is_straight = depth == 0 && is_straight(all, ran);
        for (at, simple) in all.iter().enumerate().take(end).skip(first) {
            if self.is_too_much() {
                break;
            }
            let begun = simple.begins_loops();
            if open == 0 && begun > 0 {
                start = (at, self.noted, self.places.clone());
            }
            open += begun;
            self.go_on(at, simple);
            let goes = is_straight.then(|| self.goes(at, all)).flatten();
            self.simple(simple, all, depth);
            self.went(goes, simple);
            let is_end = simple.ends_loop();
            if is_end && open == 0 {
                // Its beginning was not seen: it may be anywhere.
                start.clone_from(&before);
            }
            open = open.saturating_sub(usize::from(is_end));
            let is_over = is_end && open == 0;
            let is_cut = open > 0 && at + 1 == end;
            let (from, noted, places) = &start;
            if (is_over || is_cut) && self.noted > *noted && !self.has_too_much() {
                self.again(all, *from..at + 1, places, depth);
            }
        }
        self.come_back();
    }

    /// Judges the commands of a loop until nothing new comes of it. It begins where it did before.
    fn again(
        &mut self,
        all: &[Simple],
        ran: Range<usize>,
        places: &[Option<PathBuf>],
        depth: usize,
    ) {
        let reached = self.places.clone();
        let was_repeated = std::mem::replace(&mut self.is_repeated, true);
        for round in 1..=ROUNDS_MAX {
            let before = self.noted;
            let sizes = (round == ROUNDS_MAX).then(|| self.sizes());
            self.places = places.to_vec();
            for simple in all.get(ran.clone()).unwrap_or_default() {
                if self.has_too_much() {
                    break;
                }
                self.simple(simple, all, depth);
            }
            if self.noted == before {
                break;
            }
            let Some(sizes) = sizes else { continue };
            for (name, size) in self.sizes() {
                if sizes.get(&name) != Some(&size) {
                    self.note(&name, Set::Computed);
                }
            }
        }
        (self.places, self.is_repeated) = (reached, was_repeated);
    }

    /// How many values each variable has.
    fn sizes(&self) -> BTreeMap<String, usize> {
        let sets = self.variables.iter();
        sets.map(|(name, sets)| (name.clone(), sets.len()))
            .collect()
    }
}
