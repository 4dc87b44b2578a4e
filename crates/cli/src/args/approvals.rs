//! What can be typed about approvals.

use clap::{Args, Subcommand, ValueEnum};
use holdfast_contract::Scope;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast approvals list\n  \
    holdfast approvals approve k7m2qx9d\n  \
    holdfast approvals approve k7m2qx9d --for session\n  \
    holdfast approvals deny k7m2qx9d --reason 'not on a Friday'\n  \
    holdfast approvals resume\n\n\
    Exit codes: 0 done, 1 the answer was not taken, 2 bad usage.")]
pub(crate) enum ApprovalsCommand {
    /// List what waits for an answer.
    List {
        /// Also what is over.
        #[arg(long)]
        all: bool,
    },
    /// Show one request: the exact arguments, the reasons, who asked.
    Show {
        /// The request, or at least 3 of its first characters.
        id: String,
    },
    /// Say yes. Nobody approves their own request.
    Approve {
        /// The request, or at least 3 of its first characters.
        id: String,
        /// What the answer covers.
        #[arg(long = "for", value_enum, default_value = "once")]
        covers: Covers,
        #[command(flatten)]
        by: ByArgs,
    },
    /// Say no.
    Deny {
        /// The request, or at least 3 of its first characters.
        id: String,
        /// Why, for the model.
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
        #[command(flatten)]
        by: ByArgs,
    },
    /// Take a message that came in on a channel; one that is no answer changes nothing.
    Reply {
        /// The message as it came, or `-` for standard input.
        message: String,
        /// Who sent it, by the channel's name for them.
        #[arg(long, value_name = "ID")]
        from: String,
    },
    /// Run what was approved after the process that asked had died.
    Resume,
    /// List the rules that answers have made.
    Rules,
    /// Take a rule back.
    Revoke {
        /// The rule.
        rule: String,
        #[command(flatten)]
        by: ByArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ByArgs {
    /// Your name, as it is put on record.
    #[arg(long, value_name = "NAME", default_value = "owner")]
    pub(crate) by: String,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Covers {
    /// This call.
    Once,
    /// Later calls of this session for the same reasons too.
    Session,
    /// Later calls of this agent here for the same reasons too: a rule, see `approvals rules`.
    Policy,
}

impl From<Covers> for Scope {
    fn from(typed: Covers) -> Self {
        match typed {
            Covers::Once => Self::Once,
            Covers::Session => Self::Session,
            Covers::Policy => Self::Policy,
        }
    }
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Exit codes: 0 the log is as it was written, 1 it is not, 2 bad usage.")]
pub(crate) enum AuditLogCommand {
    /// Show the last entries.
    Show {
        /// How many.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Check every entry: what was changed, removed, moved or cut off is named.
    Verify,
}
