//! What can be typed about the tree of sessions.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast sessions list\n  \
    holdfast sessions list --all --json\n  \
    holdfast sessions show 0198c2\n  \
    holdfast sessions cancel 0198c2\n  \
    holdfast sessions cancel web-42 --main\n  \
    holdfast sessions reopen main\n\n\
    A Main session makes Branches and Workers, down to a depth of 4. Each has its time and its\n\
    tokens, and gives one result to its parent. A session that is told to end has half a minute to\n\
    wrap up; then it is ended, and so are those below it. In a Main that is told to end no tool runs\n\
    from that moment, until it is opened again. The beginning of a name is enough where\n\
    only one session begins like it. For the files that agents write about their sessions see\n\
    `holdfast scan` and `holdfast session`.\n\n\
    Exit codes: 0 done, 1 there is no such session or it has ended, 2 bad usage.")]
pub(crate) enum SessionsCommand {
    /// List the sessions that are at work or wait, as a tree.
    List {
        /// Also those that ended within the last week.
        #[arg(long)]
        all: bool,
    },
    /// Show one session: what it was told, what it may still use, what it gave back.
    Show {
        /// The session, or the beginning of its name.
        id: String,
    },
    /// Tell a session to end, and with it all below it.
    Cancel {
        /// The session, or the beginning of its name.
        id: String,
        /// It is the session of calls (`--session`, `target.sessionKey`) that has made no session
        /// below it, so it is in no list; its whole name.
        #[arg(long)]
        main: bool,
    },
    /// Let a Main session that was cancelled be used again, as a fresh one.
    Reopen {
        /// The session, or the beginning of its name.
        id: String,
    },
}
