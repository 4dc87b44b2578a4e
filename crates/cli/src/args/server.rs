//! What can be typed about servers.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::executor::ModelArgs;

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast serve\n  \
    holdfast serve --listen 127.0.0.1:0 --workspace ~/project --json\n  \
    holdfast serve --model-url http://127.0.0.1:8000\n  \
    sed 's/^/Authorization: Bearer /' STATE/server-token | curl -s -H @- http://127.0.0.1:8001/tools/invoke \\\n       \
      -H 'Content-Type: application/json' -d '{\"tool\": \"read\", \"args\": {\"path\": \"README.md\"}}'\n\n\
    The token for calls and the one for admin actions are made on the first start, in files of the\n\
    state directory that only you can read. SIGTERM or Ctrl-C lets calls in flight finish; a second\n\
    one cancels them.")]
pub(crate) struct ServeArgs {
    /// Address and port; port 0 takes a free one and says which [default: 127.0.0.1:8001]
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
    /// The directory the tools work in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// Which server to ask.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// Ask a running server instead of the state directory: its address, or `auto` for the one
    /// that works on this state directory.
    #[arg(long, global = true, value_name = "URL|auto")]
    pub(crate) server: Option<String>,
    /// Who does it, for the audit log; your login name by default.
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) operator: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast mode\n  \
    holdfast mode shadow\n  \
    holdfast mode --open-mode off --server http://127.0.0.1:8001\n\n\
    A switch lasts until the server ends, or until another setting is read on SIGHUP;\n\
    `reliability.mode` and TOOL_RELIABILITY_ENABLED set what it starts with. It counts for every\n\
    tool; one whose own `mode` in the configuration is less stays there, and is named.")]
pub(crate) struct ModeArgs {
    /// What guard, idempotency, retry, breaker and rate limits may do at most; without any, only look.
    #[arg(value_enum)]
    pub(crate) mode: Option<ModeWord>,
    /// The same for open breakers alone.
    #[arg(long, value_enum)]
    pub(crate) open_mode: Option<ModeWord>,
    /// Whether keys are computed for calls that bring none.
    #[arg(long, value_enum)]
    pub(crate) derive: Option<OnOff>,
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ModeWord {
    /// They act.
    #[value(alias = "enabled")]
    Enforce,
    /// They compute and log what they would have done, and change nothing.
    Shadow,
    /// They stand aside.
    Off,
}

impl ModeWord {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Enforce => "enforce",
            Self::Shadow => "shadow",
            Self::Off => "off",
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnOff {
    /// They are.
    On,
    /// They are not.
    Off,
}

impl OnOff {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}
