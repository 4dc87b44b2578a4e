//! `undo:` in the configuration.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits;

/// How much is kept, and for how long.
///
/// ```
/// let settings = holdfast_undo::UndoSettings::default();
/// assert_eq!(settings.points_max, 200);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UndoSettings {
    /// Files, directories and links of one workspace.
    pub files_max: u64,
    /// Bytes of one workspace.
    pub bytes_max: u64,
    /// Bytes of one file. A larger file is left out and named.
    pub file_bytes_max: u64,
    /// Milliseconds that one walk over a workspace may take.
    pub walk_ms_max: u64,
    /// Bytes kept for all workspaces together.
    pub kept_bytes_max: u64,
    /// Points kept of one workspace.
    pub points_max: u64,
    /// Milliseconds after which a point is removed.
    pub age_ms_max: u64,
    /// Whether an undo waits until the disk has what it is about to overwrite, and what it restored.
    pub durable: bool,
    /// The user's home directory. It is never kept as a workspace, nor is a directory above it.
    #[serde(skip)]
    pub home: Option<PathBuf>,
    /// Directories that are never kept and never restored, beside this store's own state directory.
    #[serde(skip)]
    pub never: Vec<PathBuf>,
}

impl Default for UndoSettings {
    fn default() -> Self {
        Self {
            files_max: limits::FILES_MAX,
            bytes_max: limits::BYTES_MAX,
            file_bytes_max: limits::FILE_BYTES_MAX,
            walk_ms_max: limits::WALK_MS_MAX,
            kept_bytes_max: limits::KEPT_BYTES_MAX,
            points_max: limits::POINTS_MAX,
            age_ms_max: limits::AGE_MS_MAX,
            durable: true,
            home: None,
            never: Vec::new(),
        }
    }
}
