//! What is stored of one breaker, and the ticket an admitted attempt carries.

use std::fmt;
use std::str::FromStr;

use holdfast_contract::CircuitBreakerState;
use serde::{Deserialize, Serialize};

use super::policy::BreakerPolicy;
use super::window::Window;

/// Names kept of a breaker that stands for one of a tool's parts: the hosts that were asked last.
pub const PART_NAMES_MAX: usize = 4;

/// A longer name is not kept. The name of a host is never longer.
const PART_NAME_BYTES_MAX: usize = 255;

/// Names one attempt among all processes that share the breaker.
///
/// The caller draws it at random; two attempts with the same id would be taken for one. It is
/// stored as hexadecimal text, because not every store keeps large numbers exactly.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct ProbeId(u128);

impl ProbeId {
    /// Makes an id from random bits, or from a UUID or ULID made for this attempt.
    pub const fn new(bits: u128) -> Self {
        Self(bits)
    }
}

impl fmt::Display for ProbeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ProbeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProbeId({self})")
    }
}

impl FromStr for ProbeId {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(text, 16).map(Self)
    }
}

impl From<ProbeId> for String {
    fn from(id: ProbeId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for ProbeId {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// The ticket of an admitted attempt, handed back with its result.
///
/// It remembers the epoch in which it was given out. Every change of state begins a new epoch,
/// so the result of an attempt that began before the change is recognised and left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "the attempt's result has to be recorded with it, or a probe's place stays taken"]
pub struct Permit {
    pub(super) epoch: u64,
    pub(super) kind: PermitKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PermitKind {
    Regular,
    Probe(ProbeId),
}

impl Permit {
    /// Whether this attempt is a probe of a half-open breaker.
    pub fn is_probe(&self) -> bool {
        matches!(self.kind, PermitKind::Probe(_))
    }
}

/// Everything one breaker remembers; [`super::step`] is the only way to change it.
///
/// Times are in milliseconds since the Unix epoch and come from the callers. The size is bounded
/// by the policy. The default value is a closed breaker that has seen nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BreakerState {
    /// Goes up with every change of state and with every reset.
    pub(super) epoch: u64,
    /// When the present phase began.
    pub(super) since_ms: u64,
    pub(super) phase: Phase,
    #[serde(rename = "outcomes")]
    pub(super) window: Window,
    /// What people call the part of a tool that it stands for, the last one asked first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) names: Vec<String>,
}

/// The state with what belongs to it, so that an open breaker can not hold probes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(super) enum Phase {
    #[default]
    Closed,
    Open {
        /// The cooldown of whoever opened it, for those who look on and know no tool's policy.
        /// Absent in rows of versions that did not write it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cooldown_ms: Option<u64>,
    },
    HalfOpen {
        successes: u32,
        probes: Vec<Probe>,
    },
    ForcedOpen {
        reason: String,
    },
}

/// A probe that has not reported yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Probe {
    pub(super) id: ProbeId,
    pub(super) leased_at_ms: u64,
}

/// What the breaker would do with a call right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gate {
    /// Through, as normal traffic.
    Regular,
    /// Through, as the first probe after the cooldown.
    FirstProbe,
    /// Through, as one more probe.
    NextProbe,
    /// Refused; the wait is known unless a person has to end it.
    Shut { retry_after_ms: Option<u64> },
}

impl BreakerState {
    /// The state as callers, logs and metrics see it.
    pub fn circuit(&self) -> CircuitBreakerState {
        match self.phase {
            Phase::Closed => CircuitBreakerState::Closed,
            Phase::Open { .. } => CircuitBreakerState::Open,
            Phase::HalfOpen { .. } => CircuitBreakerState::HalfOpen,
            Phase::ForcedOpen { .. } => CircuitBreakerState::ForcedOpen,
        }
    }

    /// What people call the part of a tool that this breaker stands for: the hosts that share it,
    /// the last one asked first.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Keeps the name of the part that an attempt was for.
    pub(super) fn remember(&mut self, name: &str) {
        if name.len() > PART_NAME_BYTES_MAX || self.names.first().is_some_and(|it| it == name) {
            return;
        }
        self.names.retain(|known| known != name);
        self.names.insert(0, name.to_owned());
        self.names.truncate(PART_NAMES_MAX);
    }

    /// Pulls every time from the future back to now; says whether there were any.
    ///
    /// Clocks jump back. To bound the remaining wait when it is read would not be enough: the
    /// bound would hold at every read and the wait would never end. Moved to now, every wait
    /// ends at the latest one full wait after the jump was noticed.
    pub(super) fn rewind(&mut self, now_ms: u64) -> bool {
        let mut rewound = pull_back(&mut self.since_ms, now_ms);
        if let Phase::HalfOpen { probes, .. } = &mut self.phase {
            for probe in probes {
                rewound |= pull_back(&mut probe.leased_at_ms, now_ms);
            }
        }
        rewound | self.window.rewind(now_ms)
    }

    /// What a call would meet. Expects a rewound state.
    pub(super) fn gate(&self, policy: &BreakerPolicy, now_ms: u64) -> Gate {
        match &self.phase {
            Phase::Closed => Gate::Regular,
            Phase::Open { .. } => {
                match remaining_ms(self.since_ms, policy.open_cooldown_ms(), now_ms) {
                    0 => Gate::FirstProbe,
                    left_ms => Gate::Shut {
                        retry_after_ms: Some(left_ms),
                    },
                }
            }
            Phase::HalfOpen { probes, .. } => {
                let leases = probes.iter().filter(|probe| probe.is_live(policy, now_ms));
                if leases.clone().count() < policy.half_open_max_probes() as usize {
                    return Gate::NextProbe;
                }
                // The probe may report sooner; this is when its place falls free in any case.
                let ends = leases.map(|probe| probe.remaining_ms(policy, now_ms));
                Gate::Shut {
                    retry_after_ms: ends.min(),
                }
            }
            Phase::ForcedOpen { .. } => Gate::Shut {
                retry_after_ms: None,
            },
        }
    }
}

impl Probe {
    pub(super) fn is_live(&self, policy: &BreakerPolicy, now_ms: u64) -> bool {
        self.remaining_ms(policy, now_ms) > 0
    }

    fn remaining_ms(&self, policy: &BreakerPolicy, now_ms: u64) -> u64 {
        remaining_ms(self.leased_at_ms, policy.probe_lease_ms(), now_ms)
    }
}

/// What is left of a wait that began at `since_ms`; never more than the whole wait.
fn remaining_ms(since_ms: u64, wait_ms: u64, now_ms: u64) -> u64 {
    wait_ms.saturating_sub(now_ms.saturating_sub(since_ms))
}

fn pull_back(time_ms: &mut u64, now_ms: u64) -> bool {
    let ahead = *time_ms > now_ms;
    if ahead {
        *time_ms = now_ms;
    }
    ahead
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_named_as_on_the_wire() {
        for state in CircuitBreakerState::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        let names = CircuitBreakerState::ALL.map(CircuitBreakerState::as_str);
        assert_eq!(names, ["CLOSED", "OPEN", "HALF_OPEN", "FORCED_OPEN"]);
    }

    #[test]
    fn the_stored_row_is_stable() {
        let mut state = BreakerState {
            epoch: 2,
            since_ms: 70,
            ..BreakerState::default()
        };
        state.window.push(true, &BreakerPolicy::standard(), 60);
        state.phase = Phase::HalfOpen {
            successes: 1,
            probes: vec![Probe {
                id: ProbeId::new(255),
                leased_at_ms: 80,
            }],
        };
        let row = serde_json::json!({
            "epoch": 2,
            "sinceMs": 70,
            "phase": {
                "state": "HALF_OPEN",
                "successes": 1,
                "probes": [{ "id": "000000000000000000000000000000ff", "leasedAtMs": 80 }],
            },
            "outcomes": [[60, true]],
        });
        assert_eq!(serde_json::to_value(&state).unwrap(), row);
        assert_eq!(serde_json::from_value::<BreakerState>(row).unwrap(), state);
    }

    #[test]
    fn an_open_row_tells_its_cooldown_and_one_of_an_earlier_version_can_be_read() {
        let with =
            r#"{"epoch":1,"sinceMs":5,"phase":{"state":"OPEN","cooldownMs":7},"outcomes":[]}"#;
        let without = r#"{"epoch":1,"sinceMs":5,"phase":{"state":"OPEN"},"outcomes":[]}"#;
        for (row, expected) in [(with, 7), (without, 30_000)] {
            let state: BreakerState = serde_json::from_str(row).unwrap();
            assert_eq!(serde_json::to_string(&state).unwrap(), row);
            let seen = state.snapshot(&BreakerPolicy::standard(), 5);
            assert_eq!(seen.retry_after_ms, Some(expected), "{row}");
        }
    }

    #[test]
    fn a_row_written_by_a_later_version_can_be_read() {
        let row = r#"{ "epoch": 1, "phase": { "state": "OPEN", "new": 1 }, "added": true }"#;
        let state: BreakerState = serde_json::from_str(row).unwrap();
        assert_eq!(state.circuit(), CircuitBreakerState::Open);
    }
}
