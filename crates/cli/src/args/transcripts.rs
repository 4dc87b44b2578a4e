//! What can be typed about session transcripts.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast scan\n  \
    holdfast scan ~/.openclaw/agents/main/sessions --repair --dry-run\n  \
    holdfast scan session.jsonl --repair --strategy reconstruct\n  \
    holdfast scan session.jsonl --repair --wait=5m\n  \
    jq .messages request.json | holdfast scan - --complete --json\n\n\
    Exit codes: 0 nothing is wrong, or all of it was mended; 1 something is wrong and was left;\n\
    2 something could not be read or mended, or bad usage.")]
pub(crate) struct ScanArgs {
    /// Files and directories, or `-` for standard input; without any, the session folders of every
    /// known agent of this user.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// The sessions have ended, or are about to be sent: nothing runs any more. Calls at the end that
    /// have no result are findings.
    #[arg(long)]
    pub(crate) complete: bool,
    /// Mend what is found. Files that are being written are left alone, and named.
    #[arg(long)]
    pub(crate) repair: bool,
    /// Wait for files that are in use, so long at most (one minute by default), and mend them when
    /// they are not: `--wait=30s`. Goes with `--repair`.
    #[arg(
        long,
        value_name = "DURATION",
        value_parser = duration,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1m",
        requires = "repair"
    )]
    pub(crate) wait: Option<Duration>,
    /// Mend a file that nobody wrote for so long, even when a process has it open. That process may go
    /// on writing the old file, which is the backup then. A lock counts all the same. Goes with
    /// `--repair`.
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "repair")]
    pub(crate) include_live_after: Option<Duration>,
    /// How to mend; `remove_orphans` by default. Goes with `--repair` or `--dry-run`.
    #[arg(long, value_enum, value_name = "STRATEGY")]
    pub(crate) strategy: Option<RepairStrategy>,
    /// Show what a repair would change, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How many files to read at once; as many as there are processors by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
}

/// A number and its unit: `500ms`, `30s`, `5m`, `2h`.
fn duration(typed: &str) -> Result<Duration, String> {
    let unit = typed.trim_start_matches(|sign: char| sign.is_ascii_digit());
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let number = typed[..typed.len() - unit.len()].parse::<u64>();
    match number.ok().and_then(|number| number.checked_mul(unit_ms)) {
        Some(ms) if unit_ms > 0 => Ok(Duration::from_millis(ms)),
        _ => Err("write a number and its unit: 500ms, 30s, 5m or 2h".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum RepairStrategy {
    /// Remove results whose call is not there, and copies of results.
    #[default]
    #[value(name = "remove_orphans")]
    RemoveOrphans,
    /// Also put results to their calls, and answer calls that have none.
    #[value(name = "reconstruct")]
    Reconstruct,
    /// Cut back to the last point where everything was right.
    #[value(name = "truncate")]
    Truncate,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast watch\n  \
    holdfast watch ~/.openclaw/agents/main/sessions --repair\n\n\
    A path that is not there yet is waited for. It goes on until you end it (Ctrl-C).\n\
    Exit codes: 2 bad usage.")]
pub(crate) struct WatchArgs {
    /// Files and directories; without any, the session folders of every known agent of this user.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Mend what breaks, once nobody writes the file any more. Without it, only say so.
    #[arg(long)]
    pub(crate) repair: bool,
    /// How to mend; `remove_orphans` by default. Goes with `--repair`.
    #[arg(long, value_enum, value_name = "STRATEGY")]
    pub(crate) strategy: Option<RepairStrategy>,
    /// How often to look, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) interval_ms: u64,
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast session checkpoint session.jsonl\n  \
    holdfast session rollback session.jsonl\n  \
    holdfast session reset session.jsonl\n\n\
    For the sessions that Holdfast runs itself see `holdfast sessions`.\n\
    Exit codes: 0 done, 1 it could not be done, 2 bad usage.")]
pub(crate) enum SessionCommand {
    /// Make a checkpoint of a session as it is now.
    Checkpoint {
        /// The session's file.
        file: PathBuf,
        /// What it is made for.
        #[arg(long, value_enum, default_value_t = CheckpointFor::Manual)]
        operation: CheckpointFor,
    },
    /// List a session's checkpoints.
    List {
        /// The session's file.
        file: PathBuf,
    },
    /// Go back to a checkpoint, if what stands before it is as it was.
    Rollback {
        /// The session's file.
        file: PathBuf,
        /// The checkpoint's id; the last one by default.
        checkpoint: Option<String>,
    },
    /// Archive a session and begin it anew.
    Reset {
        /// The session's file.
        file: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum CheckpointFor {
    #[value(name = "tool_cycle")]
    ToolCycle,
    #[value(name = "compaction")]
    Compaction,
    #[value(name = "api_call")]
    ApiCall,
    #[value(name = "manual")]
    Manual,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast audit\n  \
    holdfast audit ~/.openclaw/agents --html audit.html\n  \
    holdfast audit session.jsonl --prices prices.json --json\n\n\
    The guard and idempotency are replayed over the history as they would have stood in front of \
    it.\n\
    Exit codes: 0 everything was read, whatever it cost; 2 something could not be read, or bad \
    usage.")]
pub(crate) struct AuditArgs {
    /// Session files, or folders of them, or `-` for standard input; without any, every known
    /// agent's folder of this user.
    pub(crate) paths: Vec<PathBuf>,
    /// Also write one self-contained page with plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Your own prices, US dollars for a million tokens: `{"gpt-4o": {"input": 2.5, "output": 10}}`.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Only what happened on this day (`YYYY-MM-DD`, UTC) or later.
    #[arg(long, value_name = "DAY")]
    pub(crate) since: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit() {
        let ms = |typed| duration(typed).map(|it| it.as_millis());
        assert_eq!(ms("500ms"), Ok(500));
        assert_eq!(ms("30s"), Ok(30_000));
        assert_eq!(ms("5m"), Ok(300_000));
        assert_eq!(ms("2h"), Ok(7_200_000));
        assert_eq!(ms("0s"), Ok(0));
        for wrong in [
            "",
            "5",
            "s",
            "-1s",
            "1.5s",
            "5 s",
            "5d",
            "99999999999999999999h",
        ] {
            assert!(ms(wrong).is_err(), "{wrong}");
        }
    }
}
