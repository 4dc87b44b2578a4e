//! What listeners hear of a run.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::Message;
use crate::run::{Happened, Phase, RunState, TokensUsed, size};

/// Something that happened in a run, as listeners hear it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The model is being asked.
    Asks {
        /// For the how-manieth time.
        iteration: u32,
    },
    /// The model's server is away; it is asked again after a while.
    Waits {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// Why.
        why: String,
        /// How long until the next one.
        wait_ms: u64,
    },
    /// The model says a part of its answer.
    Says {
        /// The part.
        text: String,
    },
    /// The model has answered.
    Heard {
        /// For the how-manieth time.
        iteration: u32,
        /// What it took.
        tokens: TokensUsed,
        /// What it thought.
        reasoning: String,
        /// What the model was told instead of getting results: its reply was asked back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asked_back: Option<String>,
    },
    /// A call begins.
    Calls {
        /// In which iteration.
        iteration: u32,
        /// Its place in it.
        place: usize,
        /// The tool.
        tool: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
    /// A call waits for a person.
    NeedsApproval {
        /// In which iteration.
        iteration: u32,
        /// Its place in it.
        place: usize,
        /// The tool.
        tool: String,
        /// What has to be approved, by its name.
        approval: String,
    },
    /// A call has ended.
    Called {
        /// In which iteration.
        iteration: u32,
        /// Its place in it.
        place: usize,
        /// The tool.
        tool: String,
        /// Whether it worked.
        ok: bool,
        /// What the command that it ran returned.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        exit_code: Option<i64>,
        /// Whether its effect may have happened without anybody knowing.
        unknown: bool,
        /// How long it took.
        duration_ms: u64,
        /// What the model hears of it.
        text: String,
    },
}

impl Event {
    /// The event, where it is one: what a model thinks is only shown while it thinks.
    pub(super) fn of(state: &RunState, what: Happened<'_>) -> Option<Self> {
        Some(match what {
            Happened::Thinks { .. } => return None,
            Happened::Asks => Self::Asks {
                iteration: state.iteration + 1,
            },
            Happened::Waits {
                attempt,
                why,
                wait_ms,
            } => Self::Waits {
                attempt,
                why: why.to_owned(),
                wait_ms,
            },
            Happened::Says { text } => Self::Says {
                text: text.to_owned(),
            },
            Happened::Heard => Self::Heard {
                iteration: state.iteration,
                tokens: state.tokens.last().copied().unwrap_or_default(),
                reasoning: state.reasoning.clone(),
                asked_back: asked_back(state),
            },
            Happened::Calls {
                place,
                tool,
                arguments,
            } => Self::Calls {
                iteration: state.iteration,
                place,
                tool: tool.to_owned(),
                arguments: arguments.clone(),
            },
            Happened::NeedsApproval {
                place,
                tool,
                approval,
            } => Self::NeedsApproval {
                iteration: state.iteration,
                place,
                tool: tool.to_owned(),
                approval: approval.to_owned(),
            },
            Happened::Called {
                place,
                tool,
                result,
            } => Self::Called {
                iteration: state.iteration,
                place,
                tool: tool.to_owned(),
                ok: result.ok,
                exit_code: result.exit_code,
                unknown: result.unknown,
                duration_ms: result.duration_ms,
                text: result.text.clone(),
            },
        })
    }

    pub(super) fn bytes(&self) -> usize {
        let texts = match self {
            Self::Asks { .. } => 0,
            Self::Waits { why, .. } => why.len(),
            Self::Says { text } => text.len(),
            Self::Heard {
                reasoning,
                asked_back,
                ..
            } => reasoning.len() + asked_back.as_ref().map_or(0, String::len),
            Self::Calls {
                tool, arguments, ..
            } => tool.len() + size::fields(arguments),
            Self::NeedsApproval { tool, approval, .. } => tool.len() + approval.len(),
            Self::Called { tool, text, .. } => tool.len() + text.len(),
        };
        size_of::<Self>() + texts
    }
}

/// What the model was told last, where its reply was neither an answer nor a call that could be made.
fn asked_back(state: &RunState) -> Option<String> {
    if state.phase != Phase::Ask || state.said_nothing {
        return None;
    }
    // A wrong native call has its reason as its result.
    let is_reason = |told: &&Message| state.corrected || told.answers.is_some();
    let told = state.messages.last().filter(is_reason)?;
    Some(told.content.clone())
}
