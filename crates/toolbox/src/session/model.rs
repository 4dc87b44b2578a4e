//! A session, its limits and its result.

use std::path::PathBuf;

use holdfast_contract::SessionKind;
use holdfast_reliability::config::ConfigProblem;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Deepest Branch.
pub const BRANCH_DEPTH_MAX: u32 = 3;
/// Deepest Worker.
pub const WORKER_DEPTH_MAX: u32 = 4;
/// Default of [`SessionLimits::children_max`].
pub const CHILDREN_MAX: usize = 8;
/// Default of [`SessionLimits::main_idle_ms`]: longer than an unfinished run can be gone on with.
pub const MAIN_IDLE_MS: u64 = 24 * 60 * 60 * 1000;
/// Default of [`SessionLimits::branch_ttl_ms`].
pub const BRANCH_TTL_MS: u64 = 30 * 60 * 1000;
/// Default of [`SessionLimits::worker_ttl_ms`].
pub const WORKER_TTL_MS: u64 = 5 * 60 * 1000;
/// Time a cancelled session has to wrap up.
pub const CANCEL_GRACE_MS: u64 = 30_000;
/// Over half of a token budget within this time pauses a session.
pub const SPENDING_WINDOW_MS: u64 = 5 * 60 * 1000;
/// Size of a blob in a result: less than this.
pub const BLOB_BYTES_MAX: usize = 64 * 1024;
/// Artifacts and memory ids in one result.
pub const RESULT_ITEMS_MAX: usize = 256;
/// Length of a context summary or a result's summary.
pub const SUMMARY_BYTES_MAX: usize = 64 * 1024;
/// Spendings remembered within the window; older ones are added up.
pub const SPENDINGS_MAX: usize = 256;

/// `sessions:` in the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SessionLimits {
    /// Children of one session at a time.
    pub children_max: usize,
    /// How long a Main lives in which nothing happens.
    pub main_idle_ms: u64,
    /// How long a Branch lives.
    pub branch_ttl_ms: u64,
    /// How long a Worker lives.
    pub worker_ttl_ms: u64,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self {
            children_max: CHILDREN_MAX,
            main_idle_ms: MAIN_IDLE_MS,
            branch_ttl_ms: BRANCH_TTL_MS,
            worker_ttl_ms: WORKER_TTL_MS,
        }
    }
}

impl SessionLimits {
    /// Everything that is wrong.
    pub fn problems(&self) -> Vec<ConfigProblem> {
        let numbers = [
            ("sessions.childrenMax", self.children_max as u64),
            ("sessions.mainIdleMs", self.main_idle_ms),
            ("sessions.branchTtlMs", self.branch_ttl_ms),
            ("sessions.workerTtlMs", self.worker_ttl_ms),
        ];
        numbers
            .into_iter()
            .filter(|(_, number)| *number == 0)
            .map(|(path, _)| ConfigProblem::new(path, "has to be at least 1"))
            .collect()
    }

    /// How long a session of this kind lives; a Main since something last happened in it.
    pub fn ttl_ms(&self, kind: SessionKind) -> u64 {
        match kind {
            SessionKind::Main => self.main_idle_ms,
            SessionKind::Branch => self.branch_ttl_ms,
            SessionKind::Worker => self.worker_ttl_ms,
        }
    }
}

/// Why a session is suspended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Suspension {
    /// It spent over half of its tokens within five minutes.
    Spending,
    /// Somebody asked for it.
    Asked,
}

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "camelCase")]
pub enum SessionState {
    /// It works.
    Active,
    /// It waits, and survives a restart.
    Suspended {
        /// Why.
        why: Suspension,
    },
    /// It ended well.
    Completed,
    /// It ended badly, or was ended.
    Failed,
    /// Its time was over.
    Expired,
}

impl SessionState {
    /// Whether it has ended.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Expired)
    }
}

/// How a session ended, for its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionStatus {
    /// Well.
    Completed,
    /// Badly.
    Failed,
    /// It was told to end.
    Cancelled,
    /// Its time was over.
    Expired,
}

/// Something a session made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum SessionArtifact {
    /// A file in the workspace.
    File {
        /// Relative to the workspace.
        path: String,
    },
    /// Small content.
    Blob {
        /// What to call it.
        name: String,
        /// What it is.
        media_type: String,
        /// The content; text, or Base64 of anything else.
        content: String,
    },
    /// Something that lives elsewhere.
    Reference {
        /// How to find it.
        uri: String,
    },
}

/// What a child gives its parent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionResult {
    /// How it ended.
    pub status: SessionStatus,
    /// In words.
    pub summary: String,
    /// What it made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<SessionArtifact>,
    /// Memories it wrote or found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub memory_ids: Vec<String>,
}

/// Why a result can not be handed over.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BlobError {
    /// A blob is too large.
    #[error(
        "the blob {name:?} has {bytes} bytes, and a blob has to be under {BLOB_BYTES_MAX}: write it to a file"
    )]
    TooLarge {
        /// Which.
        name: String,
        /// How large.
        bytes: usize,
    },
    /// There is too much in it.
    #[error(
        "a result holds at most {RESULT_ITEMS_MAX} artifacts and memory ids, and {SUMMARY_BYTES_MAX} bytes of summary"
    )]
    TooMuch,
}

impl SessionResult {
    /// A result in words.
    pub fn new(status: SessionStatus, summary: impl Into<String>) -> Self {
        Self {
            status,
            summary: summary.into(),
            artifacts: Vec::new(),
            memory_ids: Vec::new(),
        }
    }

    /// Whether it can be handed over.
    pub fn check(&self) -> Result<(), BlobError> {
        if self.artifacts.len() > RESULT_ITEMS_MAX
            || self.memory_ids.len() > RESULT_ITEMS_MAX
            || self.summary.len() > SUMMARY_BYTES_MAX
        {
            return Err(BlobError::TooMuch);
        }
        for artifact in &self.artifacts {
            if let SessionArtifact::Blob { name, content, .. } = artifact
                && content.len() >= BLOB_BYTES_MAX
            {
                return Err(BlobError::TooLarge {
                    name: name.clone(),
                    bytes: content.len(),
                });
            }
        }
        Ok(())
    }
}

impl Session {
    /// Whether a person has told this Main to end: nothing else tells one so.
    pub fn is_cancelled_main(&self) -> bool {
        self.kind == SessionKind::Main && self.end_by_ms.is_some()
    }
}

/// What a session spent, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tokens {
    /// All it may spend; no limit without.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// Spent so far, by the session itself.
    pub spent: u64,
    /// What that has cost, in billionths of the currency that prices are in.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_nanos: u64,
    /// The last spendings, as time and tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recent: Vec<(u64, u64)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// Its key, as in envelopes.
    pub id: String,
    /// What it is.
    pub kind: SessionKind,
    /// Who made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// 0 for a Main.
    pub depth: u32,
    /// The agent.
    pub agent_id: String,
    /// Where it works.
    pub workspace_root: PathBuf,
    /// What its parent told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_summary: Option<String>,
    /// What its parent calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Where it stands.
    #[serde(flatten)]
    pub state: SessionState,
    /// When it was made.
    pub created_at_ms: u64,
    /// When its time is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at_ms: Option<u64>,
    /// It was told to end, and is ended at this time if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_by_ms: Option<u64>,
    /// Tokens.
    #[serde(default)]
    pub tokens: Tokens,
    /// Children that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub children: Vec<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<SessionResult>,
}
