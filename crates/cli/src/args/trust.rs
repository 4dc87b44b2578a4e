//! What can be typed about trust and skills.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::approvals::ByArgs;

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast trust list\n  \
    holdfast trust message --session s1 'go on'\n  \
    holdfast trust message --session s1 --from stranger - < mail.txt\n  \
    holdfast trust scan page.html\n  \
    holdfast trust manifests exec\n  \
    holdfast trust clear s1\n\n\
    Exit codes: 0 done, 1 `scan` found what would hold a session, 2 bad usage.")]
pub(crate) enum TrustCommand {
    /// List what sessions have read, how far that is trusted, and what holds them.
    List {
        /// Only sessions with this name.
        session: Option<String>,
    },
    /// Tell a session's message: the user's ends what is held, a stranger's counts as untrusted.
    Message {
        #[command(flatten)]
        session: SessionArgs,
        /// Whose message it is.
        #[arg(long, value_enum, default_value = "user")]
        from: From,
        /// The message, or `-` for standard input.
        #[arg(default_value = "")]
        text: String,
    },
    /// Say what in a text speaks for an attack.
    Scan {
        /// The file, or `-` for standard input.
        #[arg(default_value = "-")]
        file: String,
        /// How far the text is trusted.
        #[arg(long, value_enum, default_value = "untrusted")]
        trust: TrustLevel,
    },
    /// Show the manifests of all tools, or of one.
    Manifests {
        /// Only this tool.
        tool: Option<String>,
    },
    /// Forget what sessions with this name have read.
    Clear {
        /// The session.
        session: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct SessionArgs {
    /// The session.
    #[arg(long, value_name = "KEY")]
    pub(crate) session: String,
    /// Its agent.
    #[arg(long, value_name = "ID", default_value = "cli")]
    pub(crate) agent: String,
    /// The directory its tools work in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum From {
    /// The person the agent works for.
    User,
    /// Anybody else.
    Stranger,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TrustLevel {
    /// From anywhere.
    Untrusted,
    /// A tool's own words.
    Tool,
    /// The user's words.
    User,
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast skills verify\n  \
    holdfast skills verify ~/.openclaw/skills/weather --require pinned\n  \
    holdfast skills pin ~/.openclaw/skills/weather\n  \
    holdfast skills keygen skills.key\n  \
    holdfast skills sign --key skills.key ~/.openclaw/skills/weather\n\n\
    A skill is a directory with a SKILL.md. Without one named, those beneath `trust.skills.dirs`.\n\
    Exit codes: 0 all are as they should be, 1 one is not, 2 bad usage.")]
pub(crate) enum SkillsCommand {
    /// Say of each skill whether it is pinned, signed, known or unknown, and what has changed.
    Verify {
        /// The skills.
        dirs: Vec<PathBuf>,
        /// What each has to be at least.
        #[arg(long, value_enum)]
        require: Option<Require>,
        /// Keep new skills as known, to notice when they change.
        #[arg(long)]
        remember: bool,
    },
    /// Pin skills as they are now.
    Pin {
        /// The skills.
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
        #[command(flatten)]
        by: ByArgs,
    },
    /// Forget pinned and known skills.
    Unpin {
        /// The skills.
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
    },
    /// Sign skills as they are now; the signature goes into SKILL.sig.
    Sign {
        /// The file with the secret key.
        #[arg(long, value_name = "FILE")]
        key: PathBuf,
        /// The skills.
        #[arg(required = true)]
        dirs: Vec<PathBuf>,
    },
    /// Make a key to sign with; prints the public key for `trust.skills.keys`.
    Keygen {
        /// The file to be made for the secret key.
        file: PathBuf,
    },
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Require {
    /// Anything that has not changed.
    Unknown,
    /// Seen before.
    Known,
    /// Signed by a configured key, or pinned.
    Signed,
    /// Pinned by a person.
    Pinned,
}
