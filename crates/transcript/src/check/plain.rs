//! The histories that nearly all are: every call is answered before anything else is said.
//!
//! What is told here is only that a history is well. Whatever is not plain is left to the rules.

use hashbrown::HashTable;

use super::Pairing;
use crate::adapter::Ids;
use crate::index::{Facts, ParentId};
use crate::seen::{BlockKind, Kind, Marks};

/// A message with more calls is not plain: each result is looked for among them all.
const CALLS_MAX: usize = 64;

/// A history as far as it was read, and plain so far.
#[derive(Debug)]
pub(crate) struct Plain {
    ids: Ids,
    /// The calls of the last message that have no result yet.
    open: Vec<u64>,
    /// The ids of all calls, where none may come twice.
    used: HashTable<u64>,
}

impl Plain {
    /// None where results may come anywhere.
    pub(crate) fn under(pairing: Pairing) -> Option<Self> {
        let Pairing::Adjacent(_, ids) = pairing else {
            return None;
        };
        Some(Self {
            ids,
            open: Vec::new(),
            used: HashTable::new(),
        })
    }

    /// Takes the next message, and says whether the history is still plain.
    #[inline]
    pub(crate) fn goes_on(
        &mut self,
        facts: Facts,
        mut blocks: impl Iterator<Item = (BlockKind, Marks, u64)>,
    ) -> bool {
        if facts.parent != ParentId::Before {
            return false;
        }
        match facts.kind {
            Kind::Neutral => true,
            Kind::Message => self.open.is_empty(),
            Kind::Assistant => {
                self.open.is_empty() && blocks.all(|(kind, _, id)| self.asks(kind, id))
            }
            Kind::Results => blocks.all(|(_, marks, id)| self.answers(marks, id)),
            Kind::Header | Kind::Mixed | Kind::Cut | Kind::Compaction | Kind::Invalid => false,
        }
    }

    fn asks(&mut self, kind: BlockKind, id: u64) -> bool {
        let is_new = id != 0
            && match self.ids {
                Ids::Message | Ids::Nothing => !self.open.contains(&id),
                Ids::Conversation => self.use_up(id),
            };
        self.open.push(id);
        is_new && kind == BlockKind::Call && self.open.len() <= CALLS_MAX
    }

    /// Whether an id was not used before. It is now.
    fn use_up(&mut self, id: u64) -> bool {
        let is_new = self.used.find(id, |used| *used == id).is_none();
        self.used.insert_unique(id, id, |used| *used);
        is_new
    }

    fn answers(&mut self, marks: Marks, id: u64) -> bool {
        let Some(at) = self.open.iter().position(|call| *call == id) else {
            return false;
        };
        self.open.swap_remove(at);
        !marks.is_late
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::adapter::Joins;
    use crate::check::check;
    use crate::index::Index;

    type Message = (Kind, Vec<(BlockKind, Marks, u64)>);

    /// Few ids and few calls, so that they meet.
    fn message() -> impl Strategy<Value = Message> {
        let block = |kind| {
            (0_u64..4, prop::bool::weighted(0.1)).prop_map(move |(id, is_late)| {
                let marks = Marks {
                    is_late: is_late && kind == BlockKind::Result,
                    ..Marks::default()
                };
                (kind, marks, id)
            })
        };
        let results = || prop::collection::vec(block(BlockKind::Result), 1..3);
        prop_oneof![
            1 => Just((Kind::Neutral, Vec::new())),
            1 => Just((Kind::Message, Vec::new())),
            4 => prop::collection::vec(block(BlockKind::Call), 0..3)
                .prop_map(|calls| (Kind::Assistant, calls)),
            1 => prop::collection::vec(block(BlockKind::BrokenOffCall), 1..2)
                .prop_map(|calls| (Kind::Assistant, calls)),
            4 => results().prop_map(|results| (Kind::Results, results)),
            1 => results().prop_map(|results| (Kind::Mixed, results)),
        ]
    }

    fn is_plain(pairing: Pairing, messages: &[Message]) -> bool {
        let mut plain = Plain::under(pairing).unwrap();
        messages.iter().all(|(kind, blocks)| {
            let facts = Facts {
                kind: *kind,
                ..Facts::default()
            };
            plain.goes_on(facts, blocks.iter().copied())
        })
    }

    fn is_well(pairing: Pairing, messages: &[Message]) -> bool {
        let mut index = Index::default();
        for (kind, blocks) in messages {
            let facts = Facts {
                kind: *kind,
                ..Facts::default()
            };
            index.add(facts, blocks.iter().copied()).unwrap();
        }
        check(&index, pairing).is_empty()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn what_is_plain_is_well(messages in prop::collection::vec(message(), 0..7)) {
            for joins in [Joins::Never, Joins::Neighbours, Joins::Groups] {
                for ids in [Ids::Message, Ids::Conversation, Ids::Nothing] {
                    let pairing = Pairing::Adjacent(joins, ids);
                    prop_assert!(!is_plain(pairing, &messages) || is_well(pairing, &messages));
                }
            }
        }
    }

    #[test]
    fn calls_with_their_results_are_plain_and_one_too_many_is_not() {
        let call = |id| {
            (
                Kind::Assistant,
                vec![(BlockKind::Call, Marks::default(), id)],
            )
        };
        let result = |id| {
            (
                Kind::Results,
                vec![(BlockKind::Result, Marks::default(), id)],
            )
        };
        let user = (Kind::Message, Vec::new());
        let pairing = Pairing::Adjacent(Joins::Neighbours, Ids::Conversation);
        let mut messages = vec![user.clone(), call(1), result(1), user, call(2)];
        assert!(is_plain(pairing, &messages));
        messages.extend([result(2), result(2)]);
        assert!(!is_plain(pairing, &messages));
    }
}
