//! The tools there are.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_contract::Tool;
use jsonschema::Validator;
use serde_json::Value;

/// Tools registered at most.
pub const TOOLS_MAX: usize = 1024;
/// Suggestions for an unknown name at most.
const SUGGESTIONS_MAX: usize = 3;
/// A name less alike than this is not suggested.
const SUGGESTION_LIKENESS_MIN: f64 = 0.6;

/// A registered tool, its schema compiled.
pub struct Registered {
    /// The tool.
    pub tool: Arc<dyn Tool>,
    /// Its schema as declared. Shared: every run that is offered the tool reads replies by it.
    pub schema: Arc<Value>,
    pub(crate) validator: Validator,
}

impl Registered {
    /// What is wrong with these arguments, for a model: the field, the reason, the field's schema.
    pub fn problem_with(&self, arguments: &Value) -> Option<String> {
        crate::validate::problem_with(self, arguments).map(|problem| problem.message)
    }
}

/// Why a tool can not be registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// Another tool has the name.
    #[error("a tool named {0:?} is registered already")]
    Taken(String),
    /// The name can not be used.
    #[error("{0:?} can not be a tool's name: it is empty or has blanks around it")]
    BadName(String),
    /// The schema is no schema.
    #[error("the parameters schema of {tool:?} is not valid: {reason}")]
    BadSchema {
        /// The tool.
        tool: String,
        /// What is wrong.
        reason: String,
    },
    /// There are too many.
    #[error("{TOOLS_MAX} tools are registered already")]
    Full,
}

/// The tools there are, by name.
#[derive(Default)]
pub struct Registry {
    tools: BTreeMap<String, Arc<Registered>>,
}

impl Registry {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool and compiles its schema.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let name = tool.name().to_owned();
        if name.is_empty() || name.trim() != name {
            return Err(RegisterError::BadName(name));
        }
        if self.tools.contains_key(&name) {
            return Err(RegisterError::Taken(name));
        }
        if self.tools.len() >= TOOLS_MAX {
            return Err(RegisterError::Full);
        }
        let schema = tool.parameters_schema();
        let validator =
            jsonschema::draft202012::new(&schema).map_err(|error| RegisterError::BadSchema {
                tool: name.clone(),
                reason: error.to_string(),
            })?;
        self.tools.insert(
            name,
            Arc::new(Registered {
                tool,
                schema: Arc::new(schema),
                validator,
            }),
        );
        Ok(())
    }

    /// The tool with this name. Blanks around a name are the model's, not the tool's.
    pub fn get(&self, name: &str) -> Option<&Arc<Registered>> {
        self.tools.get(name.trim())
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.tools.values()
    }

    /// Those of the tools that fit.
    #[must_use]
    pub fn only(&self, fits: impl Fn(&dyn Tool) -> bool) -> Self {
        let tools = self.tools.iter().filter(|(_, it)| fits(&*it.tool));
        Self {
            tools: tools.map(|(name, it)| (name.clone(), it.clone())).collect(),
        }
    }

    /// The names most like an unknown one, best first.
    pub fn suggest(&self, unknown: &str) -> Vec<&str> {
        let unknown = unknown.trim().to_lowercase();
        let mut alike: Vec<(f64, &str)> = self
            .tools
            .keys()
            .map(|name| {
                (
                    strsim::jaro_winkler(&unknown, &name.to_lowercase()),
                    name.as_str(),
                )
            })
            .filter(|(likeness, _)| *likeness >= SUGGESTION_LIKENESS_MIN)
            .collect();
        alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        alike
            .into_iter()
            .take(SUGGESTIONS_MAX)
            .map(|(_, name)| name)
            .collect()
    }
}
