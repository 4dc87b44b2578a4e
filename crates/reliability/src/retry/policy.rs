//! How often and how long a call is tried.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::codes::CodeList;
use crate::policy_check::{InvalidPolicy, PolicyCheck};

/// More attempts than this are a loop, not a retry.
const ATTEMPTS_MAX: u32 = 100;
/// Longest wait between two attempts.
const DELAY_MS_MAX: u64 = 10 * 60 * 1_000;
/// Longest time in which further attempts may begin.
pub(super) const ELAPSED_MS_MAX: u64 = 60 * 60 * 1_000;
/// Most entries of a list of codes.
const CODES_MAX: usize = 64;

/// Changes to a [`RetryPolicy`], as they are written in configuration; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RetryOverrides {
    /// Attempts in all, the first one included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// The longest possible first wait; it doubles from retry to retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_ms: Option<u64>,
    /// No wait of our own choosing is longer than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_retry_delay_ms: Option<u64>,
    /// No attempt begins later than this after the first one began.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_elapsed_ms: Option<u64>,
    /// Codes that are worth another attempt, although the defaults say otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_on: Option<CodeList>,
    /// Codes that are never worth another attempt; stronger than `retryOn`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub never_retry_on: Option<CodeList>,
}

/// How often and how long a call is tried. A value of this type has been checked.
///
/// ```
/// use holdfast_reliability::retry::{CallBudget, RetryPolicy};
///
/// let policy = RetryPolicy::standard();
/// assert_eq!((policy.max_attempts(), policy.max_elapsed_ms()), (4, 30_000));
///
/// // A caller can ask for less than the tool's policy, never for more.
/// let asked = CallBudget { max_attempts: 2, max_elapsed_ms: 90_000 };
/// let effective = policy.effective(asked);
/// assert_eq!((effective.max_attempts(), effective.max_elapsed_ms()), (2, 30_000));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", try_from = "RetryOverrides")]
pub struct RetryPolicy {
    max_attempts: u32,
    base_ms: u64,
    max_retry_delay_ms: u64,
    max_elapsed_ms: u64,
    retry_on: CodeList,
    never_retry_on: CodeList,
}

/// What one call's envelope asks for in `transport.retryBudget`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallBudget {
    /// Attempts in all, the first one included.
    pub max_attempts: u32,
    /// No attempt begins later than this after the first one began.
    pub max_elapsed_ms: u64,
}

impl RetryPolicy {
    /// The policy of a tool that says nothing about it: one attempt and three retries.
    pub fn standard() -> Self {
        Self {
            max_attempts: 4,
            base_ms: 200,
            max_retry_delay_ms: 4_000,
            max_elapsed_ms: 30_000,
            retry_on: CodeList::default(),
            never_retry_on: CodeList::default(),
        }
    }

    /// This policy with the given changes, checked as a whole.
    pub fn with(&self, changes: &RetryOverrides) -> Result<Self, InvalidPolicy> {
        let list = |change: &Option<CodeList>, own: &CodeList| {
            change.clone().unwrap_or_else(|| own.clone())
        };
        Self {
            max_attempts: changes.max_attempts.unwrap_or(self.max_attempts),
            base_ms: changes.base_ms.unwrap_or(self.base_ms),
            max_retry_delay_ms: changes
                .max_retry_delay_ms
                .unwrap_or(self.max_retry_delay_ms),
            max_elapsed_ms: changes.max_elapsed_ms.unwrap_or(self.max_elapsed_ms),
            retry_on: list(&changes.retry_on, &self.retry_on),
            never_retry_on: list(&changes.never_retry_on, &self.never_retry_on),
        }
        .checked()
    }

    /// The smaller of this policy and what a call asks for.
    ///
    /// A budget of no attempts means one: the budget is about repeating, and a call that must
    /// not run is not made. The caller's own deadline can be laid over it the same way.
    #[must_use]
    pub fn effective(&self, asked: CallBudget) -> Self {
        Self {
            max_attempts: self.max_attempts.min(asked.max_attempts).max(1),
            max_elapsed_ms: self.max_elapsed_ms.min(asked.max_elapsed_ms),
            ..self.clone()
        }
    }

    /// This policy without any retry.
    #[must_use]
    pub fn once(&self) -> Self {
        Self {
            max_attempts: 1,
            ..self.clone()
        }
    }

    fn checked(self) -> Result<Self, InvalidPolicy> {
        let mut check = PolicyCheck::default();
        check.within("maxAttempts", self.max_attempts, 1..=ATTEMPTS_MAX);
        check.within("baseMs", self.base_ms, 1..=DELAY_MS_MAX);
        check.within("maxRetryDelayMs", self.max_retry_delay_ms, 1..=DELAY_MS_MAX);
        check.within("maxElapsedMs", self.max_elapsed_ms, 0..=ELAPSED_MS_MAX);
        for (field, list) in [
            ("retryOn", &self.retry_on),
            ("neverRetryOn", &self.never_retry_on),
        ] {
            if list.len() > CODES_MAX {
                check.problem(
                    field,
                    format!("has {} codes, at most {CODES_MAX}", list.len()),
                );
            }
            if list.has_blank() {
                check.problem(field, "has a blank code, which matches nothing".to_owned());
            }
        }
        check.finish(self)
    }

    /// Attempts in all, the first one included.
    pub fn max_attempts(&self) -> u32 {
        self.max_attempts
    }

    /// The longest possible first wait; it doubles from retry to retry.
    pub fn base_ms(&self) -> u64 {
        self.base_ms
    }

    /// No wait of our own choosing is longer than this; one that a server asked for may be.
    pub fn max_retry_delay_ms(&self) -> u64 {
        self.max_retry_delay_ms
    }

    /// Every attempt begins before this time after the first one began.
    pub fn max_elapsed_ms(&self) -> u64 {
        self.max_elapsed_ms
    }

    /// Codes that are worth another attempt, although the defaults say otherwise.
    pub fn retry_on(&self) -> &CodeList {
        &self.retry_on
    }

    /// Codes that are never worth another attempt; stronger than [`RetryPolicy::retry_on`].
    pub fn never_retry_on(&self) -> &CodeList {
        &self.never_retry_on
    }
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self::standard()
    }
}

impl TryFrom<RetryOverrides> for RetryPolicy {
    type Error = InvalidPolicy;

    fn try_from(written: RetryOverrides) -> Result<Self, InvalidPolicy> {
        Self::standard().with(&written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_documented_ones() {
        assert_eq!(
            serde_json::to_value(RetryPolicy::default()).unwrap(),
            serde_json::json!({
                "maxAttempts": 4, "baseMs": 200, "maxRetryDelayMs": 4_000,
                "maxElapsedMs": 30_000, "retryOn": [], "neverRetryOn": [],
            })
        );
        let standard = RetryPolicy::standard();
        assert_eq!(standard.clone().checked(), Ok(standard));
    }

    #[test]
    fn wrong_values_are_refused_with_their_field() {
        #[track_caller]
        fn check(written: &str, field: &str) {
            let overrides: RetryOverrides = serde_json::from_str(written).unwrap();
            let refused = RetryPolicy::try_from(overrides).unwrap_err();
            let fields: Vec<_> = refused
                .problems()
                .iter()
                .map(|problem| problem.field)
                .collect();
            assert_eq!(fields, [field], "{written}: {refused}");
        }
        check(r#"{"maxAttempts": 0}"#, "maxAttempts");
        check(r#"{"maxAttempts": 101}"#, "maxAttempts");
        check(r#"{"baseMs": 0}"#, "baseMs");
        check(r#"{"maxRetryDelayMs": 0}"#, "maxRetryDelayMs");
        check(r#"{"maxElapsedMs": 3600001}"#, "maxElapsedMs");
        check(r#"{"retryOn": [" "]}"#, "retryOn");
        let many = serde_json::json!({ "neverRetryOn": vec![500; 65] }).to_string();
        check(&many, "neverRetryOn");
        assert!(serde_json::from_str::<RetryPolicy>(r#"{"attempts": 3}"#).is_err());
    }

    #[test]
    fn the_smaller_of_both_budgets_counts() {
        let policy = RetryPolicy::standard();
        let effective = |max_attempts, max_elapsed_ms| {
            let one = policy.effective(CallBudget {
                max_attempts,
                max_elapsed_ms,
            });
            (one.max_attempts(), one.max_elapsed_ms())
        };
        assert_eq!(effective(9, 60_000), (4, 30_000));
        assert_eq!(effective(2, 5_000), (2, 5_000));
        assert_eq!(effective(0, 0), (1, 0));
    }
}
