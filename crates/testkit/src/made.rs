//! A tool that is made of what a test gives it.

use std::ops::Deref;
use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
use serde_json::{Value, json};

/// What a made tool does.
#[async_trait]
pub trait Does: Send + Sync {
    /// Runs once.
    async fn run(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError>;
}

/// A tool of any name, tier and effect that does what the test says. It stands for what it does, so
/// that a test can ask it what happened.
pub struct MadeTool<D> {
    name: &'static str,
    tier: PermissionTier,
    effect: Effect,
    schema: Value,
    does: D,
}

impl<D: Does + Default> MadeTool<D> {
    /// One that takes any arguments and needs not be told what to do.
    pub fn new(name: &'static str, tier: PermissionTier, effect: Effect) -> Arc<Self> {
        Arc::new(Self::doing(name, tier, effect, D::default()))
    }
}

impl<D: Does> MadeTool<D> {
    /// One that takes any arguments.
    pub fn doing(name: &'static str, tier: PermissionTier, effect: Effect, does: D) -> Self {
        Self {
            name,
            tier,
            effect,
            schema: json!({"type": "object"}),
            does,
        }
    }

    /// One that every session may call, and that has to be given a text.
    pub fn of_text(name: &'static str, effect: Effect, does: D) -> Self {
        let text = json!({"text": {"type": "string"}});
        Self {
            schema: json!({"type": "object", "properties": text, "required": ["text"]}),
            ..Self::doing(name, PermissionTier::ReadOnly, effect, does)
        }
    }
}

impl<D> Deref for MadeTool<D> {
    type Target = D;

    fn deref(&self) -> &D {
        &self.does
    }
}

#[async_trait]
impl<D: Does> Tool for MadeTool<D> {
    fn name(&self) -> &str {
        self.name
    }

    fn description(&self) -> &str {
        "Made for a test."
    }

    fn parameters_schema(&self) -> Value {
        self.schema.clone()
    }

    fn permission_tier(&self) -> PermissionTier {
        self.tier
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    async fn execute(&self, params: &Value, ctx: &ToolContext) -> Result<ToolResult, ToolError> {
        self.does.run(params, ctx).await
    }
}
