//! The last outcomes of a closed breaker, and what they add up to.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::policy::BreakerPolicy;
use super::step::TransitionReason;

/// A bounded ring of outcomes, oldest first; times never decrease from front to back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Window {
    outcomes: VecDeque<Outcome>,
}

/// One counted result. A pair in the stored row, because there are many of them in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, bool)", into = "(u64, bool)")]
struct Outcome {
    at_ms: u64,
    failed: bool,
}

/// Calls over which a share of failures is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RateCount {
    pub(super) calls: u32,
    pub(super) failures: u32,
}

impl Window {
    /// Pulls times from the future back to now; says whether there were any.
    pub(super) fn rewind(&mut self, now_ms: u64) -> bool {
        let mut rewound = false;
        for outcome in self.outcomes.iter_mut().filter(|one| one.at_ms > now_ms) {
            outcome.at_ms = now_ms;
            rewound = true;
        }
        rewound
    }

    /// Drops what has left the rolling window.
    pub(super) fn forget_old(&mut self, policy: &BreakerPolicy, now_ms: u64) {
        let too_old =
            |outcome: &Outcome| now_ms.saturating_sub(outcome.at_ms) >= policy.window_ms();
        while self.outcomes.front().is_some_and(too_old) {
            self.outcomes.pop_front();
        }
    }

    /// Adds an outcome; the oldest gives way when the ring is full.
    pub(super) fn push(&mut self, failed: bool, policy: &BreakerPolicy, now_ms: u64) {
        self.outcomes.push_back(Outcome {
            at_ms: now_ms,
            failed,
        });
        // A loop, because a policy may have become smaller since the row was written.
        while self.outcomes.len() > policy.outcomes_max() {
            self.outcomes.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.outcomes.clear();
    }

    /// Failures since the last success.
    pub(super) fn consecutive_failures(&self) -> u32 {
        count(
            self.outcomes
                .iter()
                .rev()
                .take_while(|outcome| outcome.failed),
        )
    }

    /// The last calls, at most as many as the rate is taken over.
    pub(super) fn rate_count(&self, policy: &BreakerPolicy) -> RateCount {
        let last = || {
            self.outcomes
                .iter()
                .rev()
                .take(policy.rate_window_calls() as usize)
        };
        RateCount {
            calls: count(last()),
            failures: count(last().filter(|one| one.failed)),
        }
    }

    /// The rule by which these outcomes open the breaker, if one does.
    pub(super) fn tripped(&self, policy: &BreakerPolicy) -> Option<TransitionReason> {
        if self.consecutive_failures() >= policy.consecutive_failures() {
            return Some(TransitionReason::ConsecutiveFailures);
        }
        let count = self.rate_count(policy);
        let enough = count.calls >= policy.min_calls();
        let over = count
            .rate()
            .is_some_and(|rate| rate >= policy.failure_rate());
        (enough && over).then_some(TransitionReason::FailureRate)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.outcomes.len()
    }
}

impl RateCount {
    /// The share of failures; none without calls.
    pub(super) fn rate(self) -> Option<f64> {
        // A quotient and not a product with the threshold: 11 of 20 is the same double as
        // 0.55, while 0.55 times 20 is a little more than 11.
        (self.calls > 0).then(|| f64::from(self.failures) / f64::from(self.calls))
    }
}

impl From<(u64, bool)> for Outcome {
    fn from((at_ms, failed): (u64, bool)) -> Self {
        Self { at_ms, failed }
    }
}

impl From<Outcome> for (u64, bool) {
    fn from(outcome: Outcome) -> Self {
        (outcome.at_ms, outcome.failed)
    }
}

/// The ring is far smaller than `u32`, so the saturation is never seen.
fn count<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> u32 {
    u32::try_from(outcomes.count()).unwrap_or(u32::MAX)
}
