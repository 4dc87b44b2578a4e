//! A limit as it is written in the configuration, and checked.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy_check::{InvalidPolicy, PolicyCheck};

/// The default of `windowMs`: calls are counted by the minute.
pub const RATE_WINDOW_MS_DEFAULT: u64 = 60_000;
/// Calls within a window at most.
pub const RATE_CALLS_MAX: u32 = 1_000_000;
/// The longest window.
pub const RATE_WINDOW_MS_MAX: u64 = 24 * 60 * 60 * 1000;
/// The longest wait for a place.
pub const RATE_WAIT_MS_MAX: u64 = 60_000;

/// A limit as it is written. Without `calls`, or with 0, nothing is limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RateLimitOverrides {
    /// Attempts that may begin within a window; 0 for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<u32>,
    /// The window: a minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// How many of them may begin at once after a quiet time; all of them by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst: Option<u32>,
    /// How long an attempt may wait for its place; 0, the default, refuses it at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_wait_ms: Option<u64>,
}

impl RateLimitOverrides {
    /// This one with the changes of a nearer one.
    #[must_use]
    pub fn with(self, nearer: &Self) -> Self {
        Self {
            calls: nearer.calls.or(self.calls),
            window_ms: nearer.window_ms.or(self.window_ms),
            burst: nearer.burst.or(self.burst),
            max_wait_ms: nearer.max_wait_ms.or(self.max_wait_ms),
        }
    }

    /// Whether something is written that counts for nothing without `calls`.
    pub fn lacks_calls(&self) -> bool {
        self.calls.is_none()
            && (self.window_ms.is_some() || self.burst.is_some() || self.max_wait_ms.is_some())
    }

    /// The limit, checked as a whole; `None` when nothing is limited.
    pub fn checked(&self) -> Result<Option<RateLimit>, InvalidPolicy> {
        let calls = self.calls.unwrap_or(0);
        let limit = RateLimit {
            calls,
            window_ms: self.window_ms.unwrap_or(RATE_WINDOW_MS_DEFAULT),
            burst: self.burst.unwrap_or(calls),
            max_wait_ms: self.max_wait_ms.unwrap_or(0),
        };
        let mut check = PolicyCheck::default();
        check.within("calls", calls, 0..=RATE_CALLS_MAX);
        check.within("windowMs", limit.window_ms, 1..=RATE_WINDOW_MS_MAX);
        check.within("maxWaitMs", limit.max_wait_ms, 0..=RATE_WAIT_MS_MAX);
        if calls > 0 {
            check.within("burst", limit.burst, 1..=calls);
        }
        check.finish((calls > 0).then_some(limit))
    }
}

/// How many attempts may begin in a time. A value of this type has been checked.
///
/// In any time of `t` ms, at most `burst + t * calls / windowMs` begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    calls: u32,
    window_ms: u64,
    burst: u32,
    max_wait_ms: u64,
}

impl RateLimit {
    /// The time that one attempt takes up. Rounded up, so that the limit is never passed.
    pub fn interval_us(&self) -> u64 {
        (self.window_ms * 1_000).div_ceil(u64::from(self.calls.max(1)))
    }

    /// How far ahead of time a burst may run.
    pub fn burst_us(&self) -> u64 {
        self.interval_us() * u64::from(self.burst)
    }

    /// How long an attempt may wait for its place.
    pub fn max_wait_ms(&self) -> u64 {
        self.max_wait_ms
    }
}

impl std::fmt::Display for RateLimit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} in {} ms", self.calls, self.window_ms)
    }
}

/// A limit of a tool's calls, under the name by which it is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolLimit {
    /// `tool:NAMESPACE/NAME` or `dependency:NAME`, as for breakers.
    pub name: Arc<str>,
    /// The limit.
    pub limit: RateLimit,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(json: serde_json::Value) -> RateLimitOverrides {
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn nothing_is_limited_by_default() {
        assert_eq!(RateLimitOverrides::default().checked(), Ok(None));
        let off = written(serde_json::json!({"calls": 0, "burst": 3}));
        assert_eq!(off.checked(), Ok(None));
    }

    #[test]
    fn calls_alone_are_a_limit_by_the_minute() {
        let limit = written(serde_json::json!({"calls": 60}));
        let limit = limit.checked().unwrap().unwrap();
        assert_eq!(limit.interval_us(), 1_000_000);
        assert_eq!(limit.burst_us(), 60_000_000);
        assert_eq!(limit.max_wait_ms(), 0);
        let uneven = written(serde_json::json!({"calls": 7, "windowMs": 1}));
        assert_eq!(uneven.checked().unwrap().unwrap().interval_us(), 143);
    }

    #[test]
    fn the_nearer_setting_wins_field_by_field() {
        let class = written(serde_json::json!({"calls": 60, "burst": 5}));
        let tool = written(serde_json::json!({"calls": 10, "maxWaitMs": 50}));
        let both = class.with(&tool).checked().unwrap().unwrap();
        assert_eq!(both.to_string(), "10 in 60000 ms");
        assert_eq!((both.burst_us(), both.max_wait_ms()), (30_000_000, 50));
    }

    #[test]
    fn wrong_values_are_refused() {
        for (json, field) in [
            (serde_json::json!({"calls": 1_000_001}), "calls"),
            (serde_json::json!({"calls": 1, "windowMs": 0}), "windowMs"),
            (serde_json::json!({"calls": 2, "burst": 3}), "burst"),
            (serde_json::json!({"calls": 2, "burst": 0}), "burst"),
            (
                serde_json::json!({"calls": 2, "maxWaitMs": 60_001}),
                "maxWaitMs",
            ),
        ] {
            let refused = written(json).checked().unwrap_err();
            assert_eq!(refused.problems()[0].field, field, "{refused}");
        }
        assert!(written(serde_json::json!({"burst": 3})).lacks_calls());
        assert!(!written(serde_json::json!({"calls": 0, "burst": 3})).lacks_calls());
    }
}
