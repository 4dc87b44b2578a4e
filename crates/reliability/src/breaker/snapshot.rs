//! A breaker as admin views and the command line list it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use holdfast_contract::CircuitBreakerState;

use super::policy::BreakerPolicy;
use super::state::{BreakerState, Gate, Phase};

/// What one breaker looks like at one moment. Taking it changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BreakerSnapshot {
    /// The state. An open breaker whose cooldown is over stays open until somebody asks.
    pub state: CircuitBreakerState,
    /// When this state began, by the clock of whoever brought it about; 0 if it never changed.
    pub since_ms: u64,
    /// Whether a call made now would be let through.
    pub would_admit: bool,
    /// When to ask again, if not; absent when only a reset helps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// Counted calls, of the last ones the failure rate is taken over.
    pub calls: u32,
    /// How many of them failed.
    pub failures: u32,
    /// The share that failed; absent without calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_rate: Option<f64>,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// Probes under way whose lease has not run out.
    pub live_probes: u32,
    /// Successful probes so far, while half open.
    pub probe_successes: u32,
    /// Why it was forced open, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forced_reason: Option<String>,
}

impl BreakerState {
    /// How this breaker looks at `now_ms`, and what it would do with a call.
    ///
    /// An open breaker's cooldown is that of the call which opened it: classes and tools have their
    /// own, and who only looks on does not know which.
    ///
    /// ```
    /// use holdfast_reliability::breaker::{BreakerPolicy, BreakerState};
    ///
    /// let snapshot = BreakerState::default().snapshot(&BreakerPolicy::standard(), 1_000);
    /// assert!(snapshot.would_admit);
    /// ```
    pub fn snapshot(&self, policy: &BreakerPolicy, now_ms: u64) -> BreakerSnapshot {
        // On a copy, so that the view answers by the very code that decides.
        let mut seen = self.clone();
        seen.rewind(now_ms);
        let policy = &match seen.phase {
            Phase::Open {
                cooldown_ms: Some(cooldown_ms),
            } => policy.clone().cooling_for(cooldown_ms),
            _ => policy.clone(),
        };
        seen.window.forget_old(policy, now_ms);
        let (would_admit, retry_after_ms) = match seen.gate(policy, now_ms) {
            Gate::Regular | Gate::FirstProbe | Gate::NextProbe => (true, None),
            Gate::Shut { retry_after_ms } => (false, retry_after_ms),
        };
        let (live_probes, probe_successes) = match &seen.phase {
            Phase::HalfOpen { successes, probes } => {
                let live = probes
                    .iter()
                    .filter(|probe| probe.is_live(policy, now_ms))
                    .count();
                (u32::try_from(live).unwrap_or(u32::MAX), *successes)
            }
            Phase::Closed | Phase::Open { .. } | Phase::ForcedOpen { .. } => (0, 0),
        };
        let count = seen.window.rate_count(policy);
        BreakerSnapshot {
            state: seen.circuit(),
            since_ms: seen.since_ms,
            would_admit,
            retry_after_ms,
            calls: count.calls,
            failures: count.failures,
            failure_rate: count.rate(),
            consecutive_failures: seen.window.consecutive_failures(),
            live_probes,
            probe_successes,
            forced_reason: match seen.phase {
                Phase::ForcedOpen { reason } => Some(reason),
                Phase::Closed | Phase::Open { .. } | Phase::HalfOpen { .. } => None,
            },
        }
    }
}
