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
/// There are many other names, so one has to be closer.
const ALIAS_LIKENESS_MIN: f64 = 0.8;
/// One sign in this many may differ, be missing, be too many or change places with the next.
const SIGNS_PER_MISTAKE: usize = 3;

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
    /// Another tool has the alias, and nobody could say which of them is meant.
    #[error("{alias:?} can not be an alias of {tool:?}: it is one of {other:?}")]
    AliasTaken {
        /// The alias.
        alias: String,
        /// The tool that is to have it.
        tool: String,
        /// The tool that has it.
        other: String,
    },
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
    /// Other names, each with the name of its tool. Some may be a tool's own name, which wins.
    aliases: BTreeMap<String, String>,
}

impl Registry {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool and compiles its schema.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegisterError> {
        let name = tool.name().to_owned();
        let is_no_name = |name: &str| name.is_empty() || name.trim() != name;
        if is_no_name(&name) {
            return Err(RegisterError::BadName(name));
        }
        for alias in tool.aliases() {
            if is_no_name(alias) {
                return Err(RegisterError::BadName((*alias).to_owned()));
            }
            if let Some(other) = self.aliases.get(*alias) {
                return Err(RegisterError::AliasTaken {
                    alias: (*alias).to_owned(),
                    tool: name,
                    other: other.clone(),
                });
            }
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
        let aliases = tool.aliases().iter();
        let aliases: Vec<String> = aliases.map(|alias| (*alias).to_owned()).collect();
        self.aliases
            .extend(aliases.into_iter().map(|alias| (alias, name.clone())));
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

    /// The tool that a call by this name means: the one with the name, or else the one with the
    /// alias. For calls only; what rules and settings name is the tool's own name.
    pub fn resolve(&self, called: &str) -> Option<&Arc<Registered>> {
        self.get(called)
            .or_else(|| self.tools.get(self.aliases.get(called.trim())?))
    }

    /// All tools, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Registered>> {
        self.tools.values()
    }

    /// Those of the tools that fit.
    #[must_use]
    pub fn only(&self, fits: impl Fn(&dyn Tool) -> bool) -> Self {
        let tools = self.tools.iter().filter(|(_, it)| fits(&*it.tool));
        let tools: BTreeMap<_, _> = tools.map(|(name, it)| (name.clone(), it.clone())).collect();
        let mut aliases = self.aliases.clone();
        aliases.retain(|_, name| tools.contains_key(name));
        Self { tools, aliases }
    }

    /// The names most like an unknown one, best first. A tool is also known by its other names, of
    /// which the one most like it counts.
    pub fn suggest(&self, unknown: &str) -> Vec<&str> {
        let unknown = unknown.trim().to_lowercase();
        let likeness = |name: &str| strsim::jaro_winkler(&unknown, &name.to_lowercase());
        let own = self
            .tools
            .keys()
            .filter(|name| is_close(&unknown, &name.to_lowercase()))
            .map(|name| (likeness(name), name.as_str()));
        let mut alike: BTreeMap<&str, f64> = BTreeMap::new();
        for (likeness, name) in own {
            if likeness >= SUGGESTION_LIKENESS_MIN {
                alike.insert(name, likeness);
            }
        }
        let close = |(alias, _): &(&String, _)| is_close(&unknown, &alias.to_lowercase());
        for (alias, name) in self.aliases.iter().filter(close) {
            let likeness = likeness(alias);
            if likeness >= ALIAS_LIKENESS_MIN && self.tools.contains_key(name) {
                let best = alike.entry(name).or_insert(likeness);
                *best = best.max(likeness);
            }
        }
        let mut alike: Vec<(&str, f64)> = alike.into_iter().collect();
        alike.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
        alike
            .into_iter()
            .take(SUGGESTIONS_MAX)
            .map(|(name, _)| name)
            .collect()
    }
}

/// Whether one name is the other with few mistakes, or the longer of them begins with the other.
fn is_close(unknown: &str, known: &str) -> bool {
    let signs = unknown.chars().count().max(known.chars().count());
    let is_begun = |whole: &str, begun: &str| {
        begun.chars().count() >= SIGNS_PER_MISTAKE && whole.starts_with(begun)
    };
    is_begun(known, unknown)
        || is_begun(unknown, known)
        || strsim::damerau_levenshtein(unknown, known) <= signs / SIGNS_PER_MISTAKE
}

#[cfg(test)]
mod tests {
    use async_trait::async_trait;
    use holdfast_contract::{Effect, PermissionTier, ToolContext, ToolError, ToolResult};
    use serde_json::json;

    use super::*;
    use crate::tools::base_tools;

    struct Named(&'static str, &'static [&'static str]);

    #[async_trait]
    impl Tool for Named {
        fn name(&self) -> &str {
            self.0
        }

        fn aliases(&self) -> &[&str] {
            self.1
        }

        fn description(&self) -> &str {
            ""
        }

        fn parameters_schema(&self) -> Value {
            json!({"type": "object"})
        }

        fn permission_tier(&self) -> PermissionTier {
            PermissionTier::ReadOnly
        }

        fn effect(&self) -> Effect {
            Effect::None
        }

        async fn execute(&self, _: &Value, _: &ToolContext) -> Result<ToolResult, ToolError> {
            Ok(ToolResult::new(json!(null), ""))
        }
    }

    fn registry(tools: &[Named]) -> Result<Registry, RegisterError> {
        let mut registry = Registry::new();
        for tool in tools {
            registry.register(Arc::new(Named(tool.0, tool.1)))?;
        }
        Ok(registry)
    }

    fn meant<'r>(registry: &'r Registry, called: &str) -> Option<&'r str> {
        registry.resolve(called).map(|found| found.tool.name())
    }

    #[test]
    fn a_tool_is_called_by_its_name_or_an_alias_and_ruled_by_its_name() {
        let tools = [Named("one", &["uno", "two"]), Named("two", &["due", "one"])];
        let all = registry(&tools).unwrap();
        for (called, expected) in [
            ("one", Some("one")),
            (" uno ", Some("one")),
            // A name of one's own wins, whichever came first.
            ("two", Some("two")),
            ("due", Some("two")),
            ("tre", None),
            ("", None),
        ] {
            assert_eq!(meant(&all, called), expected, "{called:?}");
        }
        // A rule for an alias would be a rule for nothing.
        assert!(all.get("uno").is_none());
        // Whoever is not offered the tool is not offered it by another name.
        let few = all.only(|tool| tool.name() == "two");
        assert_eq!(meant(&few, "uno"), None);
        assert_eq!(meant(&few, "due"), Some("two"));
    }

    #[test]
    fn an_alias_is_of_one_tool_and_a_word() {
        let clash = registry(&[Named("one", &["uno"]), Named("two", &["uno"])]);
        let told = clash.err().map(|error| error.to_string());
        let expected = r#""uno" can not be an alias of "two": it is one of "one""#;
        assert_eq!(told.as_deref(), Some(expected));
        for alias in [&[""][..], &[" uno"]] {
            let bad = registry(&[Named("one", alias)]);
            assert!(matches!(bad, Err(RegisterError::BadName(_))), "{alias:?}");
        }
    }

    #[test]
    fn the_base_tools_are_known_by_the_names_that_models_give_them() {
        let mut registry = Registry::new();
        for tool in base_tools() {
            registry.register(tool).unwrap();
        }
        for (called, expected) in [
            ("shell", "exec"),
            ("bash", "exec"),
            ("run_command", "exec"),
            ("read_file", "read"),
            ("write_file", "write"),
            ("str_replace", "edit"),
        ] {
            assert_eq!(meant(&registry, called), Some(expected), "{called}");
        }
        // One that is nearly such a name is not taken for it, and leads there.
        for (called, expected) in [
            ("bsh", "exec"),
            ("Bash", "exec"),
            ("Shell", "exec"),
            ("readFile", "read"),
            ("exce", "exec"),
            ("wirte", "write"),
        ] {
            assert_eq!(meant(&registry, called), None, "{called}");
            let suggested = registry.suggest(called);
            assert_eq!(suggested.first(), Some(&expected), "{called}");
        }
        for unlike in ["zzz", "nope", "x", "frobnicate", "ad"] {
            assert_eq!(registry.suggest(unlike), Vec::<&str>::new(), "{unlike}");
        }
    }
}
