//! Hooks that are commands: JSON on standard input, JSON on standard output, a time limit.

use std::process::Stdio;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdfast_contract::ToolCallEnvelope;
use rustix::process::{Pid, Signal, kill_process_group};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::{AdmitAnswer, AdmitHook, HookEvent, ObserveHook, Phase};

/// A hook's output is read up to this size; a larger one is an error.
pub const HOOK_OUTPUT_BYTES_MAX: u64 = 1024 * 1024;
/// A hook that takes longer than this is stopped, unless configured otherwise.
pub const HOOK_TIMEOUT_MS: u64 = 5_000;

/// A configured hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[expect(
    clippy::unsafe_derive_deserialize,
    reason = "the unsafe code is inside tokio's join macro and does not depend on these fields"
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommandHook {
    /// The program and its arguments; no shell is involved.
    pub command: Vec<String>,
    /// How long it may take.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Only for these tools; empty for all.
    #[serde(default)]
    pub tools: Vec<String>,
}

fn default_timeout_ms() -> u64 {
    HOOK_TIMEOUT_MS
}

/// The hooks of a configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HooksConfig {
    /// Asked before a call begins. Answers `{"idempotencyKey"?, "params"?, "refuse"?}`; a failure
    /// or a time-out refuses the call.
    pub admit: Vec<CommandHook>,
    /// Told before every attempt.
    pub before: Vec<CommandHook>,
    /// Told after every attempt.
    pub after: Vec<CommandHook>,
}

impl CommandHook {
    /// What is wrong with it, if anything.
    pub fn problem(&self) -> Option<&'static str> {
        match self.command.first() {
            None => Some("needs a command"),
            Some(program) if program.trim().is_empty() => Some("has a blank program name"),
            Some(_) if self.timeout_ms == 0 => Some("has a time limit of zero"),
            Some(_) => None,
        }
    }

    fn is_for(&self, tool: &str) -> bool {
        self.tools.is_empty() || self.tools.iter().any(|name| name == tool)
    }

    async fn run(&self, input: &Value) -> Result<Vec<u8>, String> {
        let limit = Duration::from_millis(self.timeout_ms);
        tokio::time::timeout(limit, self.exchange(input))
            .await
            .unwrap_or_else(|_| Err(format!("no answer within {} ms", self.timeout_ms)))
    }

    async fn exchange(&self, input: &Value) -> Result<Vec<u8>, String> {
        let [program, arguments @ ..] = self.command.as_slice() else {
            return Err("no command".to_owned());
        };
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{program} can not be started: {error}"))?;
        let mut group = Group::of(&child);
        let text = input.to_string();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let write = async {
            if let Some(mut stdin) = stdin {
                // A hook that does not read its input is no reason to fail.
                let _ = stdin.write_all(text.as_bytes()).await;
            }
        };
        let read = async {
            let mut output = Vec::new();
            match stdout {
                Some(stdout) => stdout
                    .take(HOOK_OUTPUT_BYTES_MAX + 1)
                    .read_to_end(&mut output)
                    .await
                    .map(|_| output),
                None => Ok(output),
            }
        };
        let end = async {
            let status = child.wait().await;
            // What a hook leaves in the background after its own end is its own affair.
            group.0 = None;
            status
        };
        let ((), output, status) = tokio::join!(write, read, end);
        let status = status.map_err(|error| error.to_string())?;
        let output = output.map_err(|error| error.to_string())?;
        if output.len() as u64 > HOOK_OUTPUT_BYTES_MAX {
            return Err(format!(
                "it printed more than {HOOK_OUTPUT_BYTES_MAX} bytes"
            ));
        }
        if status.success() {
            Ok(output)
        } else {
            Err(format!("it ended with {status}"))
        }
    }
}

/// The processes of a hook that has not ended. Dropping this ends them all: a hook that is cut off
/// would leave what it started behind, with our standard error open.
struct Group(Option<Pid>);

impl Group {
    fn of(leader: &Child) -> Self {
        let number = leader.id().and_then(|id| i32::try_from(id).ok());
        Self(number.and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // Its leader has not been reaped, so the number is still its own.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

/// What an admit command prints. Unknown members are refused: a misspelt `refuse` must not pass.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Printed {
    #[serde(default)]
    idempotency_key: Option<String>,
    #[serde(default)]
    params: Option<Value>,
    #[serde(default)]
    refuse: Option<String>,
}

impl AdmitHook for CommandHook {
    fn name(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    fn admit<'a>(
        &'a self,
        envelope: &'a ToolCallEnvelope,
    ) -> BoxFuture<'a, Result<AdmitAnswer, String>> {
        async move {
            if !self.is_for(&envelope.tool_name) {
                return Ok(AdmitAnswer::default());
            }
            let output = self
                .run(&json!({"phase": "admit", "envelope": envelope}))
                .await?;
            if output.iter().all(u8::is_ascii_whitespace) {
                return Ok(AdmitAnswer::default());
            }
            let printed: Printed = serde_json::from_slice(&output)
                .map_err(|error| format!("its answer is not understood: {error}"))?;
            Ok(AdmitAnswer {
                idempotency_key: printed.idempotency_key,
                params: printed.params,
                refuse: printed.refuse,
            })
        }
        .boxed()
    }
}

/// A command that is told of one phase.
pub struct ObservingCommand {
    hook: CommandHook,
    phase: Phase,
}

impl ObservingCommand {
    /// Tells `hook` of `phase`.
    pub fn new(hook: CommandHook, phase: Phase) -> Self {
        Self { hook, phase }
    }
}

impl ObserveHook for ObservingCommand {
    fn observe<'a>(&'a self, event: HookEvent<'a>) -> BoxFuture<'a, ()> {
        async move {
            if event.phase != self.phase || !self.hook.is_for(&event.call.envelope.tool_name) {
                return;
            }
            let outcome = event.reply.map(|reply| match &reply.outcome {
                Ok(_) => json!({"status": "success", "fromCache": reply.cache.is_some()}),
                Err(failure) => json!({"status": failure.status.as_str(), "code": failure.code,
                    "message": failure.message, "fromCache": reply.cache.is_some()}),
            });
            let input = json!({
                "phase": event.phase,
                "attempt": event.attempt,
                "shortCircuit": event.short_circuit(),
                "envelope": event.call.envelope,
                "outcome": outcome,
            });
            // It watches: whether it works is its own affair.
            let _ = self.hook.run(&input).await;
        }
        .boxed()
    }
}
