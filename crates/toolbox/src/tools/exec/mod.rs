//! The `exec` tool: a shell command in a process group of its own.
//!
//! | module | what it does |
//! |---|---|
//! | `order` | one call's arguments, and the process that they become |
//! | `environment` | which variables a command gets to see |
//! | `confined` | which files and system calls the kernel leaves it |
//! | `child` | what the new process does between fork and exec; the only unsafe code |
//! | `spawner` | the one thread that starts all commands |
//! | `guardian` | ends a command when this process is gone |
//! | `supervise` | watches one command: output, end, time limit, caller gone |
//! | `family` | finds and kills everything a command started |
//! | `at_work` | in which workspaces something of a command may still run |
//! | `left` | what a command left in the background, until its time is up |
//! | `judge`, `rules`, `people` | what a person has to see first, and what may not run |
//! | `grants` | paths outside the workspace that a call names, and a person grants |
//! | `reach` | says whether a command names what no tool may reach |
//! | `modes` | puts back who may look into what is reserved |
//! | `answer` | what a caller is told of a command |
//! | `capture` | keeps the beginning and the end of an output |
//!
//! Each command is watched by a thread of its own that waits in one `poll` for its output, its
//! end, its time limit and its caller. A dropped future only closes a pipe, which that thread
//! notices; so the kill and the reaping happen also when the async runtime is busy, shutting down
//! or gone. With futures they would have to happen inside `drop`, where nothing can be awaited.
//!
//! Linux only: process descriptors, parent-death signals and `/proc` have no portable equal.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_confine::{ConfinementConfig, Kernel, Mode};
use holdfast_contract::{
    Effect, PermissionTier, Reason, SessionContext, TierVerdict, Tool, ToolContext, ToolError,
    ToolResult,
};
use serde_json::{Value, json};

use super::args;
use super::place::Place;
use super::text::one_line;
use crate::permit::Permissions;
use answer::{printed, result};
use family::Tag;
use grants::Grants;
pub(crate) use judge::handed_on;
use modes::Modes;
use order::{Order, Outfit};
pub use rules::CommandRules;
use supervise::Ended;

mod answer;
mod at_work;
mod capture;
mod child;
mod confined;
mod environment;
mod family;
mod grants;
mod guardian;
mod judge;
mod left;
mod modes;
mod order;
mod people;
mod reach;
mod rules;
mod spawner;
mod supervise;

pub(crate) use at_work::is_at_work;
pub(crate) use confined::is_for_once;
pub(super) use grants::GRANTS_MAX;
pub(super) use modes::KEPT_FILES_MAX;

/// Length of a command: the kernel's limit for one argument, less the final NUL.
pub const COMMAND_BYTES_MAX: usize = 128 * 1024 - 1;
/// Text handed to a command's standard input.
pub const STDIN_BYTES_MAX: usize = 1024 * 1024;
/// Kept of each of the two outputs.
pub const OUTPUT_BYTES_MAX: usize = 64 * 1024;
/// A command's time unless less is asked for.
pub const EXEC_TIMEOUT_MS_DEFAULT: u64 = 60_000;
/// Time between SIGTERM and SIGKILL.
pub const TERM_GRACE_MS: u64 = 200;
/// Wait for a killed command to be gone before the caller is answered.
pub const REAP_WAIT_MS: u64 = 300;
/// Wait for the end of the output after the command's own end.
pub const DRAIN_GRACE_MS: u64 = 250;
/// Commands running at the same time in one process.
pub const EXEC_CONCURRENT_MAX: usize = 64;
/// Time for searches for escaped descendants of a killed command; they end when none is found.
pub const SWEEP_TIME_MS_MAX: u64 = 5_000;
/// Commands whose background processes wait for their time to be up; with more, the first are ended.
pub const LEFT_BEHIND_MAX: usize = 256;
/// Killed descendants that are waited for at once; each needs a file descriptor of ours.
pub const SWEEP_PROCESSES_MAX: usize = 256;
/// Of a process's environment that is searched.
pub const ENVIRON_BYTES_MAX: usize = 1024 * 1024;

const DESCRIPTION: &str = "Runs a shell command (bash) in the workspace and returns its exit code and \
    output. Long output is cut in the middle. A command left in the background should redirect its \
    output to a file, and is ended when the time limit is reached.";
const DESCRIPTION_CONFINED: &str = "Runs a shell command (bash) in the workspace and returns its exit \
    code and output. Long output is cut in the middle. A command left in the background should \
    redirect its output to a file, and is ended when the time limit is reached. Files outside the \
    workspace can not be changed, and most of the home directory not be read, unless they are named \
    in `writes` or `reads` and a person agrees; temporary files go to $TMPDIR.";
/// When to come back after [`EXEC_CONCURRENT_MAX`] was reached.
const BUSY_RETRY_AFTER_MS: u64 = 1000;
/// Characters of a command that are shown to people.
const DISPLAY_COMMAND_CHARS: usize = 80;

/// Runs a shell command.
///
/// The command runs under bash, or `sh` where there is none, in a process group of its own, sees a short list of environment
/// variables and nothing that looks like a token. The kernel, where it can, keeps it to the
/// workspace's files and the system's, and from system calls that no command needs: see
/// [`holdfast_confine`]. It and everything in its group die with this process, however that ends.
/// When its time is up, or when the future of [`Tool::execute`] is dropped, everything it started
/// gets SIGTERM and, 200 ms later, SIGKILL. Descendants that left the process group are found by a
/// mark that they can not take off, where the kernel filters system calls.
///
/// A non-zero exit code is a result, not an error. [`ToolResult::exit_code`] is set for it, and
/// only for it: a command that worked leaves it `None`. A command that died of signal *n* has the
/// exit code 128 + *n*, as in a shell.
///
/// Processes that a command leaves in the background are not waited for; the answer then has
/// `"still_running": true`. They live until the call's time is up, or until this process waits for
/// its commands at its own end ([`wait_until_idle`]), and are ended then.
///
/// ```
/// use std::sync::Arc;
/// use holdfast_contract::{CallContext, SessionContext, Tool, ToolContext};
/// use holdfast_toolbox::tools::ExecTool;
/// use serde_json::json;
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let workspace = tempfile::tempdir().unwrap();
/// let session = SessionContext::main("session", "agent", workspace.path().to_owned());
/// let ctx = ToolContext { session: Arc::new(session), call: CallContext::default() };
/// let params = json!({"command": "echo hello; exit 3"});
/// let result = ExecTool::new().execute(&params, &ctx).await.unwrap();
/// assert_eq!(result.output["stdout"], "hello\n");
/// assert_eq!(result.exit_code, Some(3));
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct ExecTool {
    environment: Vec<(OsString, OsString)>,
    timeout_ms: u64,
    confinement: ConfinementConfig,
    kernel: Kernel,
    permissions: Arc<Permissions>,
}

impl Default for ExecTool {
    fn default() -> Self {
        Self::new()
    }
}

impl ExecTool {
    /// The tool with this process's environment, of which commands see the harmless part.
    pub fn new() -> Self {
        Self::with_environment(std::env::vars_os())
    }

    /// The tool with another environment, which is filtered all the same.
    pub fn with_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self {
            environment: environment::scrub(variables),
            timeout_ms: EXEC_TIMEOUT_MS_DEFAULT,
            confinement: ConfinementConfig::default(),
            kernel: Kernel::probe(),
            permissions: Arc::default(),
        }
    }

    /// The same tool where these permissions say which commands may run.
    #[must_use]
    pub fn with_permissions(mut self, permissions: Arc<Permissions>) -> Self {
        self.permissions = permissions;
        self
    }

    /// The same tool with other confinement.
    #[must_use]
    pub fn with_confinement(mut self, confinement: ConfinementConfig) -> Self {
        self.confinement = confinement;
        self
    }

    /// The same tool as it is on a kernel that has less than the running one.
    #[must_use]
    pub fn on_kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = kernel;
        self
    }

    /// The same tool with another time limit.
    #[must_use]
    pub fn with_timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.timeout_ms = timeout_ms;
        self
    }
}

impl ExecTool {
    fn confines_files(&self) -> bool {
        self.confinement.mode != Mode::Off && self.kernel.confines_files()
    }

    /// What a call names besides the workspace.
    fn grants(&self, params: &Value, order: &Order, session: &SessionContext) -> Grants {
        if !self.confines_files() {
            // It reaches every path already.
            return Grants::default();
        }
        let working_dir = order.working_dir.as_deref();
        Grants::named(
            params,
            session,
            working_dir,
            &self.confinement,
            &self.environment,
        )
    }
}

#[async_trait]
impl Tool for ExecTool {
    fn name(&self) -> &str {
        "exec"
    }

    fn aliases(&self) -> &[&str] {
        holdfast_contract::names::EXEC
    }

    fn description(&self) -> &str {
        if self.confines_files() {
            DESCRIPTION_CONFINED
        } else {
            DESCRIPTION
        }
    }

    fn parameters_schema(&self) -> Value {
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["command"],
            "properties": {
                "command": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The shell command."
                },
                "timeout_ms": {
                    "type": "integer",
                    "minimum": 1,
                    "description": format!(
                        "Kill the command after this many milliseconds; at most {}.",
                        self.timeout_ms
                    )
                },
                "working_dir": {
                    "type": "string",
                    "minLength": 1,
                    "description": "The directory to run in, relative to the workspace."
                },
                "stdin": {
                    "type": "string",
                    "description": "Text for the command's standard input; empty unless given."
                },
                "writes": {
                    "type": "array",
                    "maxItems": GRANTS_MAX,
                    "items": {"type": "string", "minLength": 1},
                    "description": "Paths outside the workspace that the command has to change. A person is asked."
                },
                "reads": {
                    "type": "array",
                    "maxItems": GRANTS_MAX,
                    "items": {"type": "string", "minLength": 1},
                    "description": "Paths outside the workspace that the command has to read and may not. A person is asked."
                },
                "unconfined": {
                    "type": "boolean",
                    "description": "Run without the confinement, where nothing else helps. A person is asked."
                }
            }
        })
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::System
    }

    fn tier_for(&self, params: &Value, session: &SessionContext) -> TierVerdict {
        let mut verdict = TierVerdict::declared(self.permission_tier());
        // What is refused before it runs is not read: it may be of any length.
        let Ok(order) = Order::new(params) else {
            return verdict;
        };
        let asked = judge::Asked {
            command: &order.command,
            stdin: order.stdin.as_deref(),
            working_dir: order.working_dir.as_deref(),
        };
        judge::command(
            &asked,
            session,
            &self.environment,
            &self.permissions.now().commands,
            &mut verdict,
        );
        if !self.confines_files() {
            // Outside of the workspace nothing is kept, and the kernel keeps nothing out.
            for reason in std::mem::take(&mut verdict.unless_undone) {
                if judge::reaches_out(&reason.subject, &session.workspace_root) {
                    verdict.raise_exact(reason);
                } else {
                    verdict.unless_undone.push(reason);
                }
            }
        }
        self.grants(params, &order, session)
            .raise(session, &mut verdict);
        if params["unconfined"] == true && self.confinement.mode != Mode::Off {
            let text = "runs OUTSIDE OF THE CONFINEMENT: it may read and change every file that this user may, \
                        and signal every process of it";
            verdict.raise_exact(Reason::new(
                confined::UNCONFINED,
                one_line(&order.command, DISPLAY_COMMAND_CHARS),
                text,
            ));
        }
        verdict
    }

    // A shell can reach anything, so the most far-reaching effect is the only honest one.
    fn effect(&self) -> Effect {
        Effect::External
    }

    fn may_change_workspace(&self) -> bool {
        true
    }

    fn is_available(&self, session: &SessionContext) -> bool {
        session.exec.is_some()
    }

    fn is_idempotent(&self) -> bool {
        false
    }

    fn default_timeout_ms(&self) -> u64 {
        self.timeout_ms
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let place = Place::to_run(ctx)?;
        let order = Order::new(params)?;
        let asked_ms = args::optional_count(params, "timeout_ms")?.unwrap_or(u64::MAX);
        // The stack's limit is the configured one; the tool's own only stands in where there is none.
        let allowed_ms = ctx.call.time_limit_ms.unwrap_or(self.timeout_ms);
        let limit = Duration::from_millis(allowed_ms.min(asked_ms));

        let display = one_line(&order.command, DISPLAY_COMMAND_CHARS);
        let lifeline = ctx.call.lifeline.clone();
        let tag = Tag::new(ctx.session.workspace_root.clone());
        let rules = confined::Rules::new(
            &self.confinement,
            self.kernel,
            &ctx.session,
            tag.mark(),
            self.grants(params, &order, &ctx.session),
        );
        let hold = rules.hold();
        let outfit = Outfit {
            environment: self.environment.clone(),
            variable: tag.variable(),
            rules,
        };
        let _kept = Modes::of(&ctx.session.reserved);
        let prepare = move || order.into_command(&place, outfit, lifeline);
        match supervise::run(prepare, tag, limit).await? {
            Ended::Exited(finished) => Ok(hold.explain(result(&display, finished))),
            // Ending it takes a moment; what is told is the limit that it was held to.
            Ended::TimedOut {
                elapsed,
                stdout,
                stderr,
                gone,
            } => Err(ToolError::Timeout {
                elapsed: elapsed.min(limit),
                so_far: Some(Box::new(printed(stdout, stderr, gone))),
            }),
        }
    }
}

/// Waits until no command of this process is running any more, for at most `limit`, and says
/// whether none is. What commands left in the background is ended as well.
///
/// A command whose caller has gone away is ended in the background, gently first. A process that
/// wants to exit meanwhile should wait here for a moment: its own end would cut that short.
///
/// ```
/// use std::time::Duration;
/// assert!(holdfast_toolbox::tools::exec::wait_until_idle(Duration::from_secs(1)));
/// ```
pub fn wait_until_idle(limit: Duration) -> bool {
    supervise::wait_until_idle(limit)
}

/// Whether this process was started, directly or through others, by a tool.
///
/// Answers that only people may give are refused there. The mark can be removed by a process that
/// wants to, so this is a second line: the first is that tools can not reach the approver's token.
pub fn is_inside_a_tool() -> bool {
    family::is_marked()
}
