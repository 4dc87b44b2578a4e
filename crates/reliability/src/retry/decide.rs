//! Whether to try again.

use super::backoff::backoff_ms;
use super::classify::{Classified, Evidence};
use super::policy::RetryPolicy;

/// Whether running the call a second time does harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RepeatSafety {
    /// It does not: the tool is read-only or idempotent, the downstream honours our key, or the
    /// caller set `expectedRetrySafe`.
    Safe,
    /// It may.
    Unsafe,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Wait, then try again.
    Retry {
        /// How long to wait.
        delay_ms: u64,
    },
    /// Return the failure.
    GiveUp(GiveUp),
}

/// Why there is no further attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GiveUp {
    /// The effect may have happened, and a second time would do harm.
    EffectMayHaveHappened,
    /// The failure is not of a kind that another attempt can mend.
    Terminal,
    /// All attempts have been made.
    AttemptsSpent,
    /// The next attempt could not begin in time.
    DeadlineReached,
    /// The process as a whole retries too much already.
    RetryBudgetEmpty,
}

/// Decides what follows the failure of attempt number `attempt`, counted from 1.
///
/// `elapsed_ms` is the time since the first attempt began. `withdraw` takes one retry from the
/// process-wide budget; it is called last and at most once, so that nothing is taken for a retry
/// that another rule forbids. `random` gives uniformly distributed numbers.
///
/// An effect that may have happened comes before everything else, also before a failure that is
/// not retriable: the caller has to learn that the outcome is unknown, whatever else is true.
///
/// ```
/// use holdfast_reliability::retry::{Classified, GiveUp, Next, RepeatSafety, RetryPolicy, decide};
///
/// let policy = RetryPolicy::standard();
/// let next = |classified: &Classified, safety| {
///     decide(classified, safety, 1, 80, &policy, &mut || true, &mut || u64::MAX)
/// };
/// let refused = Classified::http(503, None);
/// assert_eq!(next(&refused, RepeatSafety::Unsafe), Next::Retry { delay_ms: 200 });
///
/// let unknown = Classified::timeout();
/// assert_eq!(next(&unknown, RepeatSafety::Safe), Next::Retry { delay_ms: 200 });
/// assert_eq!(
///     next(&unknown, RepeatSafety::Unsafe),
///     Next::GiveUp(GiveUp::EffectMayHaveHappened),
/// );
/// ```
pub fn decide(
    classified: &Classified,
    safety: RepeatSafety,
    attempt: u32,
    elapsed_ms: u64,
    policy: &RetryPolicy,
    withdraw: &mut dyn FnMut() -> bool,
    random: &mut dyn FnMut() -> u64,
) -> Next {
    if safety == RepeatSafety::Unsafe && classified.evidence == Evidence::MayHaveHappened {
        return Next::GiveUp(GiveUp::EffectMayHaveHappened);
    }
    if !classified.retriable {
        return Next::GiveUp(GiveUp::Terminal);
    }
    if attempt >= policy.max_attempts() {
        return Next::GiveUp(GiveUp::AttemptsSpent);
    }
    let left_ms = policy.max_elapsed_ms().saturating_sub(elapsed_ms);
    let floor_ms = classified.retry_after_ms.unwrap_or(0);
    let Some(delay_ms) = backoff_ms(attempt, floor_ms, left_ms, policy, random) else {
        return Next::GiveUp(GiveUp::DeadlineReached);
    };
    if !withdraw() {
        return Next::GiveUp(GiveUp::RetryBudgetEmpty);
    }
    Next::Retry { delay_ms }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::retry::{CallBudget, RequestSent, RetryOverrides, TransportCode};

    fn next(classified: &Classified, safety: RepeatSafety, attempt: u32, elapsed_ms: u64) -> Next {
        let policy = RetryPolicy::standard();
        decide(
            classified,
            safety,
            attempt,
            elapsed_ms,
            &policy,
            &mut || true,
            &mut || 0,
        )
    }

    #[test]
    fn tr_06_a_terminal_failure_is_never_retried() {
        for status in [400, 401, 403, 404, 413, 422] {
            let classified = Classified::http(status, None);
            for safety in [RepeatSafety::Safe, RepeatSafety::Unsafe] {
                assert_eq!(
                    next(&classified, safety, 1, 0),
                    Next::GiveUp(GiveUp::Terminal)
                );
            }
        }
    }

    #[test]
    fn tr_07_the_fourth_attempt_is_the_last() {
        let unavailable = Classified::http(503, None);
        for attempt in 1..=3 {
            let seen = next(&unavailable, RepeatSafety::Unsafe, attempt, 100);
            assert_eq!(seen, Next::Retry { delay_ms: 0 });
        }
        for attempt in [4, 5, u32::MAX] {
            let seen = next(&unavailable, RepeatSafety::Unsafe, attempt, 100);
            assert_eq!(seen, Next::GiveUp(GiveUp::AttemptsSpent));
        }
    }

    #[test]
    fn no_attempt_begins_after_the_deadline() {
        let unavailable = Classified::http(503, None);
        let at = |elapsed_ms| next(&unavailable, RepeatSafety::Safe, 1, elapsed_ms);
        assert_eq!(at(29_999), Next::Retry { delay_ms: 0 });
        assert_eq!(at(30_000), Next::GiveUp(GiveUp::DeadlineReached));
        assert_eq!(at(u64::MAX), Next::GiveUp(GiveUp::DeadlineReached));
    }

    #[test]
    fn a_requested_wait_is_kept_or_given_up_on_at_once() {
        let at = |seconds: u64| {
            next(
                &Classified::http(429, Some(seconds * 1_000)),
                RepeatSafety::Safe,
                1,
                5_000,
            )
        };
        assert_eq!(at(10), Next::Retry { delay_ms: 10_000 });
        assert_eq!(at(24), Next::Retry { delay_ms: 24_000 });
        assert_eq!(at(25), Next::GiveUp(GiveUp::DeadlineReached));
    }

    #[test]
    fn an_unknown_outcome_is_reported_before_anything_else() {
        let unknown = Next::GiveUp(GiveUp::EffectMayHaveHappened);
        // Also with no attempts left, and also if the tool's lists forbid the retry.
        assert_eq!(
            next(&Classified::timeout(), RepeatSafety::Unsafe, 4, 99_000),
            unknown
        );
        let denied = Classified {
            retriable: false,
            ..Classified::timeout()
        };
        assert_eq!(next(&denied, RepeatSafety::Unsafe, 1, 0), unknown);
    }

    #[test]
    fn the_process_wide_budget_is_asked_last_and_once() {
        let policy = RetryPolicy::standard();
        let asked = |classified: &Classified, attempt, elapsed_ms, grant| {
            let mut count = 0;
            let mut withdraw = || {
                count += 1;
                grant
            };
            let safety = RepeatSafety::Safe;
            let next = decide(
                classified,
                safety,
                attempt,
                elapsed_ms,
                &policy,
                &mut withdraw,
                &mut || 0,
            );
            (next, count)
        };
        let unavailable = Classified::http(503, None);
        let empty = Next::GiveUp(GiveUp::RetryBudgetEmpty);
        assert_eq!(
            asked(&unavailable, 1, 0, true),
            (Next::Retry { delay_ms: 0 }, 1)
        );
        assert_eq!(asked(&unavailable, 1, 0, false), (empty, 1));
        assert_eq!(asked(&unavailable, 4, 0, false).1, 0);
        assert_eq!(asked(&unavailable, 1, 30_000, false).1, 0);
        assert_eq!(asked(&Classified::http(400, None), 1, 0, false).1, 0);
    }

    fn failures() -> impl Strategy<Value = Classified> {
        let retry_after = prop::option::of(prop_oneof![0..60_000_u64, any::<u64>()]);
        let sent = prop_oneof![Just(RequestSent::No), Just(RequestSent::Maybe)];
        prop_oneof![
            (0..700_u16, retry_after).prop_map(|(status, wait)| Classified::http(status, wait)),
            (prop::sample::select(TransportCode::ALL), sent)
                .prop_map(|(code, sent)| Classified::transport(code, sent)),
            Just(Classified::timeout()),
            "[a-z]{1,8}".prop_map(Classified::unknown),
        ]
    }

    proptest! {
        /// A whole call: every attempt fails in its own way and takes its own time.
        #[test]
        fn a_call_keeps_to_its_limits(
            attempts in prop::collection::vec((failures(), 0..20_000_u64, any::<u64>()), 40),
            max_attempts in 1..=20_u32, max_elapsed_ms in 0..=60_000_u64,
            asked in (0..30_u32, 0..90_000_u64), safe: bool,
        ) {
            let policy = RetryPolicy::try_from(RetryOverrides {
                max_attempts: Some(max_attempts),
                max_elapsed_ms: Some(max_elapsed_ms),
                ..RetryOverrides::default()
            })
            .unwrap()
            .effective(CallBudget { max_attempts: asked.0, max_elapsed_ms: asked.1 });
            let safety = if safe { RepeatSafety::Safe } else { RepeatSafety::Unsafe };
            let (mut elapsed_ms, mut made) = (0_u64, 0_u32);
            for (failure, took_ms, random) in attempts {
                made += 1;
                elapsed_ms += took_ms;
                let next = decide(
                    &failure, safety, made, elapsed_ms, &policy, &mut || true, &mut || random,
                );
                let Next::Retry { delay_ms } = next else { break };
                prop_assert!(failure.retriable);
                prop_assert!(safe || failure.evidence == Evidence::NoEffect);
                let floor_ms = failure.retry_after_ms.unwrap_or(0);
                prop_assert!(delay_ms >= floor_ms);
                prop_assert!(delay_ms - floor_ms <= policy.max_retry_delay_ms());
                elapsed_ms += delay_ms;
                prop_assert!(elapsed_ms < policy.max_elapsed_ms());
            }
            prop_assert!(made <= max_attempts.min(asked.0).max(1));
        }
    }
}
