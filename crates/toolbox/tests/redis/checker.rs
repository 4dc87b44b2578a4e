//! Is a history one that a single atomic record could have had?
//!
//! Knows nothing of the store: only what a claim and a last word mean, in `Model::step`. For each
//! key it looks for an order of the operations that keeps to real time (what was answered before
//! another was asked comes before it) and in which every answer is right; the search of Wing and
//! Gong, with the states already visited remembered. An operation without a clear answer may have
//! happened at any time after it was asked, or never.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::Path;

use holdfast_reliability::idempotency::key::StoredKey;
use holdfast_reliability::idempotency::record::RecordState;

use crate::history::{Answer, Asked, Line};

/// One operation on one key.
#[derive(Debug, Clone)]
pub(crate) struct Operation {
    pub(crate) asked: Asked,
    pub(crate) answer: Answer,
    pub(crate) asked_at_ns: u64,
    pub(crate) answered_at_ns: u64,
}

/// What a record is, as far as answers depend on it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Model {
    Absent,
    Record {
        state: RecordState,
        owner: String,
        version: u64,
    },
}

impl Model {
    fn is(&self, wanted: RecordState, by: &str) -> bool {
        matches!(self, Self::Record { state, owner, .. } if *state == wanted && owner == by)
    }

    fn next(&self, state: RecordState, owner: &str) -> Self {
        let version = match self {
            Self::Absent => 0,
            Self::Record { version, .. } => *version,
        };
        Self::Record {
            state,
            owner: owner.to_owned(),
            version: version + 1,
        }
    }

    /// Whether a last word of this owner is taken.
    fn takes(&self, owner: &str, word: RecordState) -> bool {
        self.is(RecordState::Inflight, owner)
            || (word != RecordState::Unknown && self.is(RecordState::Unknown, owner))
    }

    /// Every state that may follow, given the answer.
    fn step(&self, operation: &Operation) -> Vec<Self> {
        let unclear = operation.answer == Answer::Unclear;
        match &operation.asked {
            Asked::Claim { owner } => self.claim(owner, &operation.answer),
            Asked::Finalise { owner, state } => {
                let taken = self.takes(owner, *state);
                self.word(
                    &operation.answer,
                    taken,
                    || self.next(*state, owner),
                    unclear,
                )
            }
            Asked::Release { owner } => {
                let taken = self.takes(owner, RecordState::Cancelled);
                self.word(&operation.answer, taken, || Self::Absent, unclear)
            }
        }
    }

    fn word(
        &self,
        answer: &Answer,
        taken: bool,
        after: impl Fn() -> Self,
        unclear: bool,
    ) -> Vec<Self> {
        let right = match answer {
            Answer::Taken => taken,
            Answer::NotTheHolder => !taken && *self != Self::Absent,
            Answer::Gone => *self == Self::Absent,
            Answer::Unclear => true,
            _ => false,
        };
        match (right, taken) {
            (false, _) => Vec::new(),
            (true, true) => vec![after()],
            (true, false) if unclear => Vec::new(),
            (true, false) => vec![self.clone()],
        }
    }

    fn claim(&self, by: &str, answer: &Answer) -> Vec<Self> {
        let granted = self.next(RecordState::Inflight, by);
        let Self::Record {
            state,
            owner,
            version,
        } = self
        else {
            return match answer {
                Answer::Granted | Answer::Unclear => vec![granted],
                _ => Vec::new(),
            };
        };
        let lost = self.next(RecordState::Unknown, owner);
        match (state, answer) {
            (RecordState::Cancelled, Answer::Granted | Answer::Unclear) => vec![granted],
            (RecordState::Inflight, Answer::InFlight { version: seen }) if seen == version => {
                vec![self.clone()]
            }
            (RecordState::Inflight, Answer::Unclear) => vec![lost],
            (
                _,
                Answer::Ended {
                    state: ended,
                    version: seen,
                    owner: whose,
                },
            ) if whose == owner => {
                if *state == RecordState::Inflight {
                    // Given up on in the same step.
                    let right = *ended == RecordState::Unknown && *seen == version + 1;
                    return right.then_some(lost).into_iter().collect();
                }
                let right = ended == state && seen == version && *state != RecordState::Cancelled;
                right.then(|| self.clone()).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Looks for an order. Operations that nobody got an answer to may be left out.
struct Search<'a> {
    operations: &'a [Operation],
    visited: HashSet<(u128, Model)>,
}

impl Search<'_> {
    fn finds(&mut self, done: u128, model: &Model) -> bool {
        let open = |index: usize| done & (1 << index) == 0;
        let must = |operation: &Operation| operation.answer != Answer::Unclear;
        let operations = self.operations;
        let left = || {
            operations
                .iter()
                .enumerate()
                .filter(|(index, _)| open(*index))
        };
        if left().all(|(_, operation)| !must(operation)) {
            return true;
        }
        if !self.visited.insert((done, model.clone())) {
            return false;
        }
        // Nothing may come before what was answered before it was even asked.
        let first_answer = left().map(|(_, operation)| operation.answered_at_ns).min();
        for (index, operation) in left() {
            if first_answer.is_some_and(|first| operation.asked_at_ns > first) {
                continue;
            }
            for after in model.step(operation) {
                if self.finds(done | (1 << index), &after) {
                    return true;
                }
            }
        }
        false
    }
}

/// Whether there is an order in which one atomic record gives these answers.
pub(crate) fn is_linearizable(operations: &[Operation]) -> bool {
    assert!(
        operations.len() <= 128,
        "{} operations on one key",
        operations.len()
    );
    let mut search = Search {
        operations,
        visited: HashSet::new(),
    };
    search.finds(0, &Model::Absent)
}

/// Reads the histories of all processes.
pub(crate) fn read(dir: &Path) -> BTreeMap<StoredKey, Vec<Operation>> {
    let mut asked: HashMap<u64, (StoredKey, Operation)> = HashMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let line: Line = serde_json::from_str(line).unwrap();
            if let Some(ask) = line.asked {
                let operation = Operation {
                    asked: ask,
                    answer: Answer::Unclear,
                    asked_at_ns: line.at_ns,
                    answered_at_ns: u64::MAX,
                };
                asked.insert(line.id, (line.key, operation));
            } else if let Some((_, operation)) = asked.get_mut(&line.id) {
                operation.answer = line.answer.unwrap();
                if operation.answer != Answer::Unclear {
                    operation.answered_at_ns = line.at_ns;
                }
            }
        }
    }
    let mut by_key: BTreeMap<StoredKey, Vec<Operation>> = BTreeMap::new();
    for (key, operation) in asked.into_values() {
        by_key.entry(key).or_default().push(operation);
    }
    for operations in by_key.values_mut() {
        operations.sort_by_key(|operation| operation.asked_at_ns);
    }
    by_key
}

/// The keys whose history is not that of one atomic record.
pub(crate) fn wrong(histories: &BTreeMap<StoredKey, Vec<Operation>>) -> Vec<StoredKey> {
    histories
        .iter()
        .filter(|(_, operations)| !is_linearizable(operations))
        .map(|(key, _)| *key)
        .collect()
}

fn operation(asked: Asked, answer: Answer, from: u64, to: u64) -> Operation {
    Operation {
        asked,
        answer,
        asked_at_ns: from,
        answered_at_ns: to,
    }
}

fn claim(owner: &str, answer: Answer, from: u64, to: u64) -> Operation {
    operation(
        Asked::Claim {
            owner: owner.to_owned(),
        },
        answer,
        from,
        to,
    )
}

fn finalise(owner: &str, state: RecordState, answer: Answer, from: u64, to: u64) -> Operation {
    operation(
        Asked::Finalise {
            owner: owner.to_owned(),
            state,
        },
        answer,
        from,
        to,
    )
}

#[test]
fn the_checker_knows_right_from_wrong() {
    use Answer::{Granted, NotTheHolder, Taken, Unclear};
    use RecordState::{Cancelled, Done};
    let in_flight = Answer::InFlight { version: 1 };
    let done = Answer::Ended {
        state: Done,
        version: 2,
        owner: "a".to_owned(),
    };
    let right = [
        claim("a", Granted, 1, 2),
        claim("b", in_flight.clone(), 3, 5),
        finalise("a", Done, Taken, 4, 6),
        claim("b", done.clone(), 7, 8),
        finalise("a", Cancelled, NotTheHolder, 9, 10),
    ];
    assert!(is_linearizable(&right));
    // Two grants.
    assert!(!is_linearizable(&[
        claim("a", Granted, 1, 2),
        claim("b", Granted, 3, 4)
    ]));
    // The same while the first may have been given back.
    let given_back = finalise("a", Cancelled, Unclear, 2, u64::MAX);
    assert!(is_linearizable(&[
        claim("a", Granted, 1, 2),
        given_back.clone(),
        claim("b", Granted, 3, 4)
    ]));
    // But not before anybody asked for that.
    let later = finalise("a", Cancelled, Unclear, 5, u64::MAX);
    assert!(!is_linearizable(&[
        claim("a", Granted, 1, 2),
        later,
        claim("b", Granted, 3, 4)
    ]));
    // A stale read.
    let mut stale = right.to_vec();
    stale.push(claim("c", in_flight, 11, 12));
    assert!(!is_linearizable(&stale));
    // A certain ending that changed.
    let mut changed = right.to_vec();
    changed[4].answer = Taken;
    assert!(!is_linearizable(&changed));
    // A claim whose answer was lost.
    let lost = claim("a", Unclear, 1, u64::MAX);
    assert!(is_linearizable(&[
        lost,
        claim("b", Answer::InFlight { version: 1 }, 3, 4)
    ]));
}
