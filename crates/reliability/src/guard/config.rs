//! The guard's settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most calls that [`GuardConfig::forgive_after`] may ask for. The guard remembers that many calls
/// of the current streak, so the setting bounds the state.
pub const FORGIVE_AFTER_MAX: u32 = 64;

/// Settings of the loop guard.
///
/// `enabled`, `maxIdenticalFailures`, `maxFailuresPerTurn` and `logPath` are the names and defaults
/// of the original tool-guard plugin; the others are additive.
///
/// ```
/// use holdfast_reliability::guard::GuardConfig;
///
/// let config: GuardConfig = serde_json::from_str(r#"{ "maxFailuresPerTurn": 8 }"#)?;
/// assert_eq!(config.max_failures_per_turn, 8);
/// assert_eq!(config.max_identical_failures, 2);
///
/// let nonsense = GuardConfig { max_identical_failures: 0, ..GuardConfig::default() };
/// assert_eq!(nonsense.validate().unwrap_err().field, "maxIdenticalFailures");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct GuardConfig {
    /// Whether the guard does anything at all.
    pub enabled: bool,
    /// Max identical tool call failures before loop break.
    #[schemars(range(min = 1))]
    pub max_identical_failures: u32,
    /// How long tools have to take between two attempts of a command that returns non-zero, the second
    /// one included, for the second to be a probe: somebody waits for something.
    #[schemars(range(min = 1))]
    pub probe_wait_ms: u32,
    /// Max identical attempts of a command that returns non-zero, probes included, before loop break.
    #[schemars(range(min = 1))]
    pub max_identical_probes: u32,
    /// Max total tool failures per turn before hard stop.
    #[schemars(range(min = 1))]
    pub max_failures_per_turn: u32,
    /// How many successful, distinct calls in a row forgive one failure of the turn; 0 forgives
    /// nothing.
    #[schemars(range(max = 64))]
    pub forgive_after: u32,
    /// The identical success with identical output that carries an advisory text. The cut wins: where it
    /// comes as soon or sooner, the text comes one call before it.
    #[schemars(range(min = 2))]
    pub advise_identical_successes: u32,
    /// The identical success with identical output after which the call is not executed again.
    #[schemars(range(min = 3))]
    pub cut_identical_successes: u32,
    /// How often in a row a call may return something else each time, within ten minutes, without waiting
    /// and without a change in between; after that it is not executed again.
    #[schemars(range(min = 3))]
    pub cut_varying_successes: u32,
    /// Validation errors of one tool, arguments differing, before the parent session is told.
    #[serde(rename = "maxValidationAttempts")]
    #[schemars(range(min = 1))]
    pub validation_attempts_max: u32,
    /// Tools that are expected to be called again and again with the same result.
    pub polling_tools: Vec<String>,
    /// Path for attribution log file (JSON lines).
    pub log_path: String,
}

impl Default for GuardConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            max_identical_failures: 2,
            probe_wait_ms: 2_000,
            max_identical_probes: 10,
            max_failures_per_turn: 5,
            forgive_after: 3,
            advise_identical_successes: 10,
            cut_identical_successes: 25,
            cut_varying_successes: 100,
            validation_attempts_max: 3,
            polling_tools: Vec::new(),
            log_path: "~/.openclaw/tool-guard.log".to_owned(),
        }
    }
}

/// A setting that makes no sense, by its name in the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct GuardConfigError {
    /// The setting, as spelled in the configuration.
    pub field: &'static str,
    /// What is wrong with it.
    pub reason: &'static str,
}

impl GuardConfig {
    /// Refuses settings under which the guard would block everything or protect from nothing.
    pub fn validate(&self) -> Result<(), GuardConfigError> {
        let rules = [
            (
                self.max_identical_failures >= 1,
                "maxIdenticalFailures",
                "must be at least 1, or no call could ever run",
            ),
            (
                self.probe_wait_ms >= 1,
                "probeWaitMs",
                "must be at least 1: without waiting nothing is a probe",
            ),
            (
                self.max_identical_probes >= 1,
                "maxIdenticalProbes",
                "must be at least 1; one of maxIdenticalFailures or less allows no probes",
            ),
            (
                self.max_failures_per_turn >= 1,
                "maxFailuresPerTurn",
                "must be at least 1, or no call could ever run",
            ),
            (
                self.forgive_after <= FORGIVE_AFTER_MAX,
                "forgiveAfter",
                "must be at most 64; use 0 to forgive nothing",
            ),
            (
                self.advise_identical_successes >= 2,
                "adviseIdenticalSuccesses",
                "must be at least 2: a single success repeats nothing",
            ),
            (
                self.cut_identical_successes >= 3,
                "cutIdenticalSuccesses",
                "must be at least 3: the second identical success is told first",
            ),
            (
                self.cut_varying_successes >= 3,
                "cutVaryingSuccesses",
                "must be at least 3: looking twice is no loop",
            ),
            (
                self.validation_attempts_max >= 1,
                "maxValidationAttempts",
                "must be at least 1",
            ),
            (
                self.polling_tools
                    .iter()
                    .all(|name| !name.trim().is_empty()),
                "pollingTools",
                "must not hold a blank name",
            ),
            (
                !self.log_path.trim().is_empty(),
                "logPath",
                "must not be blank",
            ),
        ];
        for (holds, field, reason) in rules {
            if !holds {
                return Err(GuardConfigError { field, reason });
            }
        }
        Ok(())
    }

    /// The identical success that carries the advisory text: always one before the cut, so that neither
    /// setting has to be changed together with the other.
    pub(super) fn advised_success(&self) -> u32 {
        let last = self.cut_identical_successes.saturating_sub(1);
        self.advise_identical_successes.min(last)
    }

    /// Whether the configuration says that this tool polls.
    pub(super) fn polls(&self, tool_name: &str) -> bool {
        self.polling_tools
            .iter()
            .any(|polling| polling.trim().eq_ignore_ascii_case(tool_name.trim()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_those_of_the_plugin() {
        let config: GuardConfig = serde_json::from_str("{}").unwrap();
        assert_eq!(config, GuardConfig::default());
        config.validate().unwrap();
        assert_eq!(
            (config.max_identical_failures, config.max_failures_per_turn),
            (2, 5)
        );
        assert_eq!(config.log_path, "~/.openclaw/tool-guard.log");
    }

    #[test]
    fn unknown_settings_are_refused() {
        assert!(serde_json::from_str::<GuardConfig>(r#"{"maxIdentical": 3}"#).is_err());
    }

    #[test]
    fn nonsense_is_refused_with_its_field() {
        let base = GuardConfig::default;
        let cases = [
            (
                GuardConfig {
                    max_identical_failures: 0,
                    ..base()
                },
                "maxIdenticalFailures",
            ),
            (
                GuardConfig {
                    probe_wait_ms: 0,
                    ..base()
                },
                "probeWaitMs",
            ),
            (
                GuardConfig {
                    max_identical_probes: 0,
                    ..base()
                },
                "maxIdenticalProbes",
            ),
            (
                GuardConfig {
                    max_failures_per_turn: 0,
                    ..base()
                },
                "maxFailuresPerTurn",
            ),
            (
                GuardConfig {
                    forgive_after: 65,
                    ..base()
                },
                "forgiveAfter",
            ),
            (
                GuardConfig {
                    advise_identical_successes: 1,
                    ..base()
                },
                "adviseIdenticalSuccesses",
            ),
            (
                GuardConfig {
                    cut_identical_successes: 2,
                    ..base()
                },
                "cutIdenticalSuccesses",
            ),
            (
                GuardConfig {
                    cut_varying_successes: 2,
                    ..base()
                },
                "cutVaryingSuccesses",
            ),
            (
                GuardConfig {
                    validation_attempts_max: 0,
                    ..base()
                },
                "maxValidationAttempts",
            ),
            (
                GuardConfig {
                    polling_tools: vec![" ".into()],
                    ..base()
                },
                "pollingTools",
            ),
            (
                GuardConfig {
                    log_path: String::new(),
                    ..base()
                },
                "logPath",
            ),
        ];
        for (config, field) in cases {
            assert_eq!(config.validate().unwrap_err().field, field);
        }
    }

    #[test]
    fn the_cut_and_the_advice_need_not_be_changed_together() {
        for (text, advised) in [
            ("{}", 10),
            (r#"{"cutIdenticalSuccesses": 8}"#, 7),
            (r#"{"adviseIdenticalSuccesses": 30}"#, 24),
            (
                r#"{"adviseIdenticalSuccesses": 30, "cutIdenticalSuccesses": 5}"#,
                4,
            ),
            (r#"{"cutIdenticalSuccesses": 3}"#, 2),
        ] {
            let config: GuardConfig = serde_json::from_str(text).unwrap();
            config.validate().unwrap();
            assert_eq!(config.advised_success(), advised, "{text}");
        }
    }

    #[test]
    fn the_schema_uses_the_names_of_the_plugin() {
        let schema = schemars::schema_for!(GuardConfig);
        let properties = schema.get("properties").unwrap().as_object().unwrap();
        for name in [
            "enabled",
            "maxIdenticalFailures",
            "probeWaitMs",
            "maxIdenticalProbes",
            "maxFailuresPerTurn",
            "logPath",
            "forgiveAfter",
            "adviseIdenticalSuccesses",
            "cutIdenticalSuccesses",
            "maxValidationAttempts",
            "pollingTools",
        ] {
            assert!(properties.contains_key(name), "{name} is missing");
        }
        assert_eq!(properties.len(), 12);
    }
}
