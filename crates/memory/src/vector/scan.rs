//! The walk over all codes.

/// Steps that are multiplied at once. Fixed, so that the compiler makes vector instructions of it.
const LANES: usize = 32;

/// The product of `query` with every code in `codes`, told one after the other.
pub(super) fn products(codes: &[i8], query: &[i8], tell: impl FnMut(usize, i32)) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(
            unsafe_code,
            reason = "the same safe code, compiled for a processor that was just asked for"
        )]
        // SAFETY: the processor has the feature.
        unsafe {
            wide(codes, query, tell);
        }
        return;
    }
    walk(codes, query, tell);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn wide(codes: &[i8], query: &[i8], tell: impl FnMut(usize, i32)) {
    walk(codes, query, tell);
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the wider instructions of its caller"
)]
fn walk(codes: &[i8], query: &[i8], mut tell: impl FnMut(usize, i32)) {
    if query.is_empty() {
        return;
    }
    for (position, code) in codes.chunks_exact(query.len()).enumerate() {
        tell(position, product(code, query));
    }
}

#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "only inlined code is compiled for the wider instructions of its caller"
)]
fn product(a: &[i8], b: &[i8]) -> i32 {
    let (a_blocks, a_rest) = a.as_chunks::<LANES>();
    let (b_blocks, b_rest) = b.as_chunks::<LANES>();
    let mut total = 0_i32;
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        let mut sum = 0_i32;
        for lane in 0..LANES {
            sum += i32::from(a[lane]) * i32::from(b[lane]);
        }
        total += sum;
    }
    for (a, b) in a_rest.iter().zip(b_rest) {
        total += i32::from(*a) * i32::from(*b);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_ways_give_the_plain_product(
            (query, codes) in (1_usize..100).prop_flat_map(|size| (
                proptest::collection::vec(any::<i8>(), size),
                proptest::collection::vec(any::<i8>(), size * 5),
            )),
        ) {
            let plain: Vec<i32> = codes.chunks_exact(query.len())
                .map(|code| code.iter().zip(&query).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum())
                .collect();
            let mut found = Vec::new();
            products(&codes, &query, |_, product| found.push(product));
            prop_assert_eq!(&found, &plain);
            let mut found = Vec::new();
            walk(&codes, &query, |position, product| {
                assert_eq!(position, found.len());
                found.push(product);
            });
            prop_assert_eq!(&found, &plain);
        }
    }
}
