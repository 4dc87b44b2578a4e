//! What can be typed about records and breakers.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use holdfast_reliability::breaker::NO_REASON;

use super::server::RemoteArgs;

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct RecordArgs {
    /// Only of this session.
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// Only of this tool.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only in this state.
    #[arg(long, value_enum, value_name = "STATE")]
    pub(crate) state_is: Option<State>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Running, or waiting for a person; abandoned ones too.
    Inflight,
    /// In flight by the record, but its process is gone.
    Abandoned,
    /// It worked: a duplicate gets its output.
    Done,
    /// It failed: a duplicate gets its error.
    Failed,
    /// Its caller went away before it started.
    Cancelled,
    /// Its effect may have happened; nobody knows.
    Unknown,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast dedupe list\n  \
    holdfast dedupe list --state-is abandoned\n  \
    holdfast dedupe show order-17\n  \
    holdfast dedupe clear order-17\n  \
    holdfast dedupe flush --tool exec --state-is failed\n\n\
    Exit codes: 0 done, 1 there is no such record or it was left alone, 2 bad usage.")]
pub(crate) struct DedupeArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(subcommand)]
    pub(crate) command: DedupeCommand,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast breaker list\n  \
    holdfast breaker force-open web_fetch --reason 'the proxy is down until noon'\n  \
    holdfast breaker reset web_fetch\n\n\
    A tool's name stands for its breaker, also before its first call, and for those of its hosts.\n\
    Exit codes: 0 done, 1 there is no such breaker, 2 bad usage.")]
pub(crate) struct BreakerArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(subcommand)]
    pub(crate) command: BreakerCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DedupeCommand {
    /// List records, newest first.
    List {
        #[command(flatten)]
        filter: RecordArgs,
        /// At most this many.
        #[arg(long, default_value = "50")]
        limit: NonZeroUsize,
    },
    /// Show one record.
    Show {
        /// The stored key, or at least 6 of its first characters, or the key you gave with `--key`.
        key: String,
        /// Show the stored output as it is, secrets included.
        #[arg(long)]
        reveal: bool,
    },
    /// Forget one record, so that the call may run again.
    Clear {
        /// The stored key, or at least 6 of its first characters, or the key you gave with `--key`.
        key: String,
        /// Also while the call is running.
        #[arg(long)]
        force: bool,
    },
    /// Forget all ended records that fit. Running calls stay.
    Flush {
        #[command(flatten)]
        filter: RecordArgs,
        /// Really all of them, when no filter is given.
        #[arg(long)]
        all: bool,
    },
    /// Write all records to a new file, outputs included, for another store to import.
    Export {
        /// The file; it must not be there yet.
        file: PathBuf,
    },
    /// Take over the records of an export. What is known already stays as it is.
    Import {
        /// The file.
        file: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum BreakerCommand {
    /// List breakers and what they have seen.
    List,
    /// Close a breaker at once.
    Reset {
        /// The name of a tool or of a host, or the breaker's key, or `all`.
        key: String,
    },
    /// Hold a breaker open until it is reset.
    ForceOpen {
        /// The breaker's key, or a tool's name.
        key: String,
        /// Why, for those who meet it.
        #[arg(long, default_value = NO_REASON)]
        reason: String,
    },
}
