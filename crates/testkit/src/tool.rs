//! A tool that does what the test says.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
use parking_lot::Mutex;
use serde_json::{Value, json};

/// What the tool does on one execution.
#[derive(Debug, Clone)]
pub enum Reaction {
    /// Takes effect and answers.
    Succeed,
    /// Takes this long, then takes effect and answers.
    SucceedAfter(Duration),
    /// Answers with a command's non-zero exit.
    Exit(i32),
    /// Fails without any effect.
    Fail(ToolError),
    /// Takes effect, then fails as if the answer had been lost.
    EffectThenFail(ToolError),
    /// Takes effect, then never answers.
    EffectThenHang,
    /// Never answers.
    Hang,
    /// Panics.
    Panic,
}

/// A tool whose executions follow a script; the last reaction repeats.
pub struct ScriptedTool {
    name: &'static str,
    effect: Effect,
    idempotent: bool,
    script: Mutex<VecDeque<Reaction>>,
    executions: AtomicU32,
    effects: AtomicU32,
    seen: Mutex<Vec<Value>>,
}

impl ScriptedTool {
    /// A tool with effects in the outside world that must not be repeated.
    pub fn mutating(name: &'static str, script: impl IntoIterator<Item = Reaction>) -> Self {
        Self::new(name, Effect::External, false, script)
    }

    /// A tool without effects.
    pub fn read_only(name: &'static str, script: impl IntoIterator<Item = Reaction>) -> Self {
        Self::new(name, Effect::None, true, script)
    }

    /// Any tool.
    pub fn new(
        name: &'static str,
        effect: Effect,
        idempotent: bool,
        script: impl IntoIterator<Item = Reaction>,
    ) -> Self {
        Self {
            name,
            effect,
            idempotent,
            script: Mutex::new(script.into_iter().collect()),
            executions: AtomicU32::new(0),
            effects: AtomicU32::new(0),
            seen: Mutex::default(),
        }
    }

    /// How often it was executed.
    pub fn executions(&self) -> u32 {
        self.executions.load(Ordering::SeqCst)
    }

    /// How often its effect happened.
    pub fn effects(&self) -> u32 {
        self.effects.load(Ordering::SeqCst)
    }

    /// The arguments of every execution.
    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().clone()
    }

    /// Replaces the rest of the script.
    pub fn then(&self, script: impl IntoIterator<Item = Reaction>) {
        *self.script.lock() = script.into_iter().collect();
    }

    fn next(&self) -> Reaction {
        let mut script = self.script.lock();
        if script.len() > 1 {
            script.pop_front().unwrap_or(Reaction::Succeed)
        } else {
            script.front().cloned().unwrap_or(Reaction::Succeed)
        }
    }

    fn take_effect(&self) -> ToolResult {
        let count = self.effects.fetch_add(1, Ordering::SeqCst) + 1;
        ToolResult::new(json!({"effect": count}), format!("Took effect {count}."))
    }
}

#[async_trait]
impl Tool for ScriptedTool {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Does what the test says."
    }

    fn parameters_schema(&self) -> Value {
        json!({"type": "object", "properties": {"path": {"type": "string"}}})
    }

    fn permission_tier(&self) -> PermissionTier {
        if self.effect.is_mutating() {
            PermissionTier::System
        } else {
            PermissionTier::ReadOnly
        }
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    fn is_idempotent(&self) -> bool {
        self.idempotent
    }

    #[expect(
        clippy::panic,
        reason = "a tool that panics is one of the things to test"
    )]
    async fn execute(&self, params: &Value, _ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        self.executions.fetch_add(1, Ordering::SeqCst);
        self.seen.lock().push(params.clone());
        match self.next() {
            Reaction::Succeed => Ok(self.take_effect()),
            Reaction::SucceedAfter(delay) => {
                tokio::time::sleep(delay).await;
                Ok(self.take_effect())
            }
            Reaction::Exit(code) => {
                let mut result = ToolResult::new(json!({"exit_code": code}), "Ended.");
                result.exit_code = Some(code);
                Ok(result)
            }
            Reaction::Fail(error) => Err(error),
            Reaction::EffectThenFail(error) => {
                self.take_effect();
                Err(error)
            }
            Reaction::EffectThenHang => {
                self.take_effect();
                std::future::pending().await
            }
            Reaction::Hang => std::future::pending().await,
            Reaction::Panic => panic!("as the test says"),
        }
    }
}
