//! How long to wait before the next attempt.

use super::policy::RetryPolicy;

/// The longest wait that may be drawn after attempt number `attempt` failed.
///
/// Attempts are numbered from 1, as results report them. The exponent of
/// `min(maxRetryDelayMs, baseMs * 2^n)` counts retries from 0, so the first wait is drawn from
/// 0 to `baseMs`: `baseMs` is then what its name says, and the defaults give 200, 400, 800.
///
/// ```
/// use holdfast_reliability::retry::{RetryPolicy, backoff_window_ms};
///
/// let windows = [1, 2, 3, 9].map(|attempt| backoff_window_ms(attempt, &RetryPolicy::standard()));
/// assert_eq!(windows, [200, 400, 800, 4_000]);
/// ```
pub fn backoff_window_ms(attempt: u32, policy: &RetryPolicy) -> u64 {
    let doublings = attempt.saturating_sub(1);
    let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
    policy
        .base_ms()
        .saturating_mul(factor)
        .min(policy.max_retry_delay_ms())
}

/// Draws the wait after attempt number `attempt` failed; none if it can not end in time.
///
/// Full jitter over [`backoff_window_ms`]: any part of the window may be drawn, so that callers
/// that failed together do not come back together. A wait that a server asked for is a floor
/// with the same jitter on top, for the same reason. The window is cut at the deadline, so the
/// dice choose *when* to try again and never *whether*.
///
/// `random` gives uniformly distributed numbers. `left_ms` is the time in which attempts may
/// still begin.
pub fn backoff_ms(
    attempt: u32,
    floor_ms: u64,
    left_ms: u64,
    policy: &RetryPolicy,
    random: &mut dyn FnMut() -> u64,
) -> Option<u64> {
    // The attempt has to begin before the deadline, hence at the latest one millisecond earlier.
    let room_ms = left_ms.checked_sub(1)?.checked_sub(floor_ms)?;
    let window_ms = backoff_window_ms(attempt, policy).min(room_ms);
    Some(floor_ms + draw(window_ms, random))
}

/// A number from 0 to `max`, both included, with equal chances.
fn draw(max: u64, random: &mut dyn FnMut() -> u64) -> u64 {
    // The high half of the product scales the draw into the range without a division.
    let scaled = (u128::from(random()) * (u128::from(max) + 1)) >> u64::BITS;
    // It is at most `max`, so the conversion can not fail.
    u64::try_from(scaled).unwrap_or(max)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::retry::RetryOverrides;

    fn wait(attempt: u32, floor_ms: u64, left_ms: u64, random: u64) -> Option<u64> {
        backoff_ms(
            attempt,
            floor_ms,
            left_ms,
            &RetryPolicy::standard(),
            &mut || random,
        )
    }

    #[test]
    fn the_ends_of_the_window_can_be_drawn() {
        assert_eq!(wait(1, 0, 30_000, 0), Some(0));
        assert_eq!(wait(1, 0, 30_000, u64::MAX), Some(200));
        assert_eq!(wait(3, 0, 30_000, u64::MAX), Some(800));
        assert_eq!(wait(3, 0, 30_000, u64::MAX / 2), Some(400));
    }

    #[test]
    fn a_requested_wait_is_a_floor_with_jitter_on_top() {
        assert_eq!(wait(1, 7_000, 30_000, 0), Some(7_000));
        assert_eq!(wait(1, 7_000, 30_000, u64::MAX), Some(7_200));
    }

    #[test]
    fn a_wait_past_the_deadline_is_no_wait() {
        assert_eq!(wait(1, 30_000, 30_000, 0), None);
        assert_eq!(wait(1, 29_999, 30_000, u64::MAX), Some(29_999));
        assert_eq!(wait(1, 0, 0, 0), None);
        assert_eq!(wait(1, 0, 1, u64::MAX), Some(0));
        assert_eq!(wait(1, u64::MAX, u64::MAX, 0), None);
    }

    #[test]
    fn full_jitter_covers_the_range_evenly() {
        // A Weyl sequence visits the 64-bit numbers evenly, and is the same in every run.
        let mut state = 0_u64;
        let mut random = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            state
        };
        let mut tenths = [0_u32; 10];
        let policy = RetryPolicy::standard();
        for _ in 0..10_000 {
            let wait_ms = backoff_ms(3, 0, 30_000, &policy, &mut random).unwrap();
            let tenth = usize::try_from(wait_ms * 10 / 801).unwrap();
            tenths[tenth] += 1;
        }
        assert!(
            tenths.iter().all(|count| (900..1_100).contains(count)),
            "{tenths:?}"
        );
    }

    proptest! {
        #[test]
        fn waits_stay_within_their_bounds(
            attempt: u32, floor_ms: u64, left_ms: u64, random: u64,
            base_ms in 1..=600_000_u64, cap_ms in 1..=600_000_u64,
        ) {
            let policy = RetryPolicy::try_from(RetryOverrides {
                base_ms: Some(base_ms),
                max_retry_delay_ms: Some(cap_ms),
                ..RetryOverrides::default()
            })
            .unwrap();
            for floor_ms in [0, floor_ms] {
                match backoff_ms(attempt, floor_ms, left_ms, &policy, &mut || random) {
                    Some(wait_ms) => {
                        prop_assert!(wait_ms >= floor_ms);
                        prop_assert!(wait_ms < left_ms);
                        prop_assert!(wait_ms - floor_ms <= cap_ms);
                        if attempt <= 1 {
                            prop_assert!(wait_ms - floor_ms <= base_ms);
                        }
                    }
                    None => prop_assert!(floor_ms >= left_ms),
                }
            }
        }
    }
}
