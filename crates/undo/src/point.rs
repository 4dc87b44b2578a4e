//! What callers see of an undo point.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use crate::entry::Why;

/// Where a call may write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Where {
    /// Anywhere in its workspace, as a command may.
    Anywhere,
    /// Under these paths only, as a tool that writes one file. They are absolute or begin in the workspace.
    Paths(Vec<PathBuf>),
}

/// How much of a workspace an undo brings back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Coverage {
    /// Everything.
    Full,
    /// Everything but what the point names as left out.
    Partial,
    /// Nothing.
    None,
}

/// Why nothing was kept of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum NotKept {
    /// The workspace is the home directory, or a directory above it.
    #[error("the workspace is the home directory or lies above it, so undo keeps nothing of it")]
    Home,
    /// Too many files.
    #[error(
        "the workspace has more than {max} files (`undo.filesMax`), so undo keeps nothing of it"
    )]
    TooManyFiles {
        /// The limit.
        max: u64,
    },
    /// Too many bytes.
    #[error(
        "the workspace has more than {max} bytes (`undo.bytesMax`), so undo keeps nothing of it"
    )]
    TooManyBytes {
        /// The limit.
        max: u64,
    },
    /// Reading took too long.
    #[error(
        "reading the workspace took more than {max_ms} ms (`undo.walkMsMax`), so undo keeps nothing of it"
    )]
    TooSlow {
        /// The limit.
        max_ms: u64,
    },
    /// A path of the call lies outside of the workspace.
    #[error("{} lies outside of the workspace, where undo keeps nothing", .0.display())]
    Outside(PathBuf),
}

/// Something whose content a point does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftOut {
    /// Its path from the workspace, or an absolute one outside of it.
    #[serde(with = "crate::record::path_text")]
    pub path: PathBuf,
    /// Why it was left out.
    pub why: Why,
    /// Its size, where that is known.
    pub bytes: u64,
}

/// What a point was made for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Origin {
    /// Calls of tools.
    Calls,
    /// An undo.
    Undo {
        /// The point to whose beginning it went back.
        of: String,
    },
}

/// One undo point: a workspace before and after some calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Point {
    /// Names the point in this store.
    pub id: String,
    /// The workspace.
    #[serde(with = "crate::record::path_text")]
    pub workspace: PathBuf,
    /// The calls that share the point, in the order in which they began.
    pub calls: Vec<String>,
    /// What it was made for.
    pub origin: Origin,
    /// When the first call began, in Unix milliseconds.
    pub begun_ms: u64,
    /// When the last call ended; `None` while one runs.
    pub ended_ms: Option<u64>,
    /// Whether nobody took the state after the calls when they ended, because the process had died.
    pub interrupted: bool,
    /// How much of the workspace it holds.
    pub coverage: Coverage,
    /// What it does not hold, as far as it is named.
    pub left_out: Vec<LeftOut>,
    /// How many it does not hold.
    pub left_out_count: u64,
    /// The undo that took it back, if one did.
    pub taken_back_by: Option<String>,
}
