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

use crate::redis_chaos::history::{Answer, Asked, Line};

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

/// Which operations have had their place in the order.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Placed(Vec<u64>);

impl Placed {
    fn none_of(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    fn has(&self, index: usize) -> bool {
        self.0[index / 64] & (1 << (index % 64)) != 0
    }

    fn with(&self, index: usize) -> Self {
        let mut placed = self.clone();
        placed.0[index / 64] |= 1 << (index % 64);
        placed
    }
}

/// Looks for an order. Operations that nobody got an answer to may be left out.
pub(crate) struct Search<'a> {
    operations: &'a [Operation],
    /// By operation: set for a claim that was never answered, of an owner whom no answer names.
    /// Then when the same owner asked to take it back.
    nameless: Vec<Option<u64>>,
    visited: HashSet<(Placed, Model)>,
}

impl<'a> Search<'a> {
    pub(crate) fn new(operations: &'a [Operation]) -> Self {
        Self {
            operations,
            nameless: nameless(operations),
            visited: HashSet::new(),
        }
    }

    fn finds(&mut self, placed: &Placed, model: &Model) -> bool {
        let operations = self.operations;
        let left = || {
            let all = operations.iter().enumerate();
            all.filter(|(index, _)| !placed.has(*index))
        };
        if left().all(|(_, operation)| operation.answer == Answer::Unclear) {
            return true;
        }
        if !self.visited.insert((placed.clone(), model.clone())) {
            return false;
        }
        // Nothing may come before what was answered before it was even asked.
        let first_answer = left().map(|(_, operation)| operation.answered_at_ns).min();
        let mut next: Vec<usize> = left()
            .filter(|(_, operation)| first_answer.is_none_or(|at| operation.asked_at_ns <= at))
            .map(|(index, _)| index)
            .collect();
        // What nobody got an answer to is tried last: most of it was never even sent, and while a
        // server is away there are hundreds of it.
        next.sort_by_key(|index| operations[*index].answer == Answer::Unclear);
        // Of nameless claims it does not matter which one is next, as long as one that is granted is
        // the one taken back soonest, and one that only finds a lost call is the one taken back
        // last: in any order that takes another, the two can change places.
        let nameless = next.iter().filter(|index| self.nameless[**index].is_some());
        let by_return = |index: &&usize| self.nameless[**index];
        let chosen = if matches!(
            model,
            Model::Record {
                state: RecordState::Inflight,
                ..
            }
        ) {
            nameless.max_by_key(by_return)
        } else {
            nameless.min_by_key(by_return)
        };
        let chosen = chosen.copied();
        for index in next {
            if self.nameless[index].is_some() && chosen != Some(index) {
                continue;
            }
            for after in model.step(&operations[index]) {
                if self.finds(&placed.with(index), &after) {
                    return true;
                }
            }
        }
        false
    }
}

/// See [`Search::nameless`]. Without this every claim that was lost on the way doubles the search,
/// and a starved machine loses dozens.
fn nameless(operations: &[Operation]) -> Vec<Option<u64>> {
    let unclear = |operation: &Operation| operation.answer == Answer::Unclear;
    let mut named: HashSet<&str> = HashSet::new();
    let mut claims: HashMap<&str, u32> = HashMap::new();
    let mut taken_back: HashMap<&str, u64> = HashMap::new();
    for operation in operations {
        if let Answer::Ended { owner, .. } = &operation.answer {
            named.insert(owner);
        }
        match (&operation.asked, &operation.answer) {
            (Asked::Claim { owner }, Answer::Unclear) => *claims.entry(owner).or_default() += 1,
            // What others were told does not depend on who asked.
            (Asked::Claim { .. }, Answer::InFlight { .. } | Answer::Ended { .. }) => {}
            (
                Asked::Finalise {
                    owner,
                    state: RecordState::Cancelled,
                },
                Answer::Unclear,
            ) => {
                if taken_back.insert(owner, operation.asked_at_ns).is_some() {
                    named.insert(owner);
                }
            }
            (
                Asked::Claim { owner } | Asked::Finalise { owner, .. } | Asked::Release { owner },
                _,
            ) => {
                named.insert(owner);
            }
        }
    }
    let back_at = |operation: &Operation| match &operation.asked {
        Asked::Claim { owner }
            if unclear(operation)
                && !named.contains(owner.as_str())
                && claims.get(owner.as_str()) == Some(&1) =>
        {
            Some(taken_back.get(owner.as_str()).copied().unwrap_or(u64::MAX))
        }
        _ => None,
    };
    operations.iter().map(back_at).collect()
}

/// Whether there is an order in which one atomic record gives these answers.
pub(crate) fn is_linearizable(operations: &[Operation]) -> bool {
    let mut search = Search::new(operations);
    search.finds(&Placed::none_of(operations.len()), &Model::Absent)
}

/// Reads the histories of all processes.
pub(crate) fn read(dir: &Path) -> BTreeMap<StoredKey, Vec<Operation>> {
    let mut asked: HashMap<u64, (StoredKey, Operation)> = HashMap::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        // A process that was killed in the middle of a line had not asked yet, or not heard.
        let whole = text.split_inclusive('\n').filter(|it| it.ends_with('\n'));
        for line in whole {
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

/// As many claims lost on the way as a starved machine has: an order is found, or found not to be,
/// in few steps.
#[test]
fn many_lost_claims_are_checked_in_few_steps() {
    let in_flight = |version| Answer::InFlight { version };
    let mut operations = Vec::new();
    for number in 0..100_u64 {
        let owner = format!("lost-{number}");
        let at = 10 * number;
        operations.push(claim(&owner, Answer::Unclear, at + 1, u64::MAX));
        let back = finalise(
            &owner,
            RecordState::Cancelled,
            Answer::Unclear,
            at + 3,
            u64::MAX,
        );
        operations.push(back);
        // Some of them are seen running, and none of them knows by whom.
        if number % 7 == 0 {
            let seen = claim("b", in_flight(2 * (number / 7) + 1), at + 5, at + 6);
            operations.push(seen);
        }
    }
    let check = |operations: &[Operation]| {
        let mut search = Search::new(operations);
        let found = search.finds(&Placed::none_of(operations.len()), &Model::Absent);
        assert!(search.visited.len() < 100_000, "{}", search.visited.len());
        found
    };
    assert!(check(&operations));
    operations.push(claim("c", Answer::Granted, 2_001, 2_002));
    assert!(check(&operations));
    // After a grant nobody else is granted, however many were lost before it.
    operations.push(claim("d", Answer::Granted, 2_003, 2_004));
    assert!(!check(&operations));
}
