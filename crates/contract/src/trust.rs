//! Where a text came from, and how far it is trusted.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How far a text is trusted, lowest first.
///
/// What is made of several texts is trusted like the least of them, and what is read from memory
/// keeps the trust it was stored with: otherwise a web page could launder its words through a note.
///
/// ```
/// use holdfast_contract::Trust;
/// assert_eq!(Trust::User.min(Trust::Untrusted), Trust::Untrusted);
/// ```
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Default,
    Serialize,
    Deserialize,
    JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Trust {
    /// From anywhere: web pages, mails, files of strangers. What nothing is known about is this.
    #[default]
    Untrusted,
    /// A tool's own words, or a model's.
    Tool,
    /// The person the agent works for.
    User,
    /// Holdfast's own configuration and prompts.
    System,
}

impl Trust {
    /// All of them, lowest first.
    pub const ALL: [Self; 4] = [Self::Untrusted, Self::Tool, Self::User, Self::System];

    /// The name as it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Tool => "tool",
            Self::User => "user",
            Self::System => "system",
        }
    }

    /// The trust with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.as_str() == name)
    }
}
