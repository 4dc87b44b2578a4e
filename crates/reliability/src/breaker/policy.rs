//! How many failures open the breaker, and what it takes to close it again.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::step::REASON_CHARS_MAX;
use crate::policy_check::{InvalidPolicy, PolicyCheck};

/// Longest duration that can be configured anywhere in the breaker.
const DURATION_MS_MAX: u64 = 24 * 60 * 60 * 1_000;
/// Most outcomes kept; bounds the stored row to a few kilobytes.
const WINDOW_CALLS_MAX: u32 = 256;
/// Most probes at a time; more would be traffic, not probing.
const PROBES_MAX: u32 = 16;
/// Added to an attempt's time limit, so that the attempt ends before its lease does.
const LEASE_MARGIN_MS: u64 = 5_000;

/// Changes to a [`BreakerPolicy`], as they are written in configuration; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BreakerOverrides {
    /// Outcomes older than this are forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
    /// This many failures in a row open the breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consecutive_failures: Option<u32>,
    /// This share of failures, above 0 and up to 1, opens the breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_rate: Option<f64>,
    /// The share is taken over this many last calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_window_calls: Option<u32>,
    /// With fewer calls than this the share says nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_calls: Option<u32>,
    /// How long an open breaker refuses every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_cooldown_ms: Option<u64>,
    /// Probes that may run at the same time while half open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_open_max_probes: Option<u32>,
    /// Successful probes in a row that close the breaker.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub close_after_successes: Option<u32>,
    /// After this time without a result a probe's place is given to another caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probe_lease_ms: Option<u64>,
    /// Refuse every call for this reason, as long as it stands here. An empty text takes back what
    /// is set for all tools or for the tool's class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_open: Option<String>,
}

/// When a breaker opens and closes. A value of this type has been checked.
///
/// ```
/// use holdfast_reliability::breaker::{BreakerOverrides, BreakerPolicy};
///
/// let policy: BreakerPolicy = serde_json::from_str(r#"{ "openCooldownMs": 5000 }"#)?;
/// assert_eq!(policy.open_cooldown_ms(), 5_000);
/// assert_eq!(policy.consecutive_failures(), 5);
///
/// let wrong = BreakerOverrides { min_calls: Some(50), ..BreakerOverrides::default() };
/// let refused = BreakerPolicy::mutating().with(&wrong).unwrap_err();
/// assert_eq!(refused.problems()[0].field, "minCalls");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", try_from = "BreakerOverrides")]
pub struct BreakerPolicy {
    window_ms: u64,
    consecutive_failures: u32,
    failure_rate: f64,
    rate_window_calls: u32,
    min_calls: u32,
    open_cooldown_ms: u64,
    half_open_max_probes: u32,
    close_after_successes: u32,
    probe_lease_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    forced_open: Option<String>,
}

impl BreakerPolicy {
    /// The policy of a tool that belongs to no class.
    pub fn standard() -> Self {
        Self {
            window_ms: 120_000,
            consecutive_failures: 5,
            failure_rate: 0.5,
            rate_window_calls: 20,
            min_calls: 10,
            open_cooldown_ms: 30_000,
            half_open_max_probes: 1,
            close_after_successes: 2,
            probe_lease_ms: 60_000,
            forced_open: None,
        }
    }

    /// The policy of read-only tools: a needless call does no harm, so it takes more to open.
    pub fn read_only() -> Self {
        Self {
            consecutive_failures: 8,
            open_cooldown_ms: 20_000,
            ..Self::standard()
        }
    }

    /// The policy of mutating tools: opens at a lower share of failures, and looks again sooner.
    pub fn mutating() -> Self {
        Self {
            failure_rate: 0.4,
            open_cooldown_ms: 15_000,
            ..Self::standard()
        }
    }

    /// This policy with the given changes, checked as a whole.
    pub fn with(&self, changes: &BreakerOverrides) -> Result<Self, InvalidPolicy> {
        Self {
            window_ms: changes.window_ms.unwrap_or(self.window_ms),
            consecutive_failures: changes
                .consecutive_failures
                .unwrap_or(self.consecutive_failures),
            failure_rate: changes.failure_rate.unwrap_or(self.failure_rate),
            rate_window_calls: changes.rate_window_calls.unwrap_or(self.rate_window_calls),
            min_calls: changes.min_calls.unwrap_or(self.min_calls),
            open_cooldown_ms: changes.open_cooldown_ms.unwrap_or(self.open_cooldown_ms),
            half_open_max_probes: changes
                .half_open_max_probes
                .unwrap_or(self.half_open_max_probes),
            close_after_successes: changes
                .close_after_successes
                .unwrap_or(self.close_after_successes),
            probe_lease_ms: changes.probe_lease_ms.unwrap_or(self.probe_lease_ms),
            forced_open: changes
                .forced_open
                .as_ref()
                .or(self.forced_open.as_ref())
                .filter(|reason| !reason.trim().is_empty())
                .cloned(),
        }
        .checked()
    }

    /// This policy with a probe lease that outlasts one attempt of a tool.
    ///
    /// A lease shorter than the attempt would hand the probe's place on while the probe still
    /// runs, and its result would come too late to count.
    #[must_use]
    pub fn covering_attempt(mut self, attempt_timeout_ms: u64) -> Self {
        let needed_ms = attempt_timeout_ms.saturating_add(LEASE_MARGIN_MS);
        self.probe_lease_ms = self.probe_lease_ms.max(needed_ms).min(DURATION_MS_MAX);
        self
    }

    /// This policy with another cooldown, one that a checked policy had.
    pub(super) fn cooling_for(mut self, open_cooldown_ms: u64) -> Self {
        self.open_cooldown_ms = open_cooldown_ms.min(DURATION_MS_MAX);
        self
    }

    fn checked(self) -> Result<Self, InvalidPolicy> {
        let mut check = PolicyCheck::default();
        check.within("windowMs", self.window_ms, 1..=DURATION_MS_MAX);
        check.within(
            "consecutiveFailures",
            self.consecutive_failures,
            1..=WINDOW_CALLS_MAX,
        );
        // A rate of 0 would open on a success, so the smallest useful share is just above it.
        check.within("failureRate", self.failure_rate, 0.001..=1.0);
        check.within(
            "rateWindowCalls",
            self.rate_window_calls,
            1..=WINDOW_CALLS_MAX,
        );
        check.within("minCalls", self.min_calls, 1..=WINDOW_CALLS_MAX);
        if self.min_calls > self.rate_window_calls {
            check.problem(
                "minCalls",
                format!(
                    "is {}, more than the {} of rateWindowCalls: the rate would never apply",
                    self.min_calls, self.rate_window_calls
                ),
            );
        }
        check.within("openCooldownMs", self.open_cooldown_ms, 1..=DURATION_MS_MAX);
        check.within(
            "halfOpenMaxProbes",
            self.half_open_max_probes,
            1..=PROBES_MAX,
        );
        check.within(
            "closeAfterSuccesses",
            self.close_after_successes,
            1..=WINDOW_CALLS_MAX,
        );
        check.within("probeLeaseMs", self.probe_lease_ms, 1..=DURATION_MS_MAX);
        let reason = self.forced_open.as_deref().unwrap_or_default();
        if reason.chars().count() > REASON_CHARS_MAX {
            let problem = format!("must have at most {REASON_CHARS_MAX} characters");
            check.problem("forcedOpen", problem);
        }
        check.finish(self)
    }

    /// Outcomes older than this are forgotten.
    pub fn window_ms(&self) -> u64 {
        self.window_ms
    }

    /// This many failures in a row open the breaker.
    pub fn consecutive_failures(&self) -> u32 {
        self.consecutive_failures
    }

    /// This share of failures opens the breaker.
    pub fn failure_rate(&self) -> f64 {
        self.failure_rate
    }

    /// The share is taken over this many last calls.
    pub fn rate_window_calls(&self) -> u32 {
        self.rate_window_calls
    }

    /// With fewer calls than this the share says nothing.
    pub fn min_calls(&self) -> u32 {
        self.min_calls
    }

    /// How long an open breaker refuses every call.
    pub fn open_cooldown_ms(&self) -> u64 {
        self.open_cooldown_ms
    }

    /// Probes that may run at the same time while half open.
    pub fn half_open_max_probes(&self) -> u32 {
        self.half_open_max_probes
    }

    /// Successful probes in a row that close the breaker.
    pub fn close_after_successes(&self) -> u32 {
        self.close_after_successes
    }

    /// After this time without a result a probe's place is given to another caller.
    pub fn probe_lease_ms(&self) -> u64 {
        self.probe_lease_ms
    }

    /// Why the configuration holds the breaker open, if it does.
    pub fn forced_open(&self) -> Option<&str> {
        self.forced_open.as_deref()
    }

    /// Outcomes worth keeping: neither opening rule looks further back than this.
    pub(super) fn outcomes_max(&self) -> usize {
        self.rate_window_calls.max(self.consecutive_failures) as usize
    }
}

impl Default for BreakerPolicy {
    fn default() -> Self {
        Self::standard()
    }
}

impl TryFrom<BreakerOverrides> for BreakerPolicy {
    type Error = InvalidPolicy;

    fn try_from(written: BreakerOverrides) -> Result<Self, InvalidPolicy> {
        Self::standard().with(&written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_classes_have_the_documented_numbers() {
        let standard = serde_json::to_value(BreakerPolicy::default()).unwrap();
        assert_eq!(
            standard,
            serde_json::json!({
                "windowMs": 120_000, "consecutiveFailures": 5, "failureRate": 0.5,
                "rateWindowCalls": 20, "minCalls": 10, "openCooldownMs": 30_000,
                "halfOpenMaxProbes": 1, "closeAfterSuccesses": 2, "probeLeaseMs": 60_000,
            })
        );
        let read_only = BreakerPolicy::read_only();
        assert_eq!(
            (read_only.consecutive_failures, read_only.open_cooldown_ms),
            (8, 20_000)
        );
        let mutating = BreakerPolicy::mutating();
        assert_eq!(
            (mutating.failure_rate, mutating.open_cooldown_ms),
            (0.4, 15_000)
        );
        for policy in [BreakerPolicy::standard(), read_only, mutating] {
            assert_eq!(policy.clone().checked(), Ok(policy));
        }
    }

    #[test]
    fn wrong_values_are_refused_with_their_field() {
        #[track_caller]
        fn check(written: &str, field: &str) {
            let overrides: BreakerOverrides = serde_json::from_str(written).unwrap();
            let refused = BreakerPolicy::try_from(overrides).unwrap_err();
            let fields: Vec<_> = refused
                .problems()
                .iter()
                .map(|problem| problem.field)
                .collect();
            assert_eq!(fields, [field], "{written}: {refused}");
        }
        check(r#"{"windowMs": 0}"#, "windowMs");
        check(r#"{"consecutiveFailures": 0}"#, "consecutiveFailures");
        check(r#"{"consecutiveFailures": 257}"#, "consecutiveFailures");
        check(r#"{"failureRate": 0}"#, "failureRate");
        check(r#"{"failureRate": 1.01}"#, "failureRate");
        check(r#"{"failureRate": -0.5}"#, "failureRate");
        check(r#"{"rateWindowCalls": 300}"#, "rateWindowCalls");
        check(r#"{"minCalls": 0}"#, "minCalls");
        check(r#"{"minCalls": 21}"#, "minCalls");
        check(r#"{"rateWindowCalls": 9}"#, "minCalls");
        check(r#"{"openCooldownMs": 0}"#, "openCooldownMs");
        check(r#"{"openCooldownMs": 86400001}"#, "openCooldownMs");
        check(r#"{"halfOpenMaxProbes": 17}"#, "halfOpenMaxProbes");
        check(r#"{"closeAfterSuccesses": 0}"#, "closeAfterSuccesses");
        check(r#"{"probeLeaseMs": 0}"#, "probeLeaseMs");
        let long = format!(r#"{{"forcedOpen": "{}"}}"#, "x".repeat(257));
        check(&long, "forcedOpen");
    }

    #[test]
    fn nearest_reason_holds_it_open_and_empty_reason_takes_it_back() {
        let with = |policy: &BreakerPolicy, reason: Option<&str>| {
            let changes = BreakerOverrides {
                forced_open: reason.map(str::to_owned),
                ..BreakerOverrides::default()
            };
            policy.with(&changes).unwrap()
        };
        let for_class = with(&BreakerPolicy::mutating(), Some("vendor incident"));
        assert_eq!(for_class.forced_open(), Some("vendor incident"));
        assert_eq!(
            with(&for_class, None).forced_open(),
            Some("vendor incident")
        );
        assert_eq!(with(&for_class, Some("ours")).forced_open(), Some("ours"));
        assert_eq!(with(&for_class, Some("")).forced_open(), None);
    }

    #[test]
    fn a_misspelt_field_is_refused_and_a_policy_survives_its_own_serialisation() {
        assert!(serde_json::from_str::<BreakerPolicy>(r#"{"cooldownMs": 1}"#).is_err());
        let policy = BreakerPolicy::mutating();
        let text = serde_json::to_string(&policy).unwrap();
        assert_eq!(
            serde_json::from_str::<BreakerPolicy>(&text).unwrap(),
            policy
        );
    }

    #[test]
    fn the_lease_outlasts_the_attempt_but_never_shrinks() {
        assert_eq!(
            BreakerPolicy::standard()
                .covering_attempt(1_000)
                .probe_lease_ms(),
            60_000
        );
        assert_eq!(
            BreakerPolicy::standard()
                .covering_attempt(600_000)
                .probe_lease_ms(),
            605_000
        );
        let forever = BreakerPolicy::standard().covering_attempt(u64::MAX);
        assert_eq!(forever.clone().checked(), Ok(forever));
    }
}
