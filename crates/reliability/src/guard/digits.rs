//! Where the numbers in a text are. It runs over every result of every tool, and results can be long: it
//! looks at a window of bytes at a time and not at each of them.

use std::ops::Range;

/// Bytes looked at together: a bit of a word for each.
const WINDOW_BYTES: usize = 64;

/// The runs of ASCII digits in a text, in its order.
pub(super) struct DigitRuns<'a> {
    bytes: &'a [u8],
    /// Where the next window begins.
    next: usize,
    /// The digits of the window before it that are still to come, the lowest bit first.
    marks: u64,
}

impl<'a> DigitRuns<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            next: 0,
            marks: 0,
        }
    }

    /// Leaves out what is before `at`, which is not in the middle of a run.
    #[inline]
    pub(super) fn skip_to(&mut self, at: usize) {
        if at >= self.next {
            (self.next, self.marks) = (at, 0);
        } else if let Some(passed) = (at + WINDOW_BYTES).checked_sub(self.next) {
            self.marks &= u64::MAX << passed;
        }
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.next..).unwrap_or_default()
    }
}

impl Iterator for DigitRuns<'_> {
    type Item = Range<usize>;

    #[inline]
    fn next(&mut self) -> Option<Range<usize>> {
        while self.marks == 0 {
            let rest = self.rest();
            self.marks = match rest.first_chunk() {
                Some(window) => marks(window),
                None if rest.is_empty() => return None,
                None => marks(&padded(rest)),
            };
            self.next += WINDOW_BYTES;
        }
        let window = self.next - WINDOW_BYTES;
        let start = window + self.marks.trailing_zeros() as usize;
        // Adding to its lowest bit carries through a run and stops behind it.
        let behind = self
            .marks
            .wrapping_add(self.marks & self.marks.wrapping_neg());
        if behind == 0 {
            // It reaches the window's end and may go on there.
            self.marks = 0;
            self.next += digits(self.rest());
            return Some(start..self.next);
        }
        self.marks &= behind;
        Some(start..window + behind.trailing_zeros() as usize)
    }
}

/// How many digits there are at the start.
pub(super) fn digits(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .count()
}

fn padded(rest: &[u8]) -> [u8; WINDOW_BYTES] {
    let mut window = [0; WINDOW_BYTES];
    for (place, byte) in window.iter_mut().zip(rest) {
        *place = *byte;
    }
    window
}

/// Sets the bit of each byte that is a digit. The loops are such that the compiler makes a few vector
/// instructions of them.
#[inline]
fn marks(window: &[u8; WINDOW_BYTES]) -> u64 {
    const LANE_BYTES: usize = 8;
    const ONES: u64 = 0x0101_0101_0101_0101;
    // Most windows have none, which is seen sooner than where they are.
    let any = window
        .iter()
        .fold(false, |any, byte| any | byte.is_ascii_digit());
    if !any {
        return 0;
    }
    let mut bits = [0_u8; WINDOW_BYTES];
    for (at, (bit, byte)) in bits.iter_mut().zip(window).enumerate() {
        *bit = u8::from(byte.is_ascii_digit()) << (at % LANE_BYTES);
    }
    let lanes = bits.as_chunks::<LANE_BYTES>().0.iter().enumerate();
    lanes.fold(0, |marks, (lane, bits)| {
        // The product's top byte is the sum of all eight, and no two of them have a bit in common.
        let sum = u64::from_le_bytes(*bits).wrapping_mul(ONES) >> (u64::BITS - u8::BITS);
        marks | sum << (lane * LANE_BYTES)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same, byte by byte.
    fn plainly(bytes: &[u8], from: usize) -> Vec<Range<usize>> {
        let mut runs = Vec::new();
        let mut at = from;
        while at < bytes.len() {
            let count = digits(&bytes[at..]);
            if count > 0 {
                runs.push(at..at + count);
            }
            at += count.max(1);
        }
        runs
    }

    proptest::proptest! {
        #[test]
        fn every_run_is_found(text in proptest::collection::vec(proptest::sample::select(b"0189/:a \xb0\xff".as_slice()), 0..300)) {
            let runs: Vec<_> = DigitRuns::of(&text).collect();
            proptest::prop_assert_eq!(runs, plainly(&text, 0));
        }

        #[test]
        fn long_runs_and_long_gaps_too(lengths in proptest::collection::vec((0_usize..200, 0_usize..200), 0..6)) {
            let text: Vec<u8> = lengths
                .iter()
                .flat_map(|(run, gap)| [vec![b'7'; *run], vec![b'x'; *gap]].concat())
                .collect();
            let runs: Vec<_> = DigitRuns::of(&text).collect();
            proptest::prop_assert_eq!(runs, plainly(&text, 0));
        }

        #[test]
        fn what_is_left_out_is_not_seen(text in "[0-9a ]{0,200}", taken in 0_usize..5, step in 0_usize..150) {
            let bytes = text.as_bytes();
            let mut runs = DigitRuns::of(bytes);
            let end = runs.by_ref().take(taken).last().map_or(0, |run| run.end);
            // Not into the middle of a run: nobody goes there.
            let at = (end + step).min(bytes.len());
            let at = at + if at > 0 && bytes[at - 1].is_ascii_digit() { digits(&bytes[at..]) } else { 0 };
            runs.skip_to(at);
            let left: Vec<_> = runs.collect();
            proptest::prop_assert_eq!(left, plainly(bytes, at));
        }
    }
}
