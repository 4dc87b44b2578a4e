//! What can be typed.

pub(crate) mod memory;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use holdfast_contract::DedupeMode;

use crate::server_args::{ModeArgs, RemoteArgs, ServeArgs};

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
#[derive(Debug, Args)]
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
    /// Serve tool calls over HTTP.
    Serve(ServeArgs),
    /// Look at the records of calls, and clear them.
    Dedupe(DedupeArgs),
    /// Look at circuit breakers, open and reset them.
    Breaker(BreakerArgs),
    /// See what waits for a person's answer, and answer it.
    #[command(subcommand)]
    Approvals(crate::approval_args::ApprovalsCommand),
    /// Look at the log of approvals, and check that nobody has changed it.
    #[command(subcommand, name = "audit-log")]
    AuditLog(crate::approval_args::AuditLogCommand),
    /// Look at a running server, and switch its reliability layers.
    Mode(ModeArgs),
    /// Say why a call was answered as it was.
    Explain(ExplainArgs),
    /// Show and check the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Find what is wrong with agents' sessions, and mend it.
    Scan(ScanArgs),
    /// Keep looking at sessions, and say or mend what breaks.
    Watch(WatchArgs),
    /// Checkpoints of a session, the way back to one, and archive and reset.
    #[command(subcommand)]
    Session(SessionCommand),
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
#[command(after_help = "Examples:\n  \
    holdfast scan\n  \
    holdfast scan ~/.openclaw/agents/main/sessions --repair --dry-run\n  \
    holdfast scan session.jsonl --repair --strategy reconstruct\n  \
    jq .messages request.json | holdfast scan - --json\n\n\
    Exit codes: 0 clean or mended, 1 findings, 2 errors.")]
pub(crate) struct ScanArgs {
    /// Files and directories, or `-` for standard input; without any, the session folders of every
    /// known agent of this user.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Mend what is found. Files that are being written are left alone.
    #[arg(long)]
    pub(crate) repair: bool,
    /// How to mend.
    #[arg(long, value_enum, default_value_t = RepairStrategy::RemoveOrphans, value_name = "STRATEGY")]
    pub(crate) strategy: RepairStrategy,
    /// Show what a repair would change, and change nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// How many files to read at once; as many as there are processors by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) jobs: Option<u16>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum RepairStrategy {
    /// Remove results that do not belong to a call.
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
pub(crate) struct WatchArgs {
    /// Files and directories; without any, the session folders of every known agent of this user.
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Mend what breaks, once nobody writes the file any more. Without it, only say so.
    #[arg(long)]
    pub(crate) repair: bool,
    /// How to mend.
    #[arg(long, value_enum, default_value_t = RepairStrategy::RemoveOrphans, value_name = "STRATEGY")]
    pub(crate) strategy: RepairStrategy,
    /// How often to look, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) interval_ms: u64,
}

#[derive(Debug, Subcommand)]
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
    /// How to read: auto, native, harmony, `guided_json`, react, markers or fuzzy.
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
    holdfast call read --args '{\"path\": \"README.md\"}'\n  \
    holdfast call write --args @arguments.json --json\n  \
    echo '{\"command\": \"make test\"}' | holdfast call exec --args - --turn t1\n  \
    holdfast call exec --key invoice-9 --args '{\"command\": \"./send-invoice 9\"}'\n\n\
    Exit codes: 0 the tool succeeded, 1 it did not, 2 bad usage.")]
pub(crate) struct CallArgs {
    /// The tool; see `holdfast tools`.
    #[arg(required_unless_present = "envelope")]
    pub(crate) tool: Option<String>,
    /// The arguments as JSON, `@FILE`, or `-` for standard input.
    #[arg(
        long,
        value_name = "JSON|@FILE|-",
        default_value = "{}",
        conflicts_with = "envelope"
    )]
    pub(crate) args: String,
    /// A whole call envelope from a file, or `-` for standard input.
    #[arg(
        long,
        value_name = "FILE|-",
        conflicts_with_all = [
            "tool", "session", "actor", "turn", "run", "model", "call_id", "key", "dedupe",
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
    /// How to treat duplicates.
    #[arg(long, value_enum)]
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
    /// `tools` of the `OpenAI` chat API.
    #[value(name = "openai")]
    OpenAi,
    /// `tools` of the Anthropic messages API.
    Anthropic,
    /// The answer to MCP's `tools/list`.
    Mcp,
    /// Text for a prompt.
    Prompt,
}

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
    #[arg(long, value_enum)]
    pub(crate) state_is: Option<State>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum State {
    Inflight,
    Done,
    Failed,
    Cancelled,
    Unknown,
}

#[derive(Debug, Args)]
pub(crate) struct DedupeArgs {
    #[command(flatten)]
    pub(crate) remote: RemoteArgs,
    #[command(subcommand)]
    pub(crate) command: DedupeCommand,
}

#[derive(Debug, Args)]
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
        #[arg(long, default_value_t = 50)]
        limit: usize,
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
        /// The breaker's key, or a tool's name, or `all`.
        key: String,
    },
    /// Hold a breaker open until it is reset.
    ForceOpen {
        /// The breaker's key, or a tool's name.
        key: String,
        /// Why, for those who meet it.
        #[arg(long, default_value = "by an operator")]
        reason: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The request id, or its first characters; without it, the last calls.
    pub(crate) request: Option<String>,
    /// How many calls to list.
    #[arg(long, default_value_t = 10)]
    pub(crate) limit: usize,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print the configuration in force, defaults included.
    Show,
    /// Say what is wrong with it, if anything.
    Check,
    /// Print its JSON Schema.
    Schema,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    holdfast audit\n  \
    holdfast audit ~/.openclaw/agents --html audit.html\n  \
    holdfast audit session.jsonl --prices prices.json --json\n\n\
    The guard and idempotency are replayed over the history as they would have stood in front of \
    it.\n\
    Exit codes: 0 everything was read, 2 something could not be.")]
pub(crate) struct AuditArgs {
    /// Session files, or folders of them; without any, every known agent's folder of this user.
    pub(crate) paths: Vec<PathBuf>,
    /// Also write one self-contained page with plots.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Your own prices: `{\"gpt-4o\": {\"input\": 2.5, \"output\": 10}}`, US dollars for a million tokens.
    #[arg(long, value_name = "FILE")]
    pub(crate) prices: Option<PathBuf>,
    /// Only what happened on this day (`YYYY-MM-DD`, UTC) or later.
    #[arg(long, value_name = "DAY")]
    pub(crate) since: Option<String>,
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
