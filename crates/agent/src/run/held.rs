//! Calls for the client that were right in a reply in which others were not, and those others.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::state::CallLeftOut;
use super::step::in_brief;
use crate::chat::NativeCall;

/// The name of a call of which nobody could read what it calls.
pub(super) const UNREAD: &str = "(unread)";

/// What a client is told of a call that is in nobody's interest: its tool has the calls that it should have.
const MADE_BEFORE: &str =
    "not asked for: the call of this tool in the reply before was right, and is made";

/// Calls for the client, and those beside them that it is not given.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HeldCalls {
    /// The calls; they get their ids when they are given back.
    pub calls: Vec<NativeCall>,
    /// Those that were wrong.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<CallLeftOut>,
}

impl HeldCalls {
    /// Whether anything of it can be given to the client.
    pub(super) fn has_calls(&self) -> bool {
        !self.calls.is_empty()
    }

    /// What the model is told when it is asked for the others only. Its history does not show it the
    /// calls that it made natively.
    pub(super) fn are_made(&self) -> String {
        let told = self.calls.iter().map(|call| {
            let arguments = Value::Object(call.arguments.clone()).to_string();
            in_brief(&format!("{}({arguments})", call.name))
        });
        let told: Vec<String> = told.collect();
        format!(
            "These calls of yours are right and are made, do not repeat them: {}\nMake those that are wrong again, mended.",
            told.join(", ")
        )
    }

    /// With what came when the wrong ones were asked for again. What was wrong and did not come again
    /// stays wrong.
    pub(super) fn and(mut self, calls: Vec<NativeCall>, left_out: Vec<CallLeftOut>) -> Self {
        let (mut new, unasked) = self.sorted(calls);
        let mut came: Vec<String> = new.iter().map(|call| call.name.clone()).collect();
        came.extend(left_out.iter().map(|call| call.name.clone()));
        self.left_out.retain(|wrong| {
            let again = came.iter().position(|name| *name == wrong.name);
            if let Some(at) = again {
                came.swap_remove(at);
            }
            again.is_none()
        });
        // One of which nobody could read what it calls is one of those that came under no such name.
        if !came.is_empty() {
            self.left_out.retain(|wrong| wrong.name != UNREAD);
        }
        self.calls.append(&mut new);
        self.left_out.extend(left_out);
        self.left_out.extend(unasked);
        self
    }

    /// Those of the calls that were asked for, and the others: a model that says all of its reply again
    /// words some of it differently, and what it words so would be done twice.
    fn sorted(&self, calls: Vec<NativeCall>) -> (Vec<NativeCall>, Vec<CallLeftOut>) {
        let (mut new, mut unasked) = (Vec::new(), Vec::new());
        for call in calls {
            let mut held = self.calls.iter().filter(|held| held.name == call.name);
            let was_wrong = self.left_out.iter().any(|wrong| wrong.name == call.name);
            if held.any(|held| held.arguments == call.arguments) {
                continue;
            }
            if was_wrong || !self.calls.iter().any(|held| held.name == call.name) {
                new.push(call);
            } else {
                unasked.push(CallLeftOut {
                    name: call.name,
                    reason: MADE_BEFORE.to_owned(),
                });
            }
        }
        (new, unasked)
    }

    /// For a client that takes one call: what came in the place of the first one, which was wrong.
    pub(super) fn or(self, calls: Vec<NativeCall>, left_out: Vec<CallLeftOut>) -> Self {
        if calls.is_empty() {
            self
        } else {
            Self { calls, left_out }
        }
    }
}
