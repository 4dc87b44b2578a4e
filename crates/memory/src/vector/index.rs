//! All codes of one model, one after the other.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap};

use holdfast_contract::MemoryType;

use super::quantise::Code;
use super::scan::products;

/// A code and what it belongs to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row<'a> {
    /// The vector's own number.
    pub vector_id: i64,
    /// The number of its record.
    pub record: i64,
    /// The type of its record.
    pub memory_type: MemoryType,
    /// The steps; as many as the index has dimensions.
    pub steps: &'a [i8],
    /// The value of a step.
    pub factor: f32,
}

/// A vector that was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Near {
    /// Its own number.
    pub vector_id: i64,
    /// The number of its record.
    pub record: i64,
}

/// The codes of one model, to be walked over.
#[derive(Debug, Clone, Default)]
pub struct CodeIndex {
    dimensions: usize,
    steps: Vec<i8>,
    factors: Vec<f32>,
    types: Vec<MemoryType>,
    ids: Vec<i64>,
    records: Vec<i64>,
    positions: HashMap<i64, usize>,
}

/// A candidate. The heap keeps the worst on top, so that it can be replaced.
struct Candidate {
    likeness: f32,
    position: usize,
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Candidate {}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        let worse = other.likeness.total_cmp(&self.likeness);
        worse.then(self.position.cmp(&other.position))
    }
}

impl CodeIndex {
    /// An empty index.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            ..Self::default()
        }
    }

    /// Codes in it.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a code. One of another size, or one that is there already, is left out.
    pub fn add(&mut self, row: Row<'_>) {
        if row.steps.len() != self.dimensions || self.positions.contains_key(&row.vector_id) {
            return;
        }
        self.positions.insert(row.vector_id, self.ids.len());
        self.steps.extend_from_slice(row.steps);
        self.factors.push(row.factor);
        self.types.push(row.memory_type);
        self.ids.push(row.vector_id);
        self.records.push(row.record);
    }

    /// Takes a code out: the last one moves into its place.
    pub fn remove(&mut self, vector_id: i64) {
        let Some(position) = self.positions.remove(&vector_id) else {
            return;
        };
        let last = self.ids.len() - 1;
        let size = self.dimensions;
        self.steps
            .copy_within(last * size..(last + 1) * size, position * size);
        self.steps.truncate(last * size);
        self.factors.swap_remove(position);
        self.types.swap_remove(position);
        self.ids.swap_remove(position);
        self.records.swap_remove(position);
        if let Some(moved) = self.ids.get(position) {
            self.positions.insert(*moved, position);
        }
    }

    /// The vectors most like `query`, best first, at most `count`.
    pub fn nearest(
        &self,
        query: &Code,
        memory_type: Option<MemoryType>,
        count: usize,
    ) -> Vec<Near> {
        if query.steps.len() != self.dimensions || count == 0 {
            return Vec::new();
        }
        let mut best: BinaryHeap<Candidate> = BinaryHeap::with_capacity(count + 1);
        let mut bar = f32::NEG_INFINITY;
        products(&self.steps, &query.steps, |position, product| {
            // The query's own factor is the same for all and changes no order.
            #[expect(
                clippy::cast_precision_loss,
                reason = "an approximation anyway; the best are compared exactly afterwards"
            )]
            let likeness = product as f32 * self.factors[position];
            if likeness <= bar || memory_type.is_some_and(|wanted| self.types[position] != wanted) {
                return;
            }
            best.push(Candidate { likeness, position });
            if best.len() > count {
                best.pop();
            }
            if best.len() == count {
                bar = best.peek().map_or(bar, |worst| worst.likeness);
            }
        });
        best.into_sorted_vec()
            .iter()
            .map(|found| Near {
                vector_id: self.ids[found.position],
                record: self.records[found.position],
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(vector_id: i64, code: &Code) -> Row<'_> {
        Row {
            vector_id,
            record: vector_id + 1_000,
            memory_type: if vector_id % 2 == 0 {
                MemoryType::Fact
            } else {
                MemoryType::Decision
            },
            steps: &code.steps,
            factor: code.factor,
        }
    }

    /// All of it without an index: sorted by the same likeness.
    fn plain(codes: &[(i64, Code)], query: &Code, count: usize) -> Vec<f32> {
        let mut all: Vec<f32> = codes
            .iter()
            .map(|(_, code)| likeness(code, query))
            .collect();
        all.sort_by(|a, b| b.total_cmp(a));
        all.truncate(count);
        all
    }

    #[expect(clippy::cast_precision_loss, reason = "as in the index")]
    fn likeness(code: &Code, query: &Code) -> f32 {
        let product: i32 = code
            .steps
            .iter()
            .zip(&query.steps)
            .map(|(a, b)| i32::from(*a) * i32::from(*b))
            .sum();
        product as f32 * code.factor
    }

    proptest! {
        #[test]
        fn the_nearest_are_found_whatever_was_removed(
            vectors in proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 12), 1..60),
            removed in proptest::collection::vec(0_usize..60, 0..40),
            count in 1_usize..12,
        ) {
            let mut index = CodeIndex::new(12);
            let mut kept: Vec<(i64, Code)> = Vec::new();
            for (number, vector) in (0_i64..).zip(&vectors) {
                if let Some(code) = Code::of(vector) {
                    index.add(row(number, &code));
                    index.add(row(number, &code));
                    kept.push((number, code));
                }
            }
            for number in removed {
                let number = i64::try_from(number).unwrap();
                index.remove(number);
                kept.retain(|(id, _)| *id != number);
            }
            prop_assert_eq!(index.len(), kept.len());
            let query = Code::of(&[0.5; 12]).unwrap();
            let found = index.nearest(&query, None, count);
            prop_assert!(found.iter().all(|near| near.record == near.vector_id + 1_000));
            let by_id: HashMap<i64, &Code> = kept.iter().map(|(id, code)| (*id, code)).collect();
            let likenesses: Vec<f32> = found.iter().map(|near| likeness(by_id[&near.vector_id], &query)).collect();
            prop_assert_eq!(likenesses, plain(&kept, &query, count));
            let facts = index.nearest(&query, Some(MemoryType::Fact), 60);
            prop_assert!(facts.iter().all(|near| near.vector_id % 2 == 0));
            prop_assert_eq!(facts.len(), kept.iter().filter(|(id, _)| id % 2 == 0).count());
        }
    }

    #[test]
    fn codes_of_another_size_are_left_out() {
        let mut index = CodeIndex::new(3);
        index.add(row(1, &Code::of(&[1.0, 2.0]).unwrap()));
        assert!(index.is_empty());
        let query = Code::of(&[1.0, 2.0]).unwrap();
        assert_eq!(index.nearest(&query, None, 5), []);
    }
}
