//! Failures of this turn, by call and error.

use serde::{Deserialize, Serialize};

use super::hash::{Hash64, Hash128};

/// Most different failures remembered; above it the one seen longest ago is forgotten.
pub const FAILURES_KEPT_MAX: usize = 64;
/// Most spellings remembered of one failing call.
pub const FORMS_KEPT_MAX: usize = 8;
/// Most tools whose validation errors are counted; above it the one that failed longest ago is
/// forgotten.
pub const VALIDATION_TOOLS_KEPT_MAX: usize = 32;

/// What could make a failure go away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Family {
    /// Only another call: the arguments are wrong, the tool does not exist, it is not allowed.
    Refusal,
    /// A changed world: the tool ran and failed.
    Execution,
    /// A changed world: the command ran and said no.
    NonZeroExit,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Failure {
    call: Hash128,
    signature: Hash64,
    family: Family,
    /// How often in a row, without waiting in between.
    count: u32,
    /// How often in all.
    attempts: u32,
    /// When it failed last, in the time that tools took.
    at_ms: u64,
    /// Spellings of the call that failed this way. Only these are refused without being tried.
    forms: Vec<Hash64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct ToolAttempts {
    tool: Hash64,
    attempts: u32,
}

/// How often a call has failed one way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    /// In a row, without waiting in between.
    pub(super) in_a_row: u32,
    /// In all.
    pub(super) attempts: u32,
}

/// The time that tools took in this turn, and how much of it between two attempts is waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) now_ms: u64,
    pub(super) wait_ms: u64,
}

impl Failure {
    /// Whether somebody waited since this last happened. A command asks about a world that others
    /// change; what is wrong with a call, no waiting mends.
    fn has_waited(&self, waiting: Waiting) -> bool {
        self.family == Family::NonZeroExit
            && waiting.now_ms.saturating_sub(self.at_ms) >= waiting.wait_ms
    }

    fn counted(&self) -> Counted {
        Counted {
            in_a_row: self.count,
            attempts: self.attempts,
        }
    }
}

/// Memory of failures, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "StoredFailures")]
pub(super) struct Failures {
    by_call: Vec<Failure>,
    validation: Vec<ToolAttempts>,
    /// All tool names that do not exist, together: inventing another name is the same mistake.
    unknown_tools: u32,
}

impl Failures {
    /// Counts a failure and returns how often this call has now failed this way.
    pub(super) fn count(
        &mut self,
        call: Hash128,
        form: Hash64,
        signature: Hash64,
        family: Family,
        waiting: Waiting,
    ) -> Counted {
        let known = self.by_call.iter().position(|known| {
            known.call == call && known.signature == signature && known.family == family
        });
        let mut failure = match known {
            Some(at) => self.by_call.remove(at),
            None => Failure {
                call,
                signature,
                family,
                count: 0,
                attempts: 0,
                at_ms: waiting.now_ms,
                forms: Vec::new(),
            },
        };
        if failure.has_waited(waiting) {
            failure.count = 0;
        }
        failure.count = failure.count.saturating_add(1);
        failure.attempts = failure.attempts.saturating_add(1);
        failure.at_ms = waiting.now_ms;
        if !failure.forms.contains(&form) && failure.forms.len() < FORMS_KEPT_MAX {
            failure.forms.push(form);
        }
        let counted = failure.counted();
        if self.by_call.len() >= FAILURES_KEPT_MAX {
            self.by_call.remove(0);
        }
        self.by_call.push(failure);
        counted
    }

    /// How this very call has failed so far, if it was counted at all: what it failed as, and how often. In a
    /// row is nothing once somebody has waited.
    pub(super) fn known(
        &self,
        call: Hash128,
        form: Hash64,
        waiting: Waiting,
    ) -> impl Iterator<Item = (Family, Counted)> {
        let same = self
            .by_call
            .iter()
            .filter(move |known| known.call == call && known.forms.contains(&form));
        same.map(move |known| {
            let mut counted = known.counted();
            if known.has_waited(waiting) {
                counted.in_a_row = 0;
            }
            (known.family, counted)
        })
    }

    /// The call succeeded: whatever was held against it is settled.
    pub(super) fn settle(&mut self, call: Hash128) {
        self.by_call.retain(|known| known.call != call);
    }

    /// The command printed something else than before, so it has not been without progress.
    pub(super) fn settle_other_exits(&mut self, call: Hash128, signature: Hash64) {
        self.by_call.retain(|known| {
            known.call != call
                || known.family != Family::NonZeroExit
                || known.signature == signature
        });
    }

    /// The world changed: what failed in it may work now. A wrong call stays wrong.
    pub(super) fn world_changed(&mut self) {
        self.by_call.retain(|known| known.family == Family::Refusal);
    }

    /// Counts a validation error of a tool and returns the attempts made at it.
    pub(super) fn count_validation(&mut self, tool: Hash64) -> u32 {
        let known = self.validation.iter().position(|known| known.tool == tool);
        let mut entry = match known {
            Some(at) => self.validation.remove(at),
            None => ToolAttempts { tool, attempts: 0 },
        };
        entry.attempts = entry.attempts.saturating_add(1);
        let attempts = entry.attempts;
        if self.validation.len() >= VALIDATION_TOOLS_KEPT_MAX {
            self.validation.remove(0);
        }
        self.validation.push(entry);
        attempts
    }

    /// Whether this very call was refused before for what is wrong with it. One that is blocked for
    /// another reason is no further attempt at getting it right.
    pub(super) fn is_refused(&self, call: Hash128, form: Hash64) -> bool {
        self.by_call.iter().any(|known| {
            known.call == call && known.family == Family::Refusal && known.forms.contains(&form)
        })
    }

    /// Counts a call that was not even looked at, when the tool was called wrongly before, and
    /// returns the attempts made at it.
    pub(super) fn count_validation_again(&mut self, tool: Hash64) -> u32 {
        if self.validation.iter().any(|known| known.tool == tool) {
            self.count_validation(tool)
        } else {
            0
        }
    }

    /// The tool took its arguments: the model has found out how to call it.
    pub(super) fn arguments_accepted(&mut self, tool: Hash64) {
        self.validation.retain(|known| known.tool != tool);
    }

    /// Counts a name that no tool has and returns all such attempts.
    pub(super) fn count_unknown_tool(&mut self) -> u32 {
        self.unknown_tools = self.unknown_tools.saturating_add(1);
        self.unknown_tools
    }

    /// The pseudo-tool of unknown names never succeeds, so real work is what makes up for it.
    pub(super) fn forgive_unknown_tool(&mut self) {
        self.unknown_tools = self.unknown_tools.saturating_sub(1);
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_call.len() + self.validation.len()
    }
}

#[derive(Deserialize)]
struct StoredFailures {
    by_call: Vec<Failure>,
    validation: Vec<ToolAttempts>,
    unknown_tools: u32,
}

impl From<StoredFailures> for Failures {
    /// A stored state is not trusted to keep the limits.
    fn from(mut stored: StoredFailures) -> Self {
        let extra = stored.by_call.len().saturating_sub(FAILURES_KEPT_MAX);
        stored.by_call.drain(..extra);
        for failure in &mut stored.by_call {
            failure.forms.truncate(FORMS_KEPT_MAX);
        }
        let extra = stored
            .validation
            .len()
            .saturating_sub(VALIDATION_TOOLS_KEPT_MAX);
        stored.validation.drain(..extra);
        Self {
            by_call: stored.by_call,
            validation: stored.validation,
            unknown_tools: stored.unknown_tools,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORM: Hash64 = Hash64(0);
    const WAIT_MS: u64 = 10;

    fn at(now_ms: u64) -> Waiting {
        Waiting {
            now_ms,
            wait_ms: WAIT_MS,
        }
    }

    fn worst(failures: &Failures, call: u128, form: Hash64) -> u32 {
        let known = failures.known(Hash128(call), form, at(0));
        known
            .map(|(_, counted)| counted.in_a_row)
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn memory_is_bounded_and_forgets_the_oldest() {
        let mut failures = Failures::default();
        for call in 0..1_000_u64 {
            failures.count(
                Hash128(u128::from(call)),
                FORM,
                Hash64(1),
                Family::Execution,
                at(0),
            );
            failures.count_validation(Hash64(call));
            assert!(failures.len() <= FAILURES_KEPT_MAX + VALIDATION_TOOLS_KEPT_MAX);
        }
        assert_eq!(worst(&failures, 0, FORM), 0);
        assert_eq!(worst(&failures, 999, FORM), 1);
    }

    #[test]
    fn a_spelling_that_was_never_tried_is_not_held_responsible() {
        let mut failures = Failures::default();
        for _ in 0..2 {
            failures.count(Hash128(1), Hash64(7), Hash64(1), Family::Refusal, at(0));
        }
        assert_eq!(worst(&failures, 1, Hash64(7)), 2);
        assert_eq!(worst(&failures, 1, Hash64(8)), 0);
        let third = failures.count(Hash128(1), Hash64(8), Hash64(1), Family::Refusal, at(0));
        assert_eq!(third.in_a_row, 3);
        assert_eq!(worst(&failures, 1, Hash64(8)), 3);
    }

    #[test]
    fn waiting_begins_a_row_anew_for_commands_only() {
        for (family, in_a_row) in [
            (Family::NonZeroExit, [1, 2, 1, 2]),
            (Family::Execution, [1, 2, 3, 4]),
            (Family::Refusal, [1, 2, 3, 4]),
        ] {
            let mut failures = Failures::default();
            let mut count =
                |now_ms| failures.count(Hash128(1), FORM, Hash64(1), family, at(now_ms));
            let counted = [0, WAIT_MS - 1, 2 * WAIT_MS, 2 * WAIT_MS + 1].map(&mut count);
            assert_eq!(counted.map(|counted| counted.in_a_row), in_a_row);
            assert_eq!(counted.map(|counted| counted.attempts), [1, 2, 3, 4]);
        }
    }

    #[test]
    fn a_stored_state_beyond_the_limits_is_cut() {
        let mut failures = Failures::default();
        for call in 0..200_u128 {
            failures.by_call.push(Failure {
                call: Hash128(call),
                signature: Hash64(1),
                family: Family::Execution,
                count: 1,
                attempts: 1,
                at_ms: 0,
                forms: vec![FORM; 100],
            });
        }
        let text = serde_json::to_string(&failures).unwrap();
        let loaded: Failures = serde_json::from_str(&text).unwrap();
        assert_eq!(loaded.by_call.len(), FAILURES_KEPT_MAX);
        assert_eq!(loaded.by_call[0].call, Hash128(136));
        assert_eq!(loaded.by_call[0].forms.len(), FORMS_KEPT_MAX);
    }
}
