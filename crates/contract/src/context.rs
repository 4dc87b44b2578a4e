//! What a tool is handed when it runs.
//!
//! A tool gets capabilities, not permission checks: a session that must not write has no
//! [`WriteHandle`], so a tool that was registered for it by mistake still can not write.

use std::path::PathBuf;
use std::sync::Arc;

use crate::error::ToolError;
use crate::tool::PermissionTier;

/// The right to read files under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadHandle {
    /// Every path is resolved beneath this directory.
    pub root: PathBuf,
}

/// The right to create, change and remove files under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteHandle {
    /// Every path is resolved beneath this directory.
    pub root: PathBuf,
}

/// The right to start processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecHandle {
    /// The directory a command starts in.
    pub working_dir: PathBuf,
}

/// What all calls of one session share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionContext {
    /// The session's key, as in the envelope.
    pub session_id: String,
    /// The agent on whose behalf the session runs.
    pub agent_id: String,
    /// The directory the agent works in.
    pub workspace_root: PathBuf,
    /// Present when the session may read files.
    pub read: Option<ReadHandle>,
    /// Present when the session may change files.
    pub write: Option<WriteHandle>,
    /// Present when the session may start processes.
    pub exec: Option<ExecHandle>,
}

impl SessionContext {
    /// A main session: it may read, write and run commands in `workspace_root`.
    pub fn main(session_id: &str, agent_id: &str, workspace_root: PathBuf) -> Self {
        Self {
            session_id: session_id.to_owned(),
            agent_id: agent_id.to_owned(),
            read: Some(ReadHandle {
                root: workspace_root.clone(),
            }),
            write: Some(WriteHandle {
                root: workspace_root.clone(),
            }),
            exec: Some(ExecHandle {
                working_dir: workspace_root.clone(),
            }),
            workspace_root,
        }
    }
}

/// Keeps a claim alive for as long as any process that inherited it lives.
///
/// The claim of a running call is bound to an operating-system lock. A tool that starts a child
/// process hands this to the child, so that a child which outlives us is not taken for dead while
/// it may still be causing the effect.
#[derive(Debug, Clone)]
pub struct Lifeline {
    file: Arc<std::fs::File>,
}

impl Lifeline {
    /// Wraps the open, locked file.
    pub fn new(file: std::fs::File) -> Self {
        Self {
            file: Arc::new(file),
        }
    }

    /// The locked file, to be inherited by a child.
    pub fn file(&self) -> &std::fs::File {
        &self.file
    }
}

/// What is particular to this call.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// The envelope's request id.
    pub request_id: String,
    /// The key a downstream can deduplicate on; the same for every attempt of this call.
    pub idempotency_key: Option<String>,
    /// 1 for the first attempt.
    pub attempt: u32,
    /// The caller asked for at most this much time; the stack enforces it as well.
    pub time_limit_ms: Option<u64>,
    /// To be handed to child processes.
    pub lifeline: Option<Lifeline>,
}

/// Everything a tool may touch.
#[derive(Debug, Clone)]
pub struct ToolContext {
    /// What the session may do.
    pub session: Arc<SessionContext>,
    /// What is particular to this call.
    pub call: CallContext,
}

impl ToolContext {
    /// The right to read files, or the error a tool returns without it.
    pub fn read_handle(&self) -> Result<&ReadHandle, ToolError> {
        self.session
            .read
            .as_ref()
            .ok_or_else(|| missing(PermissionTier::ReadOnly, "read files"))
    }

    /// The right to change files, or the error a tool returns without it.
    pub fn write_handle(&self) -> Result<&WriteHandle, ToolError> {
        self.session
            .write
            .as_ref()
            .ok_or_else(|| missing(PermissionTier::Workspace, "change files"))
    }

    /// The right to start processes, or the error a tool returns without it.
    pub fn exec_handle(&self) -> Result<&ExecHandle, ToolError> {
        self.session
            .exec
            .as_ref()
            .ok_or_else(|| missing(PermissionTier::System, "run commands"))
    }
}

fn missing(tier: PermissionTier, what: &str) -> ToolError {
    ToolError::PermissionDenied {
        tier,
        reason: format!("this session has no right to {what}"),
    }
}
