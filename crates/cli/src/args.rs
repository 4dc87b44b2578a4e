//! What can be typed.

pub(crate) mod approvals;
pub(crate) mod executor;
pub(crate) mod git;
pub(crate) mod memory;
pub(crate) mod openclaw;
mod records;
pub(crate) mod refused;
pub(crate) mod server;
pub(crate) mod sessions;
mod transcripts;
pub(crate) mod trust;
pub(crate) mod undo;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_contract::DedupeMode;

pub(crate) use records::{
    BreakerArgs, BreakerCommand, DedupeArgs, DedupeCommand, RecordArgs, State,
};
use server::{ModeArgs, ServeArgs};
pub(crate) use transcripts::{
    AuditArgs, CheckpointFor, RepairStrategy, ScanArgs, SessionCommand, WatchArgs,
};

/// Run tool calls of LLM agents exactly as often as they are meant.
#[derive(Debug, Parser)]
#[command(
    name = "holdfast",
    version,
    about,
    long_about = "Holdfast stands between an LLM agent and its tools: every tool call is validated, \
                  permitted, run at most once, retried only when that is safe, cut off when it \
                  loops, and recorded so that nothing is lost in a crash.",
    after_help = "Try it:\n  holdfast demo\n  holdfast call exec --args '{\"command\": \"date\"}'\n  \
                  holdfast call exec --key order-17 --args '{\"command\": \"echo paid >> ledger\"}'",
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Taken by every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// The configuration file (YAML).
    #[arg(
        long,
        global = true,
        env = "HOLDFAST_CONFIG",
        hide_env_values = true,
        value_name = "FILE"
    )]
    pub(crate) config: Option<PathBuf>,
    /// The directory that holds all state; any number of processes may share it.
    #[arg(
        long,
        global = true,
        env = "HOLDFAST_STATE",
        hide_env_values = true,
        value_name = "DIR"
    )]
    pub(crate) state: Option<PathBuf>,
    /// Where log events go as JSON lines: `stderr`, `off`, or a file.
    #[arg(
        long,
        global = true,
        env = "HOLDFAST_LOG",
        hide_env_values = true,
        value_name = "WHERE"
    )]
    pub(crate) log: Option<String>,
    /// Print JSON for programs instead of text for people.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Call a tool.
    Call(Box<CallArgs>),
    /// Show the tools, or one tool with its schema.
    Tools(ToolsArgs),
    /// Store, find and move what agents remember.
    #[command(subcommand)]
    Memory(memory::MemoryCommand),
    /// Give a task to a model and its tools, and watch it work.
    Run(executor::RunArgs),
    /// Go on with a run that was left unfinished.
    Resume(executor::ResumeArgs),
    /// Serve tool calls, and a model with its tools, over HTTP.
    Serve(ServeArgs),
    /// Look at the records of calls, and clear them.
    Dedupe(DedupeArgs),
    /// Look at circuit breakers, open and reset them.
    Breaker(BreakerArgs),
    /// See what waits for a person's answer, and answer it.
    #[command(subcommand)]
    Approvals(approvals::ApprovalsCommand),
    /// Look at the log of approvals, and check that nobody has changed it.
    #[command(subcommand, name = "audit-log")]
    AuditLog(approvals::AuditLogCommand),
    /// See what sessions have read, how far it is trusted, and what holds their tools.
    #[command(subcommand)]
    Trust(trust::TrustCommand),
    /// Verify, pin and sign skills.
    #[command(subcommand)]
    Skills(trust::SkillsCommand),
    /// Look at a running server, and switch its reliability layers.
    Mode(ModeArgs),
    /// Check the configuration, the state, Redis and what the kernel holds commands with.
    Doctor(DoctorArgs),
    /// Bring back what calls have changed in a workspace.
    Undo(undo::UndoArgs),
    /// See what git would have run later, and keep or drop it.
    Git(git::GitArgs),
    /// Say whether a command would be asked about, and why. Nothing is run.
    Judge(JudgeArgs),
    /// Say why a call was answered as it was.
    Explain(ExplainArgs),
    /// Show and check the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Find what is wrong with agents' sessions, and mend it.
    Scan(ScanArgs),
    /// Keep looking at sessions, and say or mend what breaks.
    Watch(WatchArgs),
    /// See the tree of sessions, what each may still use and gave back, and tell one to end.
    #[command(subcommand)]
    Sessions(sessions::SessionsCommand),
    /// Checkpoints of a session, the way back to one, and archive and reset.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Point OpenClaw at a model with our tools.
    #[command(subcommand, name = "openclaw")]
    OpenClaw(openclaw::OpenClawCommand),
    /// Say what a model's reply, read from standard input, asks for.
    Parse(ParseArgs),
    /// Add up what the loops, duplicates and orphans in your agents' history cost.
    Audit(AuditArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Watch a misbehaving model do its worst, without Holdfast and with it.
    Demo(DemoArgs),
    /// Print a completion script for your shell.
    Completions(CompletionsArgs),
    /// Write the reference pages (for maintainers).
    #[command(hide = true)]
    Docs(DocsArgs),
}

#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 nothing is wrong, 1 something is, 2 bad usage.")]
pub(crate) struct DoctorArgs {
    /// The directory that tools would work in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    #[command(flatten)]
    pub(crate) model: executor::ModelArgs,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo '[TOOL:read|path=a.txt]' | holdfast parse\n  \
    holdfast parse --tools tools.json --finish-reason length < reply.txt\n  \
    curl -s $URL/v1/chat/completions -d @request.json | holdfast parse --strategy native\n\n\
    Strategies:\n  \
    auto         every structured form, then plain English\n  \
    native       a server's completion, message or tool_calls; or a model's own call tokens\n  \
    harmony      gpt-oss channels: <|channel|>commentary to=functions.read …\n  \
    guided_json  JSON in the text, bare, fenced or as {\"tool_calls\": […], \"done\": …}\n  \
    react        Thought: / Action: / Action Input:\n  \
    markers      [TOOL:read|path=a.txt]\n  \
    fuzzy        \"I'll read a.txt, then …\"\n\n\
    Prints JSON: intents (name, arguments, confidence, strategy, span, complete, problems), final,\n\
    completed, problems. Never run an intent that is not complete. Exit codes: 0 read, 2 bad usage.")]
pub(crate) struct ParseArgs {
    /// How to read: `auto`, `native`, `harmony`, `guided_json`, `react`, `markers` or `fuzzy`.
    #[arg(long, default_value = "auto", value_name = "STRATEGY")]
    pub(crate) strategy: String,
    /// What to try when that finds nothing.
    #[arg(long, value_name = "STRATEGY")]
    pub(crate) fallback: Option<String>,
    /// The tools, as a JSON list of names and schemas; without it, the executor's own tools.
    #[arg(long, value_name = "FILE")]
    pub(crate) tools: Option<PathBuf>,
    /// Why the model stopped: `stop`, `length`, `tool_calls` … A server's reply says it itself.
    #[arg(long, value_name = "REASON")]
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast call read README.md\n  \
    holdfast call read path=README.md limit=20\n  \
    holdfast call read --args '{\"path\": \"README.md\"}'\n  \
    holdfast call write --args @arguments.json --json\n  \
    echo '{\"command\": \"make test\"}' | holdfast call exec --args - --turn t1\n  \
    holdfast call exec --key invoice-9 --args '{\"command\": \"./send-invoice 9\"}'\n\n\
    Exit codes: 0 the tool succeeded, 1 it did not, 2 bad usage.")]
pub(crate) struct CallArgs {
    /// The tool; see `holdfast tools`.
    #[arg(required_unless_present = "envelope")]
    pub(crate) tool: Option<String>,
    /// The arguments as words: `NAME=VALUE`, or values of required arguments in their order.
    #[arg(value_name = "NAME=VALUE|VALUE", conflicts_with_all = ["args", "envelope"])]
    pub(crate) words: Vec<String>,
    /// The arguments as JSON, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON|@FILE|-", conflicts_with = "envelope")]
    pub(crate) args: Option<String>,
    /// A whole call envelope from a file, or `-` for standard input.
    #[arg(
        long,
        value_name = "FILE|-",
        conflicts_with_all = [
            "tool", "session", "actor", "agent", "turn", "run", "model", "call_id", "key", "dedupe",
            "deadline_ms", "timeout_ms", "request",
        ]
    )]
    pub(crate) envelope: Option<String>,
    /// The session; keys and loop counts are per session.
    #[arg(long, value_name = "KEY")]
    pub(crate) session: Option<String>,
    /// On whose behalf.
    #[arg(long, value_name = "ID")]
    pub(crate) actor: Option<String>,
    /// The agent whose policy counts (`permissions.agents`); `cli` unless given.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The assistant turn; the loop guard counts per turn.
    #[arg(long, value_name = "ID")]
    pub(crate) turn: Option<String>,
    /// The agent run.
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    /// The model that asked for the call.
    #[arg(long, value_name = "ID")]
    pub(crate) model: Option<String>,
    /// The model's own id of the call.
    #[arg(long, value_name = "ID")]
    pub(crate) call_id: Option<String>,
    /// The idempotency key: one key, one effect.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// How to treat duplicates; `enforced` by default.
    #[arg(long, value_enum, value_name = "MODE")]
    pub(crate) dedupe: Option<Dedupe>,
    /// Answer within this many milliseconds, whatever happens.
    #[arg(long, value_name = "MS")]
    pub(crate) deadline_ms: Option<u64>,
    /// Time limit of one attempt in milliseconds.
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) timeout_ms: Option<u64>,
    /// The request id; a new one by default.
    #[arg(long, value_name = "ID")]
    pub(crate) request: Option<String>,
    /// The directory the tools work in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Write this process's metrics in Prometheus' text format to a file, or `-` for standard error.
    #[arg(long, value_name = "FILE|-")]
    pub(crate) metrics: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Dedupe {
    /// A duplicate waits for the first call and gets its answer.
    Enforced,
    /// A duplicate of a running call is told so at once; a retriable failure runs again.
    #[value(name = "bestEffort", alias = "best-effort")]
    BestEffort,
    /// No deduplication.
    Disabled,
}

impl From<Dedupe> for DedupeMode {
    fn from(typed: Dedupe) -> Self {
        match typed {
            Dedupe::Enforced => Self::Enforced,
            Dedupe::BestEffort => Self::BestEffort,
            Dedupe::Disabled => Self::Disabled,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    /// Only this tool, with its whole schema.
    pub(crate) tool: Option<String>,
    /// The declarations as a model's provider takes them.
    #[arg(long, value_enum)]
    pub(crate) format: Option<SchemaFormat>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum SchemaFormat {
    /// `tools` of the OpenAI chat API.
    #[value(name = "openai")]
    OpenAi,
    /// `tools` of the Anthropic messages API.
    Anthropic,
    /// The answer to MCP's `tools/list`.
    Mcp,
    /// Text for a prompt.
    Prompt,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast judge 'git push --force'\n  \
    holdfast judge --json 'rm -rf build && npm publish'\n\n\
    Exit codes: 0 judged, 2 bad usage.")]
pub(crate) struct JudgeArgs {
    /// The command, as `exec` would get it.
    pub(crate) command: String,
    /// What the command would get on its standard input.
    #[arg(long, value_name = "TEXT")]
    pub(crate) stdin: Option<String>,
    /// The directory the tools work in.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast explain\n  \
    holdfast explain 01a1e2ac\n\n\
    A call that was never answered, because its process was killed, is explained by its record.\n\
    Exit codes: 0 explained, 1 there is no such call, 2 bad usage.")]
pub(crate) struct ExplainArgs {
    /// The request id, or its first characters; without it, the last calls.
    pub(crate) request: Option<String>,
    /// How many calls to list.
    #[arg(long, default_value_t = 10)]
    pub(crate) limit: usize,
}

#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:\n  \
    holdfast config show\n  \
    holdfast config check holdfast.yaml --offline\n\n\
    Exit codes: 0 nothing is wrong, 1 Redis does not answer, 2 the configuration is wrong.")]
pub(crate) enum ConfigCommand {
    /// Print the configuration in force, defaults included.
    Show,
    /// Say what is wrong with it, if anything; a Redis it names is tried.
    Check {
        /// A file to check instead: a `holdfast.yaml` or an `executor.yaml`.
        file: Option<PathBuf>,
        /// Only read it: connect to nothing.
        #[arg(long)]
        offline: bool,
    },
    /// Print its JSON Schema.
    Schema,
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// Which one.
    #[arg(value_enum)]
    pub(crate) which: Which,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Which {
    /// The call envelope.
    Envelope,
    /// The result envelope.
    Result,
    /// The configuration file.
    Config,
    /// A stored record.
    Record,
    /// The routes of `holdfast serve`, as an OpenAPI document.
    Openapi,
}

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Keep the demo's directory and say where it is.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Print the table only.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct DocsArgs {
    /// The project's `docs` directory.
    pub(crate) dir: PathBuf,
    /// Change nothing; fail when a page is not as it would be written.
    #[arg(long)]
    pub(crate) check: bool,
}
