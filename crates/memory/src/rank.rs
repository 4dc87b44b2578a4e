//! Two rankings become one.

use std::collections::HashMap;
use std::hash::Hash;

/// How fast a place loses weight. 60 is what the paper that introduced the method found, and what
/// everybody uses since: the first places count, and no single ranking decides alone.
pub const FUSION_CONSTANT: f64 = 60.0;

/// A thing that at least one ranking had.
#[derive(Debug, Clone, PartialEq)]
pub struct Fused<K> {
    /// The thing.
    pub key: K,
    /// Reciprocal ranks, added up.
    pub score: f64,
    /// Its place in the first ranking, from 1.
    pub text_rank: Option<usize>,
    /// Its place in the second ranking, from 1.
    pub vector_rank: Option<usize>,
}

/// Reciprocal rank fusion: best first, equal ones in the order of the text ranking, then of the
/// vectors'. Scores of the two searches are never compared, only places.
///
/// ```
/// use holdfast_memory::rank::fuse;
/// let fused = fuse(&["a", "b"], &["b", "c"]);
/// let keys: Vec<_> = fused.iter().map(|found| found.key).collect();
/// assert_eq!(keys, ["b", "a", "c"]);
/// ```
pub fn fuse<K: Copy + Eq + Hash>(text: &[K], vectors: &[K]) -> Vec<Fused<K>> {
    let mut fused: Vec<Fused<K>> = Vec::with_capacity(text.len() + vectors.len());
    let mut places: HashMap<K, usize> = HashMap::new();
    for (ranking, keys) in [text, vectors].into_iter().enumerate() {
        for (index, key) in keys.iter().enumerate() {
            let rank = index + 1;
            let place = *places.entry(*key).or_insert_with(|| {
                fused.push(Fused {
                    key: *key,
                    score: 0.0,
                    text_rank: None,
                    vector_rank: None,
                });
                fused.len() - 1
            });
            let found = &mut fused[place];
            let slot = match ranking {
                0 => &mut found.text_rank,
                _ => &mut found.vector_rank,
            };
            // A key twice in one ranking counts once, at its better place.
            if slot.is_none() {
                *slot = Some(rank);
                found.score += reciprocal(rank);
            }
        }
    }
    fused.sort_by(|a, b| b.score.total_cmp(&a.score));
    fused
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a rank is at most a few thousand"
)]
fn reciprocal(rank: usize) -> f64 {
    1.0 / (FUSION_CONSTANT + rank as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_both_rankings_have_first_comes_first(
            text in proptest::collection::vec(1_u32..50, 0..30),
            vectors in proptest::collection::vec(1_u32..50, 0..30),
        ) {
            let text: Vec<u32> = std::iter::once(0).chain(text).collect();
            let vectors: Vec<u32> = std::iter::once(0).chain(vectors).collect();
            let fused = fuse(&text, &vectors);
            prop_assert_eq!(fused[0].key, 0);
            prop_assert!(fused.is_sorted_by(|a, b| a.score >= b.score));
            let mut keys: Vec<u32> = fused.iter().map(|found| found.key).collect();
            keys.sort_unstable();
            let mut expected = [text, vectors].concat();
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(keys, expected);
        }

        #[test]
        fn one_ranking_alone_keeps_its_order(mut keys in proptest::collection::vec(0_u32..1000, 0..50)) {
            keys.sort_unstable();
            keys.dedup();
            for fused in [fuse(&keys, &[]), fuse(&[], &keys)] {
                prop_assert_eq!(fused.iter().map(|found| found.key).collect::<Vec<_>>(), keys.clone());
            }
        }
    }
}
