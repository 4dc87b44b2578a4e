//! The words of Holdfast: what a tool call is, what comes back, and what a tool has to be.
//!
//! Every other crate speaks in these types and this crate knows none of the others. It holds no
//! behaviour beyond reading an envelope, naming a failure and redacting a text, so a tool author
//! depends on this crate alone.
//!
//! | module | what it names |
//! |---|---|
//! | [`envelope`] | the call as it arrives ([`ToolCallEnvelope`]) |
//! | [`result`] | the answer as it leaves ([`ToolResultEnvelope`]) |
//! | [`tool`] | the [`Tool`] trait, tiers, effects, results |
//! | [`context`] | what a tool is handed: identity and capabilities, nothing else |
//! | [`memory`] | what an agent remembers, and the rights to read and write it |
//! | [`names`] | what models call the tools that every host has |
//! | [`trust`] | where a text came from, and how far it is trusted |
//! | [`error`] | the four ways a tool fails, with a typed cause |
//! | [`code`] | every error code with its meaning and what to do next |
//! | [`approval`] | what a call needs before it may run, and a person's answer |
//! | [`channel`] | where people are |
//! | [`clock`] | injected time and randomness |
//! | [`time`] | wall time as text |
//! | [`twice`] | members that stand twice in one JSON object |
//! | [`visible`] | text from outside, every sign of it to be seen |
//! | [`limit`] | how limits are declared so that they document themselves |

pub mod approval;
pub mod channel;
pub mod clock;
pub mod code;
pub mod context;
pub mod envelope;
pub mod error;
pub mod limit;
pub mod memory;
pub mod names;
pub mod redact;
pub mod result;
pub mod time;
pub mod tool;
pub mod trust;
pub mod twice;
pub mod visible;

pub use approval::{
    Answer, ApprovalPrompt, Gate, Need, PathGrant, Reason, Scope, Shown, TierVerdict,
};
pub use channel::{
    ApprovalRoute, Audience, Channel, ChannelHandle, ChannelLevel, Prompted, Prompter, Shows,
    Surface,
};
pub use clock::{Clock, Entropy, SystemClock, SystemEntropy};
pub use code::ErrorCode;
pub use context::{
    CallContext, ExecHandle, HostRule, Lifeline, MemoryReadHandle, MemoryWriteHandle, OwnPlace,
    ReadHandle, SessionContext, SessionKind, ToolContext, WriteHandle,
};
pub use envelope::{
    BreakerHint, CallHints, Control, DedupeMode, EnvelopeError, NAME_PATTERN, Payload, RetryBudget,
    TEXT_PATTERN, Target, ToolCallEnvelope, ToolStep, Trace, Transport,
};
pub use error::{Cause, ToolError};
pub use limit::Limit;
pub use memory::{
    Embedding, MemoryError, MemoryHit, MemoryQuery, MemoryRead, MemoryRecord, MemoryStore,
    MemoryType, MemoryWrite, NewMemory, Recall, Remembered,
};
pub use result::{
    CacheHit, CacheMatch, CircuitBreakerState, Escalation, ResultError, ResultOutput, RetryNote,
    Status, ToolResultEnvelope, TurnStand,
};
pub use tool::{
    Artifact, Effect, HandedCommand, HandsOn, PermissionTier, Reconciled, Tool, ToolResult,
};
pub use trust::Trust;
