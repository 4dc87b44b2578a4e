//! A run that ends in the middle of its calls.

use super::state::{Ending, NotDone, Phase, RunState};

impl RunState {
    /// Ends it because somebody said stop.
    pub fn cancel(&mut self) {
        if !matches!(self.phase, Phase::Ended(_)) {
            self.note_calls_under_way();
            self.phase = Phase::Ended(Ending::Cancelled);
        }
    }

    /// A run that ends in the middle of its calls has made those that are under way, whatever comes
    /// of them: at once where none of the reply's changes anything, else one after the other.
    pub(super) fn note_calls_under_way(&mut self) {
        let Phase::Act(calls) = &self.phase else {
            return;
        };
        let open = calls.iter().filter(|call| call.result.is_none());
        let at_once = if calls.iter().any(|call| call.mutating) {
            1
        } else {
            calls.len()
        };
        let called = open.take(at_once).map(|call| call.name.clone());
        self.tools_called.extend(called);
    }

    /// The calls of a reply that come to nothing since the run ends before them.
    pub(super) fn note_not_made(&mut self) {
        let Phase::Act(calls) = &self.phase else {
            return;
        };
        let open = calls.iter().filter(|call| call.result.is_none());
        let not_made = open.map(|call| NotDone {
            tool: call.name.clone(),
            arguments: call.arguments.clone(),
            why: "The run ended before this call had an answer.".to_owned(),
        });
        self.not_done.extend(not_made);
    }
}
