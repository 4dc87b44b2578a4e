//! What a tool is.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::approval::TierVerdict;
use crate::context::{SessionContext, ToolContext};
use crate::error::ToolError;
use crate::trust::Trust;

/// How much trust a call needs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum PermissionTier {
    /// Observes only.
    ReadOnly,
    /// Changes things inside the agent's workspace.
    Workspace,
    /// Changes things outside the workspace.
    System,
    /// Can not be taken back, or hits hard: a person has to approve it.
    Elevated,
}

/// What a call leaves behind in the world, which decides whether it can be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Effect {
    /// Nothing: repeating it is free.
    None,
    /// Files in the workspace.
    Workspace,
    /// Something beyond the workspace: a sent message, a payment, a posted form.
    External,
}

impl Effect {
    /// Whether repeating the call can change anything.
    pub fn is_mutating(self) -> bool {
        self != Self::None
    }
}

/// Something a call produced besides its output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Artifact {
    /// A file in the workspace that was created or changed.
    File {
        /// Relative to the workspace.
        path: String,
    },
    /// Something that lives elsewhere.
    Reference {
        /// How to find it.
        uri: String,
    },
}

/// What a tool gives back when it worked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolResult {
    /// For the model: structured and exact.
    pub output: Value,
    /// For a person: one readable line or two.
    pub display: String,
    /// What was produced besides the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// The exit code when the tool ran a command that said no. A command that ran and returned
    /// non-zero is a result, not a failure of the tool; the loop guard still wants to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How far this result is trusted, where it is another than the tool's results commonly are:
    /// what is read from memory keeps the trust it was stored with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
}

impl ToolResult {
    /// A result without artifacts.
    pub fn new(output: Value, display: impl Into<String>) -> Self {
        Self {
            output,
            display: display.into(),
            artifacts: Vec::new(),
            exit_code: None,
            trust: None,
        }
    }
}

/// A tool: its declaration and its execution in one place, so that the two can not drift.
///
/// ```
/// use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
/// use serde_json::{Value, json};
///
/// struct Add;
///
/// #[async_trait::async_trait]
/// impl Tool for Add {
///     fn name(&self) -> &str { "add" }
///     fn description(&self) -> &str { "Adds two integers." }
///     fn parameters_schema(&self) -> Value {
///         json!({"type": "object", "required": ["a", "b"],
///                "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}})
///     }
///     fn permission_tier(&self) -> PermissionTier { PermissionTier::ReadOnly }
///     fn effect(&self) -> Effect { Effect::None }
///     async fn execute(&self, params: &Value, _ctx: &ToolContext) -> Result<ToolResult, ToolError> {
///         // The stack has validated `params` against the schema above.
///         let sum = params["a"].as_i64().unwrap_or(0) + params["b"].as_i64().unwrap_or(0);
///         Ok(ToolResult::new(json!({"sum": sum}), format!("The sum is {sum}.")))
///     }
/// }
/// assert!(Add.is_idempotent());
/// ```
#[async_trait]
pub trait Tool: Send + Sync {
    /// The name a model calls it by.
    fn name(&self) -> &str;

    /// Other names that models know what it does by. A call by one of them is a call of the tool:
    /// rules, keys and records only ever hold its own name.
    fn aliases(&self) -> &[&str] {
        &[]
    }

    /// Where the tool comes from; part of every key, so that two hosts' `read` never share one.
    fn namespace(&self) -> &str {
        "holdfast.tools"
    }

    /// What it does, for the model's prompt.
    fn description(&self) -> &str;

    /// JSON Schema (2020-12) of the arguments. Compiled once, when the tool is registered.
    fn parameters_schema(&self) -> Value;

    /// The trust a call needs at least.
    fn permission_tier(&self) -> PermissionTier;

    /// The trust this call needs, by its arguments: never less than [`Tool::permission_tier`].
    ///
    /// Called before the arguments are checked against the schema, and once more right before an
    /// approved call runs; it must not have effects and must not trust the arguments' shape.
    fn tier_for(&self, _params: &Value, _session: &SessionContext) -> TierVerdict {
        TierVerdict::declared(self.permission_tier())
    }

    /// The name under which what it does is known: for a tool that stands for one elsewhere, that
    /// one's. By it `exec` is ordinary work and `message` is sent once, wherever they run.
    fn known_as(&self) -> &str {
        self.name()
    }

    /// What a call hands on to a system behind the tool, to be judged as what is done here is.
    ///
    /// Like [`Tool::tier_for`] it has no effects and does not trust the arguments' shape.
    fn hands_on(&self, _params: &Value) -> HandsOn {
        HandsOn::default()
    }

    /// What a call leaves behind.
    fn effect(&self) -> Effect;

    /// Whether it may change files of the session's workspace, so that their state is kept first.
    fn may_change_workspace(&self) -> bool {
        self.effect() == Effect::Workspace
    }

    /// Whether a session holds what every call of this tool needs. A model is not offered a tool
    /// that its session can never use; whoever calls it all the same is told what is missing.
    fn is_available(&self, _session: &SessionContext) -> bool {
        true
    }

    /// Whether doing it twice equals doing it once. A read-only tool is by nature.
    fn is_idempotent(&self) -> bool {
        !self.effect().is_mutating()
    }

    /// Whether the tool passes our idempotency key to a downstream that honours it, which makes a
    /// repeat after a lost answer safe.
    fn forwards_idempotency_key(&self) -> bool {
        false
    }

    /// Whether identical calls with identical answers are this tool's ordinary use (waiting for a
    /// job to finish), so that the loop guard leaves them alone.
    fn polls(&self) -> bool {
        false
    }

    /// The dependency behind the tool, for a circuit breaker that several tools share.
    fn dependency(&self) -> Option<&str> {
        None
    }

    /// Which of many things behind the tool this call needs, where each is up or down by itself: the
    /// host of an address. What is down is then left alone without the others.
    fn depends_on(&self, _params: &Value) -> Option<String> {
        None
    }

    /// How long one attempt may take by default.
    fn default_timeout_ms(&self) -> u64 {
        60_000
    }

    /// Runs the call. `params` fit [`Tool::parameters_schema`]. They are borrowed, not owned,
    /// because a retry needs them again and most calls never retry.
    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError>;

    /// Finds out whether an earlier call with this key took effect, when its answer was lost.
    async fn reconcile(&self, _params: &Value, _ctx: &ToolContext) -> Reconciled {
        Reconciled::CanNotTell
    }
}

/// What a call hands on to a system behind its tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandsOn {
    /// Commands that are run there.
    pub commands: Vec<HandedCommand>,
    /// Texts that may be, or hold, paths that are touched there.
    pub paths: Vec<String>,
}

/// A command that is run elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandedCommand {
    /// The command line.
    pub command: String,
    /// Where it runs.
    pub working_dir: Option<String>,
    /// What it can read.
    pub stdin: Option<String>,
}

/// What [`Tool::reconcile`] found out about a call whose answer was lost.
#[derive(Debug, Clone, PartialEq)]
pub enum Reconciled {
    /// The effect happened, and this is what the call would have answered.
    Done(ToolResult),
    /// The effect certainly did not happen and no longer will. Not to be said while an attempt may
    /// still be under way somewhere: the first holder may only have stalled.
    NotDone,
    /// Nobody knows.
    CanNotTell,
}
