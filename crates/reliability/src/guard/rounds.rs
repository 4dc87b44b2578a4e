//! Calls that one response of the model sent together.

use serde::{Deserialize, Serialize};

/// What a host knows of the response that a call came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// What stands for the response, where the host tells them apart: equal for its calls alone.
    pub response: Option<u64>,
    /// The failures of the turn when the call was admitted, as [`TurnState::failures_seen`] tells.
    ///
    /// [`TurnState::failures_seen`]: super::TurnState::failures_seen
    pub failures_seen: Option<u32>,
    /// Whether the call can change something.
    pub mutating: bool,
    /// When it was asked for, in milliseconds since 1970, where the host says so.
    pub at_ms: Option<u64>,
}

/// From this response with several failures on, failures of calls that change things count singly: a
/// model that shoots in all directions is not exploring.
const EXPLORING_RESPONSES: u32 = 1;
/// After so many failures in one response one more counts: a host that names all its responses alike is not
/// without a limit.
const TOGETHER_MAX: u32 = 16;

/// Responses with failures, as layer C counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rounds {
    /// Failures that counted.
    pub(super) seen: u32,
    /// The response of the last of them.
    response: Option<u64>,
    /// Responses in which more than one call failed.
    with_several: u32,
    /// Failures of the last response beside its first.
    besides: u32,
}

impl Rounds {
    /// Whether one more failure counts. The model could not know of the first failure of a response
    /// when it asked for the second call in it.
    pub(super) fn counts(&mut self, sent: Sent) -> bool {
        let together = match (sent.response, self.response) {
            (Some(one), Some(other)) => one == other,
            (Some(_), None) => false,
            (None, _) => sent.failures_seen.is_some_and(|seen| seen < self.seen),
        };
        if !together {
            self.seen = self.seen.saturating_add(1);
            self.response = sent.response;
            self.besides = 0;
            return true;
        }
        self.besides = self.besides.saturating_add(1);
        if self.besides == 1 {
            self.with_several = self.with_several.saturating_add(1);
        }
        sent.mutating && self.with_several > EXPLORING_RESPONSES
            || self.besides.is_multiple_of(TOGETHER_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failures_of_one_response_are_one() {
        let mut rounds = Rounds::default();
        let sent = |response, mutating| Sent {
            response: Some(response),
            mutating,
            ..Sent::default()
        };
        let counted = |rounds: &mut Rounds, response, mutating| {
            (0..6)
                .filter(|_| rounds.counts(sent(response, mutating)))
                .count()
        };
        assert_eq!(counted(&mut rounds, 0, false), 1);
        assert_eq!(counted(&mut rounds, 1, false), 1);
        // Reads are looked for in many places; writes are not tried in many places twice.
        assert_eq!(counted(&mut rounds, 2, true), 6);
    }

    #[test]
    fn a_call_that_was_admitted_before_the_failure_was_told_came_with_it() {
        let mut rounds = Rounds::default();
        let sent = |failures_seen| Sent {
            failures_seen: Some(failures_seen),
            ..Sent::default()
        };
        assert!(rounds.counts(sent(0)));
        assert!(!rounds.counts(sent(0)) && !rounds.counts(sent(0)));
        assert!(rounds.counts(sent(rounds.seen)));
        // A host that says nothing has each counted.
        assert!(rounds.counts(Sent::default()) && rounds.counts(Sent::default()));
    }
}
