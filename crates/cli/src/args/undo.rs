//! What can be typed about undo.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    holdfast undo                  # what the last call changed in this directory\n  \
    holdfast undo list\n  \
    holdfast undo show 17\n  \
    holdfast undo 17 --also        # back to before that call, later calls included\n\n\
    An undo can be undone: it is a point of its own. Exit codes: 0 done, 1 something was kept back or \
    could not be done, 2 bad usage."
)]
pub(crate) struct UndoArgs {
    #[command(subcommand)]
    pub(crate) command: Option<UndoCommand>,
    /// The point, or the request id of a call; the last point of the workspace by default.
    pub(crate) point: Option<String>,
    /// Also take back the calls that came later.
    #[arg(long)]
    pub(crate) also: bool,
    /// Overwrite what somebody changed since. It is kept in the undo's own point.
    #[arg(long)]
    pub(crate) force: bool,
    /// Only say what would be done.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The directory the tools work in.
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UndoCommand {
    /// List the points of a workspace, the latest first.
    List,
    /// Show what the calls of a point changed.
    Show {
        /// The point, or the request id of a call; the last point by default.
        point: Option<String>,
    },
    /// Remove all points of all workspaces, with what they keep.
    Clear,
}
