//! What can be typed about OpenClaw.

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum OpenClawCommand {
    /// Print the provider and the agent that point OpenClaw at `holdfast serve`.
    #[command(
        after_help = "Merge it into ~/.openclaw/openclaw.json; no agent that is there gets another model. It names what `holdfast serve` would \
        listen on\nwith the same configuration. Examples:\n  \
        holdfast openclaw config\n  \
        holdfast --config executor.yaml openclaw config > provider.json"
    )]
    Config,
}
