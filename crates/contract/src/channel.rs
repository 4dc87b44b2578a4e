//! Where people are: a surface that messages and approval prompts go to.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::{Answer, ApprovalPrompt};
use crate::error::ToolError;
use crate::tool::PermissionTier;

/// How far sessions on a channel may go.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum ChannelLevel {
    /// They may look.
    ReadOnly,
    /// They may do what needs no approval.
    Standard,
    /// They may ask for approval.
    Elevated,
}

impl ChannelLevel {
    /// The highest tier of a call from a session on such a channel.
    pub fn max_tier(self) -> PermissionTier {
        match self {
            Self::ReadOnly => PermissionTier::ReadOnly,
            Self::Standard => PermissionTier::System,
            Self::Elevated => PermissionTier::Elevated,
        }
    }
}

/// Whether a surface can show something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Shows {
    /// As it is.
    Yes,
    /// Only in another form.
    No,
}

/// What a channel's surface can show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Surface {
    /// Markdown tables.
    pub tables: Shows,
    /// Markdown headings.
    pub headings: Shows,
    /// Characters of one message; more is split.
    pub message_chars_max: usize,
}

/// What became of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prompted {
    /// It is shown; the answer comes some other way.
    Shown,
    /// The person answered in place.
    Answered {
        /// Who.
        by: String,
        /// What.
        answer: Answer,
    },
}

/// Who sees what is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Whoever answers for the owner, where nobody else looks: a terminal, a program with the
    /// approver's token. They see the call exactly as it would run.
    Approver,
    /// Whoever reads along: a chat, a webhook, a service's log. Values that are known to be secret
    /// are hidden from them, and what they do not see whole they can not answer.
    Readers,
}

/// Shows approval prompts. All that a session without a channel of its own gets of its parent's.
#[async_trait]
pub trait Prompter: Send + Sync {
    /// Shows the prompt. May wait for an answer in place; it is dropped when one has come from
    /// elsewhere.
    async fn prompt(&self, prompt: &ApprovalPrompt) -> Result<Prompted, ToolError>;

    /// Tells about a call that runs without an answer (an advisory gate).
    async fn tell(&self, prompt: &ApprovalPrompt) -> Result<(), ToolError>;

    /// Who sees them.
    fn audience(&self) -> Audience {
        Audience::Readers
    }
}

/// A surface where people are.
#[async_trait]
pub trait Channel: Prompter {
    /// Its name, as in `permissions.channels`.
    fn name(&self) -> &str;

    /// How far its sessions may go.
    fn level(&self) -> ChannelLevel;

    /// What it can show.
    fn surface(&self) -> Surface;

    /// Sends a text. `key` lets the other side notice a repeat.
    async fn send(&self, text: &str, key: Option<&str>) -> Result<(), ToolError>;
}

/// The right to send messages.
#[derive(Clone)]
pub struct ChannelHandle {
    /// The channel.
    pub channel: Arc<dyn Channel>,
    /// The session whose channel it is; a branch sends on behalf of it.
    pub owner_session: String,
}

impl PartialEq for ChannelHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.channel, &other.channel) && self.owner_session == other.owner_session
    }
}

impl Eq for ChannelHandle {}

impl fmt::Debug for ChannelHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ChannelHandle")
            .field("channel", &self.channel.name())
            .field("owner_session", &self.owner_session)
            .finish()
    }
}

/// Whom to ask about a call: the first session up the parent chain that has a channel. It can show
/// prompts and nothing else, so a session without a channel can not send messages through it.
#[derive(Clone)]
pub struct ApprovalRoute {
    /// The session that is asked.
    pub asked_session: String,
    /// The name of its channel.
    pub channel: String,
    /// How far that channel's sessions may go.
    pub level: ChannelLevel,
    /// Shows prompts there.
    pub prompter: Arc<dyn Prompter>,
}

impl ApprovalRoute {
    /// The way to the people on this channel.
    pub fn of(handle: &ChannelHandle) -> Self {
        Self {
            asked_session: handle.owner_session.clone(),
            channel: handle.channel.name().to_owned(),
            level: handle.channel.level(),
            prompter: handle.channel.clone(),
        }
    }
}

impl PartialEq for ApprovalRoute {
    fn eq(&self, other: &Self) -> bool {
        self.asked_session == other.asked_session
            && self.channel == other.channel
            && Arc::ptr_eq(&self.prompter, &other.prompter)
    }
}

impl Eq for ApprovalRoute {}

impl fmt::Debug for ApprovalRoute {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ApprovalRoute")
            .field("asked_session", &self.asked_session)
            .field("channel", &self.channel)
            .field("level", &self.level)
            .finish_non_exhaustive()
    }
}
