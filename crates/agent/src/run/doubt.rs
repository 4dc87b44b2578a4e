//! The call that was under way when a run was left: who goes on sends it again and its record
//! answers. Where no record is kept, or none can be there any more, it is not sent again.

use holdfast_reliability::policy::{DeriveKeys, Keep, Mode, Repeats};
use holdfast_toolbox::stack::ToolStack;
use serde::{Deserialize, Serialize};

use super::state::{Phase, PlannedCall, RunState};
use crate::results::CallResult;

/// A call that may have begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Doubt {
    /// Its place among the calls of its iteration.
    pub place: usize,
    /// When the run was last kept.
    pub since_ms: u64,
}

impl Doubt {
    /// The call of a run that may have begun: calls that change anything run one after the other, so
    /// that it can only be the first without a result.
    pub(super) fn about(phase: &Phase, since_ms: u64) -> Option<Self> {
        let Phase::Act(calls) = phase else {
            return None;
        };
        let place = calls.iter().position(|call| call.result.is_none())?;
        calls[place].mutating.then_some(Self { place, since_ms })
    }

    /// The same call in doubt as before is as old as it was: its record lives no longer because
    /// somebody took the run up and left it again.
    pub(super) fn since_the_first(self, before: Option<Self>) -> Self {
        match before {
            Some(before) if before.place == self.place => Self {
                since_ms: self.since_ms.min(before.since_ms),
                ..self
            },
            _ => self,
        }
    }
}

/// What a call that must not be sent again gets for a result.
pub(super) fn not_repeated(
    stack: &ToolStack,
    state: &RunState,
    place: usize,
    call: &PlannedCall,
) -> Option<CallResult> {
    let doubt = state.doubt.filter(|doubt| doubt.place == place)?;
    let (runtime, policy) = (stack.runtime(), stack.policies().get(&call.name));
    let switches = &runtime.switches;
    let age_ms = runtime.clock.now_ms().saturating_sub(doubt.since_ms);
    let kept_ms = policy.lifetimes.done_ms.min(policy.lifetimes.unknown_ms);
    let is_on_record = switches.modes_for(&policy).idempotency == Mode::Enforce
        && switches.derive_keys() == DeriveKeys::On
        && policy.keep == Keep::Durable
        && age_ms < kept_ms;
    if is_on_record || policy.repeats == Repeats::Harmless {
        return None;
    }
    Some(CallResult {
        text: "outcome_unknown: the run was left while this call may have been under way, and no \
               record says how it ended. It was not repeated: look before you do"
            .to_owned(),
        ok: false,
        duration_ms: 0,
        unknown: true,
        ..CallResult::default()
    })
}
