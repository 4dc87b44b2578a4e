//! The process-wide retry budget: retries only as a share of recent calls.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy_check::{InvalidPolicy, PolicyCheck};

/// The window is counted in this many slots; one falls out of it at a time.
const SLOTS: usize = 10;
const SLOTS_U64: u64 = SLOTS as u64;
/// A slot holds the low bits of the tick it was written in above the count.
const COUNT_BITS: u32 = 32;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// Changes to a [`RetryBudgetPolicy`], as they are written in configuration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetryBudgetOverrides {
    /// Calls and retries count for this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// Retries allowed, in percent of the calls within the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_percent: Option<u32>,
    /// Retries per second allowed on top, so that a process with few calls can retry at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_retries_per_second: Option<u32>,
}

/// How large a share of recent calls may be retries. A value of this type has been checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", try_from = "RetryBudgetOverrides")]
pub struct RetryBudgetPolicy {
    window_ms: u64,
    retry_percent: u32,
    min_retries_per_second: u32,
}

impl RetryBudgetPolicy {
    /// A fifth of the calls of the last ten seconds, and ten retries per second on top: the
    /// numbers that Finagle and tower settled on.
    pub const fn standard() -> Self {
        Self {
            window_ms: 10_000,
            retry_percent: 20,
            min_retries_per_second: 10,
        }
    }

    /// This policy with the given changes, checked as a whole.
    pub fn with(&self, changes: &RetryBudgetOverrides) -> Result<Self, InvalidPolicy> {
        let policy = Self {
            window_ms: changes.window_ms.unwrap_or(self.window_ms),
            retry_percent: changes.retry_percent.unwrap_or(self.retry_percent),
            min_retries_per_second: changes
                .min_retries_per_second
                .unwrap_or(self.min_retries_per_second),
        };
        let mut check = PolicyCheck::default();
        check.within("windowMs", policy.window_ms, 1_000..=60_000);
        check.within("retryPercent", policy.retry_percent, 0..=1_000);
        check.within(
            "minRetriesPerSecond",
            policy.min_retries_per_second,
            0..=10_000,
        );
        check.finish(policy)
    }

    /// Calls and retries count for this long.
    pub const fn window_ms(&self) -> u64 {
        self.window_ms
    }

    /// Retries allowed, in percent of the calls within the window.
    pub const fn retry_percent(&self) -> u32 {
        self.retry_percent
    }

    /// Retries that are allowed without any calls.
    pub fn reserve(&self) -> u64 {
        u64::from(self.min_retries_per_second) * self.window_ms / 1_000
    }

    /// Retries that are allowed within a window that saw `calls`.
    fn allowed(&self, calls: u64) -> u64 {
        let share = calls.saturating_mul(u64::from(self.retry_percent)) / 100;
        share.saturating_add(self.reserve())
    }
}

impl Default for RetryBudgetPolicy {
    fn default() -> Self {
        Self::standard()
    }
}

impl TryFrom<RetryBudgetOverrides> for RetryBudgetPolicy {
    type Error = InvalidPolicy;

    fn try_from(written: RetryBudgetOverrides) -> Result<Self, InvalidPolicy> {
        Self::standard().with(&written)
    }
}

/// Counts the calls and the retries of a process, and says when retries take over.
///
/// Shared by all calls. To note a call is one atomic operation and never waits; only a retry,
/// which waits anyway, takes a lock.
///
/// ```
/// use holdfast_reliability::retry::{RetryBudget, RetryBudgetOverrides, RetryBudgetPolicy};
///
/// let tight = RetryBudgetOverrides {
///     min_retries_per_second: Some(0),
///     ..RetryBudgetOverrides::default()
/// };
/// let budget = RetryBudget::new(RetryBudgetPolicy::try_from(tight)?);
/// for _ in 0..10 {
///     budget.deposit(1_000);
/// }
/// assert!(budget.withdraw(1_000));
/// assert!(budget.withdraw(1_000));
/// assert!(!budget.withdraw(1_000), "two retries are a fifth of ten calls");
/// # Ok::<(), holdfast_reliability::policy_check::InvalidPolicy>(())
/// ```
#[derive(Debug)]
pub struct RetryBudget {
    policy: RetryBudgetPolicy,
    calls: SlidingCount,
    /// Behind a lock, so that two retries can not both take the last place.
    retries: Mutex<SlidingCount>,
}

impl RetryBudget {
    /// An empty budget.
    pub fn new(policy: RetryBudgetPolicy) -> Self {
        let slot_ms = (policy.window_ms / SLOTS_U64).max(1);
        Self {
            policy,
            calls: SlidingCount::new(slot_ms),
            retries: Mutex::new(SlidingCount::new(slot_ms)),
        }
    }

    /// Notes one call; once per call, not per attempt.
    pub fn deposit(&self, now_ms: u64) {
        self.calls.add(now_ms);
    }

    /// Takes the place of one retry; false, and nothing taken, if there is none left.
    #[must_use]
    pub fn withdraw(&self, now_ms: u64) -> bool {
        let retries = self.retries.lock();
        let allowed = retries.sum(now_ms) < self.policy.allowed(self.calls.sum(now_ms));
        if allowed {
            retries.add(now_ms);
        }
        allowed
    }

    /// Retries that could be taken right now, for metrics and health.
    pub fn available(&self, now_ms: u64) -> u64 {
        let allowed = self.policy.allowed(self.calls.sum(now_ms));
        allowed.saturating_sub(self.retries.lock().sum(now_ms))
    }
}

impl Default for RetryBudget {
    fn default() -> Self {
        Self::new(RetryBudgetPolicy::standard())
    }
}

/// Events of the last window, counted in slots by time.
///
/// Tick and count share one word, so a slot left over from an earlier round is replaced and
/// counted up in one atomic step. A clock that jumps back finds slots from the future, which do
/// not count; the counts are then too low for one window at most, and nothing sticks.
#[derive(Debug)]
struct SlidingCount {
    slot_ms: u64,
    slots: [AtomicU64; SLOTS],
}

impl SlidingCount {
    fn new(slot_ms: u64) -> Self {
        Self {
            slot_ms,
            slots: [const { AtomicU64::new(0) }; SLOTS],
        }
    }

    fn add(&self, now_ms: u64) {
        let tick = now_ms / self.slot_ms;
        let stamp = stamp(tick);
        let advance = |slot: u64| {
            let count = if slot & !COUNT_MASK == stamp {
                slot & COUNT_MASK
            } else {
                0
            };
            Some(stamp | (count + 1).min(COUNT_MASK))
        };
        // The counts guard no other memory, so no ordering is needed. The closure always gives a
        // value, so there is no failure to handle.
        let _ = self
            .slot(tick)
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, advance);
    }

    fn sum(&self, now_ms: u64) -> u64 {
        let newest = now_ms / self.slot_ms;
        (newest.saturating_sub(SLOTS_U64 - 1)..=newest)
            .map(|tick| (stamp(tick), self.slot(tick).load(Ordering::Relaxed)))
            .filter(|(stamp, slot)| slot & !COUNT_MASK == *stamp)
            .map(|(_, slot)| slot & COUNT_MASK)
            .sum()
    }

    fn slot(&self, tick: u64) -> &AtomicU64 {
        // The remainder is below the length; the fallback only spares a panic path.
        let index = usize::try_from(tick % SLOTS_U64).unwrap_or(0);
        &self.slots[index]
    }
}

/// The low bits of a tick, where a slot keeps them.
fn stamp(tick: u64) -> u64 {
    tick << COUNT_BITS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn budget(retry_percent: u32, min_retries_per_second: u32) -> RetryBudget {
        let written = RetryBudgetOverrides {
            retry_percent: Some(retry_percent),
            min_retries_per_second: Some(min_retries_per_second),
            ..RetryBudgetOverrides::default()
        };
        RetryBudget::new(RetryBudgetPolicy::try_from(written).unwrap())
    }

    fn drain(budget: &RetryBudget, now_ms: u64) -> u32 {
        let mut taken = 0;
        while budget.withdraw(now_ms) {
            taken += 1;
        }
        taken
    }

    #[test]
    fn the_defaults_are_a_fifth_and_ten_per_second() {
        let budget = RetryBudget::default();
        assert_eq!(drain(&budget, 5_000), 100);
        for _ in 0..50 {
            budget.deposit(5_000);
        }
        assert_eq!(budget.available(5_000), 10);
        assert_eq!(drain(&budget, 5_000), 10);
        assert_eq!(
            serde_json::to_value(RetryBudgetPolicy::default()).unwrap(),
            serde_json::json!({
                "windowMs": 10_000, "retryPercent": 20, "minRetriesPerSecond": 10,
            })
        );
    }

    #[test]
    fn calls_and_retries_leave_the_window() {
        let budget = budget(20, 0);
        for _ in 0..100 {
            budget.deposit(500);
        }
        assert_eq!(drain(&budget, 500), 20);
        assert_eq!(drain(&budget, 9_999), 0);
        assert_eq!(
            drain(&budget, 10_000),
            0,
            "the calls are gone with the retries"
        );
        for _ in 0..5 {
            budget.deposit(10_500);
        }
        assert_eq!(drain(&budget, 10_500), 1);
    }

    #[test]
    fn a_slot_from_an_earlier_round_does_not_count() {
        let budget = budget(100, 0);
        budget.deposit(1_000);
        budget.deposit(11_000);
        assert_eq!(budget.available(11_000), 1);
        // One whole round of the stamp later the same low bits come again; the slot is another.
        assert_eq!(budget.available(11_000 + (1 << 32) * 1_000), 0);
    }

    #[test]
    fn a_clock_that_jumps_back_neither_blocks_nor_floods() {
        let budget = budget(20, 1);
        assert_eq!(drain(&budget, 1_000_000), 10);
        assert_eq!(drain(&budget, 500_000), 10);
        assert_eq!(drain(&budget, 500_000), 0);
        assert_eq!(drain(&budget, 510_000), 10);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let budget = budget(100, 0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..1_000).for_each(|_| budget.deposit(7_000)));
            }
        });
        let taken: u32 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| scope.spawn(|| drain(&budget, 7_000)))
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .sum()
        });
        assert_eq!(taken, 4_000);
    }

    #[test]
    fn wrong_values_are_refused() {
        for (written, field) in [
            (r#"{"windowMs": 10}"#, "windowMs"),
            (r#"{"retryPercent": 1001}"#, "retryPercent"),
            (r#"{"minRetriesPerSecond": 10001}"#, "minRetriesPerSecond"),
        ] {
            let refused = serde_json::from_str::<RetryBudgetPolicy>(written).unwrap_err();
            assert!(refused.to_string().contains(field), "{refused}");
        }
    }

    proptest! {
        #[test]
        fn retries_never_exceed_the_share_and_the_reserve(
            steps in prop::collection::vec((0..3_000_u64, any::<bool>()), 1..400),
            percent in 0..=100_u32, per_second in 0..3_u32,
        ) {
            let budget = budget(percent, per_second);
            let mut now_ms = 0;
            let (mut calls, mut retries) = (Vec::new(), Vec::new());
            for (wait_ms, retry) in steps {
                now_ms += wait_ms;
                if !retry {
                    budget.deposit(now_ms);
                    calls.push(now_ms);
                } else if budget.withdraw(now_ms) {
                    retries.push(now_ms);
                }
                let oldest = (now_ms / 1_000).saturating_sub(9) * 1_000;
                let recent = |times: &[u64]| times.iter().filter(|at| **at >= oldest).count() as u64;
                let share = recent(&calls) * u64::from(percent) / 100;
                let allowed = share + u64::from(per_second) * 10;
                if retry {
                    // A retry was let through exactly as long as there was room for it.
                    prop_assert_eq!(budget.available(now_ms), allowed.saturating_sub(recent(&retries)));
                }
            }
        }

        #[test]
        fn any_time_will_do(times in prop::collection::vec(any::<u64>(), 0..50)) {
            let budget = budget(20, 1);
            for now_ms in times {
                budget.deposit(now_ms);
                let _ = budget.withdraw(now_ms);
                let _ = budget.available(now_ms);
            }
        }
    }
}
