//! What happens in a run, for whoever watches it.

use serde_json::{Map, Value};

/// Something that happened. What it led to is in the run's state.
#[derive(Debug, Clone, Copy)]
pub enum Happened<'a> {
    /// The model is being asked.
    Asks,
    /// The model's server is away; it is asked again after a while.
    Waits {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why.
        why: &'a str,
        /// How long until the next one.
        wait_ms: u64,
    },
    /// The model writes something that is not shown as its answer: a thought, or what may be a call.
    Thinks {
        /// The piece.
        text: &'a str,
    },
    /// The model says a piece of its answer.
    Says {
        /// The piece.
        text: &'a str,
    },
    /// The model has answered.
    Heard,
    /// A call begins.
    Calls {
        /// Its place among the calls of this iteration.
        place: usize,
        /// The tool.
        tool: &'a str,
        /// The arguments.
        arguments: &'a Map<String, Value>,
    },
    /// A call waits for a person.
    NeedsApproval {
        /// Its place among the calls of this iteration.
        place: usize,
        /// The tool.
        tool: &'a str,
        /// What has to be approved, by its name.
        approval: &'a str,
    },
    /// A call has ended.
    Called {
        /// Its place among the calls of this iteration.
        place: usize,
        /// The tool.
        tool: &'a str,
        /// How.
        result: &'a crate::results::CallResult,
    },
}
