//! The places of this process.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use smallvec::SmallVec;

use super::{Step, Taken, ToolLimit, step};

/// How far this process has used up its limits. As many numbers as there are limits in the
/// configuration.
#[derive(Debug, Default)]
pub struct LocalLimits {
    used_until_us: Mutex<HashMap<Arc<str>, u64>>,
}

impl LocalLimits {
    /// Takes a place under each of `limits` if it comes within `wait_max_us`, else under none.
    pub fn take(&self, limits: &[ToolLimit], now_us: u64, wait_max_us: u64) -> Taken {
        let mut used = self.used_until_us.lock();
        let (taken, steps) = look(&used, limits, now_us, wait_max_us);
        if taken.granted {
            for (limit, step) in limits.iter().zip(steps) {
                used.insert(limit.name.clone(), step.used_until_us);
            }
        }
        taken
    }

    /// What [`Self::take`] would answer; nothing is taken.
    pub fn peek(&self, limits: &[ToolLimit], now_us: u64, wait_max_us: u64) -> Taken {
        look(&self.used_until_us.lock(), limits, now_us, wait_max_us).0
    }

    /// Notes how far the limits are used up by all processes, as it was at `now_us`. So a call that
    /// they would refuse anyway is refused here, and a limit that can not be asked any more goes on
    /// from where it was.
    pub fn learn(&self, limits: &[ToolLimit], now_us: u64, taken: &Taken) {
        let mut used = self.used_until_us.lock();
        for (limit, ahead_us) in limits.iter().zip(&taken.ahead_us) {
            let until_us = used.entry(limit.name.clone()).or_default();
            *until_us = (*until_us).max(now_us.saturating_add(*ahead_us));
        }
    }
}

fn look(
    used: &HashMap<Arc<str>, u64>,
    limits: &[ToolLimit],
    now_us: u64,
    wait_max_us: u64,
) -> (Taken, SmallVec<[Step; super::LIMITS_PER_CALL_MAX]>) {
    let before = |limit: &ToolLimit| used.get(&limit.name).copied().unwrap_or(0);
    let steps: SmallVec<[Step; super::LIMITS_PER_CALL_MAX]> = limits
        .iter()
        .map(|limit| step(before(limit), now_us, &limit.limit))
        .collect();
    let wait_us = steps.iter().map(|step| step.wait_us).max().unwrap_or(0);
    let granted = wait_us <= wait_max_us;
    let ahead_us = limits.iter().zip(&steps).map(|(limit, step)| {
        let until_us = if granted {
            step.used_until_us
        } else {
            before(limit)
        };
        until_us.saturating_sub(now_us)
    });
    let taken = Taken {
        wait_us,
        granted,
        ahead_us: ahead_us.collect(),
    };
    (taken, steps)
}

#[cfg(test)]
mod tests {
    use super::super::RateLimitOverrides;
    use super::*;

    fn limit(name: &str, calls: u32) -> ToolLimit {
        let written = RateLimitOverrides {
            calls: Some(calls),
            window_ms: Some(1_000),
            ..RateLimitOverrides::default()
        };
        ToolLimit {
            name: name.into(),
            limit: written.checked().unwrap().unwrap(),
        }
    }

    #[test]
    fn a_place_is_taken_under_all_limits_or_under_none() {
        let limits = LocalLimits::default();
        let (own, dependency) = (limit("tool:a/b", 5), limit("dependency:c", 2));
        let both = [own.clone(), dependency.clone()];
        let granted = |count: usize, of: &[ToolLimit]| {
            (0..count)
                .filter(|_| limits.take(of, 1_000_000, 0).granted)
                .count()
        };
        assert_eq!(granted(4, &both), 2);
        assert_eq!(
            granted(9, &[own]),
            3,
            "the two refused calls took nothing of the tool's"
        );
        assert_eq!(granted(9, &[dependency]), 0);
        assert_eq!(limits.peek(&both, 1_000_000, 0).wait_us, 500_000);
        assert!(
            limits.peek(&both, 1_000_000, 500_000).granted,
            "to look is not to take"
        );
        assert!(limits.peek(&both, 1_500_000, 0).granted);
    }

    #[test]
    fn what_others_used_up_counts_here_too() {
        let limits = LocalLimits::default();
        let shared = [limit("dependency:c", 2)];
        let taken = Taken {
            wait_us: 500_000,
            granted: false,
            ahead_us: [1_000_000].into_iter().collect(),
        };
        limits.learn(&shared, 7_000_000, &taken);
        assert_eq!(limits.peek(&shared, 7_000_000, 0).wait_us, 500_000);
        assert_eq!(limits.peek(&shared, 7_500_000, 0).wait_us, 0);
        // An older answer does not take it back.
        let older = Taken {
            ahead_us: [1].into_iter().collect(),
            ..taken
        };
        limits.learn(&shared, 7_000_000, &older);
        assert_eq!(limits.peek(&shared, 7_000_000, 0).wait_us, 500_000);
    }
}
