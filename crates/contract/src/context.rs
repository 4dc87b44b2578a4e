//! What a tool is handed when it runs.
//!
//! A tool gets capabilities, not permission checks: a session that must not write has no
//! [`WriteHandle`], so a tool that was registered for it by mistake still can not write.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::approval::{Need, PathGrant, Reason};
use crate::channel::{ApprovalRoute, ChannelHandle};
use crate::error::ToolError;
use crate::memory::{MemoryRead, MemoryWrite};
use crate::tool::PermissionTier;
use crate::trust::Trust;

/// What a session is, which decides what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SessionKind {
    /// At the root of the tree, with a person.
    Main,
    /// Works on its own for a parent; sends on the parent's channel.
    Branch,
    /// Looks things up for a parent and changes nothing.
    Worker,
}

impl SessionKind {
    /// Its name in what people and models are shown.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Main => "main",
            Self::Branch => "branch",
            Self::Worker => "worker",
        }
    }
}

/// The right to read files under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadHandle {
    /// Every path is resolved beneath this directory.
    pub root: PathBuf,
    /// Single paths elsewhere that a person has approved for this call.
    pub granted: Vec<PathGrant>,
}

/// The right to create, change and remove files under a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteHandle {
    /// Every path is resolved beneath this directory.
    pub root: PathBuf,
    /// Single paths elsewhere that a person has approved for this call.
    pub granted: Vec<PathGrant>,
}

/// The right to start processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecHandle {
    /// The directory a command starts in.
    pub working_dir: PathBuf,
    /// What a person has approved of this call: it decides how far a command may reach.
    pub approved: Vec<Reason>,
}

/// The right to search and read what the agent remembers.
#[derive(Clone)]
pub struct MemoryReadHandle {
    /// What it is read from.
    pub store: Arc<dyn MemoryRead>,
}

/// The right to add to what the agent remembers, and to forget.
#[derive(Clone)]
pub struct MemoryWriteHandle {
    /// What it is written to.
    pub store: Arc<dyn MemoryWrite>,
}

/// Two handles are equal when they lead to the same store.
impl PartialEq for MemoryReadHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }
}

impl Eq for MemoryReadHandle {}

/// Two handles are equal when they lead to the same store.
impl PartialEq for MemoryWriteHandle {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.store, &other.store)
    }
}

impl Eq for MemoryWriteHandle {}

// What is remembered has no place in a debug print.
impl fmt::Debug for MemoryReadHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MemoryReadHandle").finish_non_exhaustive()
    }
}

impl fmt::Debug for MemoryWriteHandle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("MemoryWriteHandle")
            .finish_non_exhaustive()
    }
}

/// A directory that everybody on this machine shares, and where workspaces have their own in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnPlace {
    /// What commands call it: `/tmp`.
    pub shared: PathBuf,
    /// The directory with one for each workspace.
    pub base: PathBuf,
}

/// What all calls of one session share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionContext {
    /// The session's key, as in the envelope.
    pub session_id: String,
    /// Its place in the tree of sessions.
    pub kind: SessionKind,
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
    /// Present when the session may send messages.
    pub channel: Option<ChannelHandle>,
    /// Whom to ask about a call of this session; nobody when no session above it has a channel.
    pub approval: Option<ApprovalRoute>,
    /// Why no call of this session may run, when none may: it is suspended, or not known.
    pub halted: Option<String>,
    /// Directories that no tool may enter, whatever else is granted: the state with its tokens.
    pub reserved: Vec<PathBuf>,
    /// Shared directories in whose place commands and file tools see the workspace's own.
    pub own_places: Vec<OwnPlace>,
    /// Present when the session may search what its agent remembers.
    pub memory_read: Option<MemoryReadHandle>,
    /// Present when the session may add to what its agent remembers. A worker has none.
    pub memory_write: Option<MemoryWriteHandle>,
}

impl SessionContext {
    /// A main session: it may read, write and run commands in `workspace_root`.
    pub fn main(session_id: &str, agent_id: &str, workspace_root: PathBuf) -> Self {
        Self::of_kind(SessionKind::Main, session_id, agent_id, workspace_root)
    }

    /// A session with the file and process handles of its kind. This is the availability table:
    /// a worker reads, and holds nothing to write, run or send with.
    pub fn of_kind(
        kind: SessionKind,
        session_id: &str,
        agent_id: &str,
        workspace_root: PathBuf,
    ) -> Self {
        let changes = kind != SessionKind::Worker;
        Self {
            session_id: session_id.to_owned(),
            kind,
            agent_id: agent_id.to_owned(),
            read: Some(ReadHandle {
                root: workspace_root.clone(),
                granted: Vec::new(),
            }),
            write: changes.then(|| WriteHandle {
                root: workspace_root.clone(),
                granted: Vec::new(),
            }),
            exec: changes.then(|| ExecHandle {
                working_dir: workspace_root.clone(),
                approved: Vec::new(),
            }),
            channel: None,
            approval: None,
            halted: None,
            reserved: Vec::new(),
            own_places: Vec::new(),
            memory_read: None,
            memory_write: None,
            workspace_root,
        }
    }

    /// The same session with a channel of its own, whose people are asked about its calls.
    #[must_use]
    pub fn with_channel(mut self, channel: Arc<dyn crate::channel::Channel>) -> Self {
        let handle = ChannelHandle {
            channel,
            owner_session: self.session_id.clone(),
        };
        self.approval = Some(ApprovalRoute::of(&handle));
        self.channel = Some(handle);
        self
    }

    /// A session without any right, and why.
    pub fn nobody(session_id: &str, agent_id: &str, why: &str) -> Self {
        Self {
            read: None,
            halted: Some(why.to_owned()),
            ..Self::of_kind(SessionKind::Worker, session_id, agent_id, PathBuf::new())
        }
    }

    /// The same session with what a person has approved besides, for one call. A handle that is
    /// not there does not come into being.
    #[must_use]
    pub fn with_approval(mut self, need: &Need) -> Self {
        if let Some(read) = &mut self.read {
            read.granted.extend_from_slice(&need.grants);
        }
        if let Some(write) = &mut self.write {
            write.granted.extend_from_slice(&need.grants);
        }
        if let Some(exec) = &mut self.exec
            && need.gate.waits()
        {
            exec.approved.extend_from_slice(&need.reasons);
        }
        self
    }

    /// The same session with its agent's memory: every kind may search it, and all but a worker
    /// may add to it.
    #[must_use]
    pub fn with_memory<S>(mut self, store: &Arc<S>) -> Self
    where
        S: MemoryRead + MemoryWrite + 'static,
    {
        self.memory_read = Some(MemoryReadHandle {
            store: store.clone(),
        });
        self.memory_write = (self.kind != SessionKind::Worker).then(|| MemoryWriteHandle {
            store: store.clone(),
        });
        self
    }
}

/// Opens a locked file for a child.
type Lender = dyn Fn() -> io::Result<File> + Send + Sync;

/// Keeps a claim alive for as long as any process that inherited it lives.
///
/// The claim of a running call is bound to an operating-system lock. A tool that starts a child
/// process hands the child a lock of the child's own, so that a child which outlives us is not
/// taken for dead while it may still be causing the effect. A child can let go of what it was
/// handed, and of nothing else: the lock of the call itself is never inherited.
#[derive(Clone)]
pub struct Lifeline {
    lender: Arc<Lender>,
    lent: Arc<AtomicBool>,
}

impl Lifeline {
    /// Children are handed what `lender` opens.
    pub fn new(lender: impl Fn() -> io::Result<File> + Send + Sync + 'static) -> Self {
        Self {
            lender: Arc::new(lender),
            lent: Arc::default(),
        }
    }

    /// A locked file, to be inherited by a child. To be asked for in this process and not in the
    /// child between fork and exec, where nobody else would learn of it. An error means that the
    /// call has ended or that no lock is to be had, and then no child may be started.
    pub fn lend(&self) -> io::Result<File> {
        self.lent.store(true, Ordering::Release);
        (self.lender)()
    }

    /// Whether this is the only one left, and no child can have a file of it: the lock behind it
    /// can as well be used for another claim.
    pub fn is_unused(&self) -> bool {
        Arc::strong_count(&self.lent) == 1 && !self.lent.load(Ordering::Acquire)
    }
}

impl fmt::Debug for Lifeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lifeline")
            .field("lent", &self.lent)
            .finish_non_exhaustive()
    }
}

/// Which hosts a call may reach, decided by whoever set the rule.
#[derive(Clone)]
pub struct HostRule(Arc<dyn Fn(&str) -> bool + Send + Sync>);

impl HostRule {
    /// A rule that takes a host, in lower case and without its port and brackets.
    pub fn new(allows: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(allows))
    }

    /// Whether it allows this host.
    pub fn allows(&self, host: &str) -> bool {
        let host = host.trim_matches(['[', ']']).trim_end_matches('.');
        (self.0)(&host.to_ascii_lowercase())
    }
}

impl fmt::Debug for HostRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HostRule")
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
    /// How long this attempt may take. The stack cuts it off a moment later, at the attempt's limit.
    pub time_limit_ms: Option<u64>,
    /// To be handed to child processes.
    pub lifeline: Option<Lifeline>,
    /// The least trusted text behind the call, as far as it is known. What a tool keeps for later
    /// keeps this with it.
    pub input_trust: Trust,
    /// The hosts it may reach, wherever it is sent on to; any host without it.
    pub hosts: Option<HostRule>,
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

    /// The right to send messages, or the error a tool returns without it.
    pub fn channel_handle(&self) -> Result<&ChannelHandle, ToolError> {
        self.session
            .channel
            .as_ref()
            .ok_or_else(|| missing(PermissionTier::System, "send messages"))
    }

    /// The right to read memory, or the error a tool returns without it.
    pub fn memory_read_handle(&self) -> Result<&MemoryReadHandle, ToolError> {
        self.session
            .memory_read
            .as_ref()
            .ok_or_else(|| missing(PermissionTier::ReadOnly, "read the agent's memory"))
    }

    /// The right to write memory, or the error a tool returns without it.
    pub fn memory_write_handle(&self) -> Result<&MemoryWriteHandle, ToolError> {
        self.session
            .memory_write
            .as_ref()
            .ok_or_else(|| missing(PermissionTier::Workspace, "write to the agent's memory"))
    }
}

fn missing(tier: PermissionTier, what: &str) -> ToolError {
    ToolError::PermissionDenied {
        tier,
        reason: format!("this session has no right to {what}"),
    }
}
