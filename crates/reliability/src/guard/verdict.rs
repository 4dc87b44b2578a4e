//! What goes into the guard and what comes out of it.

use serde::{Deserialize, Serialize};

use super::output::{ExitDigest, OutputDigest};

/// What became of a call.
#[derive(Clone, Copy, Debug)]
pub enum Observation<'a> {
    /// The tool did what it was asked to.
    Succeeded {
        /// The tool can change the world outside itself.
        mutating: bool,
        /// The tool declares that it is meant to be called again with the same result.
        polls: bool,
        /// What it returned, before anything was appended to it.
        output: OutputDigest,
    },
    /// A command ran and returned non-zero. That is a result, not a failure of the tool.
    NonZeroExit {
        /// The tool declares that it is meant to be called again with the same result.
        polls: bool,
        /// What it printed, before anything was appended to it.
        output: ExitDigest,
    },
    /// The call failed.
    Failed {
        /// Why, in the guard's terms.
        kind: FailureKind,
        /// The message, before anything was appended to it.
        error: &'a str,
    },
    /// This guard refused the call.
    Blocked,
    /// The call was neither run nor judged: cancelled by the caller before it started, answered from
    /// the record of the same request, joined to one in flight. Nothing is learnt from it. A layer that
    /// turns a new call away for now (an open circuit, a full store) is a retryable failure.
    Neutral,
}

/// Why a call failed, as far as the guard needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FailureKind {
    /// No tool has this name.
    UnknownTool,
    /// The arguments do not match the tool's schema.
    Validation,
    /// Policy or a person said no.
    Permission,
    /// The tool ran and failed, and would again in the same world.
    Deterministic,
    /// A timeout, 429, 503: the same call may work later.
    Retryable,
}

/// Whether a call may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may.
    Run,
    /// It may not: answer with the text and report [`Observation::Blocked`].
    Block(Block),
}

impl Verdict {
    /// Whether the call may not run.
    pub fn is_block(&self) -> bool {
        matches!(self, Self::Block(_))
    }
}

/// A refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The error code of the answer.
    pub code: BlockCode,
    /// What the model reads.
    pub text: String,
    /// What a person reads who asks why.
    pub why: String,
}

/// Error codes of refused calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockCode {
    /// The same call led to the same thing too often.
    LoopDetected,
    /// Too many failures in this turn.
    ToolErrorLimit,
}

impl BlockCode {
    /// The stable code.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LoopDetected => "loop_detected",
            Self::ToolErrorLimit => "tool_error_limit",
        }
    }
}

/// What the guard did, for the attribution log. The first three are those of the original plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GuardAction {
    /// Nothing but counting.
    #[default]
    Continue,
    /// The answer says that this is a loop.
    LoopDetected,
    /// The turn's failures are used up.
    HardCap,
    /// The answer says that nothing changes.
    NoProgress,
}

/// What to do with the answer to a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "the model has to see the texts, and the host has to stop the turn"]
pub struct Advice {
    /// Tag the error with [`NON_RETRYABLE_TAG`](super::NON_RETRYABLE_TAG).
    pub non_retryable: bool,
    /// Texts to append to the answer, in this order.
    pub texts: Vec<String>,
    /// The model can not get the arguments right: tell the parent session.
    pub escalate_to_parent: bool,
    /// How many times in a row the tool was called wrongly, this time included.
    pub wrong_attempts: u32,
    /// No tool runs any more in this turn.
    pub stop_turn: bool,
    /// What the guard did, in one word.
    pub action: GuardAction,
}

impl Advice {
    /// Whether the answer goes to the model as it is and the turn goes on.
    pub fn is_silent(&self) -> bool {
        *self == Self::default()
    }
}
