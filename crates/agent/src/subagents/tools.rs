//! The tools by which a session has subagents.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::{
    Effect, PermissionTier, Reconciled, SessionContext, SessionKind, Tool, ToolContext, ToolError,
    ToolResult,
};
use holdfast_toolbox::session::Session;
use holdfast_toolbox::session::model::{BRANCH_TTL_MS, SUMMARY_BYTES_MAX};
use serde::Deserialize;
use serde_json::{Value, json};

use super::SUBAGENT_WAIT_S_MAX;
use super::desk::{Subagents, Wish};

/// Begins a subagent.
pub const SPAWN: &str = "sessions_spawn";
/// Lists them.
pub const LIST: &str = "sessions_list";
/// Lets one go on.
pub const RESUME: &str = "sessions_resume";
/// Ends one.
pub const KILL: &str = "sessions_kill";

/// What a subagent's model may be called: there is one, and these are its names.
const MODELS: [&str; 4] = [
    "gpt-oss",
    "executor",
    "gpt-oss-executor",
    "gpt-oss-executor/executor",
];
/// Characters of a task that a list shows.
const TASK_CHARS_SHOWN: usize = 200;

impl Subagents {
    /// The tools.
    pub fn tools(self: &Arc<Self>) -> Vec<Arc<dyn Tool>> {
        [Act::Spawn, Act::List, Act::Resume, Act::Kill]
            .into_iter()
            .map(|act| -> Arc<dyn Tool> {
                let desk = self.clone();
                Arc::new(SessionTool { act, desk })
            })
            .collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Act {
    Spawn,
    List,
    Resume,
    Kill,
}

struct SessionTool {
    act: Act,
    desk: Arc<Subagents>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SpawnParams {
    task: String,
    agent_id: Option<String>,
    model: Option<String>,
    run_timeout_seconds: Option<f64>,
    label: Option<String>,
    kind: Option<String>,
    token_budget: Option<f64>,
    #[serde(default)]
    background: bool,
}

#[async_trait]
impl Tool for SessionTool {
    fn name(&self) -> &str {
        match self.act {
            Act::Spawn => SPAWN,
            Act::List => LIST,
            Act::Resume => RESUME,
            Act::Kill => KILL,
        }
    }

    fn description(&self) -> &str {
        match self.act {
            Act::Spawn => {
                "Gives a task to a subagent, which works on it with the same tools and gives back one \
                 result. Say all that it has to know in `task`: it knows nothing else. With \
                 `background` it goes on beside you, and sessions_list has its result."
            }
            Act::List => "Lists your subagents and their results.",
            Act::Resume => {
                "Lets a subagent go on that was suspended because it spent too much at once."
            }
            Act::Kill => "Tells a subagent to end. It has 30 seconds to do so.",
        }
    }

    fn parameters_schema(&self) -> Value {
        let named = json!({
            "type": "object", "additionalProperties": false, "required": ["session"],
            "properties": {"session": {"type": "string", "minLength": 1,
                "description": "The subagent's session, as sessions_spawn or sessions_list names it."}}});
        match self.act {
            Act::Spawn => spawn_schema(),
            Act::List => json!({
                "type": "object", "additionalProperties": false,
                "properties": {"waitSeconds": {"type": "integer", "minimum": 0, "maximum": SUBAGENT_WAIT_S_MAX,
                    "description": "Waits so long for one of them to end."}}}),
            Act::Resume | Act::Kill => named,
        }
    }

    fn permission_tier(&self) -> PermissionTier {
        match self.act {
            Act::List => PermissionTier::ReadOnly,
            Act::Spawn | Act::Resume | Act::Kill => PermissionTier::System,
        }
    }

    /// A subagent can do what its parent can, also beyond the workspace.
    fn effect(&self) -> Effect {
        match self.act {
            Act::List => Effect::None,
            Act::Spawn | Act::Resume | Act::Kill => Effect::External,
        }
    }

    /// A worker has no subagents.
    fn is_available(&self, session: &SessionContext) -> bool {
        session.kind != SessionKind::Worker
    }

    fn is_idempotent(&self) -> bool {
        self.act != Act::Spawn
    }

    /// Waiting for a subagent is what the list is for.
    fn polls(&self) -> bool {
        self.act == Act::List
    }

    fn default_timeout_ms(&self) -> u64 {
        match self.act {
            // Longer than any subagent lives by itself.
            Act::Spawn => BRANCH_TTL_MS + 60_000,
            Act::List => (SUBAGENT_WAIT_S_MAX + 30) * 1000,
            Act::Resume | Act::Kill => 60_000,
        }
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let parent = ctx.session.session_id.as_str();
        match self.act {
            Act::Spawn => self.spawn(params, ctx).await,
            Act::List => {
                let seconds = params["waitSeconds"].as_f64().unwrap_or(0.0);
                let wait = Duration::try_from_secs_f64(seconds).unwrap_or_default();
                let most = Duration::from_secs(SUBAGENT_WAIT_S_MAX);
                let found = self.desk.list(parent, wait.min(most)).await?;
                let listed: Vec<Value> = found
                    .iter()
                    .map(|(session, run)| shown(session, run.as_deref()))
                    .collect();
                let count = listed.len();
                let display = format!("{count} subagent(s)");
                Ok(ToolResult::new(json!({ "sessions": listed }), display))
            }
            Act::Resume => {
                let session = self.desk.resume(named(params)?, ctx).await?;
                Ok(ToolResult::new(shown(&session, None), "It goes on"))
            }
            Act::Kill => {
                let session = self.desk.kill(parent, named(params)?).await?;
                let display = if session.state.has_ended() {
                    "It has ended already"
                } else {
                    "It was told to end"
                };
                Ok(ToolResult::new(shown(&session, None), display))
            }
        }
    }

    /// The session's key is made of the call's, so that it can be found out whether it was made.
    async fn reconcile(&self, _: &Value, ctx: &ToolContext) -> Reconciled {
        if self.act != Act::Spawn {
            return Reconciled::CanNotTell;
        }
        match self.desk.tree().get(&Subagents::key_of(ctx)).await {
            Ok(session) if session.state.has_ended() => Reconciled::Done(ToolResult::new(
                shown(&session, None),
                "The subagent has ended",
            )),
            // It may be at work in another process.
            Ok(_) | Err(_) => Reconciled::CanNotTell,
        }
    }
}

impl SessionTool {
    async fn spawn(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        let asked: SpawnParams = serde_json::from_value(params.clone())
            .map_err(|error| ToolError::invalid(None, error.to_string()))?;
        if let Some(model) = &asked.model
            && !MODELS.contains(&model.as_str())
        {
            let why =
                format!("there is no model {model:?} here; leave it out, or say one of {MODELS:?}");
            return Err(ToolError::invalid(Some("/model"), why));
        }
        let wish = Wish {
            task: asked.task,
            kind: match asked.kind.as_deref() {
                Some("worker") => SessionKind::Worker,
                _ => SessionKind::Branch,
            },
            // The agent is always this one; whoever names another is at least told by the label.
            label: asked.label.or(asked.agent_id),
            timeout_ms: asked
                .run_timeout_seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
                .and_then(|time| u64::try_from(time.as_millis()).ok()),
            token_budget: asked.token_budget.and_then(whole),
        };
        let begun = self.desk.spawn(wish, ctx).await?;
        if asked.background {
            let value = shown(&begun.session, Some(&begun.run));
            return Ok(ToolResult::new(
                value,
                "The subagent works in the background",
            ));
        }
        let session = self.desk.settled(&begun.session.id).await?;
        let display = match &session.result {
            Some(result) => format!("The subagent has ended: {:?}", result.status),
            None => "The subagent is suspended".to_owned(),
        };
        Ok(ToolResult::new(shown(&session, Some(&begun.run)), display))
    }
}

fn spawn_schema() -> Value {
    json!({
        "type": "object", "additionalProperties": false, "required": ["task"],
        "properties": {
            "task": {"type": "string", "minLength": 1, "maxLength": SUMMARY_BYTES_MAX / 4,
                     "description": "What is to be done, and all that has to be known for it."},
            "label": {"type": "string", "minLength": 1, "maxLength": 200, "description": "What to call it."},
            "runTimeoutSeconds": {"type": "integer", "minimum": 1, "description": "How long it may take."},
            "tokenBudget": {"type": "integer", "minimum": 1, "description": "Tokens that it may use."},
            "kind": {"enum": ["branch", "worker"],
                     "description": "A branch (the default) may change things; a worker only looks."},
            "background": {"type": "boolean", "description": "Do not wait for its result."},
            "agentId": {"type": "string", "description": "Taken for OpenClaw's sake; the agent is always this one."},
            "model": {"type": "string", "description": "Taken for OpenClaw's sake; leave it out."}
        }
    })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the schema asks for a whole number from 1 up, and what is larger is no bound"
)]
fn whole(number: f64) -> Option<u64> {
    (number >= 1.0).then_some(number as u64)
}

fn named(params: &Value) -> Result<&str, ToolError> {
    params["session"]
        .as_str()
        .ok_or_else(|| ToolError::invalid(Some("/session"), "`session` is required"))
}

/// A subagent, for its parent.
fn shown(session: &Session, run: Option<&str>) -> Value {
    let task = session.context_summary.as_deref().unwrap_or_default();
    let mut value = json!({
        "session": session.id,
        "kind": session.kind.name(),
        "task": task.chars().take(TASK_CHARS_SHOWN).collect::<String>(),
        "tokensSpent": session.tokens.spent,
    });
    if let (Value::Object(fields), Value::Object(state)) = (&mut value, json!(session.state)) {
        fields.extend(state);
        if session.end_by_ms.is_some() && !session.state.has_ended() {
            fields.insert("state".to_owned(), json!("ending"));
        }
        for (name, found) in [
            ("label", session.label.as_deref().map(|it| json!(it))),
            ("run", run.map(|it| json!(it))),
            ("result", session.result.as_ref().map(|it| json!(it))),
        ] {
            if let Some(found) = found {
                fields.insert(name.to_owned(), found);
            }
        }
    }
    value
}
