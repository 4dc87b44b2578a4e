//! When the next attempt may begin: the generic cell rate algorithm, one number a limit.
//!
//! The number says up to when the attempts so far have used up the rate. An attempt adds its
//! interval to it and may begin once the number is no more than a burst ahead of the time.

use super::RateLimit;

/// What an attempt would do to a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// How long it has to wait for its place.
    pub wait_us: u64,
    /// The limit's number once it has the place.
    pub used_until_us: u64,
}

/// One attempt more, at `now_us`, with the number as it was left.
///
/// A number from twice as far ahead as this limit can have made it comes from a clock that was set
/// back, or from another limit before. It counts for nothing, so that nobody is locked out; one that
/// is only a little too far ahead counts, so that a clock that is put right gives nothing away.
///
/// ```
/// use holdfast_reliability::rate::{RateLimitOverrides, step};
///
/// let written = RateLimitOverrides { calls: Some(60), burst: Some(2), ..Default::default() };
/// let limit = written.checked()?.expect("calls are given");
/// let first = step(0, 5_000_000, &limit);
/// let second = step(first.used_until_us, 5_000_000, &limit);
/// let third = step(second.used_until_us, 5_000_000, &limit);
/// assert_eq!((first.wait_us, second.wait_us, third.wait_us), (0, 0, 1_000_000));
/// # Ok::<(), holdfast_reliability::policy_check::InvalidPolicy>(())
/// ```
pub fn step(used_until_us: u64, now_us: u64, limit: &RateLimit) -> Step {
    let ahead_max_us = limit.burst_us() + limit.max_wait_ms() * 1_000;
    let begins_us = if used_until_us > now_us.saturating_add(2 * ahead_max_us) {
        now_us
    } else {
        used_until_us.max(now_us)
    };
    let used_until_us = begins_us.saturating_add(limit.interval_us());
    Step {
        wait_us: used_until_us.saturating_sub(now_us.saturating_add(limit.burst_us())),
        used_until_us,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::RateLimitOverrides;
    use super::*;

    fn limits() -> impl Strategy<Value = RateLimit> {
        (1..50_u32, 1..5_000_u64, 0..200_u64).prop_flat_map(|(calls, window_ms, wait_ms)| {
            (1..=calls).prop_map(move |burst| {
                let written = RateLimitOverrides {
                    calls: Some(calls),
                    window_ms: Some(window_ms),
                    burst: Some(burst),
                    max_wait_ms: Some(wait_ms),
                };
                written.checked().unwrap().unwrap()
            })
        })
    }

    /// When attempts begin that ask at these times, each waiting as long as the limit lets it.
    fn begun(limit: &RateLimit, gaps_us: &[u64]) -> Vec<u64> {
        let (mut now_us, mut used_until_us, mut begun) = (1_000_000_000, 0, Vec::new());
        for gap_us in gaps_us {
            now_us += gap_us;
            let step = step(used_until_us, now_us, limit);
            if step.wait_us <= limit.max_wait_ms() * 1_000 {
                used_until_us = step.used_until_us;
                begun.push(now_us + step.wait_us);
            }
        }
        begun
    }

    proptest! {
        #[test]
        fn no_time_ever_sees_more_than_the_burst_and_the_rate(
            limit in limits(), gaps_us in prop::collection::vec(0..300_000_u64, 1..200),
        ) {
            let begun = begun(&limit, &gaps_us);
            let burst = limit.burst_us() / limit.interval_us();
            for (first, from_us) in begun.iter().enumerate() {
                for (last, to_us) in begun.iter().enumerate().skip(first) {
                    let allowed = burst + (to_us - from_us) / limit.interval_us();
                    prop_assert!((last - first + 1) as u64 <= allowed);
                }
            }
        }

        #[test]
        fn whoever_comes_when_told_gets_a_place(
            limit in limits(), gaps_us in prop::collection::vec(0..300_000_u64, 1..100),
        ) {
            let (mut now_us, mut used_until_us) = (1_000_000_000, 0);
            for gap_us in gaps_us {
                now_us += gap_us;
                let asked = step(used_until_us, now_us, &limit);
                // Come back after the wait: now it is free. A moment earlier it was not.
                now_us += asked.wait_us;
                if asked.wait_us > 0 {
                    prop_assert!(step(used_until_us, now_us - 1, &limit).wait_us > 0);
                }
                let then = step(used_until_us, now_us, &limit);
                prop_assert_eq!(then.wait_us, 0);
                used_until_us = then.used_until_us;
            }
        }

        #[test]
        fn a_quiet_time_gives_the_whole_burst_back(limit in limits()) {
            let quiet_us = limit.burst_us();
            let mut used_until_us = 1_000_000_000 - quiet_us;
            for _ in 0..limit.burst_us() / limit.interval_us() {
                let step = step(used_until_us, 1_000_000_000, &limit);
                prop_assert_eq!(step.wait_us, 0);
                used_until_us = step.used_until_us;
            }
            prop_assert!(step(used_until_us, 1_000_000_000, &limit).wait_us > 0);
        }

        #[test]
        fn no_number_and_no_clock_lock_anybody_out(
            limit in limits(), used_until_us: u64, now_us in 0..u64::MAX / 2,
        ) {
            let step = step(used_until_us, now_us, &limit);
            let ahead_max_us = limit.burst_us() + limit.max_wait_ms() * 1_000;
            prop_assert!(step.wait_us <= 2 * ahead_max_us + limit.interval_us());
        }
    }
}
