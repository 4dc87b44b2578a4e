//! What can be typed about the model and its runs.

use std::path::PathBuf;

use clap::Args;

/// Which model to ask.
#[derive(Debug, Clone, Args)]
pub(crate) struct ModelArgs {
    /// The model's server, such as `http://127.0.0.1:8000`; anything that speaks chat completions.
    #[arg(long, value_name = "URL")]
    pub(crate) model_url: Option<String>,
    /// The model's name, as its server knows it [default: gpt-oss]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast run \"Summarise README.md in three lines\" --model-url http://127.0.0.1:8000\n  \
    holdfast run \"Run the tests and say what fails\" --workspace ~/project --json\n\n\
    The run is kept after each step. Ctrl-C leaves it unfinished, and `holdfast resume RUN` goes on.\n\
    Exit codes: 0 there is an answer, 1 there is none, 2 bad usage.")]
pub(crate) struct RunArgs {
    /// What is to be done.
    pub(crate) task: String,
    /// Rules for the model, before the task.
    #[arg(long, value_name = "TEXT")]
    pub(crate) system: Option<String>,
    /// How long it may take, in seconds [default: 300]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout: Option<u64>,
    /// How often the model is asked at most [default: 5]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_iterations: Option<u32>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The directory the tools work in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast resume\n  \
    holdfast resume run-01a1df35-b21b-784e-b7da-d00a97c1294f --model-url http://127.0.0.1:8000\n\n\
    Calls that have ended are not made again; one that was under way when its process died is\n\
    answered from its record.")]
pub(crate) struct ResumeArgs {
    /// The run; without it, the unfinished ones of this directory are listed.
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    /// The directory the run works in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
}
