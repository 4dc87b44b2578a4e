//! What can be typed about what git would run later.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast git list              # what was set aside in this directory, with its content\n  \
    holdfast git keep 3f2a91bc     # put it in place; it is known here from now on\n  \
    holdfast git keep              # all of it\n  \
    holdfast git drop 3f2a91bc     # throw it away\n\n\
    A hook, or a setting that names a program, is run by git outside of the confinement. So what a \
    call leaves of that kind is set aside until a person says yes. Exit codes: 0 done, 1 it could not \
    be done, 2 bad usage.")]
pub(crate) struct GitArgs {
    #[command(subcommand)]
    pub(crate) command: GitCommand,
    /// The directory the tools work in.
    #[arg(long, value_name = "DIR", default_value = ".", global = true)]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GitCommand {
    /// Show what is set aside in a workspace, the oldest first.
    List,
    /// Put it in place, and do not set the same content aside here again.
    Keep {
        /// Which; all of it by default.
        id: Option<String>,
    },
    /// Throw it away.
    Drop {
        /// Which; all of it by default.
        id: Option<String>,
    },
}
