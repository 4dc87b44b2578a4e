//! A vector as bytes: exact ones and coarse ones.

/// The largest magnitude of a coarse number.
const STEPS: f32 = 127.0;

/// A vector with one signed byte a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// The numbers, as steps.
    pub steps: Vec<i8>,
    /// What one step is worth once the vector has length 1: the cosine of two vectors is about the
    /// product of their steps times both factors.
    pub factor: f32,
}

impl Code {
    /// The code of a vector; none for one without a direction.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "every number is within the steps by construction"
    )]
    pub fn of(vector: &[f32]) -> Option<Self> {
        let largest = vector
            .iter()
            .fold(0.0_f32, |most, part| most.max(part.abs()));
        let length = length(vector);
        if !(largest > 0.0 && length.is_finite()) {
            return None;
        }
        let steps = vector
            .iter()
            .map(|part| (part / largest * STEPS).round() as i8)
            .collect();
        Some(Self {
            steps,
            factor: (f64::from(largest / STEPS) / length) as f32,
        })
    }
}

fn length(vector: &[f32]) -> f64 {
    let squares: f64 = vector.iter().map(|part| f64::from(*part).powi(2)).sum();
    squares.sqrt()
}

/// How alike two vectors are: the cosine of the angle between them.
pub fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let product: f64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| f64::from(*a) * f64::from(*b))
        .sum();
    product / (length(a) * length(b))
}

/// The exact bytes of a vector, the same on every machine.
pub fn to_bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|part| part.to_le_bytes()).collect()
}

/// The vector of such bytes; none when they are cut.
pub fn from_bytes(bytes: &[u8]) -> Option<Vec<f32>> {
    let (parts, rest) = bytes.as_chunks::<4>();
    rest.is_empty()
        .then(|| parts.iter().map(|part| f32::from_le_bytes(*part)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vectors(count: usize) -> impl Strategy<Value = Vec<Vec<f32>>> {
        proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 48), count)
    }

    proptest! {
        #[test]
        fn coarse_and_exact_cosines_agree(pair in vectors(2)) {
            let (Some(a), Some(b)) = (Code::of(&pair[0]), Code::of(&pair[1])) else {
                return Ok(());
            };
            let product: i32 = a.steps.iter().zip(&b.steps)
                .map(|(a, b)| i32::from(*a) * i32::from(*b))
                .sum();
            let coarse = f64::from(product) * f64::from(a.factor) * f64::from(b.factor);
            prop_assert!((coarse - cosine(&pair[0], &pair[1])).abs() < 0.02);
        }

        #[test]
        fn bytes_come_back_bit_for_bit(parts in proptest::collection::vec(any::<f32>(), 0..64)) {
            let back = from_bytes(&to_bytes(&parts)).unwrap();
            let bits = |vector: &[f32]| vector.iter().map(|part| part.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&back), bits(&parts));
        }
    }

    #[test]
    fn a_vector_without_direction_has_no_code() {
        for vector in [
            vec![],
            vec![0.0; 4],
            vec![f32::NAN; 4],
            vec![f32::INFINITY; 4],
        ] {
            assert_eq!(Code::of(&vector), None, "{vector:?}");
        }
        assert_eq!(from_bytes(&[1, 2, 3]), None);
    }
}
