//! The model of one run, the tools that it is offered, and how its replies are read for calls of them.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_contract::{Effect, PermissionTier, Tool, ToolContext, ToolError, ToolResult};
use holdfast_intent::{Parser, ToolSet, ToolSpec};
use holdfast_toolbox::registry::{RegisterError, Registry};
use serde_json::{Value, json};

use super::returning::{ClientTools, Mode, ToolChoice};
use super::state::RunState;
use crate::model::Model;

/// Why a client's tools can not be offered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientToolError {
    /// One of them is no function.
    #[error("tools[{0}]: only functions with a name can be offered")]
    NotAFunction(usize),
    /// The name or the schema can not be used.
    #[error("tools: {0}")]
    Unusable(#[from] RegisterError),
    /// A call is demanded, and there is nothing to call.
    #[error("tool_choice: a call is required, and there are no tools")]
    NothingToCall,
    /// A choice of a tool that is not there.
    #[error("tool_choice: there is no tool named {0:?} in tools")]
    NoSuchTool(String),
}

/// A tool that runs at the client's.
struct ClientTool {
    name: String,
    description: String,
    schema: Value,
    effect: Effect,
}

#[async_trait]
impl Tool for ClientTool {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> &str {
        &self.description
    }

    fn parameters_schema(&self) -> Value {
        self.schema.clone()
    }

    fn permission_tier(&self) -> PermissionTier {
        PermissionTier::ReadOnly
    }

    fn effect(&self) -> Effect {
        self.effect
    }

    async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
        Err(ToolError::failed("this tool runs at the client's"))
    }
}

impl ClientTools {
    /// The tools, their schemas compiled; the error names what can not be offered.
    pub fn registry(&self) -> Result<Registry, ClientToolError> {
        let mut registry = Registry::new();
        if self.choice == ToolChoice::None {
            return Ok(registry);
        }
        for (place, written) in self.tools.iter().enumerate() {
            let spec = ToolSpec::from_json(written).ok_or(ClientToolError::NotAFunction(place))?;
            if matches!(&self.choice, ToolChoice::Named(name) if *name != spec.name) {
                continue;
            }
            let description = written["function"]["description"].as_str();
            registry.register(Arc::new(ClientTool {
                description: description.unwrap_or_default().to_owned(),
                // A function without parameters takes none.
                schema: match &*spec.schema {
                    Value::Null => json!({"type": "object", "properties": {}}),
                    schema => schema.clone(),
                },
                effect: if spec.mutating {
                    Effect::External
                } else {
                    Effect::None
                },
                name: spec.name,
            }))?;
        }
        match &self.choice {
            ToolChoice::Required if self.tools.is_empty() => Err(ClientToolError::NothingToCall),
            ToolChoice::Named(name) if registry.get(name).is_none() => {
                Err(ClientToolError::NoSuchTool(name.clone()))
            }
            _ => Ok(registry),
        }
    }
}

/// What is offered, and to whom.
pub(super) struct Offer<'a> {
    /// The same to the end of the run, whatever is exchanged meanwhile.
    pub(super) model: &'a dyn Model,
    pub(super) registry: &'a Registry,
    pub(super) parser: Parser,
}

impl<'a> Offer<'a> {
    /// These tools for this model, its replies read as the run's settings say.
    pub(super) fn new(model: &'a dyn Model, registry: &'a Registry, state: &RunState) -> Self {
        let (primary, fallback) = state.settings.strategies();
        let specs = registry.iter().map(|found| ToolSpec {
            mutating: found.tool.effect().is_mutating(),
            aliases: found
                .tool
                .aliases()
                .iter()
                .map(ToString::to_string)
                .collect(),
            ..ToolSpec::new(found.tool.name(), found.schema.clone())
        });
        let parser = Parser::new(ToolSet::new(specs.collect()));
        Self {
            model,
            registry,
            parser: parser.with_strategies(primary, fallback),
        }
    }

    /// Whether there is nothing to call.
    pub(super) fn is_empty(&self) -> bool {
        self.registry.iter().next().is_none()
    }

    /// What the model is told beside the tools and their format.
    pub(super) fn demand(mode: &Mode) -> Option<&'static str> {
        mode.demands_a_call()
            .then_some("You have to call a tool before you answer.")
    }
}
