//! What the sentences wish so far: the next one can add to it, take it back or replace it.

use super::second_thoughts::{self, Turn};
use crate::raw::RawCall;

/// Sentences after which nothing is taken back any more.
const TAKEN_BACK_WITHIN: usize = 4;

/// What was wished so far, sentence by sentence.
#[derive(Default)]
pub(super) struct Wished {
    /// Calls, with the number of their sentence.
    pub(super) calls: Vec<(usize, RawCall)>,
    pub(super) asked: Vec<RawCall>,
    /// The sentence whose wish the next one takes the place of.
    doubted: Option<usize>,
}

impl Wished {
    /// The last sentence with a wish, when it is near.
    fn last(&self, number: usize) -> Option<usize> {
        let (last, _) = self.calls.last()?;
        (number - last <= TAKEN_BACK_WITHIN).then_some(*last)
    }

    fn take_back(&mut self, sentence: usize) {
        self.calls.retain(|(number, _)| *number != sentence);
    }

    pub(super) fn turn(&mut self, number: usize, lower: &str) {
        if self.last(number).is_none() {
            return;
        }
        match second_thoughts::turn(lower) {
            Turn::TakesBack => {
                if let Some(last) = self.last(number) {
                    self.take_back(last);
                }
            }
            Turn::Hesitates => self.doubted = self.last(number),
            Turn::None => {}
        }
    }

    /// Adds the calls of a sentence: where it starts, and its text in lower case.
    pub(super) fn add(
        &mut self,
        number: usize,
        (start, lower): (usize, &str),
        calls: Vec<RawCall>,
    ) {
        let calls = second_thoughts::corrected(start, lower, calls);
        if calls.is_empty() {
            return;
        }
        let replaced = self.doubted.take().or_else(|| {
            let last = self.last(number).filter(|last| *last < number)?;
            second_thoughts::replaces(lower).then_some(last)
        });
        if let Some(replaced) = replaced.filter(|_| !second_thoughts::adds(lower)) {
            self.take_back(replaced);
        }
        // "web search time. query: x": the second sentence gave the first one what it needs.
        let last = self.calls.last().filter(|(last, _)| last + 1 == number);
        let is_said = |call: &RawCall| {
            last.is_some_and(|(_, last)| last.name == call.name && last.args == call.args)
        };
        let calls: Vec<_> = calls.into_iter().filter(|call| !is_said(call)).collect();
        // "We need to create a.py. Use write with path a.py and content …"
        let is_part = |call: &RawCall| calls.iter().any(|whole| is_part(call, whole));
        self.calls
            .retain(|(last, call)| last + 1 != number || !is_part(call));
        self.calls
            .extend(calls.into_iter().map(|call| (number, call)));
    }
}

/// Whether all that one call gives is given by another call of the same tool, and more.
fn is_part(call: &RawCall, whole: &RawCall) -> bool {
    let (part, all) = (&call.args, &whole.args);
    call.name == whole.name
        && part.positional.is_empty()
        && !part.named.is_empty()
        && part.named.len() < all.named.len()
        && part.named.iter().all(|given| all.named.contains(given))
}
