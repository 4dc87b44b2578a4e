//! The answers of a turn that its records would give again, and whether they still hold.
//!
//! Servers give calls of one turn the same id, and a model that looks at a file again asks the same.
//! The record of its first look must not answer the second once something was changed in between. An
//! answer that never arrived is another matter: its call is asked for again until it does, whatever
//! else the turn has changed meanwhile.

use serde::{Deserialize, Serialize};

use super::hash::Hash64;
use crate::idempotency::key::StoredKey;

/// Answers that a turn remembers; above it the oldest is forgotten, and its record answers on.
pub const ANSWERS_KEPT_MAX: usize = 64;

/// A record, as turns remember it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordMark(Hash64);

impl RecordMark {
    /// The mark of the record under a key.
    pub fn of(key: &StoredKey) -> Self {
        Self(Hash64::of(key.as_bytes()))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    record: Hash64,
    /// The changes of the turn when its call had ended.
    changes: u32,
    delivered: bool,
}

/// The answers of one turn, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Answers {
    /// Calls that changed something since the first of the answers.
    changes: u32,
    kept: Vec<Answer>,
}

impl Answers {
    /// Whether there is anything to remember.
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// A call has changed something.
    pub(super) fn changed(&mut self) {
        // Without an answer there is nothing that a change could make stale.
        if !self.kept.is_empty() {
            self.changes = self.changes.saturating_add(1);
        }
    }

    /// A call has ended whose record can be asked for again.
    pub(super) fn ended(&mut self, record: Option<RecordMark>) {
        let Some(RecordMark(record)) = record else {
            return;
        };
        self.kept.retain(|known| known.record != record);
        if self.kept.len() >= ANSWERS_KEPT_MAX {
            self.kept.remove(0);
        }
        self.kept.push(Answer {
            record,
            changes: self.changes,
            delivered: false,
        });
    }

    /// An answer has arrived.
    pub(super) fn delivered(&mut self, RecordMark(record): RecordMark) {
        for known in &mut self.kept {
            known.delivered |= known.record == record;
        }
    }

    /// The records whose answers arrived, and after which something was changed.
    pub(super) fn superseded(&self) -> Vec<RecordMark> {
        let stale = |known: &&Answer| known.delivered && known.changes < self.changes;
        let stale = self.kept.iter().filter(stale);
        stale.map(|known| RecordMark(known.record)).collect()
    }

    /// A stored state is not trusted to keep the limit.
    pub(super) fn bounded(mut self) -> Self {
        let extra = self.kept.len().saturating_sub(ANSWERS_KEPT_MAX);
        self.kept.drain(..extra);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(number: u64) -> RecordMark {
        RecordMark(Hash64(number))
    }

    #[test]
    fn answer_is_superseded_when_it_arrived_and_something_changed_after_it() {
        let mut answers = Answers::default();
        answers.changed();
        answers.ended(Some(mark(1)));
        answers.delivered(mark(1));
        assert!(answers.superseded().is_empty());
        answers.changed();
        assert_eq!(answers.superseded(), [mark(1)]);
        // It is asked for again, and is new.
        answers.ended(Some(mark(1)));
        answers.delivered(mark(1));
        assert!(answers.superseded().is_empty());
    }

    #[test]
    fn answer_that_was_lost_stands_whatever_changed() {
        let mut answers = Answers::default();
        answers.ended(Some(mark(1)));
        answers.ended(Some(mark(2)));
        answers.changed();
        answers.delivered(mark(2));
        assert_eq!(answers.superseded(), [mark(2)]);
        // Late, and what changed before it arrived counts too.
        answers.delivered(mark(1));
        assert_eq!(answers.superseded(), [mark(1), mark(2)]);
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_oldest() {
        let mut answers = Answers::default();
        for number in 0..1_000 {
            answers.ended(Some(mark(number)));
            answers.delivered(mark(number));
        }
        answers.changed();
        let superseded = answers.superseded();
        assert_eq!(superseded.len(), ANSWERS_KEPT_MAX);
        assert!(!superseded.contains(&mark(0)) && superseded.contains(&mark(999)));
    }
}
